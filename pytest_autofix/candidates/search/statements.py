"""Edits of whole statements: deleted, moved, in or out of a block, exchanged, another jump, another block.

Statement deletion and moving are the operators of GenProg (Le Goues et al., TSE 2012) and of Kali (Qi et al.,
ISSTA 2015), here kept to neighbours and to the blocks around, where human fixes move statements.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from pytest_autofix.candidates.search.registry import operator
from pytest_autofix.candidates.search.site import Replacement, Site

_SIMPLE = [
    ast.Assign,
    ast.AugAssign,
    ast.Expr,
    ast.Return,
    ast.Raise,
    ast.Assert,
    ast.Continue,
    ast.Break,
    ast.Delete,
]
_BLOCKS = [ast.If, ast.For, ast.While, ast.AsyncFor, ast.With]
_JUMPS = (ast.Return, ast.Raise, ast.Continue, ast.Break)


@operator("statement.delete", prior=0.4, on=[*_SIMPLE, *_BLOCKS])
def delete(site: Site) -> Iterator[Replacement]:
    """A statement too many."""
    node = site.node
    made = site.delete(node)
    if made is None:
        return
    if isinstance(node, ast.If) and not node.orelse:
        weight = 1.0 if len(node.body) == 1 else 0.5
    elif isinstance(node, (*_BLOCKS,)):
        weight = 0.2
    elif isinstance(node, ast.Return):
        weight = 0.3 if node in getattr(site.context.definition.node, "body", ()) else 0.8
    else:
        weight = 1.0
    yield Replacement(made.splices, weight)


@operator("statement.unwrap", prior=0.35, on=[ast.If, ast.For, ast.While, ast.With])
def unwrap(site: Site) -> Iterator[Replacement]:
    """The block is right, but not what it hangs on: the `if` goes and its block is always done."""
    node = site.node
    place = site.lines(node)
    if place is None or not isinstance(node, (ast.If, ast.With)):
        return
    parts = [site.reindented(statement, site.indent(node)) for statement in node.body]
    if all(part is not None for part in parts):
        yield Replacement(((*place, "".join(part or "" for part in parts)),))
    rest = getattr(node, "orelse", [])
    if rest and not (len(rest) == 1 and isinstance(rest[0], ast.If)):
        parts = [site.reindented(statement, site.indent(node)) for statement in rest]
        if all(part is not None for part in parts):
            yield Replacement(((*place, "".join(part or "" for part in parts)),), 0.7)


@operator("statement.swap", prior=0.35, on=[*_SIMPLE, *_BLOCKS])
def swap(site: Site) -> Iterator[Replacement]:
    """Two neighbours in the wrong order, or a statement that comes two places too late."""
    node, block = site.node, site.block()
    if node not in block:
        return
    index = block.index(node)
    mine = site.lines(node)
    for distance in (1, 2, 3):
        if index + distance >= len(block):
            return
        other = block[index + distance]
        place = site.lines(other)
        if mine is None or place is None or site.docstring(node):
            return
        text = site.source.text
        first, last = text[mine[0] : mine[1]], text[place[0] : place[1]]
        if not last.endswith(("\n", "\r")):
            last += site.source.newline
        if isinstance(node, _JUMPS) or (distance > 1 and isinstance(other, _JUMPS)):
            return
        if distance == 1:
            yield Replacement(((mine[0], place[1], last + text[mine[1] : place[0]] + first),))
        else:  # either of the two travels
            weight = 0.4 / distance
            yield Replacement(((mine[0], mine[0], last), (place[0], place[1], "")), weight)
            yield Replacement(((mine[0], mine[1], ""), (place[1], place[1], first)), weight)


@operator("statement.move_out", prior=0.4, on=_SIMPLE)
def move_out(site: Site) -> Iterator[Replacement]:
    """A statement that is indented too deep: it belongs behind, or in front of, the block it ends or begins."""
    node, block = site.node, site.block()
    outer: Any = site.parent()
    if (
        not isinstance(outer, (ast.If, ast.For, ast.While, ast.AsyncFor, ast.With, ast.Try))
        or node not in block
    ):
        return
    index = block.index(node)
    gone, whole = site.delete(node), site.lines(outer)
    if gone is None or whole is None:
        # an `elif` chain: the statement can still go behind the whole chain
        top: Any = outer
        while isinstance(site.parent(top), ast.If) and site.lines(top) is None:
            top = site.parent(top)
        outer, whole = top, site.lines(top)
        if gone is None or whole is None:
            return
    text = site.reindented(node, site.indent(outer))
    if text is None:
        return
    if site.source.text[whole[1] - 1 : whole[1]] not in ("\n", "\r"):
        behind = site.source.newline + text.rstrip("\r\n")
    else:
        behind = text
    end = whole[1]
    ((start, stop, left),) = gone.splices
    weight = 1.0 if index == len(block) - 1 else 0.4
    if stop == end:  # last of the block: one edit, as two would touch
        yield Replacement(((start, end, left + text),), weight)
    elif left and stop <= end:
        yield Replacement(((start, stop, left), (end, end, behind)), weight)
    else:
        yield Replacement((*gone.splices, (end, end, behind)), weight)
    if index == 0 and not isinstance(node, (ast.Continue, ast.Break)):
        yield Replacement(((whole[0], whole[0], text), *gone.splices), 0.7 if len(block) > 1 else 0.4)


@operator("statement.move_in", prior=0.4, on=_SIMPLE)
def move_in(site: Site) -> Iterator[Replacement]:
    """A statement that is not indented deep enough: it belongs to the end of the block above, or the start below."""
    node, block = site.node, site.block()
    if node not in block or site.docstring(node):
        return
    index = block.index(node)
    gone = site.delete(node)
    if gone is None or len(block) == 1:
        return
    mine = site.lines(node)
    if mine is None:
        return
    if index:
        for body in _ends(block[index - 1]):
            last = body[-1]
            place = site.lines(last)
            text = site.reindented(node, site.indent(last))
            if place is None or text is None or isinstance(last, _JUMPS):
                continue
            if place[1] == mine[0]:
                yield Replacement(((*mine, text),))
            elif place[1] < mine[0]:
                yield Replacement(((place[1], place[1], text), *gone.splices))
    if index + 1 < len(block) and isinstance(block[index + 1], (ast.For, ast.While, ast.If)):
        below: Any = block[index + 1]
        first = below.body[0]
        place, text = site.lines(first), site.reindented(node, site.indent(first))
        if place is not None and text is not None and place[0] > mine[1] and not isinstance(node, _JUMPS):
            yield Replacement((*gone.splices, (place[0], place[0], text)))


def _ends(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks at whose end something may be added, those inside as well."""
    for field in ("body", "orelse"):
        body = getattr(statement, field, None)
        if isinstance(body, list) and body and not isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            yield body
            if isinstance(body[-1], (ast.If, ast.For, ast.While, ast.With)):
                yield from _ends(body[-1])


