"""Running candidates: warm batches on every core, a run of its own where a batch would not be sound.

What is learned here is screening evidence. The verdict does not rest on it.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

from pytest_autofix.candidates.candidate import Candidate, Origin
from pytest_autofix.candidates.search.behaviour import choose_by_behaviour
from pytest_autofix.errors import PatchError, SandboxError
from pytest_autofix.patching.changes import changes_of
from pytest_autofix.sandbox.protocol import (
    BatchSession,
    ForkServer,
    Job,
    Limits,
    RunResult,
    Sandbox,
    TrialResult,
)
from pytest_autofix.tasks.task import Task
from pytest_autofix.verdict.baseline import Baseline
from pytest_autofix.verdict.confirm import Changed, changed_of, file_passes

__all__ = ["Executor", "Trial", "changed_files"]

log = logging.getLogger("pytest_autofix")

TRIAL_TESTS = 60  #: passing tests that a trial runs after the failing ones, the narrowest first
TRIAL_SECONDS = 0.5  #: and how long these may take together, in the baseline's time
TRIAL_FACTOR = 20  #: CPU time of a trial: so many times what its tests took in the baseline
TRIAL_TYPICAL = 0.001  #: seconds of a failing test whose neighbours say nothing about its time
TRIAL_FLOOR = 0.15  #: seconds that every trial gets: forking and first calls cost something


@dataclass(frozen=True, slots=True)
class Trial:
    """What one candidate did, whichever way it was tried."""

    candidate: Candidate
    status: str  #: as `TrialResult.status`, never `unsound`
    passed: tuple[str, ...] = ()
    failed: str = ""
    message: str = ""
    warm: bool = True
    seconds: float = 0.0  #: wall clock


def changed_files(candidate: Candidate, originals: Mapping[str, bytes]) -> Changed:
    """The candidate's files as bytes; raises `PatchError` if they cannot be written in the file's encoding."""
    return changed_of(changes_of(candidate, originals))


class Executor:
    """Tries candidates for one task on `workers` cores. Use as a context manager: it owns processes."""

    def __init__(
        self,
        sandbox: Sandbox,
        task: Task,
        baseline: Baseline,
        originals: Mapping[str, bytes],
        texts: Mapping[str, str],
        *,
        workers: int,
        limits: Limits,
    ) -> None:
        """`originals` and `texts`: bytes and decoded text of the task's editable files."""
        self._sandbox = sandbox
        self._baseline = baseline
        self._originals = originals
        self._texts = texts
        self._limits = limits
        self.blocked = tuple(nodeid for nodeid in task.nodeids if nodeid in baseline.collect_errors)
        self.failing = tuple(nodeid for nodeid in task.nodeids if nodeid not in self.blocked)
        self.guards = _guards(task, baseline)
        self.trial_seconds = min(_trial_seconds(self.failing, self.guards, baseline), limits.test_seconds)
        self._workers = [_Worker(self) for _ in range(workers)]
        self.cold = False  #: a warm process cannot be used
        self.crash = ""  #: what the last crash said
        self.notes: list[str] = []  # why something was done the slower way, each once
        self.warm_trials = 0
        self.warm_cpu_seconds = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End every process; never raises."""
        for worker in self._workers:
            worker.close()

    def warm_up(self) -> None:
        """Start the warm processes now, all at once, so that their start is not taken off the time of a search.

        Cold and warm runs must agree on the original code; where they do not, cold ones are used.
        """
        with ThreadPoolExecutor(len(self._workers)) as pool:
            list(pool.map(_Worker.open, self._workers))
        if all(worker.batch is not None for worker in self._workers):
            return
        nodeids = (*self.failing, *self.guards)
        result = self.server.run(Job(nodeids=nodeids, whole_files=self.blocked, limits=self._limits))
        if result.status == "broken":
            raise SandboxError(f"the sandbox failed: {result.detail}")
        warm = result.outcomes()
        if any(warm.get(nodeid) != self._baseline.outcomes.get(nodeid) for nodeid in nodeids):
            self.cold = True
            self.note("tests behave otherwise in a warm process: every candidate is run cold, which is slow")

    def try_many(self, candidates: Iterable[Candidate], *, seconds: float) -> Generator[Trial]:
        """Try candidates in parallel until they or `seconds` run out; results come as they arrive."""
        deadline = time.monotonic() + seconds
        shared = _Shared(iter(candidates))
        results: queue.SimpleQueue[Trial | BaseException | None] = queue.SimpleQueue()

        def work(worker: _Worker) -> None:
            try:
                for trial in worker.try_all(shared, deadline):
                    results.put(trial)
            except BaseException as error:  # handed to the caller's thread below
                results.put(error)
            finally:
                results.put(None)

        threads = [threading.Thread(target=work, args=(worker,), daemon=True) for worker in self._workers]
        for thread in threads:
            thread.start()
        try:
            running = len(threads)
            while running:
                item = results.get()
                if isinstance(item, Trial) and item.status == "crashed":
                    self.crash = item.message
                if item is None:
                    running -= 1
                elif isinstance(item, BaseException):
                    raise item
                else:
                    yield item
        finally:
            shared.stop()
            for thread in threads:
                thread.join(timeout=self._limits.wall_seconds)

    def try_alone(self, candidate: Candidate, *, seconds: float | None = None) -> Trial:
        """Try one candidate in a run of its own, with the full time limit: slow code gets its time."""
        return self._workers[0].try_alone(candidate, seconds=seconds or self._limits.test_seconds)

    def observe(self, candidate: Candidate) -> RunResult:
        """All failing tests and guards with this candidate, none skipped after a failure: what a model is told."""
        changed = changed_files(candidate, self._originals)
        job = Job(
            nodeids=(*self.failing, *self.guards),
            whole_files=self.blocked,
            files=changed.files,
            limits=self._limits,
        )
        return self._sandbox.run(job) if self.cold else self.server.run(job)

    def prefer(self, candidates: Sequence[Candidate], *, seconds: float) -> tuple[list[Candidate], int]:
        """Plausible candidates in the order of their likelihood, and how many behaviours they have (0: unknown)."""
        batch = next((worker.batch for worker in self._workers if worker.batch is not None), None)
        if batch is None or len(candidates) < 2:
            return list(candidates), 0
        unchanged = Candidate((), Origin("search"))
        original, *observed = batch.observe([unchanged, *candidates], seconds=seconds)
        choice = choose_by_behaviour(original, observed)
        return [candidates[position] for position in choice.order], choice.behaviours

    @property
    def server(self) -> ForkServer:
        """A warm one, for runs of their own."""
        return self._workers[0].server

    def note(self, text: str) -> None:
        """Remember why the slower way was taken."""
        if text not in self.notes:
            self.notes.append(text)
            log.info(text)

    def batch_job(self) -> Job:
        return Job(
            nodeids=(*self.failing, *self.guards),
            limits=replace(self._limits, test_seconds=self.trial_seconds),
        )

    def open_batch(self, server: ForkServer) -> BatchSession | None:
        """None where a batch is no option: something cannot be collected, or behaves otherwise in one."""
        if self.blocked or not self.failing:
            return None
        job = self.batch_job()
        expected = {nodeid: self._baseline.outcomes.get(nodeid, "failed") for nodeid in job.nodeids}
        session = server.open_batch(job, originals=self._texts, expected=expected)
        if session.sound:
            return session
        session.close()
        self.note(f"each candidate gets a run of its own, which is slower: {session.detail}")
        return None

    def run_alone(self, server: ForkServer, candidate: Candidate, seconds: float) -> Trial:
        began = time.perf_counter()
        try:
            changed = changed_files(candidate, self._originals)
        except PatchError as error:
            return Trial(candidate, "invalid", message=str(error), warm=False)
        limits = replace(self._limits, test_seconds=seconds)
        nodeids = (*self.failing, *self.guards)
        job = Job(nodeids=nodeids, whole_files=self.blocked, files=changed.files, maxfail=1, limits=limits)
        result = self._sandbox.run(job) if self.cold else server.run(job)
        return _as_trial(candidate, result, nodeids, self.blocked, time.perf_counter() - began)


class _Worker:
    """One core: a fork server with a batch, both started when first needed."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._server: ForkServer | None = None
        self.batch: BatchSession | None = None
        self._batch_tried = False

    @property
    def server(self) -> ForkServer:
        if self._server is None:
            self._server = self._executor._sandbox.fork_server()
        return self._server

    def open(self) -> None:
        """Start the batch; does nothing the second time."""
        if not self._batch_tried:
            self._batch_tried = True
            self.batch = self._executor.open_batch(self.server)

    def try_all(self, candidates: Iterator[Candidate], deadline: float) -> Iterator[Trial]:
        executor = self._executor
        self.open()
        if self.batch is None:
            for candidate in candidates:
                if time.monotonic() > deadline:
                    return
                yield self.try_alone(candidate, seconds=max(executor.trial_seconds, 1.0))
            return
        left = deadline - time.monotonic()
        for candidate, result in self.batch.try_candidates(candidates, seconds=left):
            if result.status == "unsound":
                yield self.try_alone(candidate, seconds=max(executor.trial_seconds, 1.0))
            else:
                executor.warm_trials += 1
                executor.warm_cpu_seconds += result.cpu_seconds
                yield _from_batch(candidate, result)

    def try_alone(self, candidate: Candidate, *, seconds: float) -> Trial:
        return self._executor.run_alone(self.server, candidate, seconds)

    def close(self) -> None:
        if self.batch is not None:
            with contextlib.suppress(SandboxError):
                self.batch.close()
        if self._server is not None:
            self._server.close()


