"""From what came out of a sandbox to a `RunResult`. Everything that a worker sent may be forged or broken."""

from __future__ import annotations

import json
import signal
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from pytest_autofix.sandbox.protocol import Behaviour, PhaseResult, RunResult, TrialResult
from pytest_autofix.sandbox.wire import MAX_FRAME

__all__ = ["Assembly", "Ended", "FrameParser", "Tail", "read_behaviour", "read_trial"]

_PHASES = ("setup", "call", "teardown", "collect")
_OUTCOMES = ("passed", "failed", "skipped")
_TRIALS = ("passed", "failed", "timeout", "crashed", "unsound", "invalid")
_MESSAGE = 4000  #: characters kept of a message


class FrameParser:
    """Cuts a byte stream into frames; after the first malformed one it stays broken and yields nothing more."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self.broken = ""

    @property
    def pending(self) -> bool:
        """Whether the stream stopped inside a frame."""
        return bool(self._buffer)

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """Frames that are complete now."""
        frames: list[dict[str, Any]] = []
        if self.broken:
            return frames
        self._buffer += data
        while len(self._buffer) >= 4:
            (length,) = struct.unpack_from(">I", self._buffer)
            if length > MAX_FRAME:
                self.broken = f"a frame of {length} bytes"
                break
            if len(self._buffer) < 4 + length:
                break
            body = bytes(self._buffer[4 : 4 + length])
            del self._buffer[: 4 + length]
            try:
                frame = json.loads(body)
            except (ValueError, RecursionError):
                frame = None
            if not isinstance(frame, dict):
                self.broken = "a frame that is no JSON object"
                break
            frames.append(frame)
        if self.broken:
            self._buffer.clear()
        return frames


class Tail:
    """The last bytes of a stream, and how many there were."""

    def __init__(self, keep: int = 64 * 1024) -> None:
        self._keep = keep
        self._bytes = bytearray()
        self.total = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        self.total += len(data)
        self._bytes += data
        if len(self._bytes) > 2 * self._keep:
            del self._bytes[: -self._keep]

    @property
    def text(self) -> str:
        """At most `keep` bytes from the end, undecodable bytes escaped."""
        return bytes(self._bytes[-self._keep :]).decode("utf-8", "backslashreplace")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a job ended, from the keeper or from the host's own limits: nothing here comes from a worker."""

    code: int | None = None
    signal: int | None = None
    timeout: bool = False
    survivors: int = 0
    tampered: tuple[str, ...] = ()
    error: str = ""  #: the sandbox failed
    killed: Literal["", "output", "memory", "events"] = ""  #: the host ended it, and why
    wall: float = 0.0
    cpu: float = 0.0

    @classmethod
    def from_frame(cls, frame: dict[str, Any]) -> Ended:
        """From the keeper's frame."""
        return cls(
            code=frame["code"],
            signal=frame["signal"],
            timeout=frame["timeout"],
            survivors=frame["survivors"],
            tampered=tuple(frame["tampered"]),
            error=frame["error"],
            wall=frame["wall"],
            cpu=frame["cpu"],
        )

    def describe(self, wall_seconds: float) -> str:
        """One line for people; empty after an ordinary end."""
        if self.error:
            return self.error
        if self.killed:
            return {
                "output": "more output than allowed",
                "memory": "more memory than allowed for all processes together",
                "events": "more test events than any run has",
            }[self.killed]
        if self.timeout:
            return f"still running after {wall_seconds:g} s"
        if self.signal is not None:
            return f"killed by {_signal_name(self.signal)}"
        if self.code:
            return f"the process ended with status {self.code}"
        return ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@dataclass(slots=True)
