"""What type checkers see of the values that other programs read. mypy checks it, and it runs as a test too."""

from __future__ import annotations

from typing import assert_type

from pytest_autofix.candidates.candidate import Candidate, Edit, Origin
from pytest_autofix.evidence.failure import Failure, Frame, Kind
from pytest_autofix.tasks.task import Target, Task
from pytest_autofix.verdict.verdict import Check, Verdict


def test_candidate() -> None:
    candidate = Candidate((Edit("m.py", 0, 1, "y"),), Origin("search", operator="name.variable"))
    assert_type(candidate.apply({"m.py": "x"}), dict[str, str])
    assert candidate.apply({"m.py": "x"}) == {"m.py": "y"}
    assert_type(candidate.paths, tuple[str, ...])


def test_failure_and_task() -> None:
    failure = Failure("t.py::test_a", "call", "assertion", "assert 1 == 2", "t.py")
    assert_type(failure.kind, Kind)
    assert_type(failure.frames, tuple[Frame, ...])
    task = Task("0" * 16, (failure, failure), (Target("m.py", "f", 1, 2, 1.0),), ("m.py",))
    assert_type(task.suspiciousness, dict[str, dict[int, float]])
    assert task.nodeids == ("t.py::test_a",)


def test_verdict() -> None:
    verdict = Verdict(accepted=False, grade="-", checks=(Check("confirm", "failed", "one test fails"),))
    assert_type(verdict.checks, tuple[Check, ...])
    assert verdict.refused_by == "confirm"
