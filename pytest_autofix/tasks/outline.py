"""Which definition a line belongs to: the map from executed lines to `Target`s."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache

from pytest_autofix.errors import PatchError
from pytest_autofix.patching.locate import MODULE, Definition, Lines, definitions, parse_source

__all__ = ["MODULE", "Outline", "Span", "outline_of"]


@dataclass(frozen=True, slots=True)
class Span:
    """One definition: a function, a method, a class body or the module level."""

    name: str  #: qualified: `Class.method`, `outer.inner`
    start: int  #: 1-based, decorators included
    end: int  #: 1-based, inclusive
    body: int  #: first line of the first statement of the body
    is_function: bool
    is_stub: bool = (
        False  #: nothing in the body but a docstring, `...`, `pass` or `raise NotImplementedError`
    )


class Outline:
    """The definitions of one source text. A text that does not parse has its module level only."""

    def __init__(self, source: str) -> None:
        count = len(Lines(source))
        self.module = Span(MODULE, 1, count, 1, is_function=False)
        self.tree: ast.Module | None
        try:
            self.tree = parse_source(source)
            self.spans = (self.module, *map(_span, definitions(source)))
        except PatchError:
            self.tree, self.spans = None, (self.module,)
        self._by_name = {span.name: span for span in self.spans}
        self._owner: list[Span] = [self.module] * (count + 1)
        for span in self.spans[1:]:  # parents come before their children, so the innermost wins
            for line in range(span.start, span.end + 1):
                self._owner[line] = span

    def owner(self, line: int) -> Span:
        """The innermost definition around a line; the module level for a line outside the text."""
        return self._owner[line] if 0 < line < len(self._owner) else self.module

    def find(self, name: str) -> Span | None:
        """The definition of that qualified name; the last one where a name is defined twice, as in Python."""
        return self._by_name.get(name)


@lru_cache(maxsize=256)
def outline_of(source: str) -> Outline:
    """The outline of a text; the same text is parsed once although every task of a run asks for it."""
    return Outline(source)


def _span(definition: Definition) -> Span:
    body = definition.tree.body
    return Span(
        definition.name,
        definition.start_line,
        definition.end_line,
        body[0].lineno,
        definition.kind != "class",
        definition.kind != "class" and all(_is_stub(statement) for statement in body),
    )


def _is_stub(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Pass)
        or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        or (isinstance(statement, ast.Raise) and "NotImplementedError" in ast.dump(statement))
    )
