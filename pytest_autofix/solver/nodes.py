"""The nodes of the solver graph: each takes the state and returns an update, nothing else.

They never print and never read the environment: what they need comes in `Context`, what they have to tell goes out
as events on the custom stream. Expected ends (nothing found, budget spent, endpoint down) are values in the state.
"""

from __future__ import annotations

import functools
import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from langgraph.runtime import Runtime

from pytest_autofix.budget import Budget
from pytest_autofix.candidates.candidate import Candidate
from pytest_autofix.candidates.model.source import Feedback, ModelSource
from pytest_autofix.errors import BudgetExceeded, ModelError, PatchError, SandboxError
from pytest_autofix.patching.changes import changes_of
from pytest_autofix.patching.diff import unified_diff
from pytest_autofix.report import events
from pytest_autofix.report.text import counted
from pytest_autofix.solver.execution import Executor, Trial
from pytest_autofix.solver.frontier import Frontier
from pytest_autofix.solver.state import (
    AttemptState,
    SolveState,
    Stage,
    Tally,
    Update,
    add_tallies,
    candidate_from_json,
    candidate_to_json,
    verdict_from_json,
    verdict_to_json,
)
from pytest_autofix.tasks.task import Task
from pytest_autofix.verdict.judge import Judge

__all__ = ["Context", "accept", "execute", "generate", "give_up", "recall", "reflect", "verify"]

log = logging.getLogger("pytest_autofix")

CHUNK_SECONDS = 1.5  #: a step of the search takes about so long: one checkpoint each
FIRST_CHUNK = 64  #: candidates and core
SETTLE_SECONDS = 2.0  #: after the first plausible candidate others are looked for so long
SETTLE_COUNT = 40  #: or until there are so many
SLOW_SHARE = 0.3  #: of the search's time goes at most to candidates that ran out of time
SLOW_SECONDS = 5.0  #: for each of them
VERDICTS = 8  #: candidates of one task that are judged before it is given up as `rejected`
COMPARE_SECONDS = 10.0  #: for the behaviour of all plausible candidates of a step
TICK_SECONDS = 0.5  #: between two progress events


@dataclass
class Context:
    """What the nodes of one task work with. Not part of the state: processes, iterators, clients."""

    task: Task
    originals: Mapping[str, bytes]
    texts: Mapping[str, str]
    tests: Mapping[str, str]  #: text of the files that hold the failing tests
    executor: Executor
    judge: Judge
    frontier: Frontier
    budget: Budget
    search_seconds: float
    source: ModelSource | None  #: None: no model
    attempts: int  #: candidates asked of the model
    workers: int
    verdict_seconds: float  #: what a verdict will take, about: kept back from the run's time
    stopping: Callable[[], bool]  #: the user has had enough
    search_began: float | None = None
    rate: float = 0.0  #: candidates a second, of the last step

    def search_left(self) -> float:
        """Seconds of the search that are left; the run's own limit counts too."""
        began = self.search_began
        left = self.search_seconds - (time.monotonic() - began if began is not None else 0.0)
        return min(left, self.run_left())

    def run_left(self) -> float:
        """Seconds of the run that are left for finding something, after what a verdict will take."""
        remaining = self.budget.remaining.seconds
        return math.inf if remaining is None else remaining - self.verdict_seconds


Node = Callable[[SolveState, Runtime[Context]], Update]


def _ends(node: Node) -> Node:
    """Turns the errors that end a task into its outcome."""

    @functools.wraps(node)
    def guarded(state: SolveState, runtime: Runtime[Context]) -> Update:
        if runtime.context.stopping():
            return Update(stage="done", pending=[], outcome="budget", reason="stopped by you")
        try:
            return node(state, runtime)
        except BudgetExceeded as error:
            return Update(stage="done", pending=[], outcome="budget", reason=str(error))
        except (ModelError, PatchError) as error:
            return Update(stage="done", pending=[], outcome="model", reason=str(error))
        except SandboxError as error:
            if runtime.context.stopping():
                return Update(stage="done", pending=[], outcome="budget", reason="stopped by you")
            return Update(stage="done", pending=[], outcome="sandbox", reason=str(error))

    return guarded


@_ends
def recall(state: SolveState, runtime: Runtime[Context]) -> Update:
    """What earlier runs know of this task. Nothing is remembered yet: an empty step in its final place."""
    return Update()


