"""A running sandbox as seen from the host: its process, its pipes, and the limits that only the host can keep."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

from pytest_autofix.errors import SandboxError
from pytest_autofix.sandbox.memory import descendants, memory_of_tree
from pytest_autofix.sandbox.protocol import Limits
from pytest_autofix.sandbox.results import Ended, FrameParser, Tail

__all__ = ["Keeper", "Message", "Spawner"]

_EVENT_BYTES = 256 * 1024 * 1024  #: of one job; executed lines of a large suite are the most there is
_START_SECONDS = 60.0
_LATE_SECONDS = 10.0  #: after its own time limit the keeper gets this long to report
_WATCH_SECONDS = 0.5  #: between two looks at the memory

MakeCommand = Callable[[Sequence[int]], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Message:
    """Something that arrived: an event of the worker (evidence), or the end of the job (trusted)."""

    kind: Literal["event", "ended"]
    event: dict[str, Any]
    ended: Ended | None = None
    malformed: str = ""  #: with `ended`: what was wrong with the stream of events


class Spawner:
    """Starts processes from one thread that lives as long as they may.

    The kernel's "die with the parent" means the parent *thread*: a sandbox started from a pool thread would be
    killed when that thread ends.
    """

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="autofix-spawn")
        self._keepers: set[Keeper] = set()
        self._lock = threading.Lock()
        self._closed = False

    def start(self, argv: Sequence[str], pass_fds: Sequence[int], output: int) -> subprocess.Popen[bytes]:
        """Start `argv` in a session of its own (Ctrl-C is not for it), with an empty environment."""
        if self._closed:
            raise SandboxError("the sandbox was closed")
        return self._executor.submit(
            subprocess.Popen,
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=tuple(pass_fds),
            env={"PATH": "/usr/bin:/bin"},
            cwd="/",
            start_new_session=True,
        ).result()

    def track(self, keeper: Keeper, *, alive: bool) -> None:
        """Remember a keeper for `close`, or forget it."""
        with self._lock:
            (self._keepers.add if alive else self._keepers.discard)(keeper)

    def close(self) -> None:
        """Kill what was started; may be called while other threads wait for a job."""
        self._closed = True
        with self._lock:
            keepers = list(self._keepers)
        for keeper in keepers:
            keeper.kill()
        self._executor.shutdown(wait=True)


class Keeper:
    """One sandbox process with its keeper inside. Not thread-safe: one job at a time."""

    def __init__(
        self, spawner: Spawner, make_command: MakeCommand, hello: dict[str, Any], *, patience: float = 0.0
    ) -> None:
        """Start it and wait until it is up. `patience`: seconds that it gets to end by itself on `close`.

        Raises `SandboxError` with its output if it does not come up."""
        inside: list[int] = []
        outside: list[int] = []
        for ours_reads in (False, True, True, False, True):  # jobs, report, events, trials, output
            reader, writer = os.pipe()
            outside.append(reader if ours_reads else writer)
            inside.append(writer if ours_reads else reader)
        self._jobs, self._report, self._events, self._trials, self._output = outside
        for fd in outside:
            os.set_blocking(fd, False)
        try:
            self._process = spawner.start(make_command(inside[:4]), inside[:4], inside[4])
        except OSError as error:
            for fd in outside:
                os.close(fd)
            raise SandboxError(f"the sandbox could not be started: {error}") from error
        finally:
            for fd in inside:
                os.close(fd)
        self._spawner = spawner
        self._patience = patience
        self._killed = False
        spawner.track(self, alive=True)
        self._selector = selectors.DefaultSelector()
        for fd in (self._report, self._events, self._output):
            self._selector.register(fd, selectors.EVENT_READ)
        self._unsent = {self._jobs: bytearray(), self._trials: bytearray()}
        self._reports = FrameParser()
        self._limits = Limits()
        self._reset_job()
        self.alive = True
        self.up: dict[str, Any] = {}
        self._send(self._jobs, hello)
        self._wait_until_up()

    def _reset_job(self) -> None:
        self._parser = FrameParser()
        self._event_bytes = 0
        self.output = Tail()
        self._deadline = self._watch = float("inf")

    def _wait_until_up(self) -> None:
        self._deadline = time.monotonic() + _START_SECONDS
        try:
            while not self.up:
                for message in self.poll(1.0):
                    if message.ended is not None:
                        raise SandboxError(message.ended.error or "the sandbox did not come up in time")
        except BaseException:
            self.close()
            raise
        self._reset_job()

    def begin(self, job: dict[str, Any], limits: Limits) -> None:
        """Hand over a job; `poll` until it has ended."""
        self._reset_job()
        self._limits = limits
        now = time.monotonic()
        self._deadline = now + limits.wall_seconds + _LATE_SECONDS
        self._watch = now + _WATCH_SECONDS
        self._send(self._jobs, job)

    def send_trial(self, frame: dict[str, Any]) -> None:
        """Queue a frame for the worker of a batch."""
        self._send(self._trials, frame)

    def poll(self, seconds: float) -> list[Message]:
        """What has arrived, waiting for at most `seconds`; after the job's end exactly one `ended`."""
        if not self.alive:
            return [self._end(Ended(error="the sandbox is not running"))]
        now = time.monotonic()
        timeout = max(0.0, min(seconds, self._deadline - now, self._watch - now))
        messages: list[Message] = []
        ready = {key.fd for key, _ in self._selector.select(timeout)}
        for fd in ready & {self._jobs, self._trials}:
            self._flush(fd)
        if self._output in ready:
            self._read_output()
        if self._events in ready:
            messages += self._read_events()
        if self._report in ready:
            messages += self._read_report()
        if not any(message.ended for message in messages):
            ended = self._broken_limit()
            if ended:
                messages.append(self._end(ended))
                self.close()
        return messages

    def _broken_limit(self) -> Ended | None:
        limits, now = self._limits, time.monotonic()
        if self.output.total > limits.output_bytes:
            return Ended(killed="output")
        if self._event_bytes > _EVENT_BYTES:
            return Ended(killed="events")
        if now > self._deadline:
            return Ended(timeout=True, wall=limits.wall_seconds)
        if now > self._watch:
            self._watch = now + _WATCH_SECONDS
            bound = 2 * limits.memory_bytes
            if bound and memory_of_tree(self._process.pid, limit=bound) > bound:
                return Ended(killed="memory")
        return None

    def _end(self, ended: Ended) -> Message:
        malformed = self._parser.broken or ("the events stop inside a frame" if self._parser.pending else "")
        return Message("ended", {}, ended, malformed)

    def _send(self, fd: int, frame: dict[str, Any]) -> None:
        body = json.dumps(frame, ensure_ascii=True, separators=(",", ":")).encode("ascii")
        if not self._unsent[fd]:
            self._selector.register(fd, selectors.EVENT_WRITE)
        self._unsent[fd] += struct.pack(">I", len(body)) + body
        self._flush(fd)

    def _flush(self, fd: int) -> None:
        unsent = self._unsent[fd]
        try:
            while unsent:
                del unsent[: os.write(fd, memoryview(unsent)[: 1 << 16].tobytes())]
        except BlockingIOError:
            return
        except BrokenPipeError:
            unsent.clear()  # its end will be seen on the report pipe
        with contextlib.suppress(KeyError):
            self._selector.unregister(fd)

    def _read_output(self) -> None:
        for data in self._available(self._output):
            self.output.feed(data)
            if self.output.total > self._limits.output_bytes:
                return

    def _read_events(self) -> list[Message]:
        messages: list[Message] = []
        for data in self._available(self._events):
            self._event_bytes += len(data)
            messages += [Message("event", frame) for frame in self._parser.feed(data)]
            if self._event_bytes > _EVENT_BYTES:
                break
        return messages

    def _read_report(self) -> list[Message]:
        frames: list[dict[str, Any]] = []
        closed = True
        try:
            while data := os.read(self._report, 65536):
                frames += self._reports.feed(data)
        except BlockingIOError:
            closed = False
        messages: list[Message] = []
        for frame in frames:
            if frame["e"] == "up":
                self.up = frame
            elif frame["e"] == "ended":
                # All processes of the job are gone: what they wrote is in the pipes by now.
                self._read_output()
                messages = self._read_events()
                messages.append(self._end(Ended.from_frame(frame)))
                self._deadline = self._watch = float("inf")
        if closed and not any(message.ended for message in messages):
            self._read_output()
            messages += self._read_events()
            said = " | ".join(self.output.text.strip().splitlines()[-3:]) or "it said nothing"
            reason = "the sandbox was closed" if self._killed else f"the sandbox ended: {said}"
            messages.append(self._end(Ended(error=reason)))
        if closed:
            self.close()
        return messages

    def _available(self, fd: int) -> Sequence[bytes]:
        """What can be read now, at most 16 MiB so that a flood cannot hold the loop."""
        pieces = []
        with contextlib.suppress(BlockingIOError):
            for _ in range(256):
                data = os.read(fd, 65536)
                if not data:
                    with contextlib.suppress(KeyError):
                        self._selector.unregister(fd)
                    break
                pieces.append(data)
        return pieces

    def kill(self) -> None:
        """End everything inside from any thread; the one that polls is told, and closes."""
        self._killed = True
        if self._patience:  # no namespace ends with its first process
            for pid in list(descendants(self._process.pid))[1:]:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Kill everything inside, reap, and let go of the pipes; for the thread that polls.

        A second call does nothing.
        """
        if not self.alive:
            return
        self.alive = False
        self._spawner.track(self, alive=False)
        self._selector.close()
        for fd in (self._jobs, self._trials):
            os.close(fd)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(self._patience)  # the end of `jobs` tells the keeper to end
        self._process.kill()  # bubblewrap's first process inside dies with it, and all others with that one
        self._process.wait()
        for fd in (self._report, self._events, self._output):
            os.close(fd)
