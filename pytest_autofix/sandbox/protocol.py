"""What every sandbox promises: open a workspace, run jobs on it, close. Results are data.

A back end is a class with the methods of `Sandbox`; the same conformance suite (`tests/sandbox/`) runs on each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from pytest_autofix.candidates.candidate import Candidate

__all__ = [
    "BatchSession",
    "Behaviour",
    "ForkServer",
    "Isolation",
    "Job",
    "Limits",
    "PhaseResult",
    "RunResult",
    "Sandbox",
    "TrialResult",
    "Workspace",
]

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds of one run. A run that crosses one is ended; the result says which."""

    wall_seconds: float = 300.0  #: the whole run
    test_seconds: float = 30.0  #: each test
    cpu_seconds: int = 300  #: each process
    memory_bytes: int = 4096 * MIB  #: address space of each process; 0 = unbounded
    file_bytes: int = 64 * MIB  #: size of one written file
    processes: int = 256  #: processes and threads inside
    open_files: int = 512
    output_bytes: int = MIB  #: standard output and error of the whole run
    scratch_bytes: int = 512 * MIB  #: everything written: work tree, /tmp, home


@dataclass(frozen=True, slots=True)
class Workspace:
    """The project as it was when the run began, and what is needed to run its tests."""

    root: Path  #: absolute path of the project; the same path inside the sandbox
    snapshot: Path  #: frozen copy of the tree that stands at `root` inside
    protected: tuple[str, ...]  #: files and folders, relative to root, that stay read-only inside
    python: Path  #: interpreter of the user's environment, not resolved through its symlinks
    sys_path: tuple[str, ...]  #: import path of the user's pytest process
    readable: tuple[Path, ...]  #: further files and folders to show read-only at their own path
    environment: Mapping[str, str] = field(default_factory=dict)  #: the allowlisted variables
    pytest_args: tuple[str, ...] = ()  #: the user's arguments that matter for the run, without node ids
    working_directory: Path | None = None  #: where the user's pytest was started; `root` if None


@dataclass(frozen=True, slots=True)
class Job:
    """One pytest run inside the sandbox: the pristine tree, changed files laid over it, node ids."""

    nodeids: tuple[str, ...] = ()  #: what to run; empty: what `selection` and the arguments select
    selection: tuple[str, ...] = ()  #: without node ids: paths and node ids as given to pytest
    whole_files: tuple[str, ...] = ()  #: beside the node ids: files (relative) all of whose tests are run
    files: Mapping[str, bytes] = field(default_factory=dict)  #: relative path → new content
    delete: tuple[str, ...] = ()
    maxfail: int = 0  #: stop after that many failures; 0 = run all
    order: Literal["file", "reversed"] = "file"
    trace: tuple[str, ...] = ()  #: record executed lines per test of these files (relative paths)
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class PhaseResult:
    """One phase of one test. Forgeable by the code under test: evidence for screening, never the last word."""

    nodeid: str
    when: Literal["setup", "call", "teardown", "collect"]
    outcome: Literal["passed", "failed", "skipped"]
    seconds: float = 0.0
    xfail: bool = False  #: xfailed or xpassed
    message: str = ""  #: first line of the crash message of a failed phase, bounded