@operator("statement.jump", prior=0.4, on=[ast.Continue, ast.Break, ast.Pass, ast.Return])
def jump(site: Site) -> Iterator[Replacement]:
    """Another way to leave: `continue`, `break`, `return`, nothing."""
    node = site.node
    words = {"continue": 1.0, "break": 1.0, "return": 0.5, "pass": 0.5}
    if isinstance(node, ast.Return):
        if site.loop() is None:
            return
        words = {"continue": 0.4, "break": 0.6}
    if site.loop() is None:
        words = {"return": 1.0}
    for word, weight in words.items():
        if word != type(node).__name__.lower():
            yield Replacement(((*site.source.span(node), word),), weight)


@operator("statement.jump_added", prior=0.3, on=[ast.If, ast.For, ast.While])
def jump_added(site: Site) -> Iterator[Replacement]:
    """A loop that goes on where it should stop, or the other way round: a jump at the end of a block."""
    node = site.node
    last = node.body[-1]
    if isinstance(last, _JUMPS):
        return
    inside = not isinstance(node, ast.If) or site.loop() is not None
    if not inside:
        return
    words = (("break", 1.0), ("continue", 0.7)) if isinstance(node, ast.If) else (("break", 0.3),)
    for word, weight in words:
        made = site.insert_after(last, word)
        if made is not None:
            yield Replacement(made.splices, weight)


@operator("statement.block", prior=0.5, on=[ast.If, ast.While])
def other_block(site: Site) -> Iterator[Replacement]:
    """`if` where the condition must be tested again and again, `while` where once is enough."""
    node = site.node
    start = site.source.span(node)[0]
    text = site.source.text
    if isinstance(node, ast.While):
        if not node.orelse:
            yield Replacement(((start, start + len("while"), "if"),), 0.5)
    elif text.startswith("if", start) and not node.orelse:
        yield Replacement(((start, start + len("if"), "while"),))


@operator("statement.elif", prior=0.4, on=[ast.If])
def chained(site: Site) -> Iterator[Replacement]:
    """A second `if` that only holds where the first did not, an `elif` that always does."""
    node = site.node
    text, start = site.source.text, site.source.span(node)[0]
    if text.startswith("elif", start):
        yield Replacement(((start, start + len("elif"), "if"),))
        return
    block = site.block()
    if node in block and block.index(node):
        before = block[block.index(node) - 1]
        if isinstance(before, ast.If):
            last: Any = before
            while len(last.orelse) == 1 and text.startswith("elif", site.source.span(last.orelse[0])[0]):
                last = last.orelse[0]
            if not last.orelse:
                yield Replacement(((start, start, "el"),))


@operator("statement.else", prior=0.3, on=[ast.If, ast.For, ast.While])
def else_branch(site: Site) -> Iterator[Replacement]:
    """The statements behind a block belong into its `else`, or those of the `else` behind it."""
    node, block = site.node, site.block()
    if not node.orelse:
        index = block.index(node) if node in block else -1
        if 0 <= index < len(block) - 1:
            yield from _into_else(site, node, block[index + 1 : index + 2], 1.0)
            if index + 2 < len(block):
                yield from _into_else(site, node, block[index + 1 :], 0.5)
        return
    if isinstance(node.orelse[0], ast.If) and len(node.orelse) == 1 and site.lines(node.orelse[0]) is None:
        return
    parts = [site.reindented(statement, site.indent(node)) for statement in node.orelse]
    first, last = site.lines(node.body[-1]), site.lines(node.orelse[-1])
    if first is None or last is None or any(part is None for part in parts):
        return
    behind = "".join(part or "" for part in parts)
    yield Replacement(((first[1], last[1], behind),))


def _into_else(site: Site, node: Any, statements: list[ast.stmt], weight: float) -> Iterator[Replacement]:
    first, last = site.lines(statements[0]), site.lines(statements[-1])
    body = site.lines(node.body[-1])
    parts = [site.reindented(statement, site.indent(node) + site.indent_unit()) for statement in statements]
    if first is None or last is None or body is None or any(part is None for part in parts):
        return
    head = f"{site.indent(node)}else:{site.source.newline}"
    yield Replacement(((body[1], last[1], head + "".join(part or "" for part in parts)),), weight)
