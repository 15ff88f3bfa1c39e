"""The recorder as a plugin: on xdist workers, beside reruns and crashes, and without a trace in the user's run."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_autofix.evidence.failure import Failure
from pytest_autofix.evidence.recorder import ATTRIBUTE, Recorder

Write = Callable[[dict[str, str]], None]

QUIET = ("-p", "no:cacheprovider", "-o", "asyncio_default_fixture_loop_scope=function")

CONFTEST = """
import json
import pytest
from pytest_autofix.evidence.recorder import Recorder
from pytest_autofix.evidence.time_limit import apply_time_limit

@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    apply_time_limit(config, 2)
    config.recorder = Recorder()
    config.pluginmanager.register(config.recorder)

def pytest_unconfigure(config):
    if not hasattr(config, "workerinput"):
        recorder = config.recorder
        data = {
            "failures": [failure.to_json() for failure in recorder.failures()],
            "outcomes": recorder.outcomes(),
            "collected": recorder.collected(),
            "durations": recorder.durations(),
        }
        with open("recorded.json", "w") as file:
            json.dump(data, file)
"""


def run(pytester: pytest.Pytester, *arguments: str) -> dict[str, Any]:
    pytester.runpytest_subprocess(
        *("-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:langsmith_plugin"),
        *("-o", "asyncio_default_fixture_loop_scope=function"),
        *arguments,
    )
    data: dict[str, Any] = json.loads(Path(pytester.path, "recorded.json").read_text())
    return data


def test_xdist_gives_the_same_evidence(pytester: pytest.Pytester, write: Write) -> None:
    write(
        {
            "conftest.py": CONFTEST,
            "lib.py": "def divide(a, b):\n    return a / b\n",
            "test_bad.py": "import not_there\n",
            "test_x.py": r"""
            import os
            import pytest
            import lib
            @pytest.mark.parametrize("a", [1, 2])
            def test_divide(a):
                lib.divide(a, 0)
            def test_surrogate():
                text = ["\udc80"]
                assert text == "b"
            @pytest.mark.xfail
            def test_xfail(): assert 0
            def test_fine(): pass
            def test_hang():
                while True: pass
            """,
        }
    )
    here = run(pytester, "--continue-on-collection-errors")
    there = run(pytester, "--continue-on-collection-errors", "-n2")

    def comparable(data: dict[str, Any]) -> dict[str, Any]:
        # pytest-timeout prints the stack of pytest-xdist's own thread.
        failures = {
            failure["nodeid"]: {**failure, "seconds": 0, "output": {}} for failure in data["failures"]
        }
        return {
            "failures": failures,
            "outcomes": data["outcomes"],
            "collected": sorted(data["collected"]),
            "durations": sorted(data["durations"]),
        }

    assert comparable(there) == comparable(here)
    kinds = {name: failure["kind"] for name, failure in comparable(there)["failures"].items()}
    assert kinds == {
        "test_bad.py": "import",
        "test_x.py::test_divide[1]": "exception",
        "test_x.py::test_divide[2]": "exception",
        "test_x.py::test_surrogate": "assertion",
        "test_x.py::test_hang": "timeout",
    }
    for data in there["failures"]:
        assert Failure.from_json(data).nodeid == data["nodeid"]


@pytest.mark.skipif(not hasattr(pytest, "Subtests"), reason="subtests are part of pytest since 9.0")
def test_values_of_a_subtest_over_xdist(pytester: pytest.Pytester, write: Write) -> None:
    test = "def test_x(subtests):\n    with subtests.test(name='a'):\n        assert 1 == 2\n"
    write({"conftest.py": CONFTEST, "test_x.py": test})
    (failure,) = run(pytester, "-n1")["failures"]
    assert failure["parameters"] == {"name": "'a'"}


def test_a_worker_that_crashes(pytester: pytest.Pytester, write: Write) -> None:
    write(
        {
            "conftest.py": CONFTEST,
            "test_x.py": "import os, signal\n"
            "class TestC:\n    def test_crash(self):\n        os.kill(os.getpid(), signal.SIGKILL)\n"
            "def test_fine():\n    pass\n",
        }
    )
    data = run(pytester, "-n2")
    (failure,) = data["failures"]
    assert (failure["kind"], failure["phase"], failure["nodeid"]) == (
        "crash",
        "call",
        "test_x.py::TestC::test_crash",
    )
    assert (failure["path"], failure["function"]) == ("test_x.py", "TestC::test_crash")
    assert "crashed while running" in failure["message"]
    assert data["outcomes"] == {"test_x.py::TestC::test_crash": "failed", "test_x.py::test_fine": "passed"}


def test_a_test_that_passes_when_run_again_did_not_fail(pytester: pytest.Pytester, write: Write) -> None:
    write(
        {
            "conftest.py": """
            import pytest
            from _pytest.runner import runtestprotocol
            @pytest.hookimpl(tryfirst=True)
            def pytest_runtest_protocol(item, nextitem):
                for outcome in ("rerun", "failed"):
                    for report in runtestprotocol(item, nextitem=nextitem, log=False):
                        if report.failed:
                            report.outcome = outcome
                        item.ihook.pytest_runtest_logreport(report=report)
                return True
            """,
            "test_x.py": "seen = []\ndef test_x():\n    seen.append(1)\n    assert len(seen) == 2\n",
        }
    )
    recorder = Recorder()
    pytester.runpytest_inprocess(*QUIET, plugins=[recorder])
    assert recorder.failures() == ()
    assert recorder.outcomes() == {"test_x.py::test_x": "passed"}


def test_nothing_of_the_run_is_kept(pytester: pytest.Pytester, write: Write) -> None:
    write(
        {
            "conftest.py": CONFTEST,
            "test_x.py": """
            import weakref, gc, sys
            class Big: pass
            alive = []
            def test_fails():
                big = Big()
                alive.append(weakref.ref(big))
                assert big == 3
            def test_between(): pass  # pytest itself holds the last exception
            def test_after():
                sys.last_value = sys.last_traceback = None
                gc.collect()
                assert alive[0]() is None
            """,
        }
    )
    data = run(pytester, "--tb=no")
    assert [failure["nodeid"] for failure in data["failures"]] == ["test_x.py::test_fails"]


def test_what_is_kept_is_plain(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_x():\n    value = object()\n    assert value == 3\n")
    recorder = Recorder()
    pytester.runpytest_inprocess(*QUIET, plugins=[recorder])
    held = [type(value) for value in _reachable(vars(recorder)["_failures"])]
    assert set(held) <= {dict, list, str, int, float, bool, type(None)}


def _reachable(start: object) -> list[object]:
    found, waiting = [], [start]
    while waiting:
        value = waiting.pop()
        found.append(value)
        if isinstance(value, dict | list):
            waiting += gc.get_referents(value)
    return found


def test_our_own_error_costs_the_evidence_but_not_the_run(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: object) -> Failure:
        raise RuntimeError("ours")

    monkeypatch.setattr("pytest_autofix.evidence.recorder.describe_item", broken)
    monkeypatch.setattr("pytest_autofix.evidence.comparisons.AssertWatch.see", broken)
    pytester.makepyfile("def test_x():\n    assert 1 == 2\ndef test_y():\n    pass\n")
    recorder = Recorder()
    result = pytester.runpytest_inprocess(*QUIET, plugins=[recorder])
    result.assert_outcomes(passed=1, failed=1)
    (failure,) = recorder.failures()
    assert failure.nodeid.endswith("::test_x")
    assert "assert 1 == 2" in failure.exceptions[0].message


@pytest.mark.parametrize("arguments", [["-q"], ["-vv", "--tb=long"], ["--tb=native"], ["--assert=plain"]])
def test_what_the_user_sees_stays_the_same(pytester: pytest.Pytester, arguments: list[str]) -> None:
    pytester.makepyfile(
        """
        import pytest
        def test_list(): assert list(range(50)) == list(range(51))
        def test_text(): assert "a\\n" * 40 == "a\\n" * 39 + "b"
        def test_raises():
            with pytest.raises(ValueError): pass
        @pytest.fixture
        def bad(): 1 / 0
        def test_bad(bad): pass
        """
    )

    def lines(*plugins: object) -> list[str]:
        result = pytester.runpytest_inprocess(*QUIET, *arguments, plugins=list(plugins))
        return [line for line in result.outlines if " in 0." not in line]

    assert lines(Recorder()) == lines()


def test_the_attribute_is_plain(pytester: pytest.Pytester) -> None:
    reports: list[pytest.TestReport] = []

    class Keep:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            reports.append(report)

    pytester.makepyfile("def test_x():\n    assert (1, {2: 3}) == [b'x']\ndef test_y():\n    pass\n")
    pytester.runpytest_inprocess(*QUIET, plugins=[Recorder(), Keep()])
    held = [getattr(report, ATTRIBUTE) for report in reports if hasattr(report, ATTRIBUTE)]
    assert len(held) == 1
    assert json.loads(json.dumps(held[0])) == held[0]


def test_no_terminal_and_stop_at_the_first(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_x():\n    assert [1] == [2]\ndef test_y():\n    assert 0\n")
    recorder = Recorder()
    pytester.runpytest_inprocess(*QUIET, "-p", "no:terminal", "-x", plugins=[recorder])
    (failure,) = recorder.failures()
    assert failure.kind == "assertion"
    assert len(recorder.collected()) == 2
