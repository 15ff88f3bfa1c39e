"""Jobs on a keeper: one run, a fork server, a batch. The same for every back end whose keeper is a local process."""

from __future__ import annotations

import base64
import dataclasses
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pytest_autofix.candidates.candidate import Candidate
from pytest_autofix.errors import SandboxError
from pytest_autofix.sandbox.process import Keeper, Message
from pytest_autofix.sandbox.protocol import Behaviour, Job, RunResult, TrialResult, Workspace
from pytest_autofix.sandbox.results import Assembly, Ended, Tail, read_behaviour, read_trial

__all__ = ["KeeperBatch", "KeeperForkServer", "hello_frame", "job_frame", "run_job"]

_AHEAD = 3  #: trials sent before the first of them is answered
_OPEN_SECONDS = 600.0  #: to collect and to run the unmodified tests once
_DAY = 86400.0


def hello_frame(
    workspace: Workspace, *, isolation: str, warm: bool, preload: Iterable[str]
) -> dict[str, Any]:
    """The first frame: what all jobs of a keeper have in common."""
    return {
        "op": "hello",
        "isolation": isolation,
        "root": str(workspace.root),
        "tree": str(workspace.snapshot),
        "cwd": str(workspace.working_directory or workspace.root),
        "sys_path": list(workspace.sys_path),
        "args": list(workspace.pytest_args),
        "protected": list(workspace.protected),
        "environment": dict(workspace.environment),
        "warm": warm,
        "preload": list(preload),
        "extra": [],
    }


def job_frame(job: Job, op: str) -> dict[str, Any]:
    """One job as it goes to the keeper."""
    return {
        "op": op,
        "nodeids": list(job.nodeids),
        "selection": list(job.selection),
        "whole_files": list(job.whole_files),
        "files": {path: base64.b64encode(content).decode("ascii") for path, content in job.files.items()},
        "delete": list(job.delete),
        "maxfail": job.maxfail,
        "order": job.order,
        "trace": list(job.trace),
        "limits": dataclasses.asdict(job.limits),
    }


def run_job(keeper: Keeper, job: Job) -> RunResult:
    """Run one job to its end; never raises for anything that happens inside."""
    assembly = Assembly()
    keeper.begin(job_frame(job, "run"), job.limits)
    while True:
        for message in keeper.poll(_DAY):
            if message.ended is None:
                assembly.add(message.event)
                continue
            assembly.malformed = assembly.malformed or message.malformed
            return assembly.result(message.ended, keeper.output, job.limits.wall_seconds)


def run_once(start: Callable[[], Keeper], job: Job) -> RunResult:
    """Run a job on a keeper of its own; one that does not start is a `broken` result."""
    try:
        keeper = start()
    except SandboxError as error:
        return Assembly().result(Ended(error=str(error)), Tail(), job.limits.wall_seconds)
    try:
        return run_job(keeper, job)
    finally:
        keeper.close()


def preload_is_unfit(keeper: Keeper) -> bool:
    """Whether what a warm keeper imported ahead reached the project or started threads, which no fork survives."""
    return bool(keeper.up.get("foreign")) or keeper.up.get("threads", 1) > 1


class KeeperForkServer:
    """Warm keepers, started when needed: a batch keeps one for itself, runs use another."""

    def __init__(self, start: Callable[[], Keeper]) -> None:
        self._start = start
        self._idle: list[Keeper] = []
        self._all: list[Keeper] = []
        self._lock = threading.Lock()
        self._closed = False
        self.restarts = 0  #: keepers that had to be replaced
        self._give(self._take())  # problems show here, not at the first job

    def run(self, job: Job) -> RunResult:
        """Run a job in a fork. A keeper that dies is replaced, and the job tried once more."""
        keeper = self._take()
        result = run_job(keeper, job)
        self._give(keeper)
        if result.status != "broken" or keeper.alive or self._closed:
            return result
        self.restarts += 1
        keeper = self._take()
        result = run_job(keeper, job)
        self._give(keeper)
        return result

    def open_batch(
        self, job: Job, *, originals: Mapping[str, str], expected: Mapping[str, str]
    ) -> KeeperBatch:
        """See `ForkServer.open_batch`."""
        return KeeperBatch(self, job, originals=originals, expected=expected)

    def _take(self) -> Keeper:
        with self._lock:
            if self._closed:
                raise SandboxError("the fork server was closed")
            while self._idle:
                keeper = self._idle.pop()
                if keeper.alive:
                    return keeper
                self._all.remove(keeper)
                self.restarts += 1
        keeper = self._start()
        with self._lock:
            self._all.append(keeper)
        return keeper

    def _give(self, keeper: Keeper) -> None:
        with self._lock:
            if keeper.alive and not self._closed:
                self._idle.append(keeper)
                return
            if keeper in self._all:
                self._all.remove(keeper)
        keeper.close()

    def close(self) -> None:
        """End all keepers, whatever they are doing; may be called while another thread waits for one."""
        with self._lock:
            self._closed = True
            busy = [keeper for keeper in self._all if keeper not in self._idle]
            idle, self._all, self._idle = self._idle, [], []
        for keeper in busy:
            keeper.kill()
        for keeper in idle:
            keeper.close()


