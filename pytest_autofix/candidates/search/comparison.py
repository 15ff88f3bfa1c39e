"""Edits of comparisons: the operator, its sides, what it is compared with.

Relational operator replacement is one of the five sufficient mutation operators (Offutt et al., TOSEM 1996) and
the most frequent single-token repair of condition faults (Pan, Kim and Whitehead, EMSE 2009).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pytest_autofix.candidates.search.registry import operator
from pytest_autofix.candidates.search.site import Replacement, Site
from pytest_autofix.candidates.search.snippet import BARE, atom, compare, negated

SIGNS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}
PATTERN = r"<=|>=|==|!=|<|>|\bnot\s+in\b|\bis\s+not\b|\bis\b|\bin\b"

# Boundary first, then direction, then the others.
_INSTEAD: dict[str, tuple[tuple[str, float], ...]] = {
    "<": (("<=", 1.0), (">", 0.7), (">=", 0.6), ("!=", 0.3), ("==", 0.2)),
    "<=": (("<", 1.0), (">=", 0.7), (">", 0.6), ("==", 0.3), ("!=", 0.2)),
    ">": ((">=", 1.0), ("<", 0.7), ("<=", 0.6), ("!=", 0.3), ("==", 0.2)),
    ">=": ((">", 1.0), ("<=", 0.7), ("<", 0.6), ("==", 0.3), ("!=", 0.2)),
    "==": (("!=", 1.0), ("<=", 0.6), (">=", 0.6), ("<", 0.35), (">", 0.35), ("is", 0.1), ("in", 0.2)),
    "!=": (("==", 1.0), ("<", 0.5), (">", 0.5), ("<=", 0.2), (">=", 0.2), ("is not", 0.1), ("not in", 0.2)),
    "is": (("is not", 1.0), ("==", 0.7)),
    "is not": (("is", 1.0), ("!=", 0.7)),
    "in": (("not in", 1.0), ("==", 0.2)),
    "not in": (("in", 1.0), ("!=", 0.2)),
}


@operator("compare.relation", prior=1.0, on=[ast.Compare], spread=False)
def relation(site: Site) -> Iterator[Replacement]:
    """Another comparison operator: the boundary (`<`, `<=`), the direction, equality, membership, identity."""
    left = site.node.left
    for sign, right in zip(site.node.ops, site.node.comparators, strict=True):
        place = site.between(left, right, PATTERN)
        left = right
        if place is None:
            continue
        for new, weight in _INSTEAD[SIGNS[type(sign)]]:
            if new in ("is", "is not") and _is_literal(right):
                continue
            yield Replacement((site.cut(*place, _spaced(site, place, new)),), weight)


def _spaced(site: Site, place: tuple[int, int], new: str) -> str:
    """`a<b` may become `a==b` as it stands, but `a in b` needs its spaces."""
    if not new[0].isalpha():
        return new
    text = site.source.text
    return (
        ("" if text[place[0] - 1].isspace() else " ")
        + new
        + ("" if text[place[1] : place[1] + 1].isspace() else " ")
    )


def _is_literal(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return not (node.value is None or isinstance(node.value, bool))
    return isinstance(node, (ast.List, ast.Dict, ast.Set, ast.Tuple, ast.UnaryOp))


@operator("compare.swap", prior=0.4, on=[ast.Compare])
def swap(site: Site) -> Iterator[Replacement]:
    """Exchange the sides of a membership test, or of a chain's ends: `a in b` becomes `b in a`."""
    node = site.node
    if len(node.ops) == 1 and isinstance(node.ops[0], (ast.In, ast.NotIn)):
        yield site.swap(node.left, node.comparators[0])
    elif len(node.ops) == 2:
        yield site.swap(node.left, node.comparators[1])


