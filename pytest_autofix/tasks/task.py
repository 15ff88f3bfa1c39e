"""`Target` and `Task`: one root cause to repair, and the places that may be changed for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pytest_autofix.evidence.failure import Failure

__all__ = ["Outcome", "Target", "Task"]

Outcome = Literal[
    "solved",
    "no_target",
    "flaky",
    "environment",
    "contradictory",
    "exhausted",
    "budget",
    "rejected",
    "sandbox",
    "model",
    "declined",
]


@dataclass(frozen=True, slots=True)
class Target:
    """A definition that may be changed."""

    path: str  #: relative to rootdir, with forward slashes
    name: str  #: qualified as in `ast`: `func`, `Class.method`, `outer.inner`; `<module>` for module level
    start_line: int  #: 1-based, first line of the definition (decorators included)
    end_line: int  #: 1-based, inclusive
    score: float  #: suspiciousness, 0 to 1


@dataclass(frozen=True, slots=True)
class Task:
    """One root cause: its failures, the ranked places to change, the files that may be edited."""

    fingerprint: str  #: stable over runs and machines: 16 hexadecimal digits
    failures: tuple[Failure, ...]
    targets: tuple[Target, ...]  #: best first
    allowed_files: tuple[str, ...]  #: relative to rootdir
    suspiciousness: dict[str, dict[int, float]] = field(default_factory=dict)
    """path → line → score, 0 to 1; lines that a failing test reached, and import-time lines that those read"""
    impacted: tuple[str, ...] = ()
    """node ids of passing tests that reach the targets, the narrowest first"""

    @property
    def nodeids(self) -> tuple[str, ...]:
        """Node ids of the failing tests, in the order pytest saw them, each once."""
        return tuple(dict.fromkeys(failure.nodeid for failure in self.failures))
