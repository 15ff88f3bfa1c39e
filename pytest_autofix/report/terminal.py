"""What the user reads at the end of a run, as lines with markup. Pure: the same report gives the same lines.

ASCII in our own words: a terminal in another encoding must not turn a dash into an error. Words of tests, models and
the repository go through `text.visible` and are cut; a diff is the only thing shown at length.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TextIO

from pytest_autofix.report.model import CostReport, RunReport, TaskReport
from pytest_autofix.report.text import counted, cut, cut_left, visible, wrapped
from pytest_autofix.settings import Mode
from pytest_autofix.tasks.task import Outcome
from pytest_autofix.verdict.verdict import Verdict

__all__ = [
    "NEXT_STEPS",
    "Closing",
    "Line",
    "PlainConsole",
    "Terminal",
    "cost_line",
    "diff_lines",
    "render",
    "show",
    "verdict_lines",
]

MIN_WIDTH = 60
MAX_WIDTH = 120
MAX_DIFF_LINES = 200  #: of one task; the whole patch is in the report

NEXT_STEPS: dict[Outcome, str] = {
    "solved": "read the patch before you keep it",
    "no_target": "look at the test, its fixtures and its data: no source file that may be changed is behind it",
    "flaky": "make the test repeatable (time, order, randomness, threads), then run again",
    "environment": "make the test independent of this machine: the sandbox has no network, no home, few variables",
    "contradictory": "decide which of the tests is right: no code can satisfy all of them",
    "exhausted": "give the search more time with --autosolve-search-seconds, or name a model with --autosolve-model",
    "budget": "raise the limit that was met (--autosolve-max-seconds, --autosolve-max-tokens, --autosolve-max-calls)",
    "rejected": "do not take such a patch: repair it by hand, or name a model with --autosolve-model",
    "sandbox": "run again; if it happens again, start with --autosolve-jobs 1 and look at the reason",
    "model": "check --autosolve-base-url, the model's name and the key; what the search found is in this report",
    "declined": "nothing was written for it; run again to be asked once more",
}
"""What the user can do about each outcome."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line to write; with `separator` it is a rule across the screen and `text` its title."""

    text: str = ""
    markup: tuple[str, ...] = ()  #: names as pytest's terminal writer knows them: `green`, `bold`, …
    separator: str = ""


class Terminal(Protocol):
    """The part of pytest's terminal reporter that is used."""

    @property
    def isatty(self) -> Any: ...  # pytest's is both a bool and callable

    def write(self, content: str, *, flush: bool = False, **markup: bool) -> None: ...

    def write_line(self, line: str, **markup: bool) -> None: ...

    def write_sep(
        self, sep: str, title: str | None = None, fullwidth: int | None = None, **markup: bool
    ) -> None: ...


class PlainConsole:
    """A terminal for runs without pytest's own (`-p no:terminal`): plain lines on a stream, or nothing."""

    isatty = False

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream if stream is not None else sys.__stderr__

    def write(self, content: str, *, flush: bool = False, **markup: bool) -> None:
        if self._stream is not None:
            encoding = self._stream.encoding or "ascii"
            self._stream.write(content.encode(encoding, "backslashreplace").decode(encoding))
            if flush:
                self._stream.flush()

    def write_line(self, line: str, **markup: bool) -> None:
        self.write(line + "\n")

    def write_sep(
        self, sep: str, title: str | None = None, fullwidth: int | None = None, **markup: bool
    ) -> None:
        width = fullwidth or 80
        self.write_line(f" {title} ".center(width, sep) if title else sep * width)


@dataclass(frozen=True, slots=True)
class Closing:
    """What the report as JSON does not hold and the last lines need."""

    mode: Mode
    passing: int = 0  #: tests that passed before: what a patch may break
    written: tuple[str, ...] = ()  #: files that were changed
    green: bool | None = None  #: whether a fresh run of everything passed after writing; None: none was made
    problem: str = ""  #: why files could not be written
    report: str = ""  #: where the JSON report is
    notes: tuple[str, ...] = ()  #: further sentences: unpriced models, a slower way that was taken
    stopped: bool = False  #: by Ctrl-C


