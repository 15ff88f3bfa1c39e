"""What a run tells while it runs: typed events in one ordered stream. Terminal, JSON lines and others only read it.

The stream is versioned: a field is added without notice, `VERSION` changes when one is renamed or goes away.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from pytest_autofix.redact import redact

__all__ = [
    "VERSION",
    "BaselineTaken",
    "Event",
    "EventSink",
    "Executed",
    "Fanout",
    "GaveUp",
    "JsonLines",
    "Note",
    "Progress",
    "Reflected",
    "RunFinished",
    "RunStarted",
    "SandboxReady",
    "Solved",
    "TaskStarted",
    "VerdictGiven",
]

VERSION = 1


@dataclass(frozen=True, slots=True)
class Event:
    """Base of all events."""

    kind: ClassVar[str]

    def to_json(self) -> dict[str, Any]:
        """Plain values, with the kind."""
        return {"kind": self.kind, **dataclasses.asdict(self)}


@dataclass(frozen=True, slots=True)
class RunStarted(Event):
    """The tests have ended and there is something to do."""

    kind: ClassVar[str] = "run_started"
    run: str
    failing: int  #: nodes
    mode: str
    strategy: str


@dataclass(frozen=True, slots=True)
class SandboxReady(Event):
    """The sandbox's probe has held."""

    kind: ClassVar[str] = "sandbox_ready"
    backend: str
    isolated: bool
    details: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BaselineTaken(Event):
    """What the original code does in the sandbox is known."""

    kind: ClassVar[str] = "baseline"
    tests: int
    failing: int
    flaky: int
    seconds: float


@dataclass(frozen=True, slots=True)
class TaskStarted(Event):
    """One root cause is being worked on."""

    kind: ClassVar[str] = "task_started"
    task: str  #: fingerprint, as in all events below
    nodeids: tuple[str, ...]
    target: str  #: `path:name` of the first target


@dataclass(frozen=True, slots=True)
class Progress(Event):
    """How far a search is; comes about twice a second."""

    kind: ClassVar[str] = "progress"
    task: str
    source: str
    tried: int
    rate: float  #: candidates a second
    best: int  #: most failing tests that one candidate made pass
    failing: int
    plausible: int  #: candidates that passed their trial and wait for a verdict


@dataclass(frozen=True, slots=True)
class Executed(Event):
    """One candidate of a model was run."""

    kind: ClassVar[str] = "executed"
    task: str
    source: str
    hash: str
    result: str
    failed: str  #: first red node
    seconds: float


@dataclass(frozen=True, slots=True)
class Reflected(Event):
    """The loop goes round once more."""

    kind: ClassVar[str] = "reflected"
    task: str
    stage: str
    note: str


@dataclass(frozen=True, slots=True)
class VerdictGiven(Event):
    """A candidate was judged."""

    kind: ClassVar[str] = "verdict"
    task: str
    accepted: bool
    grade: str
    refused_by: str


@dataclass(frozen=True, slots=True)
class Solved(Event):
    kind: ClassVar[str] = "solved"
    task: str
    tried: int


@dataclass(frozen=True, slots=True)
class GaveUp(Event):
    kind: ClassVar[str] = "gave_up"
    task: str
    outcome: str
    reason: str


@dataclass(frozen=True, slots=True)
class Note(Event):
    """Something a person should know: a slower way was taken, a limit was met."""

    kind: ClassVar[str] = "note"
    text: str


@dataclass(frozen=True, slots=True)
class RunFinished(Event):
    kind: ClassVar[str] = "run_finished"
    run: str
    solved: int
    unsolved: int
    seconds: float


class EventSink(Protocol):
    """Who reads the stream. Called from one thread at a time, in order; must not raise."""

    def emit(self, event: Event) -> None: ...


class Fanout:
    """Hands every event to all sinks, in one order for all of them."""

    def __init__(self, sinks: Sequence[EventSink]) -> None:
        self._sinks = sinks
        self._lock = threading.Lock()

    def emit(self, event: Event) -> None:
        """Thread-safe."""
        with self._lock:
            for sink in self._sinks:
                sink.emit(event)


class JsonLines:
    """Writes each event as one JSON line with a sequence number and the time in seconds since the epoch."""

    def __init__(self, path: Path) -> None:
        """Raises `OSError` if the file cannot be written."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("w", encoding="utf-8", buffering=1)
        self._sequence = 0

    def emit(self, event: Event) -> None:
        """Append one line; a full disk ends the file, not the run."""
        if self._file.closed:
            return
        self._sequence += 1
        line = {"version": VERSION, "sequence": self._sequence, "time": round(time.time(), 3)}
        try:
            self._file.write(json.dumps({**line, **_redacted(event.to_json())}, ensure_ascii=True) + "\n")
        except OSError:
            self.close()

    def close(self) -> None:
        with contextlib.suppress(OSError):  # what could not be written is tried once more here
            self._file.close()


def _redacted(value: Any) -> Any:
    """Each string by itself: in the text of a line, a secret could take the quotes behind it along."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: _redacted(item) for key, item in value.items()}
    return [_redacted(item) for item in value] if isinstance(value, (list, tuple)) else value
