"""`Judge`: the one way to accept a candidate. Runs the checks in order, cheap and sound first."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pytest_autofix.patching.changes import FileChange
from pytest_autofix.sandbox.protocol import ForkServer, Limits, Sandbox
from pytest_autofix.verdict.baseline import Baseline
from pytest_autofix.verdict.confirm import changed_of, confirm, passing, screen
from pytest_autofix.verdict.verdict import CHECKS, Check, Grade, Verdict

__all__ = ["Judge"]

NOT_BUILT = "not part of this version"


@dataclass(frozen=True)
class Judge:
    """Everything a verdict rests on: taken from the original code before any candidate ran."""

    sandbox: Sandbox
    baseline: Baseline
    limits: Limits
    check_paths: Callable[[Sequence[FileChange]], Sequence[str]]
    """Policy of what may be edited: the reasons against these changes"""

    def passing(self, changes: Sequence[FileChange], nodeids: Sequence[str]) -> frozenset[str]:
        """Which of some failing tests pass with these changes, in one run: a question, no verdict."""
        if not nodeids:
            return frozenset()
        return passing(self.sandbox, self.baseline, changed_of(changes), nodeids, self.limits)

    def judge(
        self,
        changes: Sequence[FileChange],
        *,
        must_pass: Sequence[str],
        server: ForkServer | None = None,
        guards: int = 0,
        behaviours: int = 0,
    ) -> Verdict:
        """Run the checks until one fails; the others are `not_run` and say so.

        `server`: a warm one for the screen, which is left out without it. `guards`: how many tests that passed
        before are known to reach the changed code, and `behaviours`: how many different ones passed the tests, for
        the grade. Raises `SandboxError` if there is no verdict.
        """
        checks: dict[str, Check] = {}
        began = time.perf_counter()
        reasons = self.check_paths(changes)
        seconds = time.perf_counter() - began
        if reasons:
            checks["paths"] = Check("paths", "failed", "; ".join(reasons[:3]), seconds)
            return _verdict(checks, guards, behaviours)
        names = ", ".join(change.path for change in changes)
        checks["paths"] = Check("paths", "passed", f"only editable files: {names}", seconds)
        changed = changed_of(changes)
        if server is not None:
            checks["screen"] = screen(server, self.baseline, changed, must_pass=must_pass, limits=self.limits)
            if checks["screen"].status == "failed":
                return _verdict(checks, guards, behaviours)
        else:
            checks["screen"] = Check("screen", "not_run", "confirmed without a warm process")
        checks["confirm"] = confirm(
            self.sandbox, self.baseline, changed, must_pass=must_pass, limits=self.limits
        )
        return _verdict(checks, guards, behaviours)


def _verdict(done: dict[str, Check], guards: int, behaviours: int) -> Verdict:
    refused = next((name for name, check in done.items() if check.status == "failed"), "")
    missing = f"refused by {refused} before" if refused else NOT_BUILT
    checks = tuple(done.get(name, Check(name, "not_run", missing)) for name in CHECKS)
    accepted = not refused and checks[CHECKS.index("confirm")].status == "passed"
    return Verdict(accepted, _grade(accepted, guards, behaviours), checks)


def _grade(accepted: bool, guards: int, behaviours: int) -> Grade:
    """B: tests that passed before reach the changed code and still pass, and no other behaviour was found that passes
    the tests. C: only the repaired tests speak for it, or they would have taken something else as well.

    A needs the checks that say more than passing tests do.
    """
    if not accepted:
        return "-"
    return "B" if guards and behaviours <= 1 else "C"