def render(report: RunReport, closing: Closing, *, width: int) -> list[Line]:
    """Everything that is said at the end: table, patches, what is left, cost, and what happened to the files."""
    width = max(MIN_WIDTH, min(width, MAX_WIDTH))
    lines = [Line("autosolve", separator="=")]
    if report.sandbox is not None and not report.sandbox.isolated:
        lines.append(Line("NOT ISOLATED: candidates ran unprotected on this machine", ("yellow", "bold")))
    lines += _table(report.tasks, width)
    for task in report.tasks:
        if task.solution is not None:
            lines += _solution(task, closing, width)
    for task in report.tasks:
        if task.outcome != "solved":
            lines += _unsolved(task, width)
    lines += [Line(), Line(cut(f"cost: {cost_line(_total_cost(report))}", width))]
    for note in closing.notes:
        lines += (Line(text, ("yellow",)) for text in wrapped(note, width, first="note: ", rest="      "))
    if closing.report:
        lines.append(Line(f"report: {cut_left(visible(closing.report), width - 8)}"))
    text, markup = _last_words(report, closing)
    lines += (Line(part, markup) for part in wrapped(text, width))
    return lines


def show(lines: Iterable[Line], terminal: Terminal, *, width: int | None = None) -> None:
    """Write rendered lines."""
    for line in lines:
        markup = dict.fromkeys(line.markup, True)
        if line.separator:
            terminal.write_sep(line.separator, line.text or None, width, **markup)
        else:
            terminal.write_line(line.text, **markup)


def _table(tasks: Sequence[TaskReport], width: int) -> Iterator[Line]:
    if not tasks:
        yield Line("no failing test to solve")
        return
    yield Line(f"{'outcome':<13} {'grade':<5} {'tried':>7} {'seconds':>8}  tests and target", ("bold",))
    left = 13 + 1 + 5 + 1 + 7 + 1 + 8 + 2
    room = width - left
    for task in tasks:
        grade = task.verdict.grade if task.verdict and task.outcome == "solved" else "-"
        numbers = f"{grade:<5} {task.cost.candidates_tried:>7,} {task.cost.seconds:>8.1f}"
        markup = ("green",) if task.outcome == "solved" else ("yellow",)
        yield Line(f"{task.outcome:<13} {numbers}  {_tests(task, room)}", markup)
        if task.targets:
            target = task.targets[0]
            yield Line(" " * left + cut_left(visible(f"in {target.path}:{target.name}"), room))


def _tests(task: TaskReport, width: int) -> str:
    if not task.failures:
        return "-"
    first = visible(task.failures[0].nodeid)
    more = len({failure.nodeid for failure in task.failures}) - 1
    suffix = f" (+{more})" if more else ""
    return cut_left(first, width - len(suffix)) + suffix


def _solution(task: TaskReport, closing: Closing, width: int) -> Iterator[Line]:
    yield Line()
    yield Line(f"patch for {_tests(task, width - 14)}", separator="-")
    if task.solution is not None:
        yield from diff_lines(task.solution.patch, width)
    if task.verdict is not None:
        yield from verdict_lines(task.verdict, width, passing=closing.passing)


def diff_lines(patch: str, width: int, *, limit: int = MAX_DIFF_LINES) -> Iterator[Line]:
    """A patch for reading: coloured, cut to the width, without git's hashes."""
    lines = [line for line in patch.split("\n")[:-1] if not line.startswith("index ")]
    for line in lines[:limit]:
        yield Line(cut(visible(line.removesuffix("\r")), width), _diff_markup(line))
    if len(lines) > limit:
        yield Line(f"... {counted(len(lines) - limit, 'more line')} of the patch, see the report")


