"""From failures to judged patches: group, localise, solve each task, put the solutions together."""

from __future__ import annotations

import concurrent.futures
import contextlib
import logging
import re
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_autofix.budget import Budget, BudgetLimits
from pytest_autofix.candidates.model.source import ModelSource
from pytest_autofix.combine import Combined, combine, covered_by
from pytest_autofix.errors import SandboxError
from pytest_autofix.evidence.failure import Failure
from pytest_autofix.preflight import open_events
from pytest_autofix.report import events
from pytest_autofix.report.events import EventSink, Fanout
from pytest_autofix.settings import Invocation, Settings
from pytest_autofix.solver.checkpoints import open_checkpoints
from pytest_autofix.solver.solve import TaskResult, solve_task
from pytest_autofix.tasks.fingerprint import fingerprint
from pytest_autofix.tasks.grouping import group
from pytest_autofix.tasks.no_target import no_target_reason
from pytest_autofix.tasks.task import Task
from pytest_autofix.verdict.baseline import Baseline
from pytest_autofix.workbench import Workbench

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

__all__ = ["Repair", "Request", "event_stream", "repair", "revise"]

_RAISED = re.compile(r"([A-Za-z_][\w.]*(?:Error|Exception))(?::|$)", re.MULTILINE)
"""How pytest begins the message of an exception; a plain `assert …` has no name in front"""

