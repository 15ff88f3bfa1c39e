"""Pieces of source text that know how tightly they bind, so that new expressions can be built from old text."""

from __future__ import annotations

import ast
from typing import NamedTuple

__all__ = [
    "AND",
    "ATOM",
    "AWAIT",
    "BARE",
    "BINARY",
    "COMPARE",
    "FACTOR",
    "LAMBDA",
    "LEVELS",
    "NOT",
    "OR",
    "SUM",
    "TERM",
    "TEST",
    "Level",
    "Snippet",
    "atom",
    "binary",
    "boolean",
    "call",
    "compare",
    "negated",
    "precedence",
    "required",
    "subscript",
]

Level = int

# From loosest to tightest, after the operator table of the language reference.
(
    BARE,
    NAMED,
    LAMBDA,
    TEST,
    OR,
    AND,
    NOT,
    COMPARE,
    BIT_OR,
    BIT_XOR,
    BIT_AND,
    SHIFT,
    SUM,
    TERM,
    FACTOR,
    POWER,
) = range(16)
AWAIT = 16
ATOM = 17

BINARY: dict[type[ast.operator], tuple[str, Level]] = {
    ast.BitOr: ("|", BIT_OR),
    ast.BitXor: ("^", BIT_XOR),
    ast.BitAnd: ("&", BIT_AND),
    ast.LShift: ("<<", SHIFT),
    ast.RShift: (">>", SHIFT),
    ast.Add: ("+", SUM),
    ast.Sub: ("-", SUM),
    ast.Mult: ("*", TERM),
    ast.Div: ("/", TERM),
    ast.FloorDiv: ("//", TERM),
    ast.Mod: ("%", TERM),
    ast.MatMult: ("@", TERM),
    ast.Pow: ("**", POWER),
}
LEVELS = dict(BINARY.values())

_OF_NODE: dict[type[ast.AST], Level] = {
    ast.Yield: BARE,
    ast.YieldFrom: BARE,
    ast.Starred: BARE,
    ast.Slice: BARE,
    ast.NamedExpr: NAMED,
    ast.Lambda: LAMBDA,
    ast.IfExp: TEST,
    ast.Compare: COMPARE,
    ast.Await: AWAIT,
}
_OF_FIELD: dict[tuple[type[ast.AST], str], Level] = {
    (ast.Call, "args"): NAMED,
    (ast.keyword, "value"): LAMBDA,
    (ast.Subscript, "slice"): NAMED,
    (ast.Slice, "lower"): LAMBDA,
    (ast.Slice, "upper"): LAMBDA,
    (ast.Slice, "step"): LAMBDA,
    (ast.List, "elts"): NAMED,
    (ast.Set, "elts"): NAMED,
    (ast.Tuple, "elts"): LAMBDA,
    (ast.Dict, "keys"): LAMBDA,
    (ast.Dict, "values"): LAMBDA,
    (ast.Starred, "value"): BIT_OR,
    (ast.comprehension, "iter"): OR,
    (ast.comprehension, "ifs"): OR,
    (ast.ListComp, "elt"): LAMBDA,
    (ast.SetComp, "elt"): LAMBDA,
    (ast.GeneratorExp, "elt"): LAMBDA,
    (ast.DictComp, "key"): LAMBDA,
    (ast.DictComp, "value"): LAMBDA,
    (ast.IfExp, "test"): OR,
    (ast.IfExp, "body"): OR,
    (ast.IfExp, "orelse"): LAMBDA,
    (ast.Lambda, "body"): LAMBDA,
    (ast.Compare, "left"): BIT_OR,
    (ast.Compare, "comparators"): BIT_OR,
    (ast.NamedExpr, "value"): LAMBDA,
    (ast.Yield, "value"): LAMBDA,
    (ast.YieldFrom, "value"): LAMBDA,
    (ast.Return, "value"): LAMBDA,
    (ast.Expr, "value"): BARE,
    (ast.Assign, "value"): BARE,
    (ast.AugAssign, "value"): BARE,
    (ast.AnnAssign, "value"): BARE,
    (ast.If, "test"): NAMED,
    (ast.While, "test"): NAMED,
    (ast.For, "iter"): LAMBDA,
    (ast.AsyncFor, "iter"): LAMBDA,
    (ast.Assert, "test"): LAMBDA,
    (ast.Assert, "msg"): LAMBDA,
    (ast.Raise, "exc"): LAMBDA,
    (ast.Raise, "cause"): LAMBDA,
    (ast.Delete, "targets"): ATOM,
    (ast.withitem, "context_expr"): LAMBDA,
    (ast.ExceptHandler, "type"): LAMBDA,
    (ast.arguments, "defaults"): LAMBDA,
    (ast.arguments, "kw_defaults"): LAMBDA,
    (ast.match_case, "guard"): NAMED,
    (ast.Match, "subject"): LAMBDA,
}


class Snippet(NamedTuple):
    """Text of an expression and its level: the lower, the looser it binds."""

    text: str
    level: Level = ATOM

    def at(self, level: Level) -> str:
        """The text for a place that needs `level`, in parentheses if it binds too loosely."""
        return self.text if self.level >= level else f"({self.text})"


def precedence(node: ast.AST) -> Level:
    """How tightly a node binds. A tuple counts as bare: see `Site.take`."""
    if isinstance(node, ast.BinOp):
        return BINARY[type(node.op)][1]
    if isinstance(node, ast.BoolOp):
        return AND if isinstance(node.op, ast.And) else OR
    if isinstance(node, ast.UnaryOp):
        return NOT if isinstance(node.op, ast.Not) else FACTOR
    if isinstance(node, ast.Tuple):
        return BARE
    return _OF_NODE.get(type(node), ATOM)


def required(parent: ast.AST, field: str) -> Level:
    """The loosest level that may stand in that field of `parent` without parentheses."""
    if isinstance(parent, ast.BinOp):
        level = BINARY[type(parent.op)][1]
        if isinstance(parent.op, ast.Pow):
            return AWAIT if field == "left" else FACTOR
        return level if field == "left" else level + 1
    if isinstance(parent, ast.BoolOp):
        return precedence(parent) + 1
    if isinstance(parent, ast.UnaryOp):
        return precedence(parent)
    return _OF_FIELD.get((type(parent), field), ATOM)


def atom(text: str) -> Snippet:
    return Snippet(text, ATOM)


def binary(left: Snippet, sign: str, right: Snippet) -> Snippet:
    level = LEVELS[sign]
    if sign == "**":
        return Snippet(f"{left.at(AWAIT)} ** {right.at(FACTOR)}", level)
    return Snippet(f"{left.at(level)} {sign} {right.at(level + 1)}", level)


def compare(left: Snippet, sign: str, right: Snippet) -> Snippet:
    return Snippet(f"{left.at(BIT_OR)} {sign} {right.at(BIT_OR)}", COMPARE)


def boolean(sign: str, *operands: Snippet) -> Snippet:
    level = AND if sign == "and" else OR
    return Snippet(f" {sign} ".join(operand.at(level + 1) for operand in operands), level)


def negated(operand: Snippet) -> Snippet:
    return Snippet(f"not {operand.at(NOT)}", NOT)


def call(function: Snippet | str, *arguments: Snippet) -> Snippet:
    name = function if isinstance(function, str) else function.at(ATOM)
    return Snippet(f"{name}({', '.join(argument.at(LAMBDA) for argument in arguments)})", ATOM)


def subscript(value: Snippet, inside: str) -> Snippet:
    return Snippet(f"{value.at(ATOM)}[{inside}]", ATOM)
