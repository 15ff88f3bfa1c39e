"""Edits of names: another variable, attribute or target; what a NameError or AttributeError probably meant.

"Wrong identifier used" leads the table of single-statement faults (ManySStuBs4J, MSR 2020) and of variable
misuse (Allamanis et al., ICLR 2018).
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator

from pytest_autofix.candidates.search.registry import operator
from pytest_autofix.candidates.search.site import Replacement, Site
from pytest_autofix.candidates.search.snippet import atom

_ATTRIBUTES: dict[str, type] = {
    "str": str, "list": list, "dict": dict, "set": set, "tuple": tuple, "int": int, "float": float, "bytes": bytes,
}  # fmt: skip


def _close(word: str, known: frozenset[str] | set[str], count: int = 4) -> list[str]:
    same = [other for other in sorted(known) if other.lower() == word.lower() and other != word]
    near = difflib.get_close_matches(word, sorted(known - {word}), n=count, cutoff=0.6)
    return list(dict.fromkeys((*same, *near)))


@operator("name.did_you_mean", prior=3.0, on=[ast.Name], spread=True, when=lambda facts: facts.undefined)
def did_you_mean(site: Site) -> Iterator[Replacement]:
    """The name a NameError was about becomes one much like it, or the attribute or method of that name."""
    name = site.node.id
    if name not in site.facts.undefined or not isinstance(site.node.ctx, ast.Load):
        return
    known = set(site.scope.visible) | {item for item, _ in site.variables()}
    for rank, other in enumerate(_close(name, known)):
        yield site.replace(site.node, atom(other), 1.0 / (1 + rank))
    if site.scope.owner:
        if name in site.scope.attributes or name in site.scope.methods:
            yield site.replace(site.node, atom(f"{site.scope.owner}.{name}"))
        for other in _close(name, set(site.scope.attributes) | set(site.scope.methods), 2):
            yield site.replace(site.node, atom(f"{site.scope.owner}.{other}"), 0.3)
    for module in sorted(site.context.module.imports)[:10]:
        yield site.replace(site.node, atom(f"{module}.{name}"), 0.2)


@operator("name.undefined", prior=1.5, on=[ast.Name], when=lambda facts: facts.undefined)
def undefined(site: Site) -> Iterator[Replacement]:
    """The name a NameError was about becomes any variable in scope, or the same as a text."""
    name = site.node.id
    if name not in site.facts.undefined or not isinstance(site.node.ctx, ast.Load):
        return
    for other, weight in site.variables():
        if other != name:
            yield site.replace(site.node, atom(other), weight)
    yield site.replace(site.node, atom(f'"{name}"'), 0.3)


@operator(
    "name.declare",
    prior=1.5,
    on=[ast.FunctionDef, ast.AsyncFunctionDef],
    when=lambda facts: "UnboundLocalError" in facts.raised,
)
def declare(site: Site) -> Iterator[Replacement]:
    """An assignment made a name local that belongs to the module or to the function around."""
    body = [statement for statement in site.node.body if not site.docstring(statement)]
    if not body or "UnboundLocalError" not in site.facts.raised:
        return
    for name in sorted(site.facts.undefined):
        for keyword, known in (("nonlocal", site.scope.outer), ("global", site.context.module.constants)):
            if name in known and (made := site.insert_before(body[0], f"{keyword} {name}")):
                yield made


@operator("name.variable", prior=1.0, on=[ast.Name], spread=True)
def other_variable(site: Site) -> Iterator[Replacement]:
    """Another variable in scope; one of another type than the old one is less likely."""
    node = site.node
    if not isinstance(node.ctx, ast.Load) or isinstance(site.parent(), (ast.ExceptHandler, ast.Raise)):
        return
    called = isinstance(site.parent(), ast.Call) and site.field() == "func"
    if called and node.id not in site.scope.parameters and node.id not in site.scope.locals:
        return
    known = {name for name, _ in site.variables()}
    if node.id not in known and (
        node.id in site.context.module.functions or node.id in site.context.module.classes
    ):
        return
    old = site.type_of(node.id)
    for name, weight in site.variables():
        if name == node.id:
            continue
        new = site.type_of(name)
        if old and new:
            weight *= 1.0 if old == new else 0.3
        elif "function" in (old, new):
            weight *= 0.3
        yield site.replace(node, atom(name), weight)


@operator("name.attribute_of_self", prior=0.5, on=[ast.Name])
def attribute_of_self(site: Site) -> Iterator[Replacement]:
    """A bare name where the attribute of the object is meant, or another attribute: `self.x` for `x`."""
    node, owner = site.node, site.scope.owner
    if owner != "self" or not isinstance(node.ctx, ast.Load) or node.id == owner:
        return
    if isinstance(site.parent(), ast.Call) and site.field() == "func":
        if node.id in site.scope.methods:
            yield site.replace(node, atom(f"{owner}.{node.id}"))
        return
    if node.id in site.scope.attributes or node.id in site.scope.methods:
        yield site.replace(node, atom(f"{owner}.{node.id}"))
    if node.id in site.scope.parameters or node.id in site.scope.locals:
        for name in site.scope.attributes[:12]:
            if name != node.id:
                yield site.replace(node, atom(f"{owner}.{name}"), 0.3)


@operator("name.target", prior=0.4, on=[ast.Assign, ast.AugAssign, ast.For])
def target(site: Site) -> Iterator[Replacement]:
    """The result is stored under the wrong name; the targets of an unpacking are the wrong way round."""
    node = site.node
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    for old in targets:
        if isinstance(old, ast.Tuple):
            for index in range(len(old.elts) - 1):
                yield site.swap(old.elts[index], old.elts[index + 1])
            for element in old.elts:
                yield from _other_target(site, element, 0.3)
        elif not isinstance(node, ast.For):
            yield from _other_target(site, old, 1.0)


def _other_target(site: Site, old: ast.AST, factor: float) -> Iterator[Replacement]:
    owner, mine = site.scope.owner, site.text(old)
    for text in site.context.once("places", lambda: _places(site)):
        if text != mine:
            yield site.replace(old, atom(text), factor * 0.5)
    if isinstance(old, ast.Name):
        for name, weight in site.scope.variables(site.line, targets=True):
            if name not in (old.id, owner):
                yield site.replace(old, atom(name), weight * factor)
        if owner == "self":
            for name in site.scope.attributes[:10]:
                yield site.replace(old, atom(f"self.{name}"), factor * (1.0 if name == old.id else 0.3))
    elif (
        isinstance(old, ast.Attribute) and isinstance(old.value, ast.Name) and old.value.id == owner == "self"
    ):
        for name in site.scope.attributes[:10]:
            if name != old.attr:
                yield site.replace(old, atom(f"self.{name}"), factor)
        if old.attr in site.scope.locals:
            yield site.replace(old, atom(old.attr), factor * 0.5)


def _places(site: Site) -> list[str]:
    """Items and attributes that the function reads or stores, any of which could be stored to."""
    found = {
        site.text(node): None
        for node in site.context.nodes
        if isinstance(node, (ast.Subscript, ast.Attribute))
        and not (isinstance(site.parent(node), ast.Call) and site.field(node) == "func")
        and not (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice))
        and isinstance(node.value, (ast.Name, ast.Attribute, ast.Subscript))
    }
    return list(found)[:20]


@operator("name.instead", prior=0.4, on=[ast.Call, ast.Subscript, ast.Attribute, ast.BinOp])
def instead(site: Site) -> Iterator[Replacement]:
    """A variable that already holds the value, where an expression computes another one."""
    node = site.node
    if not site.is_value() or isinstance(site.parent(), (ast.Return, ast.For, ast.comprehension)):
        return  # `return.value` and `loop.iterable` do it
    kind = site.type_of(node)
    for name, weight in site.values():
        other = site.type_of(name)
        if other == "function" or (site.is_condition() and other not in ("bool", "")):
            continue
        likely = 1.0 if kind and kind == other else 0.6 if not kind or not other else 0.15
        yield site.replace(node, atom(name), weight * likely)


@operator(
    "name.attribute_did_you_mean",
    prior=3.0,
    on=[ast.Attribute],
    spread=True,
    when=lambda facts: facts.attributes,
)
def attribute_did_you_mean(site: Site) -> Iterator[Replacement]:
    """The attribute an AttributeError was about becomes one much like it of that type, class or file."""
    attribute = site.node.attr
    if attribute not in site.facts.attributes:
        return
    kind = site.facts.attributes[attribute].rpartition(".")[2]
    known = set(_used_attributes(site)) | set(site.scope.attributes) | set(site.scope.methods)
    if kind in _ATTRIBUTES:
        known = {name for name in dir(_ATTRIBUTES[kind]) if not name.startswith("_")}
    for rank, name in enumerate(_close(attribute, known)):
        yield _other_attribute(site, name, 1.0 / (1 + rank))
    if isinstance(site.node.value, ast.Name) and attribute in site.context.module.all:
        yield site.replace(site.node, atom(attribute), 0.5)


@operator("name.attribute", prior=0.45, on=[ast.Attribute], spread=True)
def other_attribute(site: Site) -> Iterator[Replacement]:
    """Another attribute: of the same object elsewhere in the file, or of the class around for `self`."""
    node = site.node
    base = ast.dump(node.value)
    called = isinstance(site.parent(), ast.Call) and site.field() == "func"
    found: dict[str, float] = {}
    if isinstance(node.value, ast.Name) and node.value.id == site.scope.owner:
        members = site.scope.methods if called else site.scope.attributes
        found.update((name, 0.8) for name in members)
    for name, (bases, calls) in _used_attributes(site).items():
        if calls == called:
            found[name] = 1.0 if base in bases else found.get(name, 0.0 if called else 0.35)
    for name, weight in found.items():
        if name != node.attr and weight:
            yield _other_attribute(site, name, weight)


def _used_attributes(site: Site) -> dict[str, tuple[set[str], bool]]:
    """Attributes that the file reads: name → (what they are read from, whether they are called)."""
    return site.source.used_attributes


def _other_attribute(site: Site, name: str, weight: float) -> Replacement:
    end = site.source.span(site.node)[1]
    return Replacement(((end - len(site.node.attr), end, name),), weight)


@operator("name.attribute_added", prior=0.25, on=[ast.Name, ast.Attribute])
def attribute_added(site: Site) -> Iterator[Replacement]:
    """A part of the object is meant, or the object itself: `node` becomes `node.value`, `node.value` `node`."""
    node = site.node
    if not site.is_load() or (isinstance(site.parent(), ast.Call) and site.field() == "func"):
        return
    if isinstance(node, ast.Attribute) and not (
        isinstance(node.value, ast.Name) and node.value.id in (site.scope.owner, *site.context.module.imports)
    ):
        yield site.replace(node, site.take(node.value), 0.7)
        yield site.replace(node, atom(f"{site.text(node)}.{node.attr}"), 0.2)
    if not site.is_value() and not isinstance(site.parent(), ast.Attribute):
        return
    if site.type_of(node) in ("int", "float", "bool", "str", "list", "dict", "set", "tuple", "function"):
        return
    base = ast.dump(node)
    for name, (bases, called) in _used_attributes(site).items():
        if not called and not (
            isinstance(node, ast.Name) and node.id in ("self", *site.context.module.imports)
        ):
            yield site.replace(node, atom(f"{site.text(node)}.{name}"), 0.8 if base in bases else 0.3)
