"""Whole sections as a user sees them at 80 columns, and what no input may do to them."""

from __future__ import annotations

import dataclasses
import io
from typing import Any, get_args

import pytest

from pytest_autofix.patching.changes import FileChange
from pytest_autofix.report.model import CostReport, RunReport, TaskReport, solution_of, totals_of
from pytest_autofix.report.terminal import (
    NEXT_STEPS,
    Closing,
    Line,
    PlainConsole,
    cost_line,
    diff_lines,
    render,
    show,
    verdict_lines,
)
from pytest_autofix.report.text import width_of
from pytest_autofix.sandbox.protocol import Isolation
from pytest_autofix.tasks.task import Outcome
from pytest_autofix.verdict.verdict import Check, Verdict

WHOLE = r"""
================================== autosolve ===================================
outcome       grade   tried  seconds  tests and target
solved        B         314      3.2  tests/test_cart.py::test_total (+1)
                                      in src/shop/cart.py:total
environment   -           0      0.0  ...g_name.py::TestIt::test_answers_in_time
rejected      -      12,345     60.0  tests/test_x.py::test_\x1b[2Jclear\u202e
                                      in src/shop/x.py:Box.price

---------------- patch for tests/test_cart.py::test_total (+1) -----------------
diff --git a/src/shop/cart.py b/src/shop/cart.py
--- a/src/shop/cart.py
+++ b/src/shop/cart.py
@@ -1,5 +1,5 @@
 def total(prices):
     result = 0
     for price in prices:
-        result -= price
+        result += price
     return result
passes the failing tests, breaks none of 17, no tampering found (grade B)
checked: paths, confirm; not run: lint

not solved: .../test_a_service_with_a_long_name.py::TestIt::test_answers_in_time
  reason: it is passed in the sandbox: it needs something of this machine
          (network, a service, files outside the project, an environment
          variable), or it fails only now and then
  next:   make the test independent of this machine: the sandbox has no network,
          no home, few variables

not solved: tests/test_x.py::test_\x1b[2Jclear\u202e
  reason: 3 candidates passed the trial and were refused by confirm:
          tests/test_y.py::test_other is failed
  next:   do not take such a patch: repair it by hand, or name a model with
          --autosolve-model

cost: 12,659 candidates, 1 model call, 120 tokens, price unknown, 61.5 s
note: no price known for scripted: tokens only
report: out/report.json
1 of 3 tasks solved; no file was changed; to write the patches run again with
--autosolve-mode apply, or review to be asked for each
"""


def screen(lines: list[Line]) -> str:
    stream = io.StringIO()
    show(lines, PlainConsole(stream), width=80)
    return stream.getvalue()


def closing(**facts: Any) -> Closing:
    return Closing(**{"mode": "report", "passing": 17, **facts})


def test_whole_report(report: RunReport) -> None:
    end = closing(report="out/report.json", notes=("no price known for scripted: tokens only",))
    assert screen(render(report, end, width=80)) == WHOLE.lstrip("\n")


@pytest.mark.parametrize("width", [1, 60, 77, 80, 200])
def test_no_line_is_wider_than_the_screen(report: RunReport, width: int) -> None:
    lines = render(report, closing(report="r" * 300, notes=("n" * 300,)), width=width)
    assert max(width_of(line.text) for line in lines) <= max(width, 60)


def test_markup(report: RunReport) -> None:
    markup = {line.text.strip(): line.markup for line in render(report, closing(), width=80)}
    assert markup["+        result += price"] == ("green",)
    assert markup["-        result -= price"] == ("red",)
    assert markup["@@ -1,5 +1,5 @@"] == ("cyan",)
    assert markup["+++ b/src/shop/cart.py"] == ("bold",)
    assert markup["result = 0"] == ()


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        pytest.param(
            {}, "1 of 3 tasks solved; no file was changed; to write the patches run again", id="report"
        ),
        pytest.param({"mode": "review"}, "no file was changed; run again to be asked once more", id="review"),
        pytest.param(
            {"mode": "apply", "written": ("a.py", "b.py"), "green": True},
            "2 files changed: a.py, b.py; a fresh run of all tests passes",
            id="green",
        ),
        pytest.param(
            {"mode": "apply", "written": ("a.py",), "green": False},
            "1 file changed: a.py; a fresh run still has failing tests",
            id="red",
        ),
        pytest.param({"mode": "apply", "written": ("a.py",)}, "run pytest to see them pass", id="not-run"),
        pytest.param(
            {"mode": "apply", "problem": "nothing was written: the disk is full"},
            "nothing was written: the disk is full",
            id="problem",
        ),
        pytest.param(
            {"stopped": True}, "stopped by you; 1 of 3 tasks solved; no file was changed", id="stopped"
        ),
    ],
)
def test_last_words(report: RunReport, facts: dict[str, Any], words: str) -> None:
    text = " ".join(line.text for line in render(report, closing(**facts), width=120)[-2:])
    assert words in text


