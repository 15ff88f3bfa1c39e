"""`--autosolve-mode apply`: what is written, what stays byte for byte, and when the exit status is 0."""

from __future__ import annotations

import threading
import time

import pytest
from plugin_project import STATE, Project, Run

from pytest_autofix.patching.write import sha256_of

TABS_AND_CRLF = b"def add(a, b):\r\n\t# tabs\r\n\treturn a - b\r\n\r\n\r\n\r\nLAST = 1   \r\n"
LATIN = "# -*- coding: latin-1 -*-\nWORD = 'caf\xe9'\n\ndef second(items):\n    return items[0]  # d\xe9j\xe0\n".encode(
    "latin-1"
)
BOM = b"\xef\xbb\xbfdef is_adult(age):\n    return age > 18  # no newline at the end"
TEST = (
    "from calc import add\nfrom latin import WORD, second\nfrom bom import is_adult\n\n"
    "def test_add():\n    assert add(1, 2) == 3\n\n"
    "def test_second():\n    assert second('abc') == 'b' and len(WORD) == 4\n\n"
    "def test_adult():\n    assert is_adult(18) and not is_adult(17.5)\n"
)


@pytest.fixture(scope="module")
def run(shared_project: Project) -> Run:
    shared_project.write("calc.py", TABS_AND_CRLF).write("latin.py", LATIN).write("bom.py", BOM)
    shared_project.write("test_all.py", TEST).commit()
    return shared_project.autosolve("--autosolve-mode", "apply")


def test_everything_is_green(run: Run, shared_project: Project) -> None:
    assert run.exit_code == 0, run.output
    assert run.report["totals"]["solved"] == 3
    run.stdout.fnmatch_lines(["3 of 3 tasks solved; 3 files changed: *", "all tests passes"])
    assert shared_project.pytest().exit_code == 0
    assert {line[3:] for line in shared_project.status().splitlines()} == {"bom.py", "calc.py", "latin.py"}


@pytest.mark.parametrize(
    ("path", "before", "wrong", "right"),
    [
        pytest.param("calc.py", TABS_AND_CRLF, b"a - b", b"a + b", id="tabs-and-crlf"),
        pytest.param("latin.py", LATIN, b"items[0]", b"items[1]", id="latin-1"),
        pytest.param("bom.py", BOM, b"age > 18", b"age >= 18", id="byte-order-mark"),
    ],
)
def test_the_rest_of_a_file_stays_byte_for_byte(
    run: Run, shared_project: Project, path: str, before: bytes, wrong: bytes, right: bytes
) -> None:
    after = (shared_project.root / path).read_bytes()
    assert after == before.replace(wrong, right)
    (told,) = (
        file for task in run.report["tasks"] for file in task["solution"]["files"] if file["path"] == path
    )
    assert told == {"path": path, "sha256_before": sha256_of(before), "sha256_after": sha256_of(after)}


def test_one_unsolved_test_keeps_the_exit_status(project: Project) -> None:
    project.write("calc.py", "def add(a, b):\n    return a - b\n\n\ndef twice(a):\n    return a + 2\n")
    project.write(
        "test_calc.py",
        "from calc import add, twice\n\ndef test_add():\n    assert add(1, 2) == 3\n\n"
        "def test_twice():\n    assert twice(5) == 10\n\ndef test_itself():\n    assert 1 == 2\n",
    ).commit()
    run = project.autosolve("--autosolve-mode=apply")
    assert run.exit_code == 1
    assert run.outcomes == {
        "test_calc.py::test_add": "solved",
        "test_calc.py::test_twice": "solved",
        "test_calc.py::test_itself": "no_target",
    }
    text = project.read("calc.py")
    assert "a + b" in text
    assert "a + 2" not in text  # two tasks in one file: both patches are in
    run.stdout.fnmatch_lines(["*test_itself*"])
    assert "green" not in run.output.partition("== autosolve ==")[2]


def test_a_file_that_changed_meanwhile_is_not_written(project: Project) -> None:
    project.write("calc.py", "def add(a, b):\n    return a - b\n")
    project.write(
        "test_calc.py", "from calc import add\n\ndef test_add():\n    assert add(1, 2) == 3\n"
    ).commit()
    edited = "def add(a, b):\n    return a - b\n\n# written by a person meanwhile\n"

    def edit() -> None:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and not (project.root / STATE / "checkpoints.sqlite").exists():
            time.sleep(0.02)  # it is made when the baseline is taken, so after the project was copied
        project.write("calc.py", edited)

    person = threading.Thread(target=edit)
    person.start()
    run = project.autosolve("--autosolve-mode=apply")
    person.join()
    assert run.exit_code == 1
    assert project.read("calc.py") == edited
    run.stdout.fnmatch_lines(["*calc.py*changed*"])
    assert len(project.patches()) == 1
