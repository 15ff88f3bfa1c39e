"""`--autosolve-verify`: the verdict on a patch made elsewhere. Nothing is changed, whatever it says."""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from pytest_autofix.report.json_report import schema

if TYPE_CHECKING:
    from plugin_project import Project

CALC = "def add(a, b):\n    return a - b\n\n\ndef sign(n):\n    return 1\n"
TEST = (
    "from calc import add, sign\n\ndef test_add():\n    assert add(1, 2) == 3\n\n"
    "def test_sign():\n    assert sign(4) == 1\n"
)


def diff(path: str, before: str, after: str) -> str:
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{path}", f"b/{path}"
    )
    return "".join(lines)


HONEST = diff("calc.py", CALC, CALC.replace("a - b", "a + b"))
BREAKING = diff("calc.py", CALC, CALC.replace("a - b", "a + b").replace("return 1", "return 2"))
USELESS = diff("calc.py", CALC, CALC.replace("a - b", "a * b"))
EDITS_A_TEST = diff("test_calc.py", TEST, TEST.replace("== 3", "== -1"))
CONFTEST = "--- /dev/null\n+++ b/conftest.py\n@@ -0,0 +1 @@\n+collect_ignore = ['test_calc.py']\n"
DELETES = (
    "diff --git a/other.py b/other.py\ndeleted file mode 100644\n--- a/other.py\n+++ /dev/null\n"
    "@@ -1 +0,0 @@\n-X = 1\n"
)
LINK = (
    "diff --git a/link.py b/link.py\nnew file mode 120000\n--- /dev/null\n+++ b/link.py\n@@ -0,0 +1 @@\n"
    "+/etc/passwd\n\\ No newline at end of file\n"
)
OUTSIDE = diff("../calc.py", CALC, USELESS)
SETTINGS = "--- a/pytest.ini\n+++ b/pytest.ini\n@@ -1 +1,2 @@\n [pytest]\n+addopts = -k nothing\n"


@pytest.fixture
def calc(project: Project) -> Project:
    project.write("calc.py", CALC).write("test_calc.py", TEST).write("other.py", "X = 1\n")
    return project.write("pytest.ini", "[pytest]\n").commit()


def verify(calc: Project, patch: str | Path) -> tuple[int, str, dict[str, Any]]:
    """Exit status, output, the task of the report."""
    if isinstance(patch, str):
        source = calc.home / "it.patch"
        source.write_text(patch)
    else:
        source = patch
    before = calc.files()
    target = calc.home / "verdict.json"
    run = calc.pytest(f"--autosolve-verify={source}", f"--autosolve-report={target}")
    assert calc.files() == before
    assert calc.status() == ""
    report = json.loads(target.read_text())
    jsonschema.validate(report, schema())
    assert report["exit_status"] == run.exit_code
    (task,) = report["tasks"]
    return run.exit_code, run.output, task


def statuses(task: dict[str, Any]) -> dict[str, str]:
    return {check["name"]: check["status"] for check in task["verdict"]["checks"]}


def test_honest_patch_is_accepted(calc: Project) -> None:
    code, output, task = verify(calc, HONEST)
    assert code == 0, output
    assert task["outcome"] == "solved"
    assert statuses(task) | {"paths": "passed", "screen": "passed", "confirm": "passed"} == statuses(task)
    assert [failure["nodeid"] for failure in task["failures"]] == ["test_calc.py::test_add"]
    assert "accepted, grade" in output
    assert "no file was changed" in output


@pytest.mark.parametrize(
    ("patch", "reason"),
    [
        pytest.param(BREAKING, "test_sign was passed, is failed", id="breaks-another-test"),
        pytest.param(USELESS, "test_add is failed, it has to pass", id="repairs-nothing"),
    ],
)
def test_patch_that_does_not_hold_is_rejected(calc: Project, patch: str, reason: str) -> None:
    code, output, task = verify(calc, patch)
    assert (code, task["outcome"], task["solution"]) == (1, "rejected", None)
    details = " ".join(check["detail"] for check in task["verdict"]["checks"])
    assert reason in details
    assert "rejected by" in output


@pytest.mark.parametrize(
    ("patch", "name"),
    [
        pytest.param(EDITS_A_TEST, "test_calc.py", id="edits-a-test"),
        pytest.param(HONEST + CONFTEST, "conftest.py", id="adds-a-conftest"),
        pytest.param(SETTINGS, "pytest.ini", id="edits-the-configuration"),
        pytest.param(HONEST + DELETES, "other.py", id="deletes-a-file"),
        pytest.param(HONEST + LINK, "link.py", id="adds-a-link"),
        pytest.param(OUTSIDE, "calc.py", id="outside-the-tree"),
    ],
)
def test_forbidden_places_are_rejected_before_anything_runs(calc: Project, patch: str, name: str) -> None:
    code, output, task = verify(calc, patch)
    assert (code, task["outcome"]) == (1, "rejected"), output
    first, *others = task["verdict"]["checks"]
    assert (first["name"], first["status"]) == ("paths", "failed")
    assert name in first["detail"]
    assert {check["status"] for check in others} == {"not_run"}
    assert name in output
    assert "rejected by paths; no file was changed" in output


def test_folder_of_files(calc: Project) -> None:
    folder = calc.home / "changed"
    folder.mkdir()
    (folder / "calc.py").write_text(CALC.replace("a - b", "a + b"))
    code, output, task = verify(calc, folder)
    assert (code, task["outcome"]) == (0, "solved"), output
    assert "+    return a + b" in task["solution"]["patch"]
