"""Edits of arithmetic: operators, order and number of operands, off by one, grouping, rounding.

Arithmetic operator replacement, operand deletion and insertion are standard mutation operators (Offutt et al.,
TOSEM 1996; Deng et al., "Empirical evaluation of the statement deletion mutation operator", ICST 2013); missing
or extra `± 1` is the off-by-one pattern of Pan et al. (EMSE 2009).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pytest_autofix.candidates.search.registry import operator
from pytest_autofix.candidates.search.site import Replacement, Site
from pytest_autofix.candidates.search.snippet import (
    BINARY,
    FACTOR,
    LEVELS,
    TERM,
    Snippet,
    atom,
    binary,
    call,
    required,
)

_NUMBERS = ("int", "float", "bool", "complex")
_INSTEAD: dict[str, tuple[tuple[str, float], ...]] = {
    "+": (("-", 1.0), ("*", 0.5), ("//", 0.1), ("/", 0.1), ("|", 0.15), ("%", 0.1)),
    "-": (("+", 1.0), ("*", 0.3), ("//", 0.2), ("/", 0.2), ("%", 0.3)),
    "*": (("+", 0.6), ("/", 0.6), ("//", 0.5), ("-", 0.4), ("**", 0.6), ("%", 0.1)),
    "/": (("//", 1.0), ("*", 0.7), ("%", 0.4), ("-", 0.2)),
    "//": (("/", 1.0), ("%", 0.8), ("*", 0.4), ("-", 0.2)),
    "%": (("//", 1.0), ("/", 0.5), ("*", 0.2), ("-", 0.2)),
    "**": (("*", 1.0), ("+", 0.2), ("//", 0.1)),
    "@": (("*", 1.0),),
    "<<": ((">>", 1.0), ("*", 0.2)),
    ">>": (("<<", 1.0), ("//", 0.3)),
    "&": (("|", 1.0), ("^", 0.8), ("-", 0.2)),
    "|": (("&", 1.0), ("^", 0.8), ("+", 0.2)),
    "^": (("&", 1.0), ("|", 0.8), ("**", 0.5)),
}


@operator("arithmetic.operator", prior=0.9, on=[ast.BinOp])
def other_operator(site: Site) -> Iterator[Replacement]:
    """Another binary operator between the same operands."""
    node = site.node
    sign = BINARY[type(node.op)][0]
    if (
        sign == "%"
        and isinstance(node.left, (ast.Constant, ast.JoinedStr))
        and site.type_of(node.left) == "str"
    ):
        return  # formatting
    text = site.type_of(node) in ("str", "list", "tuple")
    for new, weight in _INSTEAD[sign]:
        if text and new not in ("+", "*"):
            continue
        yield _with_sign(site, new, weight)


def _with_sign(site: Site, new: str, weight: float) -> Replacement:
    """The operator alone is exchanged where the tree comes out right, else with parentheses around."""
    node = site.node
    simple = (ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Call)
    plain = isinstance(node.left, simple) and isinstance(node.right, simple)
    place = site.between(node.left, node.right, r"[-+*/%@&|^<>]+")
    fits = LEVELS[new] >= required(site.parent(), site.field())
    if place and (BINARY[type(node.op)][1] == LEVELS[new] or (plain and fits)):
        return Replacement(((*place, new),), weight)
    return site.replace(node, binary(site.take(node.left), new, site.take(node.right)), weight)


@operator("arithmetic.augmented", prior=0.8, on=[ast.AugAssign])
def augmented(site: Site) -> Iterator[Replacement]:
    """Another augmented operator, or a plain assignment instead."""
    node = site.node
    sign = BINARY[type(node.op)][0]
    place = site.between(node.target, node.value, r"[-+*/%@&|^<>]+=")
    if place is None:
        return
    for new, weight in _INSTEAD[sign]:
        yield Replacement(((*place, new + "="),), weight)
    yield Replacement(((*place, "="),), 0.6)


@operator("arithmetic.accumulate", prior=0.5, on=[ast.Assign])
def accumulate(site: Site) -> Iterator[Replacement]:
    """A plain assignment that should add to what is there: `total = x` in a loop becomes `total += x`."""
    node = site.node
    if len(node.targets) != 1 or not isinstance(node.targets[0], (ast.Name, ast.Attribute, ast.Subscript)):
        return
    place = site.between(node.targets[0], node.value, "=")
    if place is None or isinstance(node.value, (ast.List, ast.Dict, ast.Set)):
        return
    factor = 1.0 if site.loop() is not None else 0.3
    if isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Constant):
        factor *= 0.5
    for new, weight in (("+=", 1.0), ("-=", 0.4), ("*=", 0.4), ("|=", 0.1)):
        yield Replacement(((*place, new),), weight * factor)


@operator("arithmetic.swap", prior=0.5, on=[ast.BinOp])
def swap(site: Site) -> Iterator[Replacement]:
    """The operands the wrong way round, where the order counts: `a - b`, texts and lists that are joined."""
    node = site.node
    if isinstance(node.op, (ast.Mult, ast.BitAnd, ast.BitOr, ast.BitXor)):
        return
    if isinstance(node.op, ast.Add) and (
        site.type_of(node.left) in _NUMBERS or site.type_of(node.right) in _NUMBERS
    ):
        return
    if isinstance(node.op, ast.Mod) and site.type_of(node.left) == "str":
        return
    yield site.swap(node.left, node.right, 0.5 if isinstance(node.op, ast.Add) else 1.0)


@operator("arithmetic.drop", prior=0.6, on=[ast.BinOp])
def drop(site: Site) -> Iterator[Replacement]:
    """One operand too many."""
    node = site.node
    for kept, weight in ((node.left, 1.0), (node.right, 0.8)):  # rarely only a number is left
        yield site.replace(node, site.take(kept), 0.2 if isinstance(kept, ast.Constant) else weight)


@operator("arithmetic.sign", prior=0.4, on=[ast.UnaryOp, ast.Name, ast.Attribute, ast.Call, ast.Subscript])
def sign(site: Site) -> Iterator[Replacement]:
    """A missing or an extra minus."""
    node = site.node
    if isinstance(node, ast.UnaryOp):
        if isinstance(node.op, (ast.USub, ast.Invert, ast.UAdd)):
            yield site.replace(node, site.take(node.operand))
            if isinstance(node.op, ast.Invert):
                yield site.replace(node, Snippet(f"-{site.take(node.operand).at(FACTOR)}", FACTOR))
        return
    if not site.is_value() or site.is_condition() or not site.may_be(node, *_NUMBERS):
        return
    if isinstance(site.parent(), ast.UnaryOp):
        return
    weight = 1.0 if isinstance(site.parent(), (ast.Return, ast.BinOp)) else 0.3
    if site.type_of(node) in _NUMBERS or weight == 1.0:
        yield site.replace(node, Snippet(f"-{site.take(node).at(FACTOR)}", FACTOR), weight)


@operator(
    "arithmetic.off_by_one", prior=0.85, on=[ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp]
)
def off_by_one(site: Site) -> Iterator[Replacement]:
    """`x` becomes `x + 1` or `x - 1`: bounds, counts and positions one beside what they should be."""
    node, parent = site.node, site.parent()
    if not site.is_value() or not site.may_be(node, "int", "float"):
        return
    if isinstance(parent, ast.keyword) or (site.is_condition() and not isinstance(parent, ast.Compare)):
        return
    if isinstance(node, ast.BinOp):
        if not isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Div, ast.Mod, ast.Pow)):
            return
        if isinstance(node.right, ast.Constant) and isinstance(node.op, (ast.Add, ast.Sub)):
            return  # `constant.step` does it
    weight = _likely_count(site)
    if weight:
        value = site.take(node)
        yield site.replace(node, binary(value, "+", atom("1")), weight)
        yield site.replace(node, binary(value, "-", atom("1")), weight)


def _likely_count(site: Site) -> float:
    """How likely an expression at this place is a count, a bound or a position."""
    node, parent, where = site.node, site.parent(), site.field()
    known = 1.0 if site.type_of(node) == "int" else 0.6
    if isinstance(parent, ast.Call):
        if isinstance(parent.func, ast.Name) and parent.func.id == "range":
            return 1.0
        return known * 0.9
    if isinstance(parent, ast.Slice):
        return 1.0
    if isinstance(parent, ast.Subscript):
        return known if where == "slice" else 0.0
    if isinstance(parent, ast.Compare):
        if isinstance(parent.ops[0], (ast.Is, ast.IsNot, ast.In, ast.NotIn)):
            return 0.1
        return known * 0.9
    if isinstance(parent, (ast.Return, ast.Assign, ast.AugAssign)):
        return known * 0.9
    if isinstance(parent, ast.BinOp):
        return 0.25 if isinstance(parent.op, (ast.Add, ast.Sub)) else known * 0.6
    if isinstance(parent, (ast.For, ast.comprehension, ast.Subscript)):
        return 0.0
    return known * 0.4


@operator(
    "arithmetic.extend",
    prior=0.3,
    on=[ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp, ast.Constant],
)
def extend(site: Site) -> Iterator[Replacement]:
    """A term or a factor is missing: `x` becomes `x + y`, `x - y`, `x * y`, with a value in scope."""
    node, parent = site.node, site.parent()
    if not site.is_value() or not site.may_be(node, *_NUMBERS) or isinstance(parent, ast.keyword):
        return
    if isinstance(parent, (ast.For, ast.comprehension)):
        return
    if isinstance(parent, ast.BinOp) and not isinstance(node, ast.Name):
        return
    if site.is_condition():
        return
    place = (
        1.0 if isinstance(parent, (ast.Return, ast.Assign, ast.AugAssign, ast.Slice, ast.Subscript)) else 0.7
    )
    value = site.take(node)
    if isinstance(node, ast.Constant) and type(node.value) is not int:
        return
    for name, weight in site.values():
        if name == value.text or not site.may_be(name, "int", "float"):
            continue
        known = 1.0 if site.type_of(name) in _NUMBERS else 0.5
        for sign, likely in (("+", 1.0), ("-", 0.8), ("*", 0.4), ("//", 0.15), ("%", 0.15), ("/", 0.1)):
            if isinstance(node, ast.Constant) and node.value == 0 and sign != "+":
                continue
            yield site.replace(node, binary(value, sign, atom(name)), weight * known * likely * place)
        if not isinstance(node, ast.Constant):
            yield site.replace(node, binary(atom(name), "-", value), weight * known * 0.3 * place)


@operator("arithmetic.regroup", prior=0.4, on=[ast.BinOp])
def regroup(site: Site) -> Iterator[Replacement]:
    """Parentheses missing or too many: `a + b / 2` and `(a + b) / 2`, `a - (b - c)` and `a - b - c`."""
    node = site.node
    outer = BINARY[type(node.op)][0]
    for side in ("left", "right"):
        inner = getattr(node, side)
        if not isinstance(inner, ast.BinOp):
            continue
        sign = BINARY[type(inner.op)][0]
        first, second = site.take(inner.left), site.take(inner.right)
        if side == "left":  # (a . b) o c  →  a . (b o c)
            new = binary(first, sign, binary(second, outer, site.take(node.right)))
        else:  # a o (b . c)  →  (a o b) . c
            new = binary(binary(site.take(node.left), outer, first), sign, second)
        if outer == sign and outer in ("+", "*"):
            continue
        yield site.replace(node, new)


@operator("arithmetic.rounding", prior=0.25, on=[ast.BinOp, ast.Call])
def rounding(site: Site) -> Iterator[Replacement]:
    """Division that rounds the wrong way: down, up, to the nearest, to zero."""
    node = site.node
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.FloorDiv)):
        left, right = site.take(node.left), site.take(node.right)
        yield site.replace(node, Snippet(f"-(-{left.at(FACTOR)} // {right.at(TERM + 1)})", FACTOR))
        yield site.replace(node, call("int", binary(left, "/", right)), 0.5)
        yield site.replace(node, call("round", binary(left, "/", right)), 0.6)
    elif (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("int", "round")
        and (
            len(node.args) == 1
            and isinstance(node.args[0], ast.BinOp)
            and isinstance(node.args[0].op, ast.Div)
        )
    ):
        inner = node.args[0]
        yield site.replace(node, binary(site.take(inner.left), "//", site.take(inner.right)))


@operator("arithmetic.combine", prior=0.1, on=[ast.Name, ast.Attribute, ast.Subscript, ast.BinOp])
def combine(site: Site) -> Iterator[Replacement]:
    """Doubled, halved or squared, or taken into a range by `%`: frequent small slips of formulas."""
    node, parent = site.node, site.parent()
    if not site.is_value() or site.is_condition() or not site.may_be(node, "int", "float"):
        return
    if not isinstance(parent, (ast.Return, ast.Assign, ast.AugAssign, ast.BinOp, ast.Call)):
        return
    value = site.take(node)
    for sign, side, weight in (
        ("*", "2", 1.0),
        ("//", "2", 1.0),
        ("/", "2", 0.5),
        ("**", "2", 0.5),
        ("%", "2", 0.3),
    ):
        yield site.replace(node, binary(value, sign, atom(side)), weight)
