"""One task through the solver graph: from a `Task` to a `TaskResult`."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from pytest_autofix.budget import Budget
from pytest_autofix.candidates.candidate import Candidate
from pytest_autofix.candidates.model.source import ModelSource
from pytest_autofix.patching.changes import FileChange, changes_of
from pytest_autofix.report.events import Event
from pytest_autofix.settings import Settings
from pytest_autofix.solver.execution import Executor
from pytest_autofix.solver.frontier import Frontier
from pytest_autofix.solver.graph import STEPS, build_graph
from pytest_autofix.solver.nodes import FIRST_STAGE, Context
from pytest_autofix.solver.state import (
    AttemptState,
    SolveState,
    Tally,
    candidate_from_json,
    initial_state,
    verdict_from_json,
)
from pytest_autofix.tasks.task import Outcome, Task
from pytest_autofix.verdict.baseline import Baseline
from pytest_autofix.verdict.verdict import Verdict
from pytest_autofix.workbench import Workbench

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

__all__ = ["TaskResult", "solve_task"]

log = logging.getLogger("pytest_autofix")


@dataclass(frozen=True)
class TaskResult:
    """How one task ended."""

    task: Task
    outcome: Outcome
    reason: str = ""
    candidate: Candidate | None = None
    changes: tuple[FileChange, ...] = ()  #: what the solution does to files
    verdict: Verdict | None = None  #: of the solution, or of the first candidate that was refused
    tallies: dict[str, Tally] = field(default_factory=dict)  #: of the search, by operator
    attempts: tuple[AttemptState, ...] = ()  #: of models
    tried: int = 0
    seconds: float = 0.0
    warm_trials: int = 0
    warm_cpu_seconds: float = 0.0  #: of the warm trials together
    notes: tuple[str, ...] = ()


def solve_task(
    task: Task,
    bench: Workbench,
    baseline: Baseline,
    *,
    run: str,
    settings: Settings,
    budget: Budget,
    workers: int,
    source: ModelSource | None,
    checkpointer: BaseCheckpointSaver[Any] | None,
    emit: Callable[[Event], None],
) -> TaskResult:
    """Run the graph to its end; never raises for anything that a task can run into."""
    began = time.perf_counter()
    sandbox = bench.open_sandbox()
    originals = {path: bench.originals[path] for path in task.allowed_files if path in bench.texts}
    texts = {path: bench.texts[path] for path in originals}
    executor = Executor(
        sandbox, task, baseline, originals, texts, workers=workers, limits=bench.limits_after(baseline)
    )
    context = Context(
        task=task,
        originals=originals,
        texts=texts,
        tests=bench.read_texts({failure.path for failure in task.failures}),
        executor=executor,
        judge=bench.judge(baseline),
        frontier=Frontier(task, texts),
        budget=budget,
        search_seconds=settings.search_seconds,
        source=source,
        attempts=settings.attempts,
        workers=workers,
        verdict_seconds=2 * baseline.wall_seconds / max(baseline.runs, 1) + 1,
        stopping=lambda: bench.stopping,
    )
    graph = build_graph(checkpointer)
    state: SolveState = initial_state(FIRST_STAGE[settings.strategy])
    thread = f"{run}-{task.fingerprint}"
    try:
        stream = graph.stream(
            state,
            {"configurable": {"thread_id": thread}, "recursion_limit": STEPS},
            context=context,
            stream_mode=["custom", "values"],
        )
        for mode, chunk in stream:
            if mode == "custom":
                emit(cast("Event", chunk))
            else:
                state = cast("SolveState", chunk)
    finally:
        executor.close()
    if checkpointer is not None and state["outcome"] is not None:
        checkpointer.delete_thread(
            thread
        )  # a finished task is in the report; only unfinished ones can be resumed
    return _result(task, state, executor, originals, time.perf_counter() - began)


def _doubt(task: Task, state: SolveState) -> tuple[str, ...]:
    if state["behaviours"] < 2 or not state["solution"]:
        return ()
    text = (
        f"{task.nodeids[0]}: candidates with {state['behaviours']} different behaviours pass; taken was the one that "
        "changes the program's other results least: read it with care, or add a test that tells them apart"
    )
    return (text,)


def _result(
    task: Task, state: SolveState, executor: Executor, originals: Mapping[str, bytes], seconds: float
) -> TaskResult:
    candidate = candidate_from_json(state["solution"]) if state["solution"] else None
    verdict = state["verdict"] or (state["refused"][0]["verdict"] if state["refused"] else None)
    return TaskResult(
        task=task,
        outcome=state["outcome"] or "exhausted",
        reason=state["reason"],
        candidate=candidate,
        changes=changes_of(candidate, originals) if candidate else (),
        verdict=verdict_from_json(verdict) if verdict else None,
        tallies=state["tallies"],
        attempts=tuple(state["attempts"]),
        tried=state["tried"] + len(state["attempts"]),
        seconds=seconds,
        warm_trials=executor.warm_trials,
        warm_cpu_seconds=executor.warm_cpu_seconds,
        notes=(*executor.notes, *_doubt(task, state)),
    )