log = logging.getLogger("pytest_autofix")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What pytest found out, and what the user wants."""

    settings: Settings
    invocation: Invocation
    failures: tuple[Failure, ...]
    collected: tuple[str, ...]  #: node ids of the whole selection
    slowest: float  #: seconds of the slowest test that ended by itself
    exit_status: int  #: pytest's own


@dataclass(frozen=True)
class Repair:
    """What came of the failures of one run."""

    run: str
    alone: tuple[TaskResult, ...]  #: how each task ended by itself, in the order pytest saw them
    combined: Combined  #: the patches that go together, judged as one
    baseline: Baseline
    budget: Budget
    stopped: bool = False  #: by Ctrl-C

    @property
    def results(self) -> tuple[TaskResult, ...]:
        """How each task ended with the patches put together."""
        return revise(self.alone, self.combined)


def repair(
    request: Request, bench: Workbench, *, sink: EventSink, source: Callable[[Budget], ModelSource | None]
) -> Repair:
    """From failures to judged patches. Changes no file of the project.

    Raises `SandboxUnavailable` where no sandbox can be had, `SandboxError` where the tests cannot be run in it.
    """
    settings = request.settings
    run = time.strftime("%Y%m%d-%H%M%S-") + secrets.token_hex(3)
    budget = Budget(
        BudgetLimits(seconds=settings.max_seconds, calls=settings.max_calls, tokens=settings.max_tokens)
    )
    sink.emit(events.RunStarted(run, len(request.failures), settings.mode, settings.strategy))
    began = time.monotonic()
    isolation = bench.open_sandbox().isolation
    sink.emit(events.SandboxReady(isolation.backend, isolation.isolated, isolation.details))
    hanging = {failure.nodeid for failure in request.failures if failure.kind == "timeout"}
    baseline = bench.take_baseline(request.collected, hanging=hanging)
    sink.emit(
        events.BaselineTaken(
            len(baseline.collected), len(baseline.failed), len(baseline.flaky), baseline.wall_seconds
        )
    )
    repeated, unrepeated = _split_by_baseline(request.failures, baseline)
    baseline = baseline.leaving_out(
        {nodeid for result in unrepeated for nodeid in result.task.nodeids if nodeid in baseline.outcomes}
    )  # they failed a moment ago and pass now
    tasks = group(repeated, baseline.lines, baseline.outcomes, bench.texts, tuple(bench.texts))
    hopeless = [_without_target(task, bench, baseline) for task in tasks if not task.targets]
    worked = [task for task in tasks if task.targets]
    model = source(budget)
    done: dict[str, TaskResult] = {}  # by fingerprint; written by the threads of the tasks

    def work(task: Task, checkpointer: BaseCheckpointSaver[Any]) -> TaskResult:
        target = task.targets[0]
        sink.emit(events.TaskStarted(task.fingerprint, task.nodeids, f"{target.path}:{target.name}"))
        known = [result for result in tuple(done.values()) if result.candidate is not None]
        other = covered_by(task, known, bench.judge(baseline))
        if other is not None:
            reason = f"left to the patch for {other.task.nodeids[0]}, which was not taken in the end"
            return TaskResult(task, "rejected", reason)  # unless it is: see `combine`
        return solve_task(
            task,
            bench,
            baseline,
            run=run,
            settings=settings,
            budget=budget,
            workers=max(1, settings.jobs // max(1, min(settings.jobs, len(worked)))),
            source=model,
            checkpointer=checkpointer,
            emit=sink.emit,
        )

    def keep(task: Task, checkpointer: BaseCheckpointSaver[Any]) -> None:
        try:
            done[task.fingerprint] = work(task, checkpointer)
        except SandboxError as error:
            done[task.fingerprint] = TaskResult(task, "sandbox", str(error))

    def ended() -> list[TaskResult]:
        solved = [done.get(task.fingerprint, TaskResult(task, "budget", "stopped by you")) for task in worked]
        return sorted([*solved, *hopeless, *unrepeated], key=lambda result: order[result.task.nodeids[0]])

    order = {nodeid: number for number, nodeid in enumerate(failure.nodeid for failure in request.failures)}
    combined, stopped = Combined(), False
    try:
        with open_checkpoints(bench.state_folder) as checkpointer:
            _in_parallel(lambda task: keep(task, checkpointer), worked, bench)
        combined = combine(ended(), bench.originals, bench.judge(baseline))
    except KeyboardInterrupt:  # what was found until then is worth keeping
        stopped = True
    results = ended()
    solved = sum(result.outcome == "solved" for result in revise(results, combined))
    sink.emit(events.RunFinished(run, solved, len(results) - solved, time.monotonic() - began))
    return Repair(run, tuple(results), combined, baseline, budget, stopped)


def revise(results: Sequence[TaskResult], combined: Combined) -> tuple[TaskResult, ...]:
    """The results, those exchanged that ended otherwise when the solutions were put together."""
    revised = {result.task.fingerprint: result for result in combined.revised}
    return tuple(revised.get(result.task.fingerprint, result) for result in results)


def _split_by_baseline(
    failures: Sequence[Failure], baseline: Baseline
) -> tuple[list[Failure], list[TaskResult]]:
    """Failures that the sandbox repeats, and a result for each that it does not: those cost nothing more."""
    repeated: list[Failure] = []
    others: list[TaskResult] = []
    for failure in failures:
        if (inside := _fails_otherwise(failure, baseline)) is not None:
            reason = (
                f"it fails otherwise in the sandbox ({inside}): it needs something of this machine there, "
                "such as the network, the home folder or an environment variable"
            )
            others.append(TaskResult(_lone_task(failure), "environment", reason))
        elif failure.nodeid in baseline.failed:
            repeated.append(failure)
        elif failure.nodeid in baseline.flaky:
            others.append(TaskResult(_lone_task(failure), "flaky", "its outcome changes from run to run"))
        elif (word := baseline.outcomes.get(failure.nodeid)) is not None:
            reason = (
                f"it is {word} in the sandbox: it needs something of this machine (network, a service, files "
                "outside the project, an environment variable), or it fails only now and then"
            )
            others.append(TaskResult(_lone_task(failure), "environment", reason))
        else:
            reason = "it is not collected in the sandbox"
            if baseline.collect_errors:
                nodeid, message = next(iter(baseline.collect_errors.items()))
                reason += f": {nodeid}: {message.strip().splitlines()[-1:]}"
            others.append(TaskResult(_lone_task(failure), "environment", reason))
    return repeated, others


def _fails_otherwise(failure: Failure, baseline: Baseline) -> str | None:
    """The first line of what a test says in the sandbox, if that is another exception than outside."""
    message = baseline.messages.get(failure.nodeid, "")
    if (
        failure.kind in ("timeout", "crash")
        or failure.nodeid not in baseline.outcomes
        or not failure.exceptions
    ):
        return None
    found = _RAISED.match(message)
    outside = failure.exceptions[0].type.rpartition(".")[2]
    inside = found[1].rpartition(".")[2] if found else ""
    if not outside.endswith(("Error", "Exception")) or not inside or inside == outside:
        return None
    return message.splitlines()[0][:200]


def _lone_task(failure: Failure) -> Task:
    return Task(fingerprint((failure,), None), (failure,), (), ())


def _without_target(task: Task, bench: Workbench, baseline: Baseline) -> TaskResult:
    reason = no_target_reason(task.failures, lines=baseline.lines, editable=tuple(bench.texts))
    return TaskResult(task, "no_target", reason)


def _in_parallel(work: Callable[[Task], None], tasks: Sequence[Task], bench: Workbench) -> None:
    """Work on all tasks. Ctrl-C ends the sandbox, which ends every task within a moment, and is raised then."""
    with concurrent.futures.ThreadPoolExecutor(
        bench.settings.jobs, thread_name_prefix="autofix-task"
    ) as pool:
        futures = [pool.submit(work, task) for task in tasks]
        try:
            while not all(future.done() for future in futures):
                concurrent.futures.wait(futures, timeout=0.2)
        except KeyboardInterrupt:
            bench.stop()
            for future in futures:
                future.cancel()
            raise
    for future in futures:
        future.result()


@contextlib.contextmanager
def event_stream(settings: Settings, sinks: Sequence[EventSink]) -> Iterator[Fanout]:
    """All sinks of a run, the events file among them; raises `ConfigurationError` if that cannot be written."""
    if settings.events is None:
        yield Fanout(sinks)
        return
    with contextlib.closing(open_events(settings.events)) as file:
        yield Fanout([*sinks, file])
