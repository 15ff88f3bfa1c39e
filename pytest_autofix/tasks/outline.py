"""Which definition a line belongs to: the map from executed lines to `Target`s."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

__all__ = ["MODULE", "Outline", "Span", "outline_of"]

MODULE = "<module>"


@dataclass(frozen=True, slots=True)
class Span:
    """One definition: a function, a method, a class body or the module level."""

    name: str  #: qualified as in `ast`: `Class.method`, `outer.inner`
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
        count = max(1, len(source.splitlines()))
        self.tree: ast.Module | None
        try:
            self.tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self.tree = None
        self.module = Span(MODULE, 1, count, 1, is_function=False)
        self.spans = (self.module, *(_spans(self.tree, "") if self.tree else ()))
        self._owner: list[Span] = [self.module] * (count + 1)
        for span in self.spans[1:]:  # parents come before their children, so the innermost wins
            for line in range(span.start, min(span.end, count) + 1):
                self._owner[line] = span

    def owner(self, line: int) -> Span:
        """The innermost definition around a line; the module level for a line outside the text."""
        return self._owner[line] if 0 < line < len(self._owner) else self.module

    def find(self, name: str) -> Span | None:
        """The definition of that qualified name; the last one where a name is defined twice, as in Python."""
        return next((span for span in reversed(self.spans) if span.name == name), None)


@lru_cache(maxsize=256)
def outline_of(source: str) -> Outline:
    """The outline of a text; the same text is parsed once although every task of a run asks for it."""
    return Outline(source)


def _spans(node: ast.AST, prefix: str) -> Iterator[Span]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            name = prefix + child.name
            first = min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)])
            end = child.end_lineno or child.lineno
            function = not isinstance(child, ast.ClassDef)
            yield Span(name, first, end, child.body[0].lineno, function, function and _is_stub(child.body))
            yield from _spans(child, name + ".")
        elif not isinstance(child, ast.expr):
            yield from _spans(child, prefix)  # definitions below `if`, `try`, `with`, `match`


def _is_stub(body: list[ast.stmt]) -> bool:
    return all(
        isinstance(statement, ast.Pass)
        or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        or (isinstance(statement, ast.Raise) and "NotImplementedError" in ast.dump(statement))
        for statement in body
    )
