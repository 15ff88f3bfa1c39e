"""Edits of conditions built with `and`, `or`, `not`.

Logical connector replacement and negation are standard mutation operators (Offutt et al., TOSEM 1996); removing
a condition is a repair template of PAR (Kim et al., ICSE 2013) and of the fault patterns of Pan et al. (EMSE 2009).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pytest_autofix.candidates.search.registry import operator
from pytest_autofix.candidates.search.site import Replacement, Site
from pytest_autofix.candidates.search.snippet import COMPARE, NOT, Snippet, atom, boolean, negated

_TRUTHS = [ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.IfExp]


@operator("boolean.connector", prior=0.8, on=[ast.BoolOp])
def connector(site: Site) -> Iterator[Replacement]:
    """`and` becomes `or` and the other way round, everywhere in the condition or at one place of three and more."""
    node = site.node
    sign, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
    values = [site.take(value) for value in node.values]
    yield site.replace(node, boolean(other, *values))
    if len(values) > 2:
        for index in range(1, len(values)):
            left = values[0] if index == 1 else boolean(sign, *values[:index])
            right = values[-1] if index == len(values) - 1 else boolean(sign, *values[index:])
            yield site.replace(node, boolean(other, left, right), 0.5)


@operator("boolean.negate", prior=0.7, on=_TRUTHS)
def negate(site: Site) -> Iterator[Replacement]:
    """A missing or an extra `not`."""
    node = site.node
    if isinstance(node, ast.UnaryOp):
        if isinstance(node.op, ast.Not):
            yield site.replace(node, site.take(node.operand))
        return
    if isinstance(site.parent(), ast.UnaryOp):
        return  # then it is the extra one that goes
    if site.is_condition():
        weight = 0.3 if isinstance(node, ast.Compare) and len(node.ops) == 1 else 1.0
        yield site.replace(node, negated(site.take(node)), weight)
    elif isinstance(site.parent(), (ast.Return, ast.Lambda)) and site.type_of(node) in ("bool", ""):
        yield site.replace(node, negated(site.take(node)), 0.5)


@operator("boolean.drop", prior=0.6, on=[ast.BoolOp])
def drop(site: Site) -> Iterator[Replacement]:
    """One operand of the condition too many."""
    node = site.node
    sign = "and" if isinstance(node.op, ast.And) else "or"
    values = [site.take(value) for value in node.values]
    for index in range(len(values)):
        rest = values[:index] + values[index + 1 :]
        yield site.replace(node, rest[0] if len(rest) == 1 else boolean(sign, *rest))


@operator("boolean.order", prior=0.35, on=[ast.BoolOp])
def order(site: Site) -> Iterator[Replacement]:
    """The test that protects must come first: `a[i] and i < n` raises where `i < n and a[i]` does not."""
    node = site.node
    for index in range(len(node.values) - 1):
        yield site.swap(node.values[index], node.values[index + 1])


@operator("boolean.regroup", prior=0.35, on=[ast.BoolOp, ast.UnaryOp])
def regroup(site: Site) -> Iterator[Replacement]:
    """Parentheses that are missing or too many: `a or b and c`, `not a and b`."""
    node = site.node
    if isinstance(node, ast.UnaryOp):
        inner = node.operand
        if isinstance(node.op, ast.Not) and isinstance(inner, ast.BoolOp):
            sign = "and" if isinstance(inner.op, ast.And) else "or"
            values = [site.take(value) for value in inner.values]
            yield site.replace(node, boolean(sign, negated(values[0]), *values[1:]))
            yield site.replace(node, boolean("or" if sign == "and" else "and", *map(negated, values)))
            yield site.replace(node, boolean(sign, *map(negated, values)), 0.5)
        return
    sign = "and" if isinstance(node.op, ast.And) else "or"
    values = node.values
    first = values[0]
    if isinstance(first, ast.UnaryOp) and isinstance(first.op, ast.Not):
        rest = boolean(sign, site.take(first.operand), *map(site.take, values[1:]))
        yield site.replace(node, negated(rest))
    for index, inner in enumerate(values):
        if not isinstance(inner, ast.BoolOp) or len(inner.values) != 2 or len(values) != 2:
            continue
        other = "and" if isinstance(inner.op, ast.And) else "or"
        left, right = map(site.take, inner.values)
        if index:  # a or (b and c)  →  (a or b) and c
            yield site.replace(node, boolean(other, boolean(sign, site.take(values[0]), left), right))
        else:  # (a and b) or c  →  a and (b or c)
            yield site.replace(node, boolean(other, left, boolean(sign, right, site.take(values[1]))))


@operator("boolean.constant", prior=0.15, on=[*_TRUTHS, ast.Constant])
def constant(site: Site) -> Iterator[Replacement]:
    """A condition that should always or never hold."""
    node, parent = site.node, site.parent()
    if not isinstance(parent, (ast.If, ast.While, ast.IfExp)) or site.field() != "test":
        return
    if not isinstance(node, ast.Constant):
        if not isinstance(parent, ast.While):
            yield site.replace(node, atom("True"))
        yield site.replace(node, atom("False"), 0.8)
        return
    if isinstance(parent, ast.While) and node.value:
        yield from _endless(site, node)


def _endless(site: Site, node: ast.Constant) -> Iterator[Replacement]:
    """`while True` that should end when something is used up."""
    for name, weight in site.variables():
        if site.type_of(name) not in ("function", "str"):
            factor = 1.0 if site.type_of(name) in ("list", "dict", "set", "deque", "tuple") else 0.5
            yield site.replace(node, atom(name), weight * factor)
            yield site.replace(node, Snippet(f"not {name}", NOT), weight * factor * 0.4)
            yield site.replace(node, Snippet(f"{name} is not None", COMPARE), weight * factor * 0.4)


@operator("boolean.branches", prior=0.3, on=[ast.IfExp, ast.If])
def branches(site: Site) -> Iterator[Replacement]:
    """The branches the wrong way round, or one value for both of a conditional expression."""
    node = site.node
    if isinstance(node, ast.IfExp):
        yield site.swap(node.body, node.orelse)
        yield site.replace(node, site.take(node.body), 0.5)
        yield site.replace(node, site.take(node.orelse), 0.5)
    elif node.orelse and not isinstance(node.test, (ast.Compare, ast.UnaryOp)):
        yield site.replace(node.test, negated(site.take(node.test)), 0.2)
