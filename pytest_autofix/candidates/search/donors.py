"""Material from the same file: expressions and statements that stand elsewhere are put where they are missing.

The plastic surgery hypothesis (Barr et al., FSE 2014): a large share of fixes is made of code that is already in
the file. Donors are taken from the same function first, with one variable exchanged for another.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from pytest_autofix.candidates.search.registry import operator
from pytest_autofix.candidates.search.scope import guess_type
from pytest_autofix.candidates.search.site import Replacement, Site

_SIMPLE = [ast.Assign, ast.AugAssign, ast.Expr, ast.Return, ast.If, ast.For, ast.While]
_EXPRESSIONS = (ast.Call, ast.Attribute, ast.Subscript, ast.BinOp, ast.Compare, ast.BoolOp)
_DONORS = (ast.Assign, ast.AugAssign, ast.Expr)
_MAX_DONORS = 40
_LOAD = ast.Load()
_FILLING = ("add", "append", "update", "extend", "insert", "setdefault", "appendleft")


@operator("donor.expression", prior=0.3, on=[ast.Name, *_EXPRESSIONS])
def expression(site: Site) -> Iterator[Replacement]:
    """Another expression of the same function, of the same type as far as is known."""
    node = site.node
    if not site.is_value():
        return
    kind, mine, condition = site.type_of(node), site.text(node), site.is_condition()
    for donor, text, other in site.context.once("donor expressions", lambda: _find_expressions(site)):
        if text in mine:
            continue
        test = isinstance(donor, (ast.Compare, ast.BoolOp))
        if test != condition and not (condition and isinstance(donor, ast.Call)):
            continue
        weight = 1.0 if type(donor) is type(node) else 0.5
        if kind and other and kind != other:
            weight *= 0.2
        if mine in text:
            weight *= 0.8
        yield site.replace(node, site.take(donor), weight)


def _find_expressions(site: Site) -> list[tuple[ast.expr, str, str]]:
    """Expressions of the definition, each text once, with their types."""
    found: dict[str, tuple[ast.expr, str, str]] = {}
    for node in site.context.nodes:
        if not isinstance(node, _EXPRESSIONS) or not isinstance(getattr(node, "ctx", _LOAD), ast.Load):
            continue
        if isinstance(node, ast.Attribute) and _is_function(site, node):
            continue
        text = site.text(node)
        found.setdefault(text, (node, text, guess_type(node, site.scope)))
    return list(found.values())[:_MAX_DONORS]


def _is_function(site: Site, node: ast.AST) -> bool:
    parent = site.parent(node)
    return isinstance(parent, ast.Call) and site.field(node) == "func"


def _donors(site: Site) -> list[tuple[ast.stmt, float]]:
    """One-line statements of this function, then of the others of the file."""
    return site.context.once("donors", lambda: _find_donors(site))


def _find_donors(site: Site) -> list[tuple[ast.stmt, float]]:
    found: dict[str, tuple[ast.stmt, float]] = {}
    for root, weight in ((site.context.definition.node, 1.0), (site.source.tree, 0.3)):
        for node in ast.walk(root):
            if not isinstance(node, _DONORS) or node.lineno != node.end_lineno or len(found) >= _MAX_DONORS:
                continue
            if isinstance(node, ast.Expr) and not isinstance(
                node.value, (ast.Call, ast.Yield, ast.YieldFrom)
            ):
                continue
            if weight < 1.0 and not _fits(site, node):
                continue
            found.setdefault(ast.dump(node), (node, weight))
    return list(found.values())


def _fits(site: Site, node: ast.AST) -> bool:
    """Whether every name of a foreign statement means something here."""
    return all(inner.id in site.scope.visible for inner in ast.walk(node) if isinstance(inner, ast.Name))


@operator("donor.statement", prior=0.3, on=_SIMPLE)
def statement(site: Site) -> Iterator[Replacement]:
    """A statement of the file, put in front of this one or behind it, as it is or with one variable exchanged."""
    node = site.node
    if site.docstring(node) or site.lines(node) is None:
        return
    last = site.block()[-1] is node if site.block() else False
    for donor, weight in _donors(site):
        text = site.text(donor)
        if text == site.text(node):
            weight *= 0.3
        for form, likely in _forms(site, donor, text):
            before = site.insert_before(node, form)
            if before is not None:
                yield Replacement(before.splices, weight * likely)
            if last and not isinstance(node, ast.Return):
                after = site.insert_after(node, form)
                if after is not None:
                    yield Replacement(after.splices, weight * likely)


@operator("donor.replace", prior=0.2, on=[ast.Assign, ast.AugAssign, ast.Expr])
def replaced(site: Site) -> Iterator[Replacement]:
    """Another statement of the function in the place of this one, with one variable exchanged."""
    node = site.node
    if site.docstring(node):
        return
    for donor, weight in _donors(site):
        if donor is not node and weight == 1.0:
            for form, likely in _forms(site, donor, site.text(donor)):
                yield Replacement(((*site.source.span(node), form),), likely)


def _forms(site: Site, donor: ast.stmt, text: str) -> Iterator[tuple[str, float]]:
    yield text, 1.0
    start = site.source.span(donor)[0]
    names = [name for name, _ in site.variables()][:8]
    done = {text}
    for inner in ast.walk(donor):
        if not isinstance(inner, ast.Name) or inner.id not in names:
            continue
        first, last = site.source.span(inner)
        for name in names:
            if name == inner.id or not _same_type(site, name, inner.id):
                continue
            form = text[: first - start] + name + text[last - start :]
            if form not in done:
                done.add(form)
                yield form, 0.35


def _same_type(site: Site, one: str, other: str) -> bool:
    left, right = site.type_of(one), site.type_of(other)
    return not left or not right or left == right


@operator("insert.assignment", prior=0.2, on=_SIMPLE)
def assignment(site: Site) -> Iterator[Replacement]:
    """An assignment that is missing: one variable to another, or back to an initial value."""
    node = site.node
    if site.docstring(node) or site.lines(node) is None:
        return
    last = bool(site.block()) and site.block()[-1] is node and not isinstance(node, ast.Return)
    targets = [
        (name, weight) for name, weight in site.scope.variables(node.lineno, targets=True) if weight >= 1.0
    ][:8]
    attributes = [f"self.{name}" for name in site.scope.attributes[:6]] if site.scope.owner == "self" else []
    texts: list[tuple[str, float]] = []
    for name, weight in [*targets, *((name, 0.7) for name in attributes)]:
        for other, likely in [*targets, *((name, 0.5) for name in attributes)]:
            if name != other and _same_type(site, name, other):
                texts.append((f"{name} = {other}", weight * likely * 0.6))
        initial = {"int": "0", "list": "[]", "dict": "{}", "set": "set()", "str": '""', "bool": "False"}
        kind = site.type_of(name)
        if kind in initial:
            texts.append((f"{name} = {initial[kind]}", weight * 0.5))
    for text, weight in texts:
        before = site.insert_before(node, text)
        if before is not None:
            yield Replacement(before.splices, weight)
        if last and (after := site.insert_after(node, text)) is not None:
            yield Replacement(after.splices, weight)


@operator("insert.increment", prior=0.3, on=_SIMPLE)
def increment(site: Site) -> Iterator[Replacement]:
    """A count or a position that does not go on: `i += 1`, `total += x`."""
    node = site.node
    if site.docstring(node) or site.lines(node) is None:
        return
    inside = site.loop() is not None
    last = bool(site.block()) and site.block()[-1] is node and not isinstance(node, ast.Return)
    numbers = [
        name
        for name, _ in site.scope.variables(node.lineno, targets=True)
        if site.may_be(name, "int", "float")
    ]
    for name in numbers[:8]:
        known = (1.0 if site.type_of(name) else 0.5) * (1.0 if inside else 0.4)
        texts = [(f"{name} += 1", 1.0), (f"{name} -= 1", 0.7)]
        texts += [(f"{name} += {other}", 0.3) for other in numbers[:8] if other != name]
        texts += [(f"{name} -= {other}", 0.2) for other in numbers[:8] if other != name]
        for text, weight in texts:
            before = site.insert_before(node, text)
            if before is not None:
                yield Replacement(before.splices, weight * known)
            if last and (after := site.insert_after(node, text)) is not None:
                yield Replacement(after.splices, weight * known)


@operator("insert.collection", prior=0.4, on=_SIMPLE)
def collection(site: Site) -> Iterator[Replacement]:
    """A collection that is read but not filled: `seen.add(x)`, `found.append(x)`, `table[k] = v`, or emptied."""
    node = site.node
    if site.docstring(node) or site.lines(node) is None:
        return
    last = bool(site.block()) and site.block()[-1] is node and not isinstance(node, ast.Return)
    names = [name for name, _ in site.values()][:10]
    texts: list[tuple[str, float]] = []
    for name in names:
        kind = site.type_of(name)
        method = {"set": "add", "list": "append", "deque": "append"}.get(kind)
        untouched = 1.0 if _is_never_filled(site, name) else 0.4
        if method:
            unfit = ("function", "list", "dict", "set") if kind == "set" else ("function",)
            texts += [
                (f"{name}.{method}({other})", weight * untouched)
                for other, weight in site.variables()
                if other != name and site.type_of(other) not in unfit
            ]
            if kind in ("list", "deque"):
                texts.append((f"{name}.pop()", 0.15))
        elif kind == "dict":
            texts += [
                (f"{name}[{key}] = {other}", 0.4 * untouched)
                for key, other in itertools.product(names[:6], names[:6])
                if name not in (key, other) and site.may_be(key, "int", "str", "tuple", "bool")
            ]
    for text, weight in texts:
        before = site.insert_before(node, text)
        if before is not None:
            yield Replacement(before.splices, weight)
        if last and (after := site.insert_after(node, text)) is not None:
            yield Replacement(after.splices, weight)


def _is_never_filled(site: Site, name: str) -> bool:
    """Whether the function reads the collection but calls no method on it that changes it."""
    return name not in site.context.once("filled", lambda: _find_filled(site))


def _find_filled(site: Site) -> set[str]:
    return {
        site.text(node.value)
        for node in site.context.nodes
        if (isinstance(node, ast.Attribute) and node.attr in _FILLING)
        or (isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store))
    }