@_ends
def generate(state: SolveState, runtime: Runtime[Context]) -> Update:
    """The next candidates of the stage, or the next stage when there are none."""
    context = runtime.context
    context.budget.check_time()
    if state["stage"] == "search":
        if context.search_began is None:
            context.executor.warm_up()
            context.search_began = time.monotonic()
        left = context.search_left()
        size = int(max(FIRST_CHUNK * context.workers, min(context.rate * CHUNK_SECONDS, 4000)))
        if context.rate and context.rate * CHUNK_SECONDS < FIRST_CHUNK:
            size = max(2 * context.workers, int(context.rate * CHUNK_SECONDS))  # a slow suite: short steps
        chunk = context.frontier.take(size) if left > 0 else []
        if chunk:
            return Update(pending=[candidate_to_json(candidate) for candidate in chunk])
        return Update(pending=[], stage="model" if context.source else "done")
    if state["stage"] == "model" and context.source and len(state["attempts"]) < context.attempts:
        return _ask_model(context.source, state, context)
    return Update(pending=[], stage="done")


def _ask_model(source: ModelSource, state: SolveState, context: Context) -> Update:
    """One round: candidates to execute, and an attempt for each call that gave none."""
    proposal = source.propose(
        context.task,
        context.texts,
        context.tests,
        [_feedback(attempt, context) for attempt in state["attempts"]],
        seen=[attempt["hash"] for attempt in state["attempts"]],
    )
    for note in proposal.notes:
        context.executor.note(note)
    number = 1 + max((attempt["call"] for attempt in state["attempts"]), default=0)
    pending: list[dict[str, Any]] = []
    attempts: list[AttemptState] = []
    waiting = list(proposal.candidates)
    useless = [feedback.message for feedback in proposal.feedback]
    for call in proposal.calls:
        attempt = AttemptState(
            call=number,
            model=call.model,
            prompt=call.prompt,
            hash=call.hash,
            result=call.result.partition(":")[0],
            message="",
            failed="",
            passed=[],
            candidate=None,
            seconds=call.seconds,
            input_tokens=call.input_tokens,
            output_tokens=call.output_tokens,
        )
        number += 1
        if call.result == "proposed":
            pending.append({**candidate_to_json(waiting.pop(0)), "attempt": attempt})
        else:
            attempt["message"] = useless.pop(0) if useless and call.result != "repeated" else call.result
            attempts.append(attempt)
    return Update(pending=pending, attempts=attempts)


def _feedback(attempt: AttemptState, context: Context) -> Feedback:
    if attempt["candidate"] is None:
        return Feedback("", message=attempt["message"])
    changes = changes_of(candidate_from_json(attempt["candidate"]), context.originals)
    return Feedback(unified_diff(changes), attempt["failed"], attempt["message"], tuple(attempt["passed"]))


@_ends
def execute(state: SolveState, runtime: Runtime[Context]) -> Update:
    """Try the pending candidates in the sandbox."""
    if state["stage"] == "search":
        return _execute_search([candidate_from_json(data) for data in state["pending"]], state, runtime)
    return _execute_model(state, runtime)


def _execute_search(candidates: list[Candidate], state: SolveState, runtime: Runtime[Context]) -> Update:
    context = runtime.context
    step = _Step(state, runtime)
    waiting = dict.fromkeys(map(id, candidates))
    first_plausible: float | None = None
    trials = context.executor.try_many(candidates, seconds=max(context.search_left(), 0.1))
    for trial in trials:
        waiting.pop(id(trial.candidate), None)
        step.add(trial)
        context.frontier.learn(trial)
        now = time.monotonic()
        if trial.status == "passed" and first_plausible is None:
            first_plausible = now
        settled = first_plausible is not None and (
            now - first_plausible > SETTLE_SECONDS or len(step.plausible) >= SETTLE_COUNT
        )
        if settled or context.stopping() or context.search_left() <= 0:
            trials.close()
            break
    context.frontier.put_back([candidate for candidate in candidates if id(candidate) in waiting])
    if not step.plausible and context.search_left() < SLOW_SHARE * context.search_seconds:
        _retry_slow(step, context)
    return step.update()


def _retry_slow(step: _Step, context: Context) -> None:
    """A right repair can be slower than the trial's limit: the best of those that ran out of time get more."""
    for candidate in context.frontier.slow():
        if context.search_left() <= 0 or context.stopping():
            return
        trial = context.executor.try_alone(candidate, seconds=SLOW_SECONDS)
        step.add(trial)
        if trial.status == "passed":
            return