def test_nothing_solved(report: RunReport, tasks: tuple[TaskReport, ...]) -> None:
    left = dataclasses.replace(report, tasks=tasks[1:], totals=totals_of(tasks[1:], seconds=1.0))
    assert (
        render(left, closing(mode="apply"), width=80)[-1].text == "0 of 2 tasks solved; no file was changed"
    )
    empty = dataclasses.replace(report, tasks=(), totals=totals_of([], seconds=0.1))
    assert "no failing test to solve" in screen(render(empty, closing(), width=80))


def test_missing_isolation_is_said(report: RunReport) -> None:
    open_air = dataclasses.replace(report, sandbox=Isolation("none", False, ()))
    assert "NOT ISOLATED" in screen(render(open_air, closing(), width=80))


def test_every_outcome_has_a_next_step(report: RunReport, tasks: tuple[TaskReport, ...]) -> None:
    assert set(NEXT_STEPS) == set(get_args(Outcome))
    searched = dataclasses.replace(tasks[2], outcome="exhausted")
    asked = dataclasses.replace(searched, attempts=tasks[0].attempts)
    for task, words in ((searched, "--autosolve-search-seconds"), (asked, "--autosolve-attempts")):
        text = screen(render(dataclasses.replace(report, tasks=(task,)), closing(), width=120))
        assert f"next:   {'give' if task is searched else 'allow'}" in text
        assert words in text


def test_words_promise_no_more_than_was_seen(report: RunReport) -> None:
    text = screen(render(report, closing(written=("a.py",), green=True), width=80)).lower()
    assert "correct" not in text
    assert "!" not in text


def test_hostile_text_stays_text(report: RunReport, tasks: tuple[TaskReport, ...]) -> None:
    hostile = "::error::y \x1b[2J\u202e\r\x07\n::set-output name=x::y\n##[group]"
    change = FileChange("a.py", b"::x\ny\n", f"::x\n{hostile}\n".encode())
    verdict = Verdict(False, "-", (Check("lint", "failed", hostile),))
    task = dataclasses.replace(
        tasks[2],
        reason=hostile,
        verdict=verdict,
        solution=solution_of([change]),
        failures=tasks[2].failures * 2,
    )
    lines = render(dataclasses.replace(report, tasks=(task,)), closing(notes=(hostile,)), width=80)
    for line in lines:
        assert line.text.isprintable()
        assert not line.text.lstrip().startswith("::")
        assert "##[" not in line.text


def test_long_patches_are_cut() -> None:
    change = FileChange("a.py", None, b"x = 1\n" * 500)
    lines = list(diff_lines(solution_of([change]).patch, 80, limit=50))
    assert len(lines) == 51
    assert lines[-1].text == "... 455 more lines of the patch, see the report"


def test_refused_verdict() -> None:
    verdict = Verdict(
        False,
        "-",
        (
            Check("paths", "passed", ""),
            Check("lint", "failed", "imports gc"),
            Check("flip", "not_run", "refused"),
        ),
    )
    assert [line.text for line in verdict_lines(verdict, 80)] == [
        "refused by lint: imports gc",
        "checked: paths; failed: lint; not run: flip",
    ]


@pytest.mark.parametrize(
    ("cost", "text"),
    [
        (CostReport(), "0 candidates, 0.0 s"),
        (CostReport(12.34, 1), "1 candidate, 12.3 s"),
        (CostReport(1, 2, 3, 4000, 5, 0.0123), "2 candidates, 3 model calls, 4,005 tokens, $0.0123, 1.0 s"),
        (CostReport(1, 2, 1, 1, 0, None), "2 candidates, 1 model call, 1 token, price unknown, 1.0 s"),
        (CostReport(1, 2, 1, 1, 0, 0.0), "2 candidates, 1 model call, 1 token, no charge, 1.0 s"),
    ],
)
def test_cost_line(cost: CostReport, text: str) -> None:
    assert cost_line(cost) == text


def test_through_pytests_own_reporter(report: RunReport, pytester: pytest.Pytester) -> None:
    config = pytester.parseconfigure("-p", "no:asyncio")
    reporter = config.pluginmanager.getplugin("terminalreporter")
    assert reporter is not None
    show(render(report, closing(), width=80), reporter)


def test_console_writes_what_the_stream_can_hold() -> None:
    raw = io.BytesIO()
    console = PlainConsole(io.TextIOWrapper(raw, encoding="ascii", write_through=True))
    console.write_line("caf\u00e9 \u65e5", red=True)
    console.write_sep("-")
    assert raw.getvalue() == b"caf\\xe9 \\u65e5\n" + b"-" * 80 + b"\n"
    PlainConsole(None).write_line("nothing to write to is no error")
