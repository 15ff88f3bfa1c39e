"""`--autosolve-mode review`, the default on a terminal: each patch is asked for; without a terminal nobody is."""

from __future__ import annotations

import time

import pytest
from plugin_project import STATE, Project, gone_within

QUESTION = "[a]ccept, [r]eject, [e]vidence, [q]uit"


@pytest.fixture
def calc(project: Project) -> Project:
    project.write("calc.py", "def add(a, b):\n    return a - b\n")
    project.write("test_calc.py", "from calc import add\n\ndef test_add():\n    assert add(1, 2) == 3\n")
    return project.commit()


def test_accept_one_and_reject_one(calc: Project) -> None:
    calc.write("texts.py", "def shout(text):\n    return text.lower()\n")
    calc.write(
        "test_texts.py", "from texts import shout\n\ndef test_shout():\n    assert shout('a') == 'A'\n"
    )
    calc.commit()
    texts = calc.read("texts.py")
    with calc.start() as terminal:
        place = terminal.wait_for(QUESTION)
        assert "+    return a + b" in terminal.output
        terminal.type("e\n")
        place = terminal.wait_for(QUESTION, after=place)
        assert "assertion: test_calc.py::test_add" in terminal.output
        assert calc.read("calc.py").endswith("a - b\n")  # nothing is written while it asks
        terminal.type("a\n")
        terminal.wait_for("(2 of 2)", after=place)
        place = terminal.wait_for(QUESTION, after=place)
        terminal.type("r\n")
        run = terminal.end()
    assert run.exit_code == 1
    assert run.outcomes == {"test_calc.py::test_add": "solved", "test_texts.py::test_shout": "declined"}
    assert calc.read("calc.py") == "def add(a, b):\n    return a + b\n"
    assert calc.read("texts.py") == texts
    assert len(calc.patches()) == 2  # what was declined can still be read
    run.stdout.fnmatch_lines(["not solved: test_texts.py::test_shout", "  reason: rejected in the review"])


@pytest.mark.parametrize(
    ("keys", "exit_code", "after", "outcome"),
    [
        pytest.param("a\n", 0, "a + b", "solved", id="accept"),
        pytest.param("q\n", 1, "a - b", "declined", id="quit"),
        pytest.param("\x03", 1, "a - b", "declined", id="ctrl-c"),
        pytest.param("\x04", 1, "a - b", "declined", id="end-of-input"),
    ],
)
def test_one_patch(calc: Project, keys: str, exit_code: int, after: str, outcome: str) -> None:
    with calc.start() as terminal:
        terminal.wait_for(QUESTION)
        time.sleep(2)  # a signal between the prompt and readline's `select` waits there for the next key
        terminal.type(keys)
        run = terminal.end()
    assert run.exit_code == exit_code, run.output
    assert after in calc.read("calc.py")
    assert run.outcomes == {"test_calc.py::test_add": outcome}
    assert len(calc.patches()) == 1
    assert (calc.status() == "") == (exit_code == 1)
    assert not gone_within(5, str(calc.root))
    assert "Traceback" not in run.output


def test_without_a_terminal_nothing_is_written_and_nothing_lost(calc: Project) -> None:
    run = calc.autosolve("--autosolve-mode=review")
    assert run.exit_code == 1
    assert calc.status() == ""
    assert len(calc.patches()) == 1
    assert (calc.root / STATE / ".gitignore").read_text() == "*\n"
    assert run.outcomes == {"test_calc.py::test_add": "declined"}
