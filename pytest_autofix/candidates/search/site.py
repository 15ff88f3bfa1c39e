"""`Site`: one node of a suspicious definition, with what an operator may ask and the edits it can make."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from pytest_autofix.candidates.search.facts import Facts
from pytest_autofix.candidates.search.scope import ModuleNames, Scope, guess_type
from pytest_autofix.candidates.search.snippet import ATOM, Snippet, precedence, required
from pytest_autofix.candidates.search.source import Definition, Source, Span, Splice

__all__ = ["Context", "Replacement", "Site"]

T = TypeVar("T")

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_BRACKETED = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_MAX_VARIABLES = 40  #: of a long function, or of a file with many constants; own names come first
_BINDERS = (*_COMPREHENSIONS, *_FUNCTIONS, ast.Lambda)


@dataclass(frozen=True, slots=True)
class Replacement:
    """Edits that belong together, and how likely they are among those of their group (1 = the likeliest)."""

    splices: tuple[Splice, ...]
    weight: float = 1.0


@dataclass(frozen=True, eq=False)
class Context:
    """What all sites of one definition share."""

    source: Source
    definition: Definition
    scope: Scope
    module: ModuleNames
    facts: Facts
    originals: dict[str, str]
    _kept: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def once(self, key: str, make: Callable[[], T]) -> T:
        """What `make` gives, made once for the definition: operators come by at every node."""
        if key not in self._kept:
            self._kept[key] = make()
        kept: T = self._kept[key]
        return kept

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the definition that may be edited, breadth first."""
        return tuple(node for node in ast.walk(self.definition.node) if node in self.source.links)

    @cached_property
    def alike(self) -> dict[tuple[type[ast.AST], str], list[ast.AST]]:
        """Nodes of the definition by type and text."""
        found: dict[tuple[type[ast.AST], str], list[ast.AST]] = {}
        for node in self.nodes:
            if isinstance(node, ast.expr):
                found.setdefault((type(node), self.source.slice(node)), []).append(node)
        return found

    @cached_property
    def indent_unit(self) -> str:
        """What one level of indentation looks like in this definition."""
        node = self.definition.node
        if not isinstance(node, ast.Module):
            outer = self.source.indent_of(node.lineno)
            inner = self.source.indent_of(node.body[0].lineno)
            if inner.startswith(outer) and len(inner) > len(outer):
                return inner[len(outer) :]
        return "\t" if "\n\t" in self.source.text else "    "


