"""Progress on a terminal is one line that goes away; in a log it is few plain lines."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pytest_autofix.report import events
from pytest_autofix.report.progress import LiveProgress


class Screen:
    """Records what is written; `\\r` is interpreted, so that `line` is what a person sees."""

    isatty = True

    def __init__(self, *, broken: bool = False) -> None:
        self.lines: list[str] = []
        self.line = ""
        self.draws = 0
        self.broken = broken

    def write(self, content: str, *, flush: bool = False, **markup: bool) -> None:
        if self.broken:
            raise BrokenPipeError
        self.draws += 1
        for part in content.split("\r"):
            self.line = part + self.line[len(part) :]

    def write_line(self, line: str, **markup: bool) -> None:
        if self.broken:
            raise BrokenPipeError
        self.lines.append(line)

    def write_sep(
        self, sep: str, title: str | None = None, fullwidth: int | None = None, **markup: bool
    ) -> None:
        raise AssertionError("progress draws no rules")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def search(seconds: float, *, task: str = "t", tried: int = 0) -> Iterator[events.Progress]:
    for tick in range(int(seconds * 2)):
        yield events.Progress(task, "search", tried + tick * 10, 20.0, 1, 3, 0)


def feed(progress: LiveProgress, clock: Clock, *stream: events.Event, step: float = 0.5) -> None:
    for event in stream:
        progress.emit(event)
        clock.now += step


START = (
    events.RunStarted("run", 3, "report", "auto"),
    events.SandboxReady("local", True, ()),
    events.BaselineTaken(20, 3, 0, 1.0),
)


def test_one_line_on_a_terminal() -> None:
    screen, clock = Screen(), Clock()
    progress = LiveProgress(screen, width=80, live=True, clock=clock)
    feed(progress, clock, *START)
    assert screen.line.rstrip() == "autosolve: looking for what to repair [1 s]"
    feed(progress, clock, events.TaskStarted("t", ("tests/a.py::test_a", "b"), "a.py:f"), *search(2))
    shown = screen.line.rstrip()
    assert (
        shown
        == "autosolve: 30 candidates (20/s), best 1 of 3 tests | tests/a.py::test_a (+1)..."[: len(shown)]
    )
    assert "best 1 of 3 tests | tests/a.py::te" in shown
    feed(progress, clock, events.TaskStarted("u", ("c",), "a.py:g"), *search(1, task="u", tried=100))
    assert "2 tasks at work, 0 done, 140 candidates (40/s)" in screen.line
    feed(progress, clock, events.Solved("t", 31), events.VerdictGiven("u", False, "-", "confirm"))
    assert "refused by confirm | c" in screen.line
    feed(progress, clock, events.GaveUp("u", "rejected", ""), events.RunFinished("run", 1, 1, 9.0))
    assert screen.line.strip() == ""
    assert screen.lines == []


def test_drawing_is_throttled_and_never_wider_than_the_screen() -> None:
    screen, clock = Screen(), Clock()
    progress = LiveProgress(screen, width=50, live=True, clock=clock)
    feed(progress, clock, events.TaskStarted("t", ("tests/" + "日本語" * 40,), "a.py:f"))
    before = screen.draws
    feed(progress, clock, *search(500), step=0.001)
    assert screen.draws - before <= 11
    assert sum(2 if ord(character) > 0x1100 else 1 for character in screen.line.rstrip()) < 50


def test_a_shorter_line_covers_a_longer_one() -> None:
    screen, clock = Screen(), Clock()
    progress = LiveProgress(screen, width=80, live=True, clock=clock)
    feed(progress, clock, events.TaskStarted("t", ("tests/a.py::test_with_a_long_name",), ""), *search(2))
    feed(progress, clock, events.Solved("t", 31))
    assert screen.line.rstrip() == "autosolve: 1 task done [2 s]"


def test_few_plain_lines_in_a_log() -> None:
    screen, clock = Screen(), Clock()
    progress = LiveProgress(screen, width=80, live=False, clock=clock)
    feed(progress, clock, *START, events.TaskStarted("t", ("tests/a.py::test_a",), "a.py:f"))
    feed(progress, clock, *search(60))
    feed(progress, clock, events.VerdictGiven("t", True, "B", ""), events.Solved("t", 600))
    assert screen.draws == 0
    assert screen.lines[0] == "autosolve: tests/a.py::test_a: starting [2 s]"
    assert screen.lines[1] == (
        "autosolve: tests/a.py::test_a: 190 candidates (20/s), best 1 of 3 tests [12 s]"
    )
    assert screen.lines[-1] == "autosolve: tests/a.py::test_a: solved [62 s]"
    assert len(screen.lines) == 8


@pytest.mark.parametrize("live", [True, False])
def test_hostile_names_and_notes(live: bool) -> None:
    screen, clock = Screen(), Clock()
    progress = LiveProgress(screen, width=80, live=live, clock=clock)
    feed(
        progress,
        clock,
        events.TaskStarted("t", ("\x1b[2J::error::\r",), "a.py:f"),
        events.Executed("t", "model", "h", "fa\x1biled", "x", 1.0),
        events.Note("\x1b]0;title\x07"),
        events.GaveUp("unknown", "\x1b", ""),
        events.GaveUp("t", "\x1b", ""),
    )
    text = screen.line + "".join(screen.lines)
    assert text.isprintable()
    assert "\\x1b]0;title" in text


def test_a_terminal_that_is_gone_does_not_end_the_run() -> None:
    for live in (True, False):
        progress = LiveProgress(Screen(broken=True), width=80, live=live)
        for event in (
            *START,
            events.TaskStarted("t", ("a",), ""),
            events.Note("x"),
            events.RunFinished("", 0, 1, 1.0),
        ):
            progress.emit(event)
