"""Review mode: each patch is shown and asked for. Pure dialogue; how to ask and to show is passed in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from pytest_autofix.report.model import TaskReport
from pytest_autofix.report.terminal import Line, diff_lines, verdict_lines
from pytest_autofix.report.text import counted, cut, cut_left, visible, wrapped

__all__ = ["Decision", "review", "review_all"]

Decision = Literal["accept", "reject", "quit"]
Ask = Callable[[str], str]
Show = Callable[[Iterable[Line]], None]

QUESTION = "accept this patch? [a]ccept, [r]eject, [e]vidence, [q]uit, [?] help: "
HELP = (
    "a  accept: the files are changed when all patches have been asked for",
    "r  reject: nothing is written for this patch",
    "e  evidence: what failed, what each check saw, what was tried",
    "q  quit: accepted patches are written, this one and the rest are not",
)
MAX_QUESTIONS = 20  #: an input that gives nonsense for ever is no reviewer


def review(task: TaskReport, *, ask: Ask, show: Show, width: int, position: str = "") -> Decision:
    """Show one patch and ask until there is a decision.

    `ask` raises `EOFError` or `KeyboardInterrupt` when there is nobody to ask: that means quit, nothing is lost.
    """
    show(_patch(task, width, position))
    for _ in range(MAX_QUESTIONS):
        try:
            answer = ask(QUESTION).strip().casefold()
        except (EOFError, KeyboardInterrupt):
            show([Line(), Line("nothing more is asked; nothing is written for this patch", ("yellow",))])
            return "quit"
        if answer in ("a", "accept", "y", "yes"):
            return "accept"
        if answer in ("r", "reject", "n", "no"):
            return "reject"
        if answer in ("q", "quit"):
            return "quit"
        if answer in ("e", "evidence"):
            show(evidence(task, width))
        else:
            known = answer in ("?", "h", "help", "")
            words = [] if known else [Line(cut(f"not an answer: {visible(answer)}", width), ("yellow",))]
            show([*words, *(Line(text) for text in HELP)])
    return "quit"


def review_all(tasks: Sequence[TaskReport], *, ask: Ask, show: Show, width: int) -> dict[str, Decision]:
    """Fingerprint → decision for every task with a solution; after a quit the rest is not asked for."""
    decisions: dict[str, Decision] = {}
    waiting = [task for task in tasks if task.solution is not None]
    left = False
    for number, task in enumerate(waiting, 1):
        if left:
            decisions[task.fingerprint] = "quit"
            continue
        position = f" ({number} of {len(waiting)})" if len(waiting) > 1 else ""
        decision = review(task, ask=ask, show=show, width=width, position=position)
        decisions[task.fingerprint] = decision
        left = decision == "quit"
    return decisions


def _patch(task: TaskReport, width: int, position: str) -> list[Line]:
    name = visible(task.failures[0].nodeid) if task.failures else task.fingerprint
    lines = [Line(), Line(cut_left(name, width - 12 - len(position)) + position, separator="-")]
    if task.solution is not None:
        lines += diff_lines(task.solution.patch, width)
    if task.verdict is not None:
        lines += verdict_lines(task.verdict, width)
    return lines


def evidence(task: TaskReport, width: int) -> list[Line]:
    """What stands behind a patch: failing tests, checks with what they saw, where the candidates came from."""
    lines = [Line("failing tests", ("bold",))]
    lines += (
        Line(cut_left(f"  {failure.kind}: {visible(failure.nodeid)}", width)) for failure in task.failures
    )
    if task.verdict is not None:
        lines.append(Line("checks", ("bold",)))
        for check in task.verdict.checks:
            first = f"  {check.name:<9} {check.status.replace('_', ' '):<8} {check.seconds:5.1f} s  "
            lines += (Line(text) for text in wrapped(check.detail, width, first=first, rest=" " * 11))
    lines.append(Line("attempts", ("bold",)))
    for attempt in task.attempts[:10]:
        origin = attempt.operator or " ".join(filter(None, (attempt.model, attempt.prompt))) or attempt.source
        words = (
            f"  {attempt.source} {visible(origin)}: {counted(attempt.count, 'candidate')}, {attempt.result}"
        )
        lines.append(Line(cut(words, width)))
    if len(task.attempts) > 10:
        lines.append(Line(f"  ... {len(task.attempts) - 10} more in the report"))
    return lines