class KeeperBatch:
    """Host side of a pytest session that has collected once and forks for each candidate."""

    def __init__(
        self,
        server: KeeperForkServer,
        job: Job,
        *,
        originals: Mapping[str, str],
        expected: Mapping[str, str],
    ) -> None:
        self._server = server
        self._limits = dataclasses.replace(job.limits, wall_seconds=_DAY)  # each trial has its own limit
        self._frame = job_frame(dataclasses.replace(job, limits=self._limits), "batch")
        self._frame |= {"originals": dict(originals), "expected": dict(expected)}
        # The worker ends a silent trial by itself after 4 × test_seconds + 1; beyond that it is not to be trusted.
        self._trial_seconds = 4 * job.limits.test_seconds + 10
        self._next_id = 0
        self._arrived: deque[Message] = deque()  #: polled, not looked at yet
        self._keeper: Keeper | None = None
        self.sound = False
        self.detail = ""  #: why it is not sound
        self._open()

    def _open(self) -> None:
        self._keeper = keeper = self._server._take()
        self._arrived.clear()
        keeper.begin(self._frame, self._limits)
        deadline = time.monotonic() + _OPEN_SECONDS
        self.sound, self.detail = False, "the tests could not be collected in time"
        while (left := deadline - time.monotonic()) > 0:
            for message in keeper.poll(left):
                if message.ended is not None:
                    self.detail = _ending(message.ended, keeper)
                    self._drop()
                    return
                if message.event.get("e") == "ready":
                    self.sound = message.event.get("sound") is True
                    self.detail = str(message.event.get("detail", ""))[:500]
                    return
        keeper.close()
        self._drop()

    @property
    def _lost(self) -> bool:
        return self._keeper is None

    def _drop(self) -> None:
        if self._keeper is not None:
            self._server._give(self._keeper)
            self._keeper = None

    def try_candidates(
        self, candidates: Iterable[Candidate], *, seconds: float
    ) -> Iterator[tuple[Candidate, TrialResult]]:
        """Try candidates in their order; one that takes the session down is `crashed`, and the next goes on."""
        deadline = time.monotonic() + seconds
        source = enumerate(candidates)
        waiting: deque[_Sent] = deque()
        exhausted = False
        while self._keeper is not None:
            while not exhausted and len(waiting) < _AHEAD and time.monotonic() < deadline:
                position, candidate = next(source, (-1, None))
                if candidate is None:
                    exhausted = True
                else:
                    waiting.append(self._send(position, candidate))
            if not waiting:
                return
            result = self._await(waiting[0], deadline)
            if result is None:
                return
            sent = waiting.popleft()
            yield sent.candidate, dataclasses.replace(result, index=sent.position)
            if self._lost:
                self._open()
                if not self.sound:
                    self.close()
                waiting = deque(self._send(sent.position, sent.candidate) for sent in waiting)

    def observe(self, candidates: Sequence[Candidate], *, seconds: float) -> list[Behaviour]:
        """See `BatchSession.observe`. A session that dies on the way leaves the rest unknown."""
        deadline = time.monotonic() + seconds
        found: list[Behaviour] = []
        for candidate in candidates:
            sent = self._send(len(found), candidate, "observe")
            message = self._receive("observed", sent.id, deadline)
            found.append(read_behaviour(message) if message is not None else ())
        return found

    def _receive(self, kind: str, index: int, deadline: float) -> dict[str, Any] | None:
        while self._keeper is not None and (left := deadline - time.monotonic()) > 0:
            if not self._arrived:
                self._arrived += self._keeper.poll(left)
            while self._arrived:
                message = self._arrived.popleft()
                if message.ended is not None:
                    self._drop()
                    return None
                if message.event.get("e") == kind and message.event.get("index") == index:
                    return message.event
        return None

    def _send(self, position: int, candidate: Candidate, op: str = "try") -> _Sent:
        self._next_id += 1
        edits = [[edit.path, edit.start, edit.end, edit.text] for edit in candidate.edits]
        if self._keeper is not None:
            self._keeper.send_trial({"op": op, "index": self._next_id, "edits": edits})
        return _Sent(self._next_id, position, candidate)

    def _await(self, sent: _Sent, deadline: float) -> TrialResult | None:
        """The result of the trial that is running now; None when the time of the batch is over."""
        began = time.monotonic()
        while self._keeper is not None:
            now = time.monotonic()
            if now >= deadline:
                return None
            if now - began > self._trial_seconds:
                self._keeper.close()
                self._drop()
                return TrialResult(sent.id, "timeout", message="no answer", seconds=now - began)
            if not self._arrived:
                left = min(deadline - now, self._trial_seconds - (now - began) + 0.01)
                self._arrived += self._keeper.poll(left)
            while self._arrived:
                message = self._arrived.popleft()
                if message.ended is not None:
                    ending = _ending(message.ended, self._keeper)
                    self._drop()
                    return TrialResult(sent.id, "crashed", message=ending, seconds=time.monotonic() - began)
                result = read_trial(message.event) if message.event.get("e") == "trial" else None
                if result is not None and result.index == sent.id:
                    return result
        return None

    def close(self) -> None:
        """End the session; its keeper is used again if it ends in order."""
        keeper, self._keeper = self._keeper, None
        if keeper is None:
            return
        if keeper.alive:
            keeper.send_trial({"op": "end"})
            deadline = time.monotonic() + 2
            ended = False
            while not ended and (left := deadline - time.monotonic()) > 0:
                ended = any(message.ended for message in keeper.poll(left))
            if not ended:
                keeper.close()
        self._server._give(keeper)


@dataclasses.dataclass(frozen=True, slots=True)
class _Sent:
    id: int
    position: int
    candidate: Candidate


def _ending(ended: Ended, keeper: Keeper) -> str:
    said = keeper.output.text.strip().splitlines()
    return ended.describe(_DAY) or (said[-1][:300] if said else "the session ended by itself")