def _diff_markup(line: str) -> tuple[str, ...]:
    if line.startswith(("diff ", "--- ", "+++ ")):
        return ("bold",)
    if line.startswith("@@"):
        return ("cyan",)
    return {"+": ("green",), "-": ("red",)}.get(line[:1], ())


def verdict_lines(verdict: Verdict, width: int, *, passing: int = 0) -> Iterator[Line]:
    """The verdict in one sentence, and which checks it stands on."""
    if verdict.accepted:
        broken = f"breaks none of {passing:,}, " if passing else ""
        yield from (
            Line(text, ("green",))
            for text in wrapped(
                f"passes the failing tests, {broken}no tampering found (grade {verdict.grade})", width
            )
        )
    else:
        check = next((check for check in verdict.checks if check.status == "failed"), None)
        words = f"refused by {check.name}: {check.detail}" if check else "not accepted"
        yield from (Line(text, ("yellow",)) for text in wrapped(words, width, rest="  ", lines=4))
    groups = [
        f"{words}: {', '.join(names)}"
        for status, words in (("passed", "checked"), ("failed", "failed"), ("not_run", "not run"))
        if (names := [check.name for check in verdict.checks if check.status == status])
    ]
    yield from (Line(text) for text in wrapped("; ".join(groups), width, rest="  "))


def _unsolved(task: TaskReport, width: int) -> Iterator[Line]:
    yield Line()
    yield Line(cut(f"not solved: {_tests(task, width - 12)}", width), ("bold",))
    reason = task.reason or "no reason is known"
    yield from (Line(text) for text in wrapped(reason, width, first="  reason: ", rest="          "))
    step = _next_step(task)
    yield from (Line(text) for text in wrapped(step, width, first="  next:   ", rest="          "))


def _next_step(task: TaskReport) -> str:
    if task.outcome == "exhausted" and any(attempt.source == "model" for attempt in task.attempts):
        return "allow more attempts with --autosolve-attempts, or name another model with --autosolve-model"
    return NEXT_STEPS[task.outcome]


def _total_cost(report: RunReport) -> CostReport:
    totals = report.totals
    return CostReport(
        totals.seconds,
        totals.candidates_tried,
        totals.model_calls,
        totals.input_tokens,
        totals.output_tokens,
        totals.usd,
    )


def cost_line(cost: CostReport) -> str:
    """`314 candidates, 2 model calls, 1,234 tokens, $0.01, 12.3 s`; what is zero is left out."""
    parts = [counted(cost.candidates_tried, "candidate")]
    if cost.model_calls:
        tokens = cost.input_tokens + cost.output_tokens
        parts += [counted(cost.model_calls, "model call"), counted(tokens, "token")]
        parts.append("price unknown" if cost.usd is None else f"${cost.usd:.4f}" if cost.usd else "no charge")
    return ", ".join([*parts, f"{cost.seconds:.1f} s"])


def _last_words(report: RunReport, closing: Closing) -> tuple[str, tuple[str, ...]]:
    solved, total = report.totals.solved, report.totals.tasks
    found = f"{solved} of {counted(total, 'task')} solved"
    if closing.stopped:
        found = f"stopped by you; {found}"
    if closing.problem:
        return f"{found}; {closing.problem}", ("red",)
    if closing.written:
        files = f"{counted(len(closing.written), 'file')} changed: {', '.join(closing.written)}"
        if closing.green is None:
            return f"{found}; {files}; run pytest to see them pass, git diff to read the change", ("green",)
        if closing.green:
            return f"{found}; {files}; a fresh run of all tests passes", ("green", "bold")
        return f"{found}; {files}; a fresh run still has failing tests", ("yellow",)
    if not solved:
        return f"{found}; no file was changed", ("yellow",)
    ways = {
        "report": "to write the patches run again with --autosolve-mode apply, or review to be asked for each",
        "review": "run again to be asked once more",
        "apply": "the patches are shown above",
    }
    return f"{found}; no file was changed; {ways[closing.mode]}", ("yellow",)
