"""`HangWatch`: where everything stood when a test ran out of time.

pytest-timeout raises an exception in the main thread, whose traceback shows that thread only. A coroutine that waits
for ever is on no stack at all, its event loop may be closed before the report is made, and a thread that never ends
is not the main one. So the signal handler is preceded by a look around.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

from pytest_autofix.evidence.failure import ExceptionFact, Frame
from pytest_autofix.evidence.frames import Place, ProjectPaths, to_frames
from pytest_autofix.evidence.values import Describer

__all__ = ["Hang", "HangWatch"]

_TASKS = 20  # tasks of an event loop
_THREADS = 5
_AWAITS = 200  # length of one chain of awaits


@dataclass(frozen=True, slots=True)
class Hang:
    """What was seen at the time-out beside the main thread's stack."""

    tasks: tuple[Frame, ...] = ()  #: project frames of the waiting tasks of the running event loop
    threads: tuple[ExceptionFact, ...] = ()  #: one per further thread inside the project


class HangWatch:
    """Looks around just before pytest-timeout's own signal handler runs."""

    def __init__(self) -> None:
        self._hang = Hang()

    def precede_handler(self, paths: ProjectPaths) -> None:
        """Call it when pytest-timeout has set its timer; does nothing where it does not use signals."""
        if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
            return
        inner = signal.getsignal(signal.SIGALRM)
        self._hang = Hang()
        if not callable(inner) or not signal.getitimer(signal.ITIMER_REAL)[0]:
            return

        def look_around(number: int, frame: FrameType | None) -> None:
            __tracebackhide__ = True
            try:
                self._hang = _look_around(paths)
            except Exception:  # the test must end by its time limit whatever its tasks and threads look like
                self._hang = Hang()
            inner(number, frame)

        signal.signal(signal.SIGALRM, look_around)

    def take(self) -> Hang:
        """What was seen at the last time-out; forgets it."""
        hang, self._hang = self._hang, Hang()
        return hang


def _look_around(paths: ProjectPaths) -> Hang:
    describer = Describer()
    waiting = [
        Place(frame, frame.f_lineno, path)
        for coroutine in (*_asyncio_coroutines(), *_trio_coroutines())
        for frame in _awaiting(coroutine)
        if (path := paths.relative(frame.f_code.co_filename)) is not None
    ]
    return Hang(to_frames(waiting, describer), tuple(_threads(paths, describer)))


def _asyncio_coroutines() -> Iterable[object]:
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return []
    try:
        tasks = asyncio.all_tasks()
    except RuntimeError:  # no running event loop
        return []
    return [task.get_coro() for task in sorted(tasks, key=_started)[:_TASKS]]


def _started(task: Any) -> tuple[int, str]:
    name = str(task.get_name())  # Task-1, Task-2, …
    return len(name), name


def _trio_coroutines() -> Iterable[object]:
    trio = sys.modules.get("trio")
    if trio is None:
        return []
    try:
        waiting = [trio.lowlevel.current_root_task()]
    except RuntimeError:
        return []
    found: list[object] = []
    while waiting and len(found) < _TASKS:
        task = waiting.pop(0)
        if task is not None:
            found.append(task.coro)
            waiting += [child for nursery in task.child_nurseries for child in nursery.child_tasks]
    return found


def _awaiting(awaitable: Any) -> Iterator[FrameType]:
    """Frames of a suspended coroutine and of what it awaits, outermost first."""
    for _ in range(_AWAITS):
        frame = getattr(awaitable, "cr_frame", None) or getattr(awaitable, "ag_frame", None)
        if frame is None or getattr(awaitable, "cr_running", False):
            return  # a running one is on the stack of its thread
        yield frame
        awaitable = getattr(awaitable, "cr_await", None) or getattr(awaitable, "ag_await", None)


def _threads(paths: ProjectPaths, describer: Describer) -> Iterator[ExceptionFact]:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    current = threading.get_ident()
    found = 0
    for ident, frame in sys._current_frames().items():
        stack = [] if ident == current else list(_stack(frame, paths))
        if stack and found < _THREADS:
            found += 1
            message = f"thread {names.get(ident, ident)} at the time-out"
            yield ExceptionFact("", describer.text(message), to_frames(stack, describer))


def _stack(frame: FrameType | None, paths: ProjectPaths) -> Iterator[Place]:
    frames: list[FrameType] = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    for one in reversed(frames):
        path = paths.relative(one.f_code.co_filename)
        if path is not None:
            yield Place(one, one.f_lineno, path)
