"""Find definitions by qualified name, and read source files so that they can be written back byte for byte.

Offsets count characters of the decoded text without its byte order mark; lines are those of the Python tokenizer
(`\\n`, `\\r\\n`, `\\r`), not those of `str.splitlines`, which also breaks at form feeds and Unicode separators.
"""

from __future__ import annotations

import ast
import codecs
import difflib
import io
import re
import tokenize
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pytest_autofix.errors import PatchError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "MODULE",
    "Definition",
    "DefinitionNode",
    "Lines",
    "SourceText",
    "definition_at",
    "definitions",
    "dominant_newline",
    "is_overload",
    "locate_all",
    "locate_definition",
    "outline",
    "parse_source",
    "read_source",
]

MODULE = "<module>"
DefinitionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Definition:
    """One function, method or class: where it stands, decorators included."""

    name: str  #: qualified: `func`, `Class.method`, `outer.inner`
    kind: Literal["function", "async function", "class", "module"]
    start: int  #: offset of the first line (its indentation included)
    end: int  #: offset behind the last line, its line end not included
    start_line: int  #: 1-based, of the first decorator
    end_line: int  #: 1-based, inclusive
    def_line: int  #: 1-based, of the `def` or `class` keyword
    indent: str  #: white space before the definition
    parent: str  #: qualified name of the enclosing definition, empty at module level
    parent_kind: Literal["function", "async function", "class", "module"]
    node: DefinitionNode | None = field(default=None, compare=False, repr=False)

    @property
    def short_name(self) -> str:
        """The last part of the qualified name."""
        return self.name.rpartition(".")[2]

    @property
    def tree(self) -> DefinitionNode:
        """The syntax tree of the definition; raises `PatchError` for the module, which is none."""
        if self.node is None:
            raise PatchError(f"{self.name} is no definition")
        return self.node


@dataclass(frozen=True, slots=True)
class SourceText:
    """A decoded source file with what is needed to encode it again."""

    text: str  #: without byte order mark, line ends untouched
    encoding: str
    newline: str  #: the most frequent line end, `\\n` when there is none
    bom: bool

    def encode(self, text: str | None = None) -> bytes:
        """Bytes of `text` (default: the original) as this file stores them.

        Raises `PatchError` when the file's encoding has no byte for a character.
        """
        try:
            body = (self.text if text is None else text).encode(self.encoding)
        except UnicodeEncodeError as error:
            character = error.object[error.start]
            raise PatchError(
                f"the file is stored as {self.encoding}, which has no {character!r} (U+{ord(character):04X})"
            ) from error
        return codecs.BOM_UTF8 + body if self.bom else body


