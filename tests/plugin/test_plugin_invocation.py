"""Ways to start pytest, and the plugin beside other plugins."""

from __future__ import annotations

import json

import pytest
from plugin_project import STATE, Project

ADD = "def add(a, b):\n    return a - b\n\n\ndef twice(a):\n    return a + 2\n"
TEST = (
    "from calc import add, twice\n\ndef test_add():\n    assert add(1, 2) == 3\n\n"
    "def test_twice():\n    assert twice(5) == 10\n\ndef test_fine():\n    assert add(2, 0) == 2\n"
)


@pytest.fixture
def calc(project: Project) -> Project:
    return project.write("calc.py", ADD).write("test_calc.py", TEST).commit()


def test_plain_run_is_untouched(calc: Project) -> None:
    with_plugin = calc.pytest("-q", "--tb=short")
    without = calc.pytest("-q", "--tb=short", "-p", "no:autofix")
    assert with_plugin.exit_code == without.exit_code == 1
    assert _lines(with_plugin.output) == _lines(without.output)
    assert not (calc.root / STATE).exists()


def _lines(output: str) -> list[str]:
    return [line.partition(" in ")[0] for line in output.splitlines()]


def test_nothing_failed(calc: Project) -> None:
    run = calc.autosolve("-k", "fine")
    assert run.exit_code == 0
    run.stdout.fnmatch_lines(["*1 passed, 2 deselected*"])
    assert run.seconds < 20
    assert calc.status() == ""


def test_help_says_what_changes_files(calc: Project) -> None:
    run = calc.pytest("--help")
    assert run.exit_code == 0
    text = " ".join(run.output.partition("--autosolve-mode")[2].partition("--autosolve-select")[0].split())
    assert "apply writes them [changes files]" in text
    assert "[changes files you accept]" in text


def test_in_addopts_with_selection_and_xdist(calc: Project) -> None:
    """`--autosolve` in the ini file does not start itself again; `-k` holds in the sandbox as outside."""
    calc.write("pytest.ini", "[pytest]\naddopts = --autosolve --autosolve-mode=apply -n2\n").commit()
    run = calc.autosolve("-k", "add or fine", plugins=["xdist"])
    assert run.exit_code == 0, run.output
    assert run.outcomes == {"test_calc.py::test_add": "solved"}
    assert calc.read("calc.py") == ADD.replace("a - b", "a + b")
    assert run.output.count("== autosolve ==") == 1


def test_without_pytest_s_terminal(calc: Project) -> None:
    run = calc.autosolve("--autosolve-mode=apply", "-p", "no:terminal", "test_calc.py::test_add")
    assert run.exit_code == 0, run.output + run.errors
    assert "a + b" in calc.read("calc.py")
    run.stdout.fnmatch_lines(["*= autosolve =*", "1 of 1 task solved; 1 file changed: calc.py; *"])


def test_only_marked_tests(calc: Project) -> None:
    marked = TEST.replace("def test_twice", "@pytest.mark.autosolve\ndef test_twice")
    calc.write("test_calc.py", f"import pytest\n{marked}").commit()
    run = calc.autosolve("--autosolve-mode=apply", "--autosolve-select=marked", "--strict-markers")
    assert run.outcomes == {"test_calc.py::test_twice": "solved"}
    assert run.exit_code == 1  # the other one still fails
    assert "a - b" in calc.read("calc.py")


def test_from_an_earlier_run(calc: Project) -> None:
    """Only what failed is run again, the verdict still looks at every test of the selection."""
    junit = calc.home / "junit.xml"
    assert calc.pytest("-q", f"--junitxml={junit}").exit_code == 1
    run = calc.autosolve("--autosolve-mode=apply", f"--autosolve-from={junit}")
    run.stdout.fnmatch_lines(["*2 failed, 1 deselected*"])
    assert run.exit_code == 0, run.output
    assert run.report["totals"]["solved"] == 2
    assert "test_fine" not in str(run.outcomes)