@operator("compare.shorten", prior=0.4, on=[ast.Compare])
def shorten(site: Site) -> Iterator[Replacement]:
    """Take one end off a chain: `a < b < c` becomes `a < b` or `b < c`."""
    node = site.node
    if len(node.ops) < 2:
        return
    start, end = site.source.span(node)
    inner = site.source.outer_span(node.comparators[-2])[1]
    yield Replacement(((inner, end, ""),))
    yield Replacement(((start, site.source.outer_span(node.comparators[0])[0], ""),))


@operator("compare.none", prior=0.35, on=[ast.Name, ast.Attribute, ast.Call, ast.Compare, ast.UnaryOp])
def none(site: Site) -> Iterator[Replacement]:
    """Truth against presence: `x` and `x is not None`, `not x` and `x is None` (0 and "" are values too)."""
    node = site.node
    if isinstance(node, ast.Compare):
        if len(node.ops) != 1 or not isinstance(node.ops[0], (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)):
            return
        side = node.comparators[0]
        if isinstance(side, ast.Constant) and side.value is None:
            positive = isinstance(node.ops[0], (ast.IsNot, ast.NotEq))
            yield site.replace(node, site.take(node.left) if positive else negated(site.take(node.left)))
    elif not site.is_condition():
        return
    elif isinstance(node, ast.UnaryOp):
        if isinstance(node.op, ast.Not) and not isinstance(node.operand, (ast.Compare, ast.BoolOp)):
            yield site.replace(node, compare(site.take(node.operand), "is", atom("None")))
    elif not isinstance(site.parent(), ast.UnaryOp) and not isinstance(node, ast.Call):
        yield site.replace(node, compare(site.take(node), "is not", atom("None")))


@operator("compare.truth", prior=0.35, on=[ast.Compare])
def truth(site: Site) -> Iterator[Replacement]:
    """Only one side of a comparison as the condition: `len(x) > 1` becomes `x` where the length is meant."""
    node = site.node
    if not site.is_condition() or len(node.ops) != 1:
        return
    yield site.replace(node, site.take(node.left), 0.7)
    yield site.replace(node, negated(site.take(node.left)), 0.7)
    if not isinstance(node.comparators[0], ast.Constant):
        yield site.replace(node, site.take(node.comparators[0]), 0.4)
        yield site.replace(node, negated(site.take(node.comparators[0])), 0.3)


@operator("compare.completed", prior=0.3, on=[ast.Name, ast.Attribute, ast.Call, ast.Subscript])
def completed(site: Site) -> Iterator[Replacement]:
    """A condition that only tests truth gets a comparison: `while n` becomes `while n > 0`, `x == y`."""
    node = site.node
    if not site.is_condition() or site.type_of(node) in ("bool", "list", "dict", "set", "str"):
        return
    value = site.take(node)
    for sign, side, weight in (
        (">", "0", 1.0),
        (">", "1", 0.6),
        (">=", "0", 0.4),
        ("==", "0", 0.4),
        ("<", "0", 0.3),
    ):
        yield site.replace(node, compare(value, sign, atom(side)), weight)
    for name, weight in site.values():
        if name != value.text:
            for sign in ("==", "!=", "<", ">", "in"):
                yield site.replace(node, compare(value, sign, atom(name)), weight * 0.25)


@operator("compare.isinstance", prior=0.3, on=[ast.Compare])
def instance(site: Site) -> Iterator[Replacement]:
    """`type(x) == T` also has to hold for subclasses: `isinstance(x, T)`."""
    node = site.node
    if len(node.ops) != 1 or not isinstance(node.ops[0], (ast.Eq, ast.Is, ast.NotEq, ast.IsNot, ast.In)):
        return
    left = node.left
    if (
        isinstance(left, ast.Call)
        and isinstance(left.func, ast.Name)
        and left.func.id == "type"
        and len(left.args) == 1
    ):
        test = atom(f"isinstance({site.take(left.args[0]).at(BARE + 2)}, {site.text(node.comparators[0])})")
        yield site.replace(node, negated(test) if isinstance(node.ops[0], (ast.NotEq, ast.IsNot)) else test)