class _Shared(Iterator[Candidate]):
    """One iterator for several threads, that can be ended early."""

    def __init__(self, candidates: Iterator[Candidate]) -> None:
        self._candidates = candidates
        self._lock = threading.Lock()
        self._stopped = False

    def __next__(self) -> Candidate:
        with self._lock:
            if self._stopped:
                raise StopIteration
            return next(self._candidates)

    def stop(self) -> None:
        with self._lock:
            self._stopped = True


def _trial_seconds(failing: Sequence[str], guards: Sequence[str], baseline: Baseline) -> float:
    """CPU time that a trial gets: ample for what its tests took, little for a candidate that hangs.

    A failing test that ran out of time says nothing about how long a repaired one takes: its neighbours do.
    """
    known = [baseline.seconds.get(nodeid, 0.0) for nodeid in guards]
    typical = sum(known) / len(known) if known else 0.0
    for nodeid in failing:
        hung = "Timeout" in baseline.messages.get(nodeid, "")
        known.append(max(typical, TRIAL_TYPICAL) if hung else baseline.seconds.get(nodeid, 0.0))
    together = sum(known)
    return TRIAL_FLOOR + min(TRIAL_FACTOR * together, 3 * together + 1)


def _guards(task: Task, baseline: Baseline) -> tuple[str, ...]:
    """Passing tests near the target that a trial runs after the failing ones."""
    guards: list[str] = []
    seconds = 0.0
    for nodeid in task.impacted:
        if baseline.outcomes.get(nodeid) != "passed":
            continue
        seconds += baseline.seconds.get(nodeid, 0.0)
        if len(guards) == TRIAL_TESTS or seconds > TRIAL_SECONDS:
            break
        guards.append(nodeid)
    return tuple(guards)


def _from_batch(candidate: Candidate, result: TrialResult) -> Trial:
    return Trial(
        candidate, result.status, result.passed, result.failed, result.message, seconds=result.seconds
    )


def _as_trial(
    candidate: Candidate, result: RunResult, nodeids: Sequence[str], blocked: Sequence[str], seconds: float
) -> Trial:
    outcomes = result.outcomes()
    passed = tuple(nodeid for nodeid in outcomes if outcomes[nodeid] == "passed")
    failed = next((nodeid for nodeid in nodeids if outcomes.get(nodeid) != "passed"), "")
    for nodeid in blocked:
        if not failed and not file_passes(outcomes, nodeid):
            failed = nodeid
    message = next((phase.message for phase in result.phases if phase.outcome == "failed"), result.detail)
    if result.status == "broken":
        raise SandboxError(f"the sandbox failed: {result.detail}")
    if result.status == "timeout":
        status = "timeout"
    elif result.status != "finished":
        status = "crashed"
    elif "Timeout" in message and failed:
        status = "timeout"
    else:
        status = "failed" if failed else "passed"
    return Trial(candidate, status, passed, failed, message, warm=False, seconds=seconds)