class Lines:
    """Offsets of the lines of a text, as the tokenizer counts them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0]
        self._ends: list[int] = []
        for match in _LINE_END.finditer(text):
            self._ends.append(match.start())
            self._starts.append(match.end())
        self._ends.append(len(text))

    def __len__(self) -> int:
        return len(self._starts)

    def start(self, line: int) -> int:
        """Offset of the first character of a 1-based line; the end of the text behind the last one."""
        return self._starts[line - 1] if line <= len(self._starts) else len(self.text)

    def end(self, line: int) -> int:
        """Offset of the line end of a 1-based line."""
        return self._ends[line - 1]

    def __getitem__(self, line: int) -> str:
        """Text of a 1-based line without its line end."""
        return self.text[self.start(line) : self.end(line)]

    def number(self, offset: int) -> int:
        """1-based line that holds `offset`."""
        return bisect_right(self._starts, offset)

    def offset(self, line: int, utf8_column: int) -> int:
        """Offset of an `ast` position, whose columns count UTF-8 bytes."""
        return self.start(line) + len(self[line].encode("utf-8")[:utf8_column].decode("utf-8"))


def read_source(source: Path | bytes) -> SourceText:
    """Decode a source file as Python does (byte order mark, PEP 263 cookie, UTF-8), line ends untouched.

    Raises `PatchError` for unknown encodings, undecodable bytes and texts that would not come back identical.
    """
    name = "source" if isinstance(source, bytes) else source.as_posix()
    data = source if isinstance(source, bytes) else source.read_bytes()
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as error:
        raise PatchError(f"{name}: {error.msg}") from error
    bom = data.startswith(codecs.BOM_UTF8)
    if bom:
        encoding, data = "utf-8", data[len(codecs.BOM_UTF8) :]
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise PatchError(
            f"{name}: byte {error.start} (0x{data[error.start]:02x}) is not valid {encoding}"
        ) from error
    if text.encode(encoding) != data:
        raise PatchError(f"{name}: {encoding} text that cannot be written back byte for byte")
    return SourceText(text, encoding, dominant_newline(text), bom)


def dominant_newline(text: str) -> str:
    """The most frequent line end of a text, `\\n` when there is none."""
    found = Counter(_LINE_END.findall(text))
    return max(found, key=lambda end: found[end], default="\n")


def parse_source(source: str, what: str = "the file") -> ast.Module:
    """`ast.parse` that raises `PatchError` with line and reason instead of four kinds of exceptions."""
    try:
        return ast.parse(source)
    except SyntaxError as error:
        raise PatchError(f"{what} does not parse: line {error.lineno}: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise PatchError(f"{what} does not parse: {error or type(error).__name__}") from error


def definitions(source: str) -> list[Definition]:
    """All functions, methods and classes in the order of the text, nested ones included."""
    return list(outline(source)[1])


@lru_cache(maxsize=32)
def outline(source: str) -> tuple[ast.Module, tuple[Definition, ...]]:
    """Tree and definitions of a text, parsed once: a round with a model asks for the same text ten times.

    The tree is shared: look at it, do not change it.
    """
    tree = parse_source(source)
    return tree, tuple(_walk(tree, Lines(source)))


def locate_all(source: str, name: str) -> list[Definition]:
    """All definitions of that qualified name: overloads, a property with its setter, branches of an `if`.

    Raises `PatchError` with the nearest names when there is none.
    """
    wanted = name.replace(".<locals>", "")
    if wanted == MODULE:
        return [_module(source)]
    found = definitions(source)
    same = [definition for definition in found if definition.name == wanted]
    if not same:
        known = list(dict.fromkeys(definition.name for definition in found))
        raise PatchError(f"no definition {wanted!r}; {_nearest(wanted, known)}")
    return same


def locate_definition(source: str, name: str, *, line: int | None = None) -> Definition:
    """The one definition of that qualified name; `line` picks among several.

    Of overloads it is the implementation. Other ambiguity raises `PatchError` with the lines, as does an unknown name.
    """
    found = locate_all(source, name)
    if line is not None:
        covering = [
            definition for definition in found if definition.start_line <= line <= definition.end_line
        ]
        if len(covering) == 1:
            return covering[0]
    concrete = [definition for definition in found if not is_overload(definition.node)]
    if len(concrete) == 1:
        return concrete[0]
    places = ", ".join(str(definition.def_line) for definition in found)
    raise PatchError(
        f"{name!r} is defined {len(found)} times, in lines {places}: which one is meant is not clear"
    )


def definition_at(found: Iterable[Definition], line: int) -> Definition | None:
    """The innermost definition whose lines (decorators included) hold `line`; None at module level."""
    covering = [definition for definition in found if definition.start_line <= line <= definition.end_line]
    return min(covering, key=lambda definition: definition.end_line - definition.start_line, default=None)


def is_overload(node: DefinitionNode | None) -> bool:
    """Whether the definition is one of `typing.overload`."""
    return node is not None and any(
        ast.unparse(decorator).rpartition(".")[2] == "overload" for decorator in node.decorator_list
    )


def _module(source: str) -> Definition:
    return Definition(
        name=MODULE,
        kind="module",
        start=0,
        end=len(source),
        start_line=1,
        end_line=len(Lines(source)),
        def_line=1,
        indent="",
        parent="",
        parent_kind="module",
    )


def _walk(tree: ast.Module, lines: Lines) -> Iterator[Definition]:
    # An explicit stack: `elif` chains of generated code nest deeper than the recursion limit.
    stack: list[tuple[ast.AST, Definition | None]] = [(tree, None)]
    while stack:
        node, parent = stack.pop()
        if isinstance(node, DefinitionNode):
            parent = _definition(node, parent, lines)
            yield parent
        children = [
            child
            for child in ast.iter_child_nodes(node)
            if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case)
        ]
        stack.extend((child, parent) for child in reversed(children))


def _definition(node: DefinitionNode, parent: Definition | None, lines: Lines) -> Definition:
    first = node.lineno
    if node.decorator_list:
        first = min(decorator.lineno for decorator in node.decorator_list)
        while first > 1 and not lines[first].lstrip().startswith("@"):
            first -= 1  # `@(` on a line of its own: the expression starts below
    last = node.end_lineno or node.lineno
    text = lines[node.lineno]
    kind: Literal["function", "async function", "class"] = "function"
    if isinstance(node, ast.ClassDef):
        kind = "class"
    elif isinstance(node, ast.AsyncFunctionDef):
        kind = "async function"
    return Definition(
        name=f"{parent.name}.{node.name}" if parent else node.name,
        kind=kind,
        start=lines.start(first),
        end=lines.end(last),
        start_line=first,
        end_line=last,
        def_line=node.lineno,
        indent=text[: len(text) - len(text.lstrip(" \t\f"))],
        parent=parent.name if parent else "",
        parent_kind=parent.kind if parent else "module",
        node=node,
    )


def _nearest(wanted: str, known: list[str]) -> str:
    if not known:
        return "the file has no definitions"
    by_tail = [name for name in known if name.rpartition(".")[2] == wanted.rpartition(".")[2]]
    near = by_tail or difflib.get_close_matches(wanted, known, n=3, cutoff=0.4)
    if near:
        return "nearest: " + ", ".join(near[:3])
    return f"the file defines {', '.join(known[:5])}" + (" and more" if len(known) > 5 else "")
