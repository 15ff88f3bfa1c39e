"""`Console`: where a run talks to a person."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pytest_autofix.report.terminal import Line, Terminal, show

__all__ = ["Console"]


@dataclass(frozen=True, slots=True)
class Console:
    """Where a run talks to a person."""

    terminal: Terminal
    width: int
    live: bool  #: a line can be rewritten
    ask: Callable[[str], str]  #: raises `EOFError` where nobody can answer

    def show(self, lines: Sequence[Line]) -> None:
        show(lines, self.terminal, width=self.width)
