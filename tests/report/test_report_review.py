"""The dialogue of review mode, with scripted answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator

import pytest

from pytest_autofix.report.model import TaskReport
from pytest_autofix.report.review import MAX_QUESTIONS, review, review_all
from pytest_autofix.report.terminal import Line

EVIDENCE = r"""
failing tests
  assertion: tests/test_cart.py::test_total
  assertion: tests/test_cart.py::test_total_of_many[3-rows]
checks
  paths     passed     0.0 s  only editable files: src/shop/cart.py
  lint      not run    0.0 s  not part of this version
  confirm   passed     1.2 s  2 runs of 19 tests, the second in reverse
attempts
  search arithmetic.sign: 302 candidates, passed
  search compare.relation: 12 candidates, failed
  model scripted repair@1: 1 candidate, failed
"""


class Person:
    """Gives its answers one after the other and remembers what it was shown; an exception is raised."""

    def __init__(self, *answers: str | type[BaseException]) -> None:
        self._answers: Iterator[str | type[BaseException]] = iter(answers)
        self.lines: list[str] = []
        self.questions = 0

    def ask(self, question: str) -> str:
        self.questions += 1
        answer = next(self._answers)
        if isinstance(answer, str):
            return answer
        raise answer

    def show(self, lines: Iterable[Line]) -> None:
        self.lines += [line.text for line in lines]


@pytest.mark.parametrize(
    ("answers", "decision"),
    [
        pytest.param(["a"], "accept", id="accept"),
        pytest.param([" Accept "], "accept", id="word"),
        pytest.param(["y"], "accept", id="yes"),
        pytest.param(["r"], "reject", id="reject"),
        pytest.param(["N"], "reject", id="no"),
        pytest.param(["q"], "quit", id="quit"),
        pytest.param(["e", "?", "", "maybe", "a"], "accept", id="asked-again"),
        pytest.param([EOFError], "quit", id="end-of-input"),
        pytest.param([KeyboardInterrupt], "quit", id="ctrl-c"),
        pytest.param(["e", KeyboardInterrupt], "quit", id="ctrl-c-later"),
        pytest.param(["x"] * MAX_QUESTIONS, "quit", id="nonsense-for-ever"),
    ],
)
def test_decisions(solved: TaskReport, answers: list[str | type[BaseException]], decision: str) -> None:
    person = Person(*answers)
    assert review(solved, ask=person.ask, show=person.show, width=80) == decision
    assert person.questions == len(answers)
    assert "+        result += price" in person.lines


def test_evidence_and_help(solved: TaskReport) -> None:
    person = Person("?", "e", "\x1b[2J", "r")
    review(solved, ask=person.ask, show=person.show, width=80)
    text = "\n".join(person.lines)
    assert EVIDENCE.strip() in text
    assert "a  accept: the files are changed when all patches have been asked for" in text
    assert "not an answer: \\x1b[2j" in text


def test_after_a_quit_the_rest_is_not_asked_for(solved: TaskReport, tasks: tuple[TaskReport, ...]) -> None:
    def task(name: str) -> TaskReport:
        return dataclasses.replace(solved, fingerprint=name)

    person = Person("a", "r", "q")
    every = [task("1"), tasks[1], task("2"), task("3"), task("4")]
    decisions = review_all(every, ask=person.ask, show=person.show, width=80)
    assert decisions == {"1": "accept", "2": "reject", "3": "quit", "4": "quit"}
    assert any("(2 of 4)" in line for line in person.lines)


@pytest.mark.parametrize("width", [40, 80])
def test_no_line_is_wider_than_the_screen(solved: TaskReport, width: int) -> None:
    person = Person("e", "x" * 500, "?", "q")
    ask: Callable[[str], str] = person.ask
    review(solved, ask=ask, show=person.show, width=width, position=" (1 of 2)")
    assert (
        max(len(line) for line in person.lines if not line.startswith(("a  ", "r  ", "e  ", "q  "))) <= width
    )
