"""Live progress: one line that is rewritten on a terminal, a plain line now and then in a log."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from pytest_autofix.report import events
from pytest_autofix.report.events import Event
from pytest_autofix.report.terminal import MAX_WIDTH, Terminal
from pytest_autofix.report.text import counted, cut, cut_left, visible, width_of

__all__ = ["LiveProgress"]

REDRAW_SECONDS = 0.1
PLAIN_SECONDS = 10.0
MIN_WIDTH = 20  #: a line that wraps cannot be taken back by a carriage return


@dataclass(slots=True)
class _Task:
    name: str
    state: str = "starting"
    tried: int = 0
    rate: float = 0.0
    said: float = float("-inf")  #: when its last plain line was written


class LiveProgress:
    """An event sink that shows how far the tasks are. Close it before anything else is written.

    `live`: rewrite one line; otherwise plain lines, for each task at most one in ten seconds.
    """

    def __init__(
        self,
        terminal: Terminal,
        *,
        width: int,
        live: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._terminal = terminal
        self._width = max(MIN_WIDTH, min(width, MAX_WIDTH)) - 1  # some terminals wrap behind the last column
        self._live = live
        self._clock = clock
        self._began = clock()
        self._drawn = float("-inf")
        self._shown = 0  #: columns of the line that stands on the screen
        self._tasks: dict[str, _Task] = {}
        self._done = 0
        self._phase = "preparing the sandbox"

    def emit(self, event: Event) -> None:
        """Take one event in; never raises for a terminal that has gone away."""
        task = self._tasks.get(getattr(event, "task", ""))
        urgent = True
        match event:
            case events.SandboxReady():
                self._phase = "running the tests as they are"
            case events.BaselineTaken():
                self._phase = "looking for what to repair"
            case events.TaskStarted():
                first = visible(event.nodeids[0]) if event.nodeids else event.task
                more = f" (+{len(event.nodeids) - 1})" if len(event.nodeids) > 1 else ""
                self._tasks[event.task] = task = _Task(cut_left(first, 40) + more)
            case events.Progress() if task is not None:
                urgent = False
                task.tried, task.rate = event.tried, event.rate
                task.state = (
                    f"{counted(event.tried, 'candidate')} ({event.rate:.0f}/s), best {event.best} of "
                    f"{counted(event.failing, 'test')}"
                )
                if event.plausible:
                    task.state += f", {event.plausible} to be judged"
            case events.Executed() if task is not None:
                task.state = f"{visible(event.source)} candidate {visible(event.result)}"
            case events.VerdictGiven() if task is not None:
                task.state = "accepted" if event.accepted else f"refused by {visible(event.refused_by)}"
            case events.Solved() | events.GaveUp() if task is not None:
                self._done += 1
                outcome = "solved" if isinstance(event, events.Solved) else visible(event.outcome)
                del self._tasks[event.task]
                self._plain(f"{task.name}: {outcome}")
                task = None
            case events.Note():
                self._say(f"autosolve: {cut(visible(event.text), 4 * self._width)}")
            case events.RunFinished():
                self.close()
                return
            case _:
                urgent = False
        if self._live:
            self._draw(urgent=urgent)
        elif task is not None and self._clock() - task.said >= PLAIN_SECONDS:
            task.said = self._clock()
            self._plain(f"{task.name}: {task.state}")

    def close(self) -> None:
        """Take the line off the screen."""
        if self._shown:
            self._write("\r" + " " * self._shown + "\r")
            self._shown = 0

    def _plain(self, text: str) -> None:
        if not self._live:
            self._say(f"autosolve: {text} [{self._clock() - self._began:.0f} s]")

    def _say(self, line: str) -> None:
        self.close()
        try:
            self._terminal.write_line(line)
        except OSError:
            return  # a closed pipe must not end the run

    def _draw(self, *, urgent: bool) -> None:
        now = self._clock()
        if now - self._drawn < (REDRAW_SECONDS if not urgent else REDRAW_SECONDS / 5):
            return
        self._drawn = now
        line = cut(f"autosolve: {self._status()} [{now - self._began:.0f} s]", self._width)
        width = width_of(line)
        self._write("\r" + line + " " * max(0, self._shown - width))
        self._shown = max(width, 0)

    def _status(self) -> str:
        if not self._tasks:
            return self._phase if not self._done else f"{counted(self._done, 'task')} done"
        if len(self._tasks) == 1:
            (task,) = self._tasks.values()
            return f"{task.state} | {task.name}"
        tried = sum(task.tried for task in self._tasks.values())
        rate = sum(task.rate for task in self._tasks.values())
        return (
            f"{counted(len(self._tasks), 'task')} at work, {self._done} done, "
            f"{counted(tried, 'candidate')} ({rate:.0f}/s)"
        )

    def _write(self, text: str) -> None:
        try:
            self._terminal.write(text, flush=True)
        except OSError:
            return