class Assembly:
    """Collects the events of one run."""

    collected: list[str] | None = None
    phases: list[PhaseResult] = field(default_factory=list)
    lines: dict[str, dict[str, tuple[int, ...]]] = field(default_factory=dict)
    finish: int | None = None
    malformed: str = ""

    def add(self, event: dict[str, Any]) -> None:
        """Take one event; a malformed one is remembered, not raised."""
        try:
            self._add(event)
        except (KeyError, TypeError, ValueError, OverflowError):
            self.malformed = self.malformed or f"malformed event {str(event.get('e'))[:40]!r}"

    def _add(self, event: dict[str, Any]) -> None:
        kind = event["e"]
        if self.finish is not None:
            self.malformed = self.malformed or f"event {str(kind)[:40]!r} after the session had finished"
        elif kind == "collected":
            if self.collected is not None:
                self.malformed = "two collections"
            self.collected = _texts(event["ids"])
        elif kind == "phase":
            self.phases.append(_phase(event))
        elif kind == "lines":
            self._add_lines(event)
        elif kind == "finish":
            self.finish = int(event["status"])
        else:
            raise ValueError(kind)

    def _add_lines(self, event: dict[str, Any]) -> None:
        nodeid = _text(event["id"])
        own = self.lines.setdefault(nodeid, {})
        for path, lines in event["lines"].items():
            merged = {*own.get(path, ()), *(int(line) for line in lines)}
            own[_text(path)] = tuple(sorted(merged))

    def result(self, ended: Ended, output: Tail, wall_seconds: float) -> RunResult:
        """The whole, with the one status that says what it is worth."""
        detail = ended.describe(wall_seconds)
        status: Literal["finished", "timeout", "crashed", "exited", "output", "broken"]
        if ended.error:
            status = "broken"
        elif ended.killed == "output":
            status = "output"
        elif ended.timeout:
            status = "timeout"
        elif ended.killed == "memory" or ended.signal is not None:
            status = "crashed"
        elif ended.killed or self.malformed or self.finish is None or ended.code != 0:
            status = "exited"
            detail = detail or self.malformed or "the process ended without finishing the test session"
        else:
            status = "finished"
        return RunResult(
            status=status,
            collected=tuple(self.collected or ()),
            phases=tuple(self.phases),
            exit_status=self.finish if status == "finished" else None,
            detail=detail,
            output=output.text,
            survivors=ended.survivors,
            tampered=ended.tampered,
            lines=self.lines,
            wall_seconds=ended.wall,
            cpu_seconds=ended.cpu,
        )


def _phase(event: dict[str, Any]) -> PhaseResult:
    when, outcome = event["when"], event["outcome"]
    if when not in _PHASES or outcome not in _OUTCOMES:
        raise ValueError(when)
    return PhaseResult(
        nodeid=_text(event["id"]),
        when=when,
        outcome=outcome,
        seconds=float(event["seconds"]),
        xfail=event["xfail"] is True,
        message=_text(event["message"])[:_MESSAGE],
    )


def read_trial(event: dict[str, Any]) -> TrialResult | None:
    """The trial that a batch's worker reports, None if it is malformed."""
    try:
        status = event["status"]
        if status not in _TRIALS or type(event["index"]) is not int:
            return None
        return TrialResult(
            index=event["index"],
            status=cast("Literal['passed', 'failed', 'timeout', 'crashed', 'unsound', 'invalid']", status),
            passed=tuple(_texts(event["passed"])),
            failed=_text(event["failed"]),
            message=_text(event["message"])[:_MESSAGE],
            seconds=float(event["seconds"]),
            cpu_seconds=float(event["cpu"]),
        )
    except (KeyError, TypeError, ValueError):
        return None


def read_behaviour(event: dict[str, Any]) -> Behaviour:
    """The results that a batch's worker reports, empty if they are malformed."""
    try:
        return tuple((_text(result), normal is True) for result, normal in event["results"])
    except (KeyError, TypeError, ValueError):
        return ()


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _texts(values: Iterable[object]) -> list[str]:
    if not isinstance(values, list):
        raise TypeError(values)
    return [_text(value) for value in values]
