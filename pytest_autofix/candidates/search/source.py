"""A source file as text and tree at once, with the places of its definitions.

Edits are made on the text, by spans from the tree: comments, layout, line endings and encoding stay as they are.
"""

from __future__ import annotations

import ast
import bisect
import re
import threading
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

__all__ = [
    "MODULE",
    "Definition",
    "Link",
    "Source",
    "Span",
    "Splice",
    "code_key",
    "quiet_compile",
    "quiet_parse",
]

MODULE = "<module>"
_MARK = "\ufeff"  #: byte order mark: not in the tree's columns, but in the file
_LINE_BREAK = re.compile(r"\r\n|\r|\n")
_INDENT = re.compile(r"[ \t\f]*")
_BROKEN = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LITERAL = re.compile(r"""[rRbBuUfF]{0,2}('{3}|"{3}|'|")""")

# `warnings.catch_warnings` swaps global state; tasks are solved in several threads.
_WARNINGS = threading.Lock()

Span = tuple[int, int]
Splice = tuple[int, int, str]


class Link(NamedTuple):
    """Where a node hangs in the tree."""

    parent: ast.AST
    field: str
    place: int  #: position in the parent's list, -1 if the field is no list


def quiet_parse(text: str) -> ast.Module | None:
    """The tree of `text`, None if it has none; warnings about the user's code are not ours to raise."""
    with _WARNINGS, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except _BROKEN:
            return None


def quiet_compile(text: str) -> types.CodeType | None:
    """The code of `text`, None if it does not compile."""
    with _WARNINGS, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            code: types.CodeType = compile(text, "<candidate>", "exec", dont_inherit=True, optimize=0)
        except _BROKEN:
            return None
    return code


def code_key(code: types.CodeType) -> tuple[Any, ...]:
    """A hashable form of `code` without positions: equal keys mean equal behaviour.

    A cheaper and coarser form of the normalised tree: `ast.dump` costs five times as much as compiling, and
    the compiler also folds what only looks different, such as parentheses, quotes and `1 + 1`.
    """
    return (
        code.co_name,
        code.co_flags,
        code.co_argcount,
        code.co_posonlyargcount,
        code.co_kwonlyargcount,
        code.co_code,
        getattr(code, "co_exceptiontable", b""),
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        code.co_cellvars,
        tuple(_constant_key(constant) for constant in code.co_consts),
    )


def _constant_key(constant: object) -> Any:
    if isinstance(constant, types.CodeType):
        return code_key(constant)
    if isinstance(constant, tuple):
        return tuple(_constant_key(part) for part in constant)
    if isinstance(constant, frozenset):
        return frozenset(_constant_key(part) for part in constant)
    return type(constant).__name__, repr(constant)  # 1, True and 1.0 are equal, -0.0 and 0.0 too


