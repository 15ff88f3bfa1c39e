"""A call put around an expression, or a method put behind it: what turns the value into the one that is meant."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pytest_autofix.candidates.search.registry import operator
from pytest_autofix.candidates.search.site import Replacement, Site
from pytest_autofix.candidates.search.snippet import ATOM, atom, binary, call

_VALUES = [
    ast.Name,
    ast.Attribute,
    ast.Call,
    ast.Subscript,
    ast.BinOp,
    ast.ListComp,
    ast.GeneratorExp,
    ast.List,
]

_AROUND: tuple[tuple[str, tuple[str, ...], float], ...] = (
    ("len", ("list", "str", "dict", "set", "tuple", "deque"), 1.0),
    ("str", ("int", "float", "bool", "NoneType", ""), 0.6),
    ("int", ("str", "float", "bool", ""), 0.7),
    ("float", ("str", "int", ""), 0.3),
    ("abs", ("int", "float", ""), 0.8),
    ("round", ("float", ""), 0.3),
    ("list", ("tuple", "set", "dict", "str", "generator", "list", ""), 0.6),
    ("sorted", ("list", "set", "tuple", "dict", "generator", ""), 0.7),
    ("reversed", ("list", "tuple", "str", ""), 0.5),
    ("set", ("list", "tuple", "str", "generator", ""), 0.5),
    ("tuple", ("list", "set", "generator", ""), 0.3),
    ("sum", ("list", "set", "tuple", "generator"), 0.5),
    ("max", ("list", "set", "tuple"), 0.3),
    ("min", ("list", "set", "tuple"), 0.3),
    ("bool", ("int", "str", "list", "dict", ""), 0.3),
    ("enumerate", ("list", "str", "tuple", ""), 0.0),
    ("dict", ("list", "dict"), 0.2),
    ("repr", ("str",), 0.2),
)
_BEHIND: dict[str, tuple[str, ...]] = {
    "str": (".strip()", ".lower()", ".upper()", ".split()", ".rstrip()", ".lstrip()", ".casefold()", ".title()"),
    "list": (".copy()", ".pop()"),
    "dict": (".items()", ".values()", ".keys()", ".copy()"),
    "set": (".copy()",),
}  # fmt: skip


def _is_wrappable(site: Site) -> bool:
    parent = site.parent()
    if isinstance(site.node, ast.GeneratorExp) and isinstance(parent, ast.Call):
        return False
    if isinstance(parent, ast.Subscript) and site.field() == "value":
        return False
    return site.is_value()


@operator("wrap.call", prior=0.35, on=_VALUES)
def wrap_call(site: Site) -> Iterator[Replacement]:
    """A builtin function around the value: a length, a conversion, an absolute value, a sorted copy."""
    node, parent = site.node, site.parent()
    if not _is_wrappable(site) or (site.is_condition() and not isinstance(parent, ast.Compare)):
        return
    kind = site.type_of(node)
    already = parent.func.id if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) else ""
    iterated = isinstance(parent, (ast.For, ast.comprehension))
    for name, types, weight in _AROUND:
        if name == already or (kind not in types and kind != ""):
            continue
        if iterated and name not in ("list", "sorted", "reversed", "set", "range"):
            continue
        factor = weight if kind in types and kind else weight * 0.4
        if factor:
            yield site.replace(node, call(name, site.take(node)), factor)
    if iterated and already != "range" and kind in ("int", "float", ""):
        yield site.replace(node, call("range", site.take(node)), 1.0 if kind == "int" else 0.3)
        yield site.replace(node, call("range", call("len", site.take(node))), 0.2)


@operator("wrap.own_function", prior=0.3, on=[ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp])
def wrap_own(site: Site) -> Iterator[Replacement]:
    """A function of the file with one parameter around the value, or a method of the class."""
    node, parent = site.node, site.parent()
    if not _is_wrappable(site) or isinstance(parent, ast.keyword):
        return
    for name, signature in site.context.module.functions.items():
        if signature.accepts(1) and not (isinstance(parent, ast.Call) and site.text(parent.func) == name):
            yield site.replace(node, call(name, site.take(node)), 0.7)
    if site.scope.owner == "self":
        for name, signature in site.scope.methods.items():
            if signature.accepts(1) and not name.startswith("__"):
                yield site.replace(node, call(f"self.{name}", site.take(node)), 0.5)


@operator("wrap.method", prior=0.3, on=[ast.Name, ast.Attribute, ast.Call, ast.Subscript])
def wrap_method(site: Site) -> Iterator[Replacement]:
    """A method behind the value: stripped, in lower case, a copy, the items of a mapping."""
    node, parent = site.node, site.parent()
    if not _is_wrappable(site) or (site.is_condition() and not isinstance(parent, ast.Compare)):
        return
    kind = site.type_of(node)
    for owner, methods in _BEHIND.items():
        if kind not in ("", owner):
            continue
        for index, method in enumerate(methods):
            if (
                owner == "dict"
                and method != ".copy()"
                and not kind
                and not isinstance(parent, (ast.For, ast.comprehension))
            ):
                continue
            weight = (1.0 if kind else 0.25) / (1 + 0.2 * index)
            yield site.replace(node, atom(site.take(node).at(ATOM) + method), weight)


@operator("wrap.bound", prior=0.3, on=[ast.Name, ast.Attribute, ast.Call, ast.BinOp, ast.Subscript])
def bound(site: Site) -> Iterator[Replacement]:
    """A value that must not leave a range: `max(x, 0)`, `min(x, limit)`, or the larger of it and another."""
    node, parent = site.node, site.parent()
    if not _is_wrappable(site) or site.is_condition() or not site.may_be(node, "int", "float"):
        return
    if not isinstance(
        parent, (ast.Return, ast.Assign, ast.AugAssign, ast.Call, ast.Slice, ast.Subscript, ast.BinOp)
    ):
        return
    if (
        isinstance(parent, ast.Call)
        and isinstance(parent.func, ast.Name)
        and parent.func.id in ("min", "max")
    ):
        return
    place = 1.0 if isinstance(parent, (ast.Return, ast.Assign)) else 0.4
    value = site.take(node)
    yield site.replace(node, call("max", value, atom("0")), place)
    yield site.replace(node, call("max", value, atom("1")), place * 0.5)
    target = site.statement()
    stored = []
    if isinstance(target, ast.Assign) and isinstance(parent, ast.Assign):
        stored = [
            site.text(one)
            for one in target.targets
            if isinstance(one, (ast.Name, ast.Attribute, ast.Subscript))
        ]
        for old in stored:  # a running maximum or minimum that forgets what it had
            yield site.replace(node, call("max", atom(old), value), 1.0)
            yield site.replace(node, call("min", atom(old), value), 1.0)
    inside = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    for name, weight in site.values():
        if (
            name in stored
            or (name in inside and isinstance(node, ast.Name))
            or not site.may_be(name, "int", "float")
        ):
            continue
        for function in ("min", "max"):
            yield site.replace(node, call(function, value, atom(name)), weight * 0.5 * place)


@operator(
    "wrap.concatenate",
    prior=0.3,
    on=[ast.Name, ast.Call, ast.Subscript, ast.List, ast.Attribute, ast.BinOp, ast.ListComp],
)
def concatenate(site: Site) -> Iterator[Replacement]:
    """A list or a text that lacks a part at its front or end: `f(x)` becomes `[y] + f(x)`."""
    node, parent = site.node, site.parent()
    if not site.is_value() or site.is_condition() or not site.may_be(node, "list", "str", "tuple"):
        return
    if not isinstance(
        parent, (ast.Return, ast.Assign, ast.AugAssign, ast.Call, ast.BinOp, ast.Yield, ast.YieldFrom)
    ):
        return
    kind, value = site.type_of(node), site.take(node)
    place = 1.0 if isinstance(parent, (ast.Return, ast.Assign)) else 0.5
    known = 1.0 if kind else 0.5
    for name, weight in site.values():
        if name == value.text or site.type_of(name) == "function":
            continue
        factor = weight * place * known
        other = site.type_of(name)
        if kind in ("list", ""):
            single = 0.8 if other != "list" else 0.4
            yield site.replace(node, binary(atom(f"[{name}]"), "+", value), factor * single)
            yield site.replace(node, binary(value, "+", atom(f"[{name}]")), factor * single)
        if not other or not kind or other == kind:
            likely = 0.8 if other and kind else 0.4
            yield site.replace(node, binary(atom(name), "+", value), factor * likely)
            yield site.replace(node, binary(value, "+", atom(name)), factor * likely)