def _execute_model(state: SolveState, runtime: Runtime[Context]) -> Update:
    context = runtime.context
    plausible: list[dict[str, Any]] = []
    attempts: list[AttemptState] = []
    best = state["best"]
    for data in state["pending"]:
        candidate = candidate_from_json(data)
        attempt: AttemptState = dict(data["attempt"])  # type: ignore[assignment] # JSON of an AttemptState
        attempt["candidate"] = candidate_to_json(candidate)
        attempts.append(attempt)
        began = time.perf_counter()
        try:
            result = context.executor.observe(candidate)
        except PatchError as error:
            attempt["result"], attempt["message"], attempt["candidate"] = "invalid", str(error), None
            continue
        outcomes = result.outcomes()
        wanted = (*context.executor.failing, *context.executor.guards)
        red = [nodeid for nodeid in wanted if outcomes.get(nodeid) != "passed"]
        blocked = [phase for phase in result.phases if phase.when == "collect"]
        message = next((phase.message for phase in result.phases if phase.outcome == "failed"), result.detail)
        word = "failed" if red or blocked else "passed"
        if result.status != "finished":
            word = result.status
        attempt["result"], attempt["message"] = word, message
        attempt["failed"] = (red or [phase.nodeid for phase in blocked] or [""])[0]
        attempt["passed"] = [nodeid for nodeid in wanted if outcomes.get(nodeid) == "passed"]
        attempt["seconds"] += time.perf_counter() - began
        passed = sum(outcomes.get(nodeid) == "passed" for nodeid in context.executor.failing)
        if word == "passed":
            plausible.append(candidate_to_json(candidate))
        else:
            best = max(best, passed)
        runtime.stream_writer(
            events.Executed(
                task=context.task.fingerprint,
                source="model",
                hash=attempt["hash"],
                result=word,
                failed=attempt["failed"],
                seconds=attempt["seconds"],
            )
        )
    return Update(pending=[], plausible=[*state["plausible"], *plausible], attempts=attempts, best=best)


class _Step:
    """Sums what the trials of one step did."""

    def __init__(self, state: SolveState, runtime: Runtime[Context]) -> None:
        self._state = state
        self._runtime = runtime
        self._context = runtime.context
        self._failing = frozenset(self._context.task.nodeids)
        self._began = self._told = time.monotonic()
        self._tallies: dict[str, Tally] = {}
        self._tried = 0
        self._best = state["best"]
        self.plausible: list[Candidate] = []

    def add(self, trial: Trial) -> None:
        """Count one trial; tells how far the search is from time to time."""
        tally = Tally(tried=1, passed=0, failed=0, timeout=0, crashed=0, invalid=0, seconds=trial.seconds)
        if trial.status in ("passed", "failed", "timeout", "crashed", "invalid"):
            tally[trial.status] = 1  # type: ignore[literal-required] # checked in the line above
        self._tallies = add_tallies(self._tallies, {trial.candidate.origin.operator: tally})
        self._tried += 1
        if trial.status == "passed":
            self.plausible.append(trial.candidate)
        else:
            self._best = max(self._best, len(self._failing.intersection(trial.passed)))
        if time.monotonic() - self._told > TICK_SECONDS:
            self._tell()

    def update(self) -> Update:
        """What the step adds to the state."""
        self._tell()
        plausible = sorted(self.plausible, key=lambda candidate: -candidate.score)
        plausible, behaviours = self._context.executor.prefer(plausible, seconds=COMPARE_SECONDS)
        return Update(
            pending=[],
            plausible=[candidate_to_json(candidate) for candidate in plausible],
            behaviours=max(behaviours, self._state["behaviours"]),
            tried=self._tried,
            tallies=self._tallies,
            best=self._best,
        )

    def _tell(self) -> None:
        self._told = time.monotonic()
        self._context.rate = self._tried / max(self._told - self._began, 1e-3)
        self._runtime.stream_writer(
            events.Progress(
                task=self._context.task.fingerprint,
                source="search",
                tried=self._state["tried"] + self._tried,
                rate=self._context.rate,
                best=self._best,
                failing=len(self._failing),
                plausible=len(self.plausible) + len(self._state["plausible"]),
            )
        )


