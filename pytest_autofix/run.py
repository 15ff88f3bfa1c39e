"""One `--autosolve` run from failures to an exit status. The place to read first.

`repair` finds and judges patches and changes no file; `finish` says what becomes of them; what a person sees goes
through `report`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePosixPath

from pytest_autofix.budget import Budget
from pytest_autofix.candidates.model.client import ChatClient
from pytest_autofix.candidates.model.source import ModelSource
from pytest_autofix.combine import Combined
from pytest_autofix.console import Console
from pytest_autofix.finish import Written, build_report, choose, keep_findings, put_into_tree
from pytest_autofix.repair import Repair, Request, event_stream, repair
from pytest_autofix.report.json_report import write_report
from pytest_autofix.report.model import RunReport, TaskReport
from pytest_autofix.report.progress import LiveProgress
from pytest_autofix.report.review import review_all
from pytest_autofix.report.terminal import Closing, Line, render
from pytest_autofix.report.text import wrapped
from pytest_autofix.settings import Invocation, Settings
from pytest_autofix.solver.solve import TaskResult
from pytest_autofix.verify import load_patch, verify_changes
from pytest_autofix.workbench import Workbench

__all__ = ["Request", "files_with_tests", "report_nothing", "solve", "verify"]

DECLINED = {"reject": "rejected in the review", "quit": "the review was left before a decision"}
"""Reasons for what a reviewer did not accept."""

INTERRUPTED = 2  #: pytest's own exit status for a stop by the user


def solve(request: Request, console: Console) -> int | None:
    """Repair what failed; the new exit status, None to leave pytest's own.

    0 only if the patches are in the working tree and a fresh run of everything is green. Raises `AutofixError` for
    what ends the whole run: no sandbox, tests that cannot be run in it.
    """
    settings = request.settings
    began = time.monotonic()
    progress = LiveProgress(console.terminal, width=console.width, live=console.live)
    notes = _notes(settings)
    test_files = files_with_tests(request.collected)
    with Workbench(settings, request.invocation, test_files=test_files, slowest=request.slowest) as bench:
        try:
            with event_stream(settings, [progress]) as sink:
                found = repair(request, bench, sink=sink, source=_model_source(settings))
        finally:
            progress.close()
        results, written = found.results, Written(Combined())
        keep_findings(found.run, _report(request, found, results, bench, began, request.exit_status), bench)
        if not found.stopped:
            accepted, results = _choose(request, found, bench, console, began)
            if accepted.changes:
                console.terminal.write_line("autosolve: writing the files, then running all tests once more")
            written = put_into_tree(accepted, bench)
        status = _exit_status(found, written)
        final = request.exit_status if status is None else status
        report = _report(request, found, results, bench, began, final)
        kept = keep_findings(found.run, report, bench)
    if settings.report is not None:
        write_report(settings.report, report)
    closing = Closing(
        mode=settings.mode,
        passing=len(found.baseline.passed),
        written=written.files,
        green=written.green,
        problem=written.refused,
        report=_shown(
            settings.report or (kept / "report.json" if kept else None), request.invocation.directory
        ),
        notes=(*notes, *_result_notes(results), *found.budget.spent.notes, *filter(None, [written.note])),
        stopped=found.stopped,
    )
    console.show(render(report, closing, width=console.width))
    return status


def _shown(path: Path | None, directory: Path) -> str:
    """A path as the user would type it."""
    if path is None:
        return ""
    return str(path.relative_to(directory) if path.is_relative_to(directory) else path)


def report_nothing(request: Request) -> None:
    """Whoever asked for a report gets one although no test has failed. Opens no sandbox."""
    if request.settings.report is not None:
        report = build_report(
            request.settings,
            (),
            isolation=None,
            budget=Budget(),
            exit_status=request.exit_status,
            seconds=0.0,
        )
        write_report(request.settings.report, report)


def files_with_tests(nodeids: Iterable[str]) -> set[str]:
    """Files that gave tests other than doctests: a doctest is named by its module, with dots."""
    files = set()
    for nodeid in nodeids:
        path, _, rest = nodeid.partition("::")
        name = rest.partition("[")[0]
        if "." not in name and name != PurePosixPath(path).stem:
            files.add(path)
    return files


def _choose(
    request: Request, found: Repair, bench: Workbench, console: Console, began: float
) -> tuple[Combined, tuple[TaskResult, ...]]:
    """What is to be written in this mode, and the results with those that were declined."""
    mode = request.settings.mode
    if mode == "report" or not found.combined.results:
        return Combined(), found.results
    if mode == "apply":
        return found.combined, found.results
    report = _report(request, found, found.results, bench, began, request.exit_status)
    offered = {result.task.fingerprint for result in found.combined.results}
    asked: list[TaskReport] = [task for task in report.tasks if task.fingerprint in offered]
    decisions = review_all(
        asked, ask=console.ask, show=lambda lines: console.show(list(lines)), width=console.width
    )
    return choose(
        found, bench, lambda result: DECLINED.get(decisions.get(result.task.fingerprint, "quit"), "")
    )


def _exit_status(found: Repair, written: Written) -> int | None:
    if found.stopped or written.stopped:
        return INTERRUPTED
    return 0 if written.files and written.green else None


def _report(
    request: Request,
    found: Repair,
    results: Sequence[TaskResult],
    bench: Workbench,
    began: float,
    status: int,
) -> RunReport:
    return build_report(
        request.settings,
        results,
        isolation=bench.isolation,
        budget=found.budget,
        exit_status=status,
        seconds=time.monotonic() - began,
    )


def verify(settings: Settings, invocation: Invocation, console: Console) -> int:
    """The verdict on the user's patch: 0 accepted, 1 rejected. Changes no file.

    Raises `ConfigurationError` for what is no patch, `SandboxError` if there is no verdict to be had.
    """
    if settings.verify is None:
        raise AssertionError("--autosolve-verify was not given")
    began = time.monotonic()
    changes, objection = load_patch(settings.verify, invocation.root)
    with Workbench(settings, invocation) as bench:
        verification = verify_changes(changes, objection, bench)
        report = build_report(
            settings,
            [verification.result],
            isolation=verification.isolation,
            budget=Budget(),
            exit_status=0 if verification.verdict.accepted else 1,
            seconds=time.monotonic() - began,
        )
    if settings.report is not None:
        write_report(settings.report, report)
    console.show(_verification_lines(report, console.width))
    return report.exit_status


def _verification_lines(report: RunReport, width: int) -> list[Line]:
    (task,) = report.tasks
    lines = [Line("autosolve: verdict on the patch", separator="=")]
    if task.verdict is None:
        raise AssertionError("a verification has a verdict")
    for check in task.verdict.checks:
        markup = {"passed": ("green",), "failed": ("red",), "not_run": ()}[check.status]
        first = f"{check.name:<9} {check.status.replace('_', ' '):<8} {check.seconds:6.1f} s  "
        lines += [Line(text, markup) for text in wrapped(check.detail, width, first=first, rest=" " * 29)]
    word = (
        f"accepted, grade {task.verdict.grade}"
        if task.verdict.accepted
        else f"rejected by {task.verdict.refused_by}"
    )
    lines.append(Line(f"{word}; no file was changed", ("green" if task.verdict.accepted else "red", "bold")))
    return lines


def _client(settings: Settings) -> ChatClient:
    return ChatClient.connect(settings.models, base_url=settings.base_url or "", environ=os.environ)


def _model_source(settings: Settings) -> Callable[[Budget], ModelSource | None]:
    """One source for all tasks, made when the budget is there."""

    def make(budget: Budget) -> ModelSource | None:
        if not settings.models or settings.strategy == "search":
            return None
        return ModelSource(_client(settings), budget)

    return make


def _notes(settings: Settings) -> list[str]:
    if settings.models or settings.strategy == "search":
        return []
    return ["no model is configured: search only (name one with --autosolve-model)"]


def _result_notes(results: Sequence[TaskResult]) -> list[str]:
    return list(dict.fromkeys(note for result in results for note in result.notes))