@dataclass(frozen=True, slots=True)
class RunResult:
    """What was observed of one job."""

    status: Literal["finished", "timeout", "crashed", "exited", "output", "broken"]
    """`finished`: pytest ended by itself and said so. `timeout`: wall clock. `crashed`: killed by a signal.
    `exited`: the process ended without finishing the session. `output`: too much output.
    `broken`: the sandbox itself failed; no statement about the candidate"""
    collected: tuple[str, ...] = ()  #: every node id in the files of the job, chosen or not
    phases: tuple[PhaseResult, ...] = ()
    exit_status: int | None = None  #: pytest's own exit status, None if it did not finish
    detail: str = ""  #: one line: the signal, the limit, the error
    output: str = ""  #: tail of standard output and error, bounded
    survivors: int = 0  #: processes left over when pytest had ended
    tampered: tuple[str, ...] = ()  #: protected files whose content changed inside
    lines: Mapping[str, Mapping[str, tuple[int, ...]]] = field(default_factory=dict)
    """with `Job.trace`: node id → relative path → executed lines"""
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0  #: user and system time of all processes of the run

    def outcomes(self) -> dict[str, Literal["passed", "failed", "skipped", "xfailed", "incomplete"]]:
        """One word per node id: passed only if setup, call and teardown all passed and none was an xfail."""
        words: dict[str, Literal["passed", "failed", "skipped", "xfailed", "incomplete"]] = {}
        done: dict[str, set[str]] = {}
        for phase in self.phases:
            word = words.get(phase.nodeid, "incomplete")
            done.setdefault(phase.nodeid, set()).add(phase.when)
            if phase.outcome == "failed":
                word = "failed"
            elif phase.xfail and word != "failed":
                word = "xfailed"
            elif phase.outcome == "skipped" and word not in ("failed", "xfailed"):
                word = "skipped"
            words[phase.nodeid] = word
        for nodeid, phases in done.items():
            if words[nodeid] == "incomplete" and phases == {"setup", "call", "teardown"}:
                words[nodeid] = "passed"
        return words


@dataclass(frozen=True, slots=True)
class TrialResult:
    """What one candidate of a batch did: screening evidence only."""

    index: int  #: position in the submitted sequence
    status: Literal["passed", "failed", "timeout", "crashed", "unsound", "invalid"]
    """`unsound`: the edit cannot be tried warm (module level changed): use `ForkServer.run`.
    `invalid`: the edited file does not compile"""
    passed: tuple[str, ...] = ()  #: node ids that passed, up to the first red one
    failed: str = ""  #: first red node id
    message: str = ""
    seconds: float = 0.0  #: wall clock
    cpu_seconds: float = 0.0  #: of the fork that ran it


Behaviour = tuple[tuple[str, bool], ...]
"""For each input a hash of the result, and whether the call returned at all: neither raised nor ran out of time"""


class BatchSession(Protocol):
    """A pytest session that has collected once and forks for each candidate."""

    sound: bool  #: the unmodified program behaves here as in the baseline; if False, do not use it
    detail: str  #: why it is not sound

    def try_candidates(
        self, candidates: Iterable[Candidate], *, seconds: float
    ) -> Iterator[tuple[Candidate, TrialResult]]:
        """Try candidates one after the other until they or `seconds` run out. `seconds` bounds the sum."""
        ...

    def observe(self, candidates: Sequence[Candidate], *, seconds: float) -> list[Behaviour]:
        """What each candidate does on inputs like those of the tests, in their order; empty where it is unknown."""
        ...

    def close(self) -> None: ...


class ForkServer(Protocol):
    """A warm process inside the sandbox; each job gets a fork with namespaces and an overlay of its own."""

    def run(self, job: Job) -> RunResult: ...

    def open_batch(
        self, job: Job, *, originals: Mapping[str, str], expected: Mapping[str, str]
    ) -> BatchSession:
        """Collect `job.nodeids` once. `originals`: text of the editable files; `expected`: node id → the
        baseline's outcome, compared with an unmodified trial run to set `BatchSession.sound`. Both travel in
        the job frame under these names. `job.limits.test_seconds` is here the CPU time of a whole trial."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Isolation:
    """What the probe at start has seen, for the report and the terminal."""

    backend: str  #: `local`, `e2b`, `none`
    isolated: bool
    details: tuple[str, ...]  #: one line each: what is and what is not isolated


class Sandbox(Protocol):
    """Where untrusted candidate code runs. Always closed by who opened it."""

    isolation: Isolation

    def run(self, job: Job) -> RunResult:
        """A fresh isolated environment and a cold process, for this job only."""
        ...

    def fork_server(self) -> ForkServer: ...

    def close(self) -> None:
        """End every process that was started; never raises."""
        ...
