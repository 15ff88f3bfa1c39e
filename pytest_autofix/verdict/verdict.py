"""`Check` and `Verdict`: the outcome of validating a candidate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["CHECKS", "Check", "Grade", "Status", "Verdict"]

Status = Literal["passed", "failed", "not_run"]
Grade = Literal["A", "B", "C", "-"]

CHECKS = ("paths", "lint", "screen", "confirm", "flip", "held-out", "strength")
"""All checks in the order they are made: cheap and sound first."""


@dataclass(frozen=True, slots=True)
class Check:
    """One named check with what it saw."""

    name: str
    status: Status
    detail: str  #: one or two sentences for people: the evidence, or why it was not run
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """The named checks of one candidate, and whether it is accepted."""

    accepted: bool
    grade: Grade
    checks: tuple[Check, ...]

    @property
    def refused_by(self) -> str:
        """Name of the first failed check, empty if none failed."""
        return next((check.name for check in self.checks if check.status == "failed"), "")