def test_name_that_cannot_be_imported(project: Project) -> None:
    """Nothing can be collected; the name is repaired where it is misspelled, or defined."""
    project.write("kit/__init__.py", "").write(
        "kit/helpers.py", "def pad_left(text):\n    return ' ' + text\n"
    )
    project.write(
        "kit/clock.py", "from kit.helpers import padleft\n\n\ndef show(text):\n    return padleft(text)\n"
    )
    project.write(
        "test_clock.py", "from kit.clock import show\n\ndef test_show():\n    assert show('1') == ' 1'\n"
    )
    project.commit()
    run = project.autosolve("--autosolve-mode=apply")
    assert run.report["tasks"][0]["failures"] == [{"nodeid": "test_clock.py", "kind": "import"}]
    assert run.exit_code == 0, run.output
    assert project.pytest().exit_code == 0


def test_started_in_a_folder_below(calc: Project) -> None:
    """Paths on the command line are seen from where pytest was started, patches from the root."""
    calc.write("pytest.ini", "[pytest]\npythonpath = .\n").write("sub/test_more.py", TEST).commit()
    report = calc.home / "report.json"
    run = calc.pytest(
        "--autosolve",
        "--autosolve-mode=apply",
        f"--autosolve-report={report}",
        "test_more.py",
        cwd=calc.root / "sub",
    )
    assert run.exit_code == 0, run.output
    assert calc.read("calc.py") == ADD.replace("a - b", "a + b").replace("a + 2", "a * 2")
    assert {path for path in calc.files() if STATE in path} == set()


def test_earlier_run_and_markers_on_workers(calc: Project) -> None:
    """xdist's controller collects nothing: what is selected, and why, has to come from the workers."""
    marked = TEST.replace("def test_twice", "@pytest.mark.autosolve\ndef test_twice")
    calc.write("test_calc.py", f"import pytest\n{marked}").commit()
    junit = calc.home / "junit.xml"
    assert calc.pytest("-q", f"--junitxml={junit}").exit_code == 1
    words = (f"--autosolve-from={junit}", "--autosolve-select=marked", "-n2")
    run = calc.autosolve(*words, plugins=["xdist"])
    run.stdout.fnmatch_lines(["*= 2 failed in *"])
    assert run.outcomes == {"test_calc.py::test_twice": "solved"}
    confirm = next(
        check for check in run.report["tasks"][0]["verdict"]["checks"] if check["name"] == "confirm"
    )
    assert "1 that passed still pass" in confirm["detail"]


def test_files_outside_the_project_where_warnings_are_errors(calc: Project) -> None:
    """A path after an option moves pytest's rootdir if it exists; plugins are imported ahead in warm processes."""
    calc.write("pytest.ini", "[pytest]\nfilterwarnings = error\n").commit()
    report = calc.home / "older.json"
    report.write_text("{}")
    run = calc.pytest(
        "--autosolve", "--autosolve-mode=apply", "--autosolve-report", str(report), "-k", "add or fine"
    )
    assert run.exit_code == 0, run.output + run.errors
    assert calc.read("calc.py") == ADD.replace("a - b", "a + b")
    task = json.loads(report.read_text())["tasks"][0]
    assert task["cost"]["warm_cpu_seconds"] is not None  # not one by one in processes of their own
    assert not (calc.home / STATE).exists()


def test_a_failure_that_differs_in_the_sandbox(project: Project) -> None:
    project.write("names.py", "import os\n\n\ndef mine():\n    return os.environ['MY_NAME'].lower()\n")
    project.write(
        "test_names.py", "from names import mine\n\ndef test_mine():\n    assert mine() == 'Ann'\n"
    ).commit()
    run = project.autosolve(env={"MY_NAME": "Ann"})
    assert run.outcomes == {"test_names.py::test_mine": "environment"}
    assert "KeyError" in run.task("test_names.py::test_mine")["reason"]