@dataclass(frozen=True, eq=False)
class Definition:
    """What one target names: a function, a class without its methods, or a module without its functions."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module
    name: str  #: qualified, `<module>` for the module
    classes: tuple[ast.ClassDef, ...]  #: classes around it, outermost first
    functions: tuple[ast.FunctionDef | ast.AsyncFunctionDef, ...]  #: functions around it, outermost first

    @property
    def is_function(self) -> bool:
        return isinstance(self.node, _FUNCTIONS)


class Source:
    """One decoded file that parses; `Source.parse` gives None for one that does not."""

    def __init__(self, path: str, text: str, tree: ast.Module) -> None:
        self.path = path
        self.text = text
        self.tree = tree
        self.links: dict[ast.AST, Link] = {}
        first = 1 if text.startswith(_MARK) else 0
        self._starts = [first, *(match.end() for match in _LINE_BREAK.finditer(text))]
        self._ascii = text.isascii()
        found = _LINE_BREAK.search(text)
        self.newline = found.group() if found else "\n"

    @classmethod
    def parse(cls, path: str, text: str) -> Source | None:
        tree = quiet_parse(text.removeprefix(_MARK))
        return None if tree is None else cls(path, text, tree)

    def offset(self, line: int, column: int) -> int:
        """Character offset of a place as `ast` gives it: line from 1, column in UTF-8 bytes."""
        start = self._starts[line - 1]
        if self._ascii or not column:
            return start + column
        rest = self.text[start : start + column]  # `column` bytes are at most as many characters
        if rest.isascii():
            return start + column
        return start + len(rest.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "surrogatepass"))

    def span(self, node: ast.AST) -> Span:
        """Character span of a node that has a place; decorators do not count."""
        place: Any = node
        return (
            self.offset(place.lineno, place.col_offset),
            self.offset(place.end_lineno, place.end_col_offset),
        )

    def slice(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.text[start:end]

    def line_start(self, line: int) -> int:
        return self._starts[line - 1] if line <= len(self._starts) else len(self.text)

    def line_of(self, offset: int) -> int:
        return bisect.bisect_right(self._starts, offset)

    def indent_of(self, line: int) -> str:
        """Leading white space of a line."""
        found = _INDENT.match(self.text, self.line_start(line))
        return found.group() if found else ""

    def gap(self, start: int, end: int) -> str:
        """Text between two nodes with comments and line joins blanked out, of the same length."""
        text = self.text[start:end]
        if "#" in text:
            text = re.sub(r"#[^\r\n]*", lambda found: " " * len(found.group()), text)
        return text.replace("\\", " ")

    def before(self, offset: int) -> int:
        """Offset of the last character before `offset` that is no white space, -1 at the start."""
        offset -= 1
        while offset >= 0 and self.text[offset] in " \t\f\r\n":
            offset -= 1
        return offset

    def after(self, offset: int) -> int:
        """Offset of the first character from `offset` on that is no white space."""
        while offset < len(self.text) and self.text[offset] in " \t\f\r\n":
            offset += 1
        return offset

    def parenthesised(self, node: ast.AST) -> bool:
        """Whether the node stands directly in a pair of parentheses (of its own or of a call)."""
        start, end = self.span(node)
        left, right = self.before(start), self.after(end)
        return left >= 0 and right < len(self.text) and self.text[left] == "(" and self.text[right] == ")"

    def outer_span(self, node: ast.AST) -> Span:
        """The span with the parentheses around the node; not for an only argument, whose are the call's."""
        start, end = self.span(node)
        while (
            self.text[self.before(start)] == "(" and self.text[self.after(end) : self.after(end) + 1] == ")"
        ):
            start, end = self.before(start), self.after(end) + 1
        return start, end

    @cached_property
    def definitions(self) -> tuple[Definition, ...]:
        """All definitions of the file, the module first."""
        found = [Definition(self.tree, MODULE, (), ())]
        self._define(self.tree, "", (), (), found)
        return tuple(found)

    def _define(
        self,
        node: ast.AST,
        prefix: str,
        classes: tuple[ast.ClassDef, ...],
        functions: tuple[ast.FunctionDef | ast.AsyncFunctionDef, ...],
        found: list[Definition],
    ) -> None:
        for child in _statements(node):
            if isinstance(child, _FUNCTIONS):
                name = prefix + child.name
                found.append(Definition(child, name, classes, functions))
                self._define(child, name + ".", classes, (*functions, child), found)
            elif isinstance(child, ast.ClassDef):
                name = prefix + child.name
                found.append(Definition(child, name, classes, functions))
                self._define(child, name + ".", (*classes, child), functions, found)
            else:
                self._define(child, prefix, classes, functions, found)

    @cached_property
    def used_attributes(self) -> dict[str, tuple[set[str], bool]]:
        """Attributes that the file reads: name → (dumps of what they are read from, whether they are called)."""
        found: dict[str, tuple[set[str], bool]] = {}
        called: set[ast.AST] = set()
        for node in ast.walk(self.tree):  # breadth first: a call comes before its function
            if isinstance(node, ast.Call):
                called.add(node.func)
            elif isinstance(node, ast.Attribute):
                bases, _ = found.setdefault(node.attr, (set(), node in called))
                bases.add(ast.dump(node.value))
        return found

    @cached_property
    def constants(self) -> tuple[Any, ...]:
        """Values of all constants of the file, each once."""
        return tuple(
            {
                (type(node.value).__name__, repr(node.value)): node.value
                for node in ast.walk(self.tree)
                if isinstance(node, ast.Constant)
            }.values()
        )

    @cached_property
    def pieces(self) -> tuple[Span, ...]:
        """Spans of the top-level statements with their decorators, each of which compiles alone."""
        spans = []
        for statement in self.tree.body:
            first = min(
                [statement.lineno, *(item.lineno for item in getattr(statement, "decorator_list", ()))]
            )
            start = self.line_start(first) if first < statement.lineno else self.span(statement)[0]
            end = self.line_start((statement.end_lineno or first) + 1)
            spans.append((start, max(end, self.span(statement)[1])))
        for index in range(len(spans) - 1):  # `a = 1; b = 2` share a line
            spans[index] = (spans[index][0], min(spans[index][1], spans[index + 1][0]))
        return tuple(spans)

    def find(self, name: str, start_line: int, end_line: int) -> Definition | None:
        """The definition of that qualified name; of several (a property and its setter) the one in the lines."""
        same = [definition for definition in self.definitions if definition.name == name]
        for definition in same:
            if definition.name == MODULE:
                return definition
            node: Any = definition.node
            if start_line <= node.lineno <= end_line:
                return definition
        return same[0] if same else None

    def unit(self, definition: Definition, node: ast.AST) -> Unit | None:
        """The smallest piece of the file around `node` that can be compiled alone."""
        owner: Any = None
        if definition.functions:
            owner = definition.functions[0]
        elif definition.is_function:
            owner = definition.node
        else:  # module or class level: the statement itself
            owner = node
            while owner in self.links and not isinstance(owner, ast.stmt):
                owner = self.links[owner].parent
            while isinstance(owner, ast.stmt) and owner in self.links:
                parent = self.links[owner].parent
                if isinstance(parent, (ast.Module, ast.ClassDef)) or not isinstance(parent, ast.stmt):
                    break
                owner = parent
            if not isinstance(owner, ast.stmt):
                return None
        first = min([owner.lineno, *(item.lineno for item in getattr(owner, "decorator_list", ()))])
        start = self.line_start(first)
        indent = self.indent_of(first)
        place = self.offset(first, owner.col_offset) if first == owner.lineno else start + len(indent)
        end, line_end = self.span(owner)[1], self.line_start(owner.end_lineno + 1)
        rest = self.text[end:line_end].strip()
        if not rest or rest.startswith("#"):  # what is put behind the last statement lies inside as well
            end = line_end
        if self.text[start:place].strip():  # `class A: x = 1`, `a = 1; b = 2`: it shares its line
            return Unit(place, end, "")
        return Unit(start, end, "if 1:\n" if indent else "")


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    for field in ("body", "orelse", "handlers", "finalbody", "cases"):
        children = getattr(node, field, None)
        if isinstance(children, list):
            yield from children


@dataclass(frozen=True)
class Unit:
    """A piece of a file that is compiled alone to see whether an edit is one."""

    start: int
    end: int
    prefix: str  #: makes an indented piece a whole program

    def edited(self, text: str, splices: tuple[Splice, ...]) -> tuple[str, tuple[Splice, ...]]:
        """The program with those splices that lie inside, and the others."""
        inside = [splice for splice in splices if self.start <= splice[0] and splice[1] <= self.end]
        outside = tuple(splice for splice in splices if splice not in inside)
        pieces, position = [self.prefix], self.start
        for start, end, new in sorted(inside, key=lambda splice: splice[:2]):
            pieces += (text[position:start], new)
            position = end
        pieces += (text[position : self.end], "\n")
        return "".join(pieces), outside
