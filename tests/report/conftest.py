"""One run with tasks of several outcomes, as all report tests see it."""

from __future__ import annotations

import pytest

from pytest_autofix.patching.changes import FileChange
from pytest_autofix.report.model import (
    AttemptReport,
    CostReport,
    FailureReport,
    RunReport,
    TaskReport,
    search_attempts,
    solution_of,
    totals_of,
)
from pytest_autofix.sandbox.protocol import Isolation
from pytest_autofix.tasks.task import Target
from pytest_autofix.verdict.verdict import Check, Verdict

CHANGE = FileChange(
    "src/shop/cart.py",
    b"def total(prices):\n    result = 0\n    for price in prices:\n        result -= price\n    return result\n",
    b"def total(prices):\n    result = 0\n    for price in prices:\n        result += price\n    return result\n",
)


LONG_NAME = "tests/integration/test_a_service_with_a_long_name.py::TestIt::test_answers_in_time"


@pytest.fixture
def solved() -> TaskReport:
    return TaskReport(
        fingerprint="0123456789abcdef",
        failures=(
            FailureReport("tests/test_cart.py::test_total", "assertion"),
            FailureReport("tests/test_cart.py::test_total_of_many[3-rows]", "assertion"),
        ),
        targets=(Target("src/shop/cart.py", "total", 1, 5, 0.9),),
        outcome="solved",
        attempts=(
            *search_attempts(
                {
                    "compare.relation": {"tried": 12, "passed": 0, "failed": 12, "seconds": 0.5},
                    "arithmetic.sign": {
                        "tried": 302,
                        "passed": 1,
                        "failed": 300,
                        "crashed": 1,
                        "seconds": 2.0,
                    },
                }
            ),
            AttemptReport(
                "model", "failed", "feedfacecafebeef", 1.5, 120, model="scripted", prompt="repair@1"
            ),
        ),
        verdict=Verdict(
            True,
            "B",
            (
                Check("paths", "passed", "only editable files: src/shop/cart.py", 0.001),
                Check("lint", "not_run", "not part of this version"),
                Check("confirm", "passed", "2 runs of 19 tests, the second in reverse", 1.25),
            ),
        ),
        solution=solution_of([CHANGE]),
        cost=CostReport(3.21, 314, 1, 100, 20, None),
    )


@pytest.fixture
def tasks(solved: TaskReport) -> tuple[TaskReport, ...]:
    return (
        solved,
        TaskReport(
            fingerprint="1111111111111111",
            failures=(FailureReport(LONG_NAME, "exception"),),
            targets=(),
            outcome="environment",
            reason="it is passed in the sandbox: it needs something of this machine (network, a service, files "
            "outside the project, an environment variable), or it fails only now and then",
        ),
        TaskReport(
            fingerprint="2222222222222222",
            failures=(FailureReport("tests/test_x.py::test_\x1b[2Jclear\u202e", "assertion"),),
            targets=(Target("src/shop/x.py", "Box.price", 1, 5, 0.9),),
            outcome="rejected",
            reason="3 candidates passed the trial and were refused by confirm: tests/test_y.py::test_other is failed",
            verdict=Verdict(
                False, "-", (Check("paths", "passed", ""), Check("confirm", "failed", "test_other is failed"))
            ),
            cost=CostReport(60.04, 12_345),
        ),
    )


@pytest.fixture
def report(tasks: tuple[TaskReport, ...]) -> RunReport:
    return RunReport(
        versions={"python": "3.11.2", "pytest": "9.0.0"},
        settings={"mode": "report", "jobs": 2, "max_seconds": float("inf"), "models": ["scripted"]},
        sandbox=Isolation("local", True, ("no network", "home is empty")),
        tasks=tasks,
        totals=totals_of(tasks, seconds=61.5),
        exit_status=1,
    )
