"""Edits of what is iterated, and of loops as such."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pytest_autofix.candidates.search.registry import operator
from pytest_autofix.candidates.search.site import Replacement, Site
from pytest_autofix.candidates.search.snippet import AND, ATOM, NOT, OR, Snippet, atom, call, required


@operator("loop.iterable", prior=0.35, on=[ast.For, ast.comprehension])
def iterable(site: Site) -> Iterator[Replacement]:
    """Another thing is iterated: any value in scope, or a copy where the loop changes what it runs over."""
    over = site.node.iter
    taken = site.take(over)
    inner = Site(site.context, over)
    if isinstance(over, (ast.Name, ast.Attribute)):
        changes = 1.0 if _changes(site, taken.text) else 0.2
        yield site.replace(over, call("list", taken), changes)
    elif not isinstance(over, (ast.Constant, ast.List, ast.Tuple)):
        for name, weight in inner.values():
            if inner.type_of(name) in ("list", "tuple", "set", "dict", "str", "deque", "generator"):
                yield site.replace(over, atom(name), weight)
            elif not inner.type_of(name):
                yield site.replace(over, atom(name), weight * 0.4)
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and over.func.id == "zip":
        names = [argument.id for argument in over.args if isinstance(argument, ast.Name)]
        if len(names) == len(over.args) == 2 and names[0] == names[1]:
            yield site.replace(over.args[1], atom(f"{names[1]}[1:]"))


def _changes(site: Site, name: str) -> bool:
    for node in ast.walk(site.node):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and (
                node.func.attr in ("remove", "pop", "append", "insert", "add", "discard")
                and site.text(node.func.value) == name
            )
        ):
            return True
    return False


@operator("loop.enumerate", prior=0.35, on=[ast.For, ast.comprehension])
def enumerated(site: Site) -> Iterator[Replacement]:
    """Items where pairs are unpacked, and the other way round: `enumerate(x)`, `x.items()`."""
    node = site.node
    pair = isinstance(node.target, ast.Tuple) and len(node.target.elts) == 2
    over = site.take(node.iter)
    called = isinstance(node.iter, ast.Call)
    level = required(node, "iter")
    if pair and not called:
        yield site.replace(node.iter, call("enumerate", over), 1.0)
        yield site.replace(node.iter, atom(f"{over.at(ATOM)}.items()"), 1.0)
    if (
        pair
        and called
        and isinstance(node.iter.func, ast.Name)
        and node.iter.func.id == "enumerate"
        and level
    ) and len(node.iter.args) == 1:
        end = site.source.span(node.iter.args[0])[1]
        yield Replacement(((end, end, ", 1"),), 0.8)


@operator("loop.element", prior=0.3, on=[ast.ListComp, ast.SetComp, ast.GeneratorExp])
def element(site: Site) -> Iterator[Replacement]:
    """What a comprehension collects: its variable itself; its kind: list, set or generator."""
    node = site.node
    targets = [
        one.id
        for generator in node.generators
        for one in ast.walk(generator.target)
        if isinstance(one, ast.Name)
    ]
    for name in targets:
        if site.text(node.elt) != name:
            yield site.replace(node.elt, atom(name), 0.5)
    if len(node.generators) == 2:
        first, second = node.generators
        yield Replacement(
            (
                site.splice(first.target, site.take(second.target)),
                site.splice(first.iter, site.take(second.iter)),
                site.splice(second.target, site.take(first.target)),
                site.splice(second.iter, site.take(first.iter)),
            ),
            0.5,
        )
    start, end = site.source.span(node)
    if isinstance(node, ast.ListComp):
        yield Replacement(((start, start + 1, "{"), (end - 1, end, "}")), 0.4)
    elif isinstance(node, ast.SetComp):
        yield Replacement(((start, start + 1, "["), (end - 1, end, "]")), 0.6)
    elif isinstance(node, ast.GeneratorExp) and not isinstance(site.parent(), ast.Call):
        yield Replacement(((start, start + 1, "["), (end - 1, end, "]")), 1.0)


@operator("loop.end_condition", prior=0.25, on=[ast.While])
def end_condition(site: Site) -> Iterator[Replacement]:
    """One of two conditions of a loop is missing: it also ends when something is used up."""
    node = site.node
    if isinstance(node.test, ast.Constant):
        return
    taken = site.take(node.test)
    for name, weight in site.variables():
        if site.type_of(name) in ("list", "set", "dict", "deque", "str"):
            yield site.replace(node.test, Snippet(f"{name} and {taken.at(NOT)}", AND), weight)
            yield site.replace(node.test, Snippet(f"{taken.at(AND)} or {name}", OR), weight * 0.7)


@operator("loop.dict", prior=0.25, on=[ast.Dict, ast.DictComp])
def pairs(site: Site) -> Iterator[Replacement]:
    """Keys and values the wrong way round."""
    node = site.node
    if isinstance(node, ast.DictComp):
        yield site.swap(node.key, node.value)
        return
    for key, value in zip(node.keys, node.values, strict=True):
        if key is not None and not isinstance(key, ast.Constant) and len(node.keys) <= 4:
            yield site.swap(key, value, 0.5)
    for one, other in zip(node.values, node.values[1:], strict=False):
        if len(node.values) <= 6:
            yield site.swap(one, other, 0.5)