@dataclass(frozen=True, eq=False, slots=True)
class Site:
    """A node and its surroundings."""

    context: Context
    node: Any  #: an `ast.AST` of one of the operator's node types; operators know which

    @property
    def source(self) -> Source:
        return self.context.source

    @property
    def scope(self) -> Scope:
        return self.context.scope

    @property
    def facts(self) -> Facts:
        return self.context.facts

    @property
    def line(self) -> int:
        line: int = self.node.lineno
        return line

    # --- looking around

    def is_definition(self) -> bool:
        """Whether the node is the definition that the target names, not one inside it."""
        return self.context.definition.node is self.node

    def parent(self, node: ast.AST | None = None) -> ast.AST:
        """The node above, the definition itself at its top."""
        link = self.source.links.get(self.node if node is None else node)
        return link.parent if link else self.context.definition.node

    def field(self, node: ast.AST | None = None) -> str:
        """Name of the field of the parent that holds the node."""
        link = self.source.links.get(self.node if node is None else node)
        return link.field if link else ""

    def ancestors(self, node: ast.AST | None = None) -> Iterator[ast.AST]:
        """Nodes above, the nearest first, up to the definition."""
        current = self.node if node is None else node
        while (link := self.source.links.get(current)) is not None:
            current = link.parent
            yield current

    def statement(self, node: ast.AST | None = None) -> ast.stmt | None:
        """The innermost statement around the node, which may be the node itself."""
        current = self.node if node is None else node
        if isinstance(current, ast.stmt):
            return current
        return next((above for above in self.ancestors(current) if isinstance(above, ast.stmt)), None)

    def function(self) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The innermost function around the node."""
        for above in self.ancestors():
            if isinstance(above, _FUNCTIONS):
                return above
        node = self.context.definition.node
        return node if isinstance(node, _FUNCTIONS) else None

    def is_generator(self, function: ast.AST | None) -> bool:
        """Whether the function yields."""
        return function is not None and self.context.once(
            f"yields {id(function)}",
            lambda: any(isinstance(inner, (ast.Yield, ast.YieldFrom)) for inner in ast.walk(function)),
        )

    def inner_functions(self) -> dict[str, ast.FunctionDef]:
        """Functions that the definition defines itself, by name."""
        return self.context.once(
            "inner functions",
            lambda: {node.name: node for node in self.context.nodes if isinstance(node, ast.FunctionDef)},
        )

    def loop(self) -> ast.For | ast.AsyncFor | ast.While | None:
        """The innermost loop around the node, within its function."""
        for above in self.ancestors():
            if isinstance(above, _LOOPS):
                return above
            if isinstance(above, (*_FUNCTIONS, ast.ClassDef)):
                return None
        return None

    def block(self, statement: ast.AST | None = None) -> list[ast.stmt]:
        """The list of statements that holds the statement."""
        link = self.source.links.get(self.node if statement is None else statement)
        if link is None:
            return []
        block = getattr(link.parent, link.field, None)
        return block if isinstance(block, list) else []

    def is_load(self) -> bool:
        """Whether the expression is read here: not stored to, not deleted, no pattern."""
        context = getattr(self.node, "ctx", None)
        return context is None or isinstance(context, ast.Load)

    def is_value(self) -> bool:
        """Whether another expression may stand here: no function name, keyword, pattern or statement of its own."""
        node, parent, where = self.node, self.parent(), self.field()
        if not isinstance(node, ast.expr) or not self.is_load() or isinstance(node, (ast.Starred, ast.Slice)):
            return False
        if isinstance(parent, (ast.Expr, ast.pattern, ast.Delete, ast.FormattedValue)):
            return False
        if isinstance(parent, ast.Call) and where == "func":
            return False
        if isinstance(parent, ast.Attribute) or (isinstance(parent, ast.ExceptHandler) and where == "type"):
            return False
        return not isinstance(parent, ast.Raise)

    def is_condition(self) -> bool:
        """Whether only the truth of the expression counts here."""
        parent, where = self.parent(), self.field()
        if isinstance(parent, (ast.If, ast.While, ast.IfExp, ast.Assert)):
            return where == "test"
        if isinstance(parent, ast.comprehension):
            return where == "ifs"
        if isinstance(parent, ast.BoolOp):
            return True
        if isinstance(parent, ast.UnaryOp):
            return isinstance(parent.op, ast.Not)
        return isinstance(parent, ast.match_case)

    def variables(self) -> list[tuple[str, float]]:
        """Names that hold values at this place, each once, with a weight."""
        binders = [above for above in self.ancestors() if isinstance(above, _BINDERS)]
        key = f"variables {self.line} {[id(above) for above in binders]}"
        return self.context.once(key, lambda: self._variables(binders))

    def _variables(self, binders: Sequence[ast.AST]) -> list[tuple[str, float]]:
        found: dict[str, float] = {}
        for above in binders:
            if isinstance(above, _COMPREHENSIONS):
                for generator in above.generators:
                    for node in ast.walk(generator.target):
                        if isinstance(node, ast.Name):
                            found[node.id] = 1.0
            elif isinstance(above, ast.Lambda):
                found.update((argument.arg, 1.0) for argument in above.args.args)
            elif isinstance(above, _FUNCTIONS) and above is not self.context.definition.node:
                found.update((argument.arg, 1.0) for argument in (*above.args.posonlyargs, *above.args.args))
                for node in ast.walk(above):
                    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                        found.setdefault(node.id, 0.8)
        for name, weight in self.scope.variables(self.node.lineno):
            found.setdefault(name, weight)
        return list(found.items())[:_MAX_VARIABLES]

    def values(self) -> list[tuple[str, float]]:
        """Variables, and attributes of `self` in a method: everything short that holds a value here."""
        found = list(self.variables())
        owner = self.scope.owner
        if owner == "self":
            found += [(f"{owner}.{name}", 0.7) for name in self.scope.attributes[:12]]
        return found

    def type_of(self, node: ast.AST | str) -> str:
        """Name of the builtin type of an expression or a variable, empty if unknown."""
        if isinstance(node, str):
            return self.scope.type_of(node)
        return guess_type(node, self.scope)

    def may_be(self, node: ast.AST | str, *types: str) -> bool:
        """Whether the expression has one of the types, as far as is known."""
        kind = self.type_of(node)
        return not kind or kind in types

    # --- text

    def text(self, node: ast.AST) -> str:
        return self.source.slice(node)

    def take(self, node: ast.AST) -> Snippet:
        """The text of an expression, to be put elsewhere."""
        text = self.source.slice(node)
        level = precedence(node)
        if isinstance(node, ast.Tuple) and self._is_closed(node, text):
            return Snippet(text, ATOM)
        if "\n" in text or "\r" in text:
            if isinstance(node, _BRACKETED):
                return Snippet(text, ATOM)
            if isinstance(node, ast.Call) and len(self.text(node.func).splitlines()) == 1:
                return Snippet(text, ATOM)
            return Snippet(f"({text})", ATOM)
        return Snippet(text, level)

    def _is_closed(self, node: ast.Tuple, text: str) -> bool:
        if not (text.startswith("(") and text.endswith(")")):
            return False
        if not node.elts:
            return True
        after = self.source.after(self.source.span(node.elts[0])[1])
        return self.source.text[after] != ")"

    # --- edits

    def replace(self, node: ast.AST, new: Snippet, weight: float = 1.0) -> Replacement:
        """Put `new` in the place of an expression, with parentheses where the place needs them."""
        return Replacement((self.splice(node, new),), weight)

    def splice(self, node: ast.AST, new: Snippet) -> Splice:
        start, end = self.source.span(node)
        parent = self.parent(node)
        level = required(parent, self.field(node))
        if isinstance(node, ast.GeneratorExp) and isinstance(parent, ast.Call):
            alone = len(parent.args) == 1 and not parent.keywords and self.source.span(parent)[1] == end
            text = f"({new.text})" if alone else new.at(level)
            return self.cut(start, end, text)
        if isinstance(parent, ast.Attribute) and new.text.isdigit():
            return self.cut(start, end, f"({new.text})")
        if new.level < level and not self._in_own_parentheses(node, parent):
            return self.cut(start, end, f"({new.text})")
        return self.cut(start, end, new.text)

    def _in_own_parentheses(self, node: ast.AST, parent: ast.AST) -> bool:
        if not self.source.parenthesised(node):
            return False
        if isinstance(parent, ast.Call) and self.field(node) == "args":
            return False  # may be the call's, which then lets anything in that needs no more
        return not (isinstance(parent, (ast.ClassDef, _FUNCTIONS)))

    def cut(self, start: int, end: int, text: str) -> Splice:
        """A splice that keeps words apart: `return-x` must not become `returnx`."""
        whole = self.source.text
        if text and start and _is_word(whole[start - 1]) and _is_word(text[0]):
            text = " " + text
        if text and end < len(whole) and _is_word(whole[end]) and _is_word(text[-1]):
            text += " "
        return start, end, text

    def between(self, left: ast.AST, right: ast.AST, pattern: str) -> Span | None:
        """Place of the first match of `pattern` in the text between two nodes, comments left out."""
        start, end = self.source.span(left)[1], self.source.span(right)[0]
        found = re.search(pattern, self.source.gap(start, end))
        return (start + found.start(), start + found.end()) if found else None

    def swap(self, first: ast.AST, second: ast.AST, weight: float = 1.0) -> Replacement:
        """Exchange two expressions that do not overlap."""
        return Replacement(
            (self.splice(first, self.take(second)), self.splice(second, self.take(first))), weight
        )

    def drop_item(self, items: Sequence[ast.AST], index: int, weight: float = 1.0) -> Replacement:
        """Remove one item of a list that commas divide (arguments, elements), with one of its commas."""
        spans = [self.source.outer_span(item) if len(items) > 1 else self.source.span(item) for item in items]
        start, end = spans[index]
        if index + 1 < len(items):
            end = spans[index + 1][0]
        elif index:
            start = spans[index - 1][1]
        return Replacement(((start, end, ""),), weight)

    # --- statements

    def lines(self, statement: ast.stmt) -> Span | None:
        """The whole lines of a statement, line break included; None if it shares a line with another."""
        text = self.source.text
        first = min([statement.lineno, *(item.lineno for item in getattr(statement, "decorator_list", ()))])
        start = self.source.line_start(first)
        begin, stop = self.source.span(statement)
        if first == statement.lineno and text[start:begin].strip():
            return None
        if isinstance(statement, ast.If) and text.startswith("elif", begin):
            return None
        end = self.source.line_start((statement.end_lineno or statement.lineno) + 1)
        rest = text[stop:end].strip()
        if rest and not rest.startswith("#"):
            return None
        return start, end

    def insert_before(self, statement: ast.stmt, *new: str, weight: float = 1.0) -> Replacement | None:
        """New lines in front of a statement, at its indentation; lines may bring further indentation."""
        place = self.lines(statement)
        if place is None:
            return None
        return Replacement(((place[0], place[0], self._block(statement, new)),), weight)

    def insert_after(self, statement: ast.stmt, *new: str, weight: float = 1.0) -> Replacement | None:
        """New lines behind a statement, at its indentation."""
        place = self.lines(statement)
        if place is None:
            return None
        text, end = self._block(statement, new), place[1]
        if end and self.source.text[end - 1] not in "\r\n":  # the file has no last line break
            text = self.source.newline + text.removesuffix(self.source.newline)
        return Replacement(((end, end, text),), weight)

    def _block(self, statement: ast.stmt, new: Sequence[str]) -> str:
        indent, unit, newline = self.indent(statement), self.indent_unit(), self.source.newline
        lines = []
        for line in new:
            bare = line.lstrip("\t")
            lines.append(indent + unit * (len(line) - len(bare)) + bare + newline)
        return "".join(lines)

    def delete(self, statement: ast.stmt, weight: float = 1.0) -> Replacement | None:
        """Take a statement out; `pass` stands in where the block would be empty."""
        if len(self.block(statement)) == 1:
            start, end = self.source.span(statement)
            return None if self.lines(statement) is None else Replacement(((start, end, "pass"),), weight)
        place = self.lines(statement)
        return Replacement(((*place, ""),), weight) if place else None

    def indent(self, statement: ast.stmt) -> str:
        return self.source.indent_of(statement.lineno)

    def indent_unit(self) -> str:
        return self.context.indent_unit

    def reindented(self, statement: ast.stmt, indent: str) -> str | None:
        """The lines of a statement at another indentation; None if a string goes over several of them."""
        place = self.lines(statement)
        if place is None:
            return None
        for node in ast.walk(statement):
            if isinstance(node, (ast.Constant, ast.JoinedStr)) and node.lineno != node.end_lineno:
                return None
        old = self.indent(statement)
        text = self.source.text[place[0] : place[1]]
        lines = [
            indent + line[len(old) :] if line.startswith(old) and line.strip() else line
            for line in re.split(r"(?<=\n)|(?<=\r)(?!\n)", text)
        ]
        whole = "".join(lines)
        return whole if whole.endswith(("\n", "\r")) else whole + self.source.newline

    def docstring(self, statement: ast.AST) -> bool:
        """Whether the statement is a string that stands alone."""
        return (
            isinstance(statement, ast.Expr)
            and isinstance(statement.value, ast.Constant)
            and isinstance(statement.value.value, str)
        )


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_" or character in "'\""