@_ends
def verify(state: SolveState, runtime: Runtime[Context]) -> Update:
    """The verdict on the best plausible candidate."""
    context = runtime.context
    context.budget.check_time()
    data, *rest = state["plausible"]
    candidate = candidate_from_json(data)
    verdict = context.judge.judge(
        changes_of(candidate, context.originals),
        must_pass=context.task.nodeids,
        server=None if context.executor.cold else context.executor.server,
        guards=len(context.executor.guards),
        behaviours=state["behaviours"],
    )
    runtime.stream_writer(
        events.VerdictGiven(
            task=context.task.fingerprint,
            accepted=verdict.accepted,
            grade=verdict.grade,
            refused_by=verdict.refused_by,
        )
    )
    result = verdict_to_json(verdict)
    if verdict.accepted:
        return Update(plausible=rest, solution=data, verdict=result)
    return Update(plausible=rest, refused=[{"candidate": data, "verdict": result}])


@_ends
def reflect(state: SolveState, runtime: Runtime[Context]) -> Update:
    """Whether going on makes sense. What was observed is in the attempts: the next prompt is made from it."""
    if len(state["refused"]) >= VERDICTS:
        return Update(stage="done")
    context = runtime.context
    runtime.stream_writer(
        events.Reflected(task=context.task.fingerprint, stage=state["stage"], note=_standing(state, context))
    )
    return Update()


def accept(state: SolveState, runtime: Runtime[Context]) -> Update:
    """The verdict has accepted: the task is solved."""
    context = runtime.context
    runtime.stream_writer(events.Solved(task=context.task.fingerprint, tried=state["tried"]))
    return Update(outcome="solved", stage="done")


def give_up(state: SolveState, runtime: Runtime[Context]) -> Update:
    """Why there is no solution, truthfully."""
    context = runtime.context
    outcome, reason = state["outcome"], state["reason"]
    if outcome is None and state["refused"]:
        verdict = verdict_from_json(state["refused"][0]["verdict"])
        detail = next(check.detail for check in verdict.checks if check.status == "failed")
        count = len(state["refused"])
        outcome = "rejected"
        reason = (
            f"{count} candidate{'s' if count > 1 else ''} passed the trial and "
            f"{'were' if count > 1 else 'was'} refused by {verdict.refused_by}: {detail}"
        )
    elif outcome is None:
        outcome, reason = "exhausted", _standing(state, context)
        crashed = sum(tally["crashed"] for tally in state["tallies"].values())
        if crashed and crashed == state["tried"]:
            outcome, reason = "sandbox", f"every candidate ended the test process: {context.executor.crash}"
        elif context.run_left() <= 0:
            outcome, reason = "budget", f"the time of the run is over: {reason}"
    runtime.stream_writer(events.GaveUp(task=context.task.fingerprint, outcome=outcome, reason=reason))
    return Update(outcome=outcome, reason=reason, stage="done")


def _standing(state: SolveState, context: Context) -> str:
    """One sentence on how far the task has come."""
    failing = len(context.task.nodeids)
    tried = f"{counted(state['tried'], 'candidate')} of the search"
    if state["attempts"]:
        tried += f" and {len(state['attempts'])} of the model"
    tried += " was tried" if state["tried"] + len(state["attempts"]) == 1 else " were tried"
    best = f"the best made {state['best']} of {failing} failing tests pass" if state["best"] else ""
    if state["best"] >= failing:
        best = "what made the failing tests pass broke others: they may contradict each other"
    if not best:
        best = (
            "none made the failing test pass"
            if failing == 1
            else f"none made one of {failing} failing tests pass"
        )
    timeouts = sum(tally["timeout"] for tally in state["tallies"].values())
    slow = f"; {timeouts} ran out of time" if timeouts > 0.2 * max(state["tried"], 1) else ""
    return f"{tried}, {best}{slow}"


def after_generate(state: SolveState) -> str:
    """Execute what there is; a stage without candidates leads to the next one."""
    if state["pending"]:
        return "execute"
    return "give_up" if state["stage"] == "done" else "reflect"


def after_execute(state: SolveState) -> str:
    return "verify" if state["plausible"] and state["outcome"] is None else "reflect"


def after_verify(state: SolveState) -> str:
    if state["solution"] is not None:
        return "accept"
    if state["plausible"] and state["outcome"] is None and len(state["refused"]) < VERDICTS:
        return "verify"
    return "reflect"


def after_reflect(state: SolveState) -> str:
    return "give_up" if state["stage"] == "done" else "generate"


FIRST_STAGE: Mapping[str, Stage] = {"auto": "search", "search": "search", "model": "model"}
