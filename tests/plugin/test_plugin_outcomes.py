"""The ends of a task that are no repair: each has its true reason, and spends no more than it may."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from plugin_project import Project

IMPOSSIBLE = "def secret(n):\n    return 0\n"
IMPOSSIBLE_TEST = (
    "import pytest\nfrom secret import secret\n\n"
    "@pytest.mark.parametrize(('n', 'value'), [(1, 48271), (2, 182605), (3, 7), (4, 902384)])\n"
    "def test_secret(n, value):\n    assert secret(n) == value\n"
)
ADD = "def add(a, b):\n    return a - b\n"
ADD_TEST = "from calc import add\n\ndef test_add():\n    assert add(1, 2) == 3\n"


def test_exhausted_and_rejected(project: Project) -> None:
    """A repair that breaks a test which is too slow to guard the search is found out by `confirm`."""
    project.write("secret.py", IMPOSSIBLE).write("test_secret.py", IMPOSSIBLE_TEST)
    project.write("limits.py", "def limit():\n    return 10\n")
    project.write(
        "test_limits.py",
        "import time\nfrom limits import limit\n\ndef test_new():\n    assert limit() == 11\n\n"
        "def test_old():\n    time.sleep(0.8)\n    assert limit() == 10\n",
    ).commit()
    before = project.files()
    run = project.autosolve("--autosolve-mode=apply", "--autosolve-search-seconds=20")
    assert run.exit_code == 1
    exhausted = run.task("test_secret.py::test_secret[1-48271]")
    assert exhausted["outcome"] == "exhausted"
    assert "candidates of the search were tried" in exhausted["reason"]
    assert exhausted["cost"]["candidates_tried"] > 0
    assert sum(attempt["count"] for attempt in exhausted["attempts"]) == exhausted["cost"]["candidates_tried"]
    rejected = run.task("test_limits.py::test_new")
    assert rejected["outcome"] == "rejected"
    assert "refused by confirm" in rejected["reason"]
    assert "test_old was passed, is failed" in rejected["reason"]
    assert not rejected["verdict"]["accepted"]
    assert project.files() == before
    assert project.patches() == []


def test_time_of_the_run(project: Project) -> None:
    project.write("secret.py", IMPOSSIBLE).write("test_secret.py", IMPOSSIBLE_TEST).commit()
    run = project.autosolve("--autosolve-max-seconds=0.5", "--autosolve-search-seconds=100")
    (task,) = run.report["tasks"]
    assert (run.exit_code, task["outcome"]) == (1, "budget")
    assert "0.5" in task["reason"]
    assert run.seconds < 60
    run.stdout.fnmatch_lines(["  next: *--autosolve-max-seconds*"])


def test_endpoint_does_not_answer(project: Project) -> None:
    """What the search finds is kept; the other task ends with `model`."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]  # free again, and nobody listens
    project.write("secret.py", IMPOSSIBLE).write("test_secret.py", IMPOSSIBLE_TEST)
    project.write("calc.py", ADD).write("test_calc.py", ADD_TEST).commit()
    run = project.autosolve(
        "--autosolve-mode=apply",
        "--autosolve-search-seconds=20",
        "--autosolve-model=some-model",
        f"--autosolve-base-url=http://127.0.0.1:{port}/v1",
    )
    assert run.exit_code == 1
    assert run.task("test_calc.py::test_add")["outcome"] == "solved"
    assert project.read("calc.py") == ADD.replace("-", "+")
    task = run.task("test_secret.py::test_secret[1-48271]")
    assert task["outcome"] == "model"
    assert f"127.0.0.1:{port}" in task["reason"]
    assert task["cost"]["candidates_tried"] > 0
    assert run.report["totals"]["model_calls"] == 0


@pytest.mark.parametrize(
    ("source", "test", "outcome", "reason"),
    [
        pytest.param(
            "def add(a, b):\n    return a + b\n",
            "from calc import add\n\ndef test_add(:\n    assert add(1, 2) == 3\n",
            "no_target",
            "test_calc.py does not parse",
            id="in-a-test",
        ),
        pytest.param("def add(a, b)\n    return a + b\n", ADD_TEST, None, "calc.py", id="in-a-source"),
    ],
)
def test_syntax_error(project: Project, source: str, test: str, outcome: str | None, reason: str) -> None:
    """Of a source: repaired, or the reason names the file."""
    project.write("calc.py", source).write("test_calc.py", test).commit()
    run = project.autosolve("--autosolve-search-seconds=5")
    (task,) = run.report["tasks"]
    assert run.exit_code == 2  # pytest's own: nothing could be collected
    assert [failure["nodeid"] for failure in task["failures"]] == ["test_calc.py"]
    assert task["outcome"] == outcome or (
        outcome is None and task["outcome"] in ("solved", "exhausted", "no_target")
    )
    assert task["outcome"] == "solved" or reason in task["reason"] + str(task["targets"])
    assert project.status() == ""
