"""`Recorder`: the plugin object that turns failing reports into evidence and gathers it.

Evidence is taken where the exception still exists, which under pytest-xdist is the worker, and travels as one plain
attribute of the report. It is gathered where the reports end: in the controller.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from pytest_autofix.evidence.comparisons import AssertWatch
from pytest_autofix.evidence.describe import (
    describe_collection,
    describe_item,
    describe_text,
    is_strict_xpass,
)
from pytest_autofix.evidence.failure import Failure
from pytest_autofix.evidence.frames import ProjectPaths
from pytest_autofix.evidence.hanging import HangWatch
from pytest_autofix.evidence.values import Describer

__all__ = ["ATTRIBUTE", "Recorder"]

ATTRIBUTE = "autofix_failure"
"""Name of the report attribute that holds a `Failure` as builtin values."""

_log = logging.getLogger("pytest_autofix")

Report = pytest.TestReport | pytest.CollectReport


class Recorder:
    """Register it in every process of a run; ask it in the one that the user started."""

    def __init__(self) -> None:
        self._watch = AssertWatch()
        self._hang = HangWatch()
        self._paths = ProjectPaths(Path.cwd())
        self._worker = False
        self._failures: dict[str, dict[str, Any]] = {}
        self._words: dict[str, str] = {}
        self._seconds: dict[str, float] = {}
        self._collected: dict[str, None] = {}

    def failures(self) -> tuple[Failure, ...]:
        """Each failing node once, in the order pytest saw them, as it failed first."""
        return tuple(Failure.from_json(data) for data in self._failures.values())

    def outcomes(self) -> dict[str, str]:
        """Node id → passed, failed, skipped or xfailed (xpassed too), over all phases that were run."""
        return {nodeid: word for nodeid, word in self._words.items() if word}

    def durations(self) -> dict[str, float]:
        """Node id → seconds of all phases."""
        return dict(self._seconds)

    def collected(self) -> tuple[str, ...]:
        """Node ids of the tests that were selected to run."""
        return tuple(self._collected)

    def pytest_configure(self, config: pytest.Config) -> None:
        self._paths = ProjectPaths(config.rootpath)
        self._worker = hasattr(config, "workerinput")

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_assertrepr_compare(
        self, config: pytest.Config, op: str, left: object, right: object
    ) -> Generator[None, list[Any], list[Any]]:
        result = yield
        try:
            self._watch.see(config, op, left, right, result)
        except Exception as error:  # looking at a broken program must not change the user's test run
            _log.debug("no operands", exc_info=error)
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True, optionalhook=True)
    def pytest_timeout_set_timer(self) -> Generator[None, object, object]:
        result = yield
        self._hang.precede_handler(self._paths)
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.failed and not is_strict_xpass(report) and not _expected_to_fail(item):
            self._attach(
                report, lambda: describe_item(item, call, report, self._paths, self._watch, self._hang.take())
            )
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        report = yield
        call = getattr(report, "call", None)
        if report.failed and call is not None:
            self._attach(
                report, lambda: describe_collection(collector, call, report, self._paths, self._watch)
            )
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not hasattr(report, "node"):  # in the process that ran it, before pytest-xdist sends it off
            _add_subtest(report)
        if self._worker:
            return
        self._keep(report)
        nodeid, word = report.nodeid, self._words.get(report.nodeid, "")
        self._seconds[nodeid] = self._seconds.get(nodeid, 0.0) + report.duration
        if str(report.outcome) == "rerun":  # pytest-rerunfailures starts the test again
            self._words[nodeid] = ""
            return
        self._words[nodeid] = _merged(word, report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and not self._worker:
            self._keep(report)
            self._words[report.nodeid] = "failed"

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if not self._worker:
            self._collected.update(dict.fromkeys(item.nodeid for item in session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self._collected.update(dict.fromkeys(ids))

    def _attach(self, report: Report, describe: Callable[[], Failure]) -> None:
        try:
            failure = describe()
        except (Exception, pytest.fail.Exception) as error:
            # As above; the second is the test's own time limit, should it go off just here.
            _log.debug("no evidence", exc_info=error)
            failure = describe_text(report)
        setattr(report, ATTRIBUTE, failure.to_json())

    def _keep(self, report: Report) -> None:
        if not report.failed or report.nodeid in self._failures:
            return
        data = getattr(report, ATTRIBUTE, None)
        if data is None:
            if not isinstance(report.longrepr, str) or is_strict_xpass(report):
                return
            data = describe_text(report).to_json()  # made without `makereport`: a crash, for one
        self._failures[report.nodeid] = data


def _add_subtest(report: pytest.TestReport) -> None:
    """Show the values of a failed subtest among the parameters: they exist only after `makereport`."""
    data = getattr(report, ATTRIBUTE, None)
    values = getattr(getattr(report, "context", None), "kwargs", None)
    if data is None or not isinstance(values, dict):
        return
    describer = Describer()
    shown = {
        str(name): describer.text(value, limit=1000) if isinstance(value, str) else describer.value(value)
        for name, value in values.items()
    }
    setattr(report, ATTRIBUTE, {**data, "parameters": {**data["parameters"], **shown}})


def _merged(word: str, report: pytest.TestReport) -> str:
    subtest = type(report).__name__.lower() == "subtestreport"
    if report.failed or word == "failed":
        return "failed"
    if subtest or word in ("xfailed", "skipped"):
        return word
    if hasattr(report, "wasxfail"):
        return "xfailed"
    if report.skipped:
        return "skipped"
    return "passed" if report.when == "call" else word


def _expected_to_fail(item: pytest.Item) -> bool:
    """An xfail test that failed otherwise than it should: whatever the repair, it would not end as `passed`."""
    try:
        from _pytest.skipping import xfailed_key
    except ImportError:  # private: without it such a test is tried and found to be no target later
        return False
    return item.stash.get(xfailed_key, None) is not None and not item.config.option.runxfail
