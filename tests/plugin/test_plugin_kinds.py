"""One run over many kinds of failures in a `src` layout: what is repaired, what is left alone and why."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pytest_autofix.run import files_with_tests

if TYPE_CHECKING:
    from plugin_project import Project, Run

SOURCES = {
    "src/zoo/__init__.py": "",
    "src/zoo/numbers.py": (
        "def area(width, height):\n    return width + height\n\n\ndef last(items):\n    return items[len(items)]\n"
    ),
    "src/zoo/texts.py": "def shout(text):\n    return text.lower()\n",
    "src/zoo/doc.py": 'def double(n):\n    """Twice.\n\n    >>> double(5)\n    10\n    """\n    return n + 2\n',
    "src/zoo/remote.py": "async def answer(n):\n    return n - 1\n",
    "src/zoo/loops.py": (
        "def countdown(n):\n    seen = []\n    while n > 0:\n        seen.append(n)\n        n += 1\n"
        "        if len(seen) > 1000:\n            seen.clear()\n    return seen\n"
    ),
    "src/zoo/roots.py": "def root(x):\n    return math.sqrt(x)\n",
}
TESTS = {
    "tests/test_numbers.py": (
        "import pytest\nfrom zoo.numbers import area, last\n\n"
        "@pytest.mark.parametrize(('w', 'h', 'a'), [(2, 3, 6), (4, 5, 20), (2, 2, 4), (7, 1, 7)])\n"
        "def test_area(w, h, a):\n    assert area(w, h) == a\n\n"
        "def test_last():\n    assert last([1, 2, 3]) == 3\n"
    ),
    "tests/test_texts.py": (
        "import unittest\nfrom zoo.texts import shout\n\n"
        "class Shouting(unittest.TestCase):\n"
        "    def test_shout(self):\n        self.assertEqual(shout('abc'), 'ABC')\n"
    ),
    "tests/test_remote.py": (
        "import pytest\nfrom zoo.remote import answer\n\n"
        "@pytest.mark.asyncio\nasync def test_answer():\n    assert await answer(41) == 42\n"
    ),
    "tests/test_loops.py": (
        "from zoo.loops import countdown\n\ndef test_countdown():\n    assert countdown(3) == [3, 2, 1]\n"
    ),
    "tests/test_roots.py": "from zoo.roots import root\n\ndef test_root():\n    assert root(9) == 3\n",
    "tests/test_itself.py": "def test_itself():\n    assert 1 == 2\n",
    "tests/test_home.py": (
        "from pathlib import Path\n\ndef test_home():\n    assert not (Path.home() / 'marker').exists()\n"
    ),
    "tests/test_flaky.py": (
        "import random\nfrom pathlib import Path\nimport pytest\n\n"
        "@pytest.mark.parametrize('n', range(16))\n"
        "def test_flaky(n):\n"  # always red outside, now and then inside, where nobody's home is seen
        "    assert not (Path.home() / 'marker').exists() and random.random() < 0.5\n"
    ),
    "tests/test_left_alone.py": (
        "import pytest\n\n"
        "@pytest.mark.xfail(reason='known')\ndef test_known():\n    assert False\n\n"
        "@pytest.mark.skip(reason='later')\ndef test_later():\n    assert False\n"
    ),
}
INI = (
    "[pytest]\npythonpath = src\naddopts = --doctest-modules\ntestpaths = src tests\nautosolve_timeout = 2\n"
)


@pytest.fixture(scope="module")
def run(shared_project: Project) -> Run:
    for path, text in {**SOURCES, **TESTS, "pytest.ini": INI}.items():
        shared_project.write(path, text)
    (shared_project.home / "marker").touch()
    shared_project.commit()
    events = str(shared_project.home / "events.jsonl")
    return shared_project.autosolve("--autosolve-events", events, plugins=["asyncio"])


@pytest.mark.parametrize(
    ("nodeid", "right"),
    [
        pytest.param("tests/test_numbers.py::test_area[2-3-6]", "+    return width * height", id="assertion"),
        pytest.param("tests/test_numbers.py::test_last", "len(items) - 1", id="exception"),
        pytest.param("tests/test_texts.py::Shouting::test_shout", "upper()", id="unittest"),
        pytest.param("src/zoo/doc.py::zoo.doc.double", "-    return n + 2", id="doctest"),
        pytest.param("tests/test_remote.py::test_answer", "n + 1", id="async"),
        pytest.param("tests/test_loops.py::test_countdown", "+        n -= 1", id="hanging-loop"),
        pytest.param("tests/test_roots.py::test_root", "+import math", id="missing-import"),
    ],
)
def test_repaired(run: Run, nodeid: str, right: str) -> None:
    task = run.task(nodeid)
    assert task["outcome"] == "solved", task["reason"]
    assert right in task["solution"]["patch"]
    assert task["verdict"]["accepted"]
    assert {check["name"]: check["status"] for check in task["verdict"]["checks"]}["confirm"] == "passed"


@pytest.mark.parametrize(
    ("nodeid", "outcome", "reason"),
    [
        pytest.param("tests/test_itself.py::test_itself", "no_target", "never reaches", id="no-target"),
        pytest.param(
            "tests/test_home.py::test_home", "environment", "passed in the sandbox", id="environment"
        ),
    ],
)
def test_left_with_a_true_reason(run: Run, nodeid: str, outcome: str, reason: str) -> None:
    task = run.task(nodeid)
    assert (task["outcome"], task["solution"]) == (outcome, None)
    assert reason in task["reason"]
    assert task["cost"]["candidates_tried"] == 0


def test_flaky_tests_are_told_from_failing_ones(run: Run) -> None:
    words = [word for nodeid, word in run.outcomes.items() if "test_flaky" in nodeid]
    assert len(words) == 16
    assert "flaky" in words  # each row is with three in four, all sixteen are not with one in four billion
    assert set(words) <= {"flaky", "environment", "no_target"}


def test_skipped_and_expected_failures_are_no_targets(run: Run) -> None:
    assert not [nodeid for nodeid in run.outcomes if "test_left_alone" in nodeid]


def test_rows_of_one_test_are_one_task_and_two_tests_of_a_file_are_two(run: Run) -> None:
    rows = {failure["nodeid"] for failure in run.task("tests/test_numbers.py::test_area[2-3-6]")["failures"]}
    assert rows == {
        "tests/test_numbers.py::test_area[2-3-6]",
        "tests/test_numbers.py::test_area[4-5-20]",
        "tests/test_numbers.py::test_area[7-1-7]",
    }


def test_report_mode_changes_nothing(run: Run, shared_project: Project) -> None:
    assert run.exit_code == 1
    assert shared_project.files() == {
        path: text.encode() for path, text in {**SOURCES, **TESTS, "pytest.ini": INI}.items()
    }
    assert shared_project.status() == ""


def test_patches_are_kept(run: Run, shared_project: Project) -> None:
    kept = shared_project.patches()
    solved = [task["solution"]["patch"] for task in run.report["tasks"] if task["solution"]]
    assert sorted(kept) == sorted(solved)
    assert len(kept) == 7
    (report,) = (shared_project.root / ".pytest_autofix" / "runs").glob("*/report.json")
    assert json.loads(report.read_text())["exit_status"] == 1


def test_hanging_test_is_a_timeout_with_its_stack(run: Run) -> None:
    task = run.task("tests/test_loops.py::test_countdown")
    assert task["failures"][0]["kind"] == "timeout"
    assert task["targets"][0]["path"] == "src/zoo/loops.py"


def test_the_user_s_own_report_comes_first_untouched(run: Run) -> None:
    run.stdout.fnmatch_lines(
        [
            "*short test summary info*",
            "*= * failed, *passed, 1 skipped, *xfailed in *",
            "autosolve: *starting*",
            "*== autosolve ==*",
            "outcome *grade*",
            "solved *",
            "*- patch for *",
            "not solved: *test_itself.py::test_itself",
            "  reason: *",
            "  next: *",
            "cost: * candidates, *",
            "*of * tasks solved; no file was changed; *",
        ],
        consecutive=False,
    )
    assert all(len(line) <= 80 for line in run.output.partition("== autosolve ==")[2].splitlines()[1:])


def test_events_are_ordered_and_balanced(run: Run, shared_project: Project) -> None:
    text = (shared_project.home / "events.jsonl").read_text()
    events = [json.loads(line) for line in text.splitlines()]
    kinds = [event["kind"] for event in events]
    assert kinds[0] == "run_started"
    assert kinds[-1] == "run_finished"
    assert kinds.count("solved") == 7
    assert kinds.count("task_started") == kinds.count("solved") + kinds.count("gave_up")


@pytest.mark.parametrize(
    ("nodeids", "files"),
    [
        pytest.param(["tests/test_a.py::test_a"], set(), id="named-like-its-file"),
        pytest.param(["tests/test_a.py::test_b[x.y-1]"], {"tests/test_a.py"}, id="dots-in-a-parameter"),
        pytest.param(["checks.py::Case::test_b"], {"checks.py"}, id="method"),
        pytest.param(["src/zoo/doc.py::zoo.doc.double"], set(), id="doctest"),
        pytest.param(["doc.py::doc"], set(), id="doctest-of-a-module"),
        pytest.param(["doc.py::doc.f", "doc.py::test_f"], {"doc.py"}, id="doctest-beside-a-test"),
        pytest.param(["README.rst::README.rst"], set(), id="doctest-in-a-text"),
    ],
)
def test_files_with_tests_may_not_be_edited_those_with_doctests_may(
    nodeids: list[str], files: set[str]
) -> None:
    """A file that matches `python_files` is a test file whatever it is called here."""
    assert files_with_tests(nodeids) == files
