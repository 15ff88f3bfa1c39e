"""What speaks against a candidate, given a baseline and a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_autofix.sandbox.protocol import PhaseResult, RunResult
from pytest_autofix.verdict.baseline import Baseline
from pytest_autofix.verdict.confirm import differences

RED, GREEN, SKIPPED, OTHER = "t.py::red", "t.py::green", "t.py::skipped", "t.py::other_task"
ALL = (RED, GREEN, SKIPPED, OTHER)
BASELINE = Baseline(
    collected=ALL,
    outcomes={RED: "failed", GREEN: "passed", SKIPPED: "skipped", OTHER: "failed"},
    collect_errors={},
    flaky=frozenset(),
    seconds={},
    second_order="reversed",
)


def run(words: dict[str, str], *, collected: tuple[str, ...] = ALL, **changes: object) -> RunResult:
    phases: list[PhaseResult] = []
    for nodeid, word in words.items():
        if word == "skipped":
            phases.append(PhaseResult(nodeid, "setup", "skipped"))
            continue
        phases.append(PhaseResult(nodeid, "setup", "passed"))
        if word == "no-teardown":
            phases.append(PhaseResult(nodeid, "call", "passed"))
            continue
        outcome = "failed" if word == "failed" else "passed"
        phases.append(PhaseResult(nodeid, "call", outcome, xfail=word == "xfailed"))
        phases.append(PhaseResult(nodeid, "teardown", "passed"))
    return replace(RunResult("finished", collected, tuple(phases), 0), **changes)


GOOD = {RED: "passed", GREEN: "passed", SKIPPED: "skipped"}


def found(result: RunResult, baseline: Baseline = BASELINE, must_pass: tuple[str, ...] = (RED,)) -> list[str]:
    return list(
        differences(baseline, result, (*baseline.judged(must_pass), *baseline.collect_errors), must_pass)
    )


def test_nothing_speaks_against_a_repair() -> None:
    assert found(run(GOOD)) == []


@pytest.mark.parametrize(
    ("result", "words"),
    [
        pytest.param(run(GOOD | {RED: "failed"}), "has to pass", id="still-red"),
        pytest.param(run(GOOD | {RED: "skipped"}), "is skipped", id="target-skipped"),
        pytest.param(run(GOOD | {RED: "xfailed"}), "is xfailed", id="target-xfailed"),
        pytest.param(run(GOOD | {RED: "no-teardown"}), "is incomplete", id="target-without-teardown"),
        pytest.param(run({GREEN: "passed", SKIPPED: "skipped"}), "is not run", id="target-not-run"),
        pytest.param(run(GOOD | {GREEN: "failed"}), "was passed, is failed", id="broken"),
        pytest.param(run(GOOD | {GREEN: "skipped"}), "was passed, is skipped", id="new-skip"),
        pytest.param(run(GOOD | {GREEN: "xfailed"}), "was passed, is xfailed", id="new-xfail"),
        pytest.param(run(GOOD, collected=(RED, GREEN, SKIPPED)), "is gone", id="id-gone"),
        pytest.param(run(GOOD, collected=(*ALL, "t.py::extra")), "is new", id="id-new"),
        pytest.param(run(GOOD, status="exited"), "did not end by itself: exited", id="early-exit"),
        pytest.param(run(GOOD, status="timeout"), "did not end by itself: timeout", id="timeout"),
        pytest.param(run(GOOD, status="output"), "did not end by itself: output", id="flood"),
        pytest.param(run(GOOD, survivors=2), "2 processes were left", id="survivors"),
        pytest.param(run(GOOD, tampered=("t.py",)), "protected files changed: t.py", id="tampered"),
    ],
)
def test_what_speaks_against(result: RunResult, words: str) -> None:
    assert any(words in problem for problem in found(result)), found(result)


BLOCKED = replace(
    BASELINE, collected=(GREEN,), outcomes={GREEN: "passed"}, collect_errors={"b.py": "ImportError"}
)


@pytest.mark.parametrize(
    ("result", "words"),
    [
        pytest.param(
            run({GREEN: "passed", "b.py::x": "passed"}, collected=(GREEN, "b.py::x")), "", id="repaired"
        ),
        pytest.param(
            run({GREEN: "passed", "b.py::x": "failed"}, collected=(GREEN, "b.py::x")),
            "b.py::x is failed",
            id="red",
        ),
        pytest.param(
            run({GREEN: "passed", "b.py::x": "skipped"}, collected=(GREEN, "b.py::x")),
            "no test of b.py",
            id="skips",
        ),
        pytest.param(run({GREEN: "passed"}, collected=(GREEN,)), "no test of b.py", id="nothing-collected"),
    ],
)
def test_a_file_that_could_not_be_collected(result: RunResult, words: str) -> None:
    problems = found(result, BLOCKED, ("b.py",))
    assert any(words in problem for problem in problems) if words else problems == []


def test_judged_leaves_out_other_tasks_and_flaky_tests() -> None:
    baseline = replace(BASELINE, collected=(*ALL, "t.py::flaky"), flaky=frozenset({"t.py::flaky"}))
    assert baseline.judged((RED,)) == (RED, GREEN, SKIPPED)
