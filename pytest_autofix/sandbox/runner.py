"""The keeper: the first process inside. Takes jobs from the host, runs each confined, says how it ended.

Started as `python -I runner.py FD FD FD FD` by path, so that neither the project nor an installed pytest_autofix
is needed to import it; standard library only until a warm keeper is asked to import more. Trusted: no code of the
project ever runs in this process.

Four pipes join it to the host: `jobs` (requests), `report` (the only one the host trusts; never open in a worker),
`events` (written by workers, therefore evidence only) and `trials` (read by the worker of a batch).
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import inspect
import itertools
import os
import select
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_PACKAGE = "_pytest_autofix_inside"  #: name of this folder as a package; no project has a module of that name
_CONFINE = {"namespaces": "confine", "none": "plain"}


def _load(name: str) -> Any:
    """Import a module that lies beside this file without putting the folder on the import path."""
    if _PACKAGE not in sys.modules:
        package = types.ModuleType(_PACKAGE)
        package.__path__ = [str(Path(__file__).parent)]
        sys.modules[_PACKAGE] = package
    return importlib.import_module(f"{_PACKAGE}.{name}")


def main(arguments: list[str]) -> int:
    """Serve until the host closes the `jobs` pipe."""
    jobs, report, events, trials = (int(argument) for argument in arguments)
    wire = _load("wire")
    hello = wire.read_frame(jobs)
    if hello is None:
        return 0
    confine = _load(_CONFINE[hello["isolation"]])
    if hello["isolation"] == "namespaces":
        _load("linux").set_dumpable(False)
    os.environ.clear()
    os.environ.update(hello["environment"])
    sys.dont_write_bytecode = True
    wire.write_frame(report, {"e": "up"} | (_warm_up(hello) if hello["warm"] else {}))

    def emit(event: dict[str, Any]) -> None:
        wire.write_frame(events, event)

    while (job := wire.read_frame(jobs)) is not None:
        _empty(trials)
        for fd in (events, trials, 1, 2):
            os.set_blocking(fd, True)  # the flag belongs to the pipe, and the last worker may have changed it
        keep = {events, trials} if job["op"] == "batch" else {events}
        try:
            ended = confine.run(hello, job, _body(job, emit, trials), keep, jobs)
        except confine.Hangup:
            return 0
        wire.write_frame(report, {"e": "ended"} | ended)
    return 0


def _body(
    job: dict[str, Any], emit: Callable[[dict[str, Any]], None], trials: int
) -> Callable[[dict[str, Any]], None]:
    """What the worker does with the hello frame. Unless the keeper is warm, pytest is imported there."""

    def body(hello: dict[str, Any]) -> None:
        sys.path[:] = hello["sys_path"]
        if job["op"] == "observe":
            _load("observe").observe(hello, job, emit)
        elif job["op"] == "batch":
            _load("session").serve_batch(hello, job, emit, trials)
        else:
            _load("session").run_pytest(hello, job, emit)

    return body


def _empty(trials: int) -> None:
    """Throw away what a worker that died left unread; the host sends nothing between jobs."""
    os.set_blocking(trials, False)
    with contextlib.suppress(BlockingIOError):
        while select.select([trials], [], [], 0)[0] and os.read(trials, 1 << 20):
            pass


def _warm_up(hello: dict[str, Any]) -> dict[str, Any]:
    """Import pytest, its plugins and third-party modules, so that each job gets them by fork.

    Nothing of the project may come in: its tree is not mounted here, and paths into it are left out. What starts
    a thread while it is imported cannot be forked safely; the host is told and starts again without.
    """
    began = time.perf_counter()
    inside_root = hello["root"].rstrip("/") + "/"
    own = list(sys.path)
    sys.path[:] = [
        entry
        for entry in hello["sys_path"]
        if entry and (not f"{entry}/".startswith(inside_root) or "site-packages" in entry)
    ]
    failed = []
    _load("session")
    for name in hello["preload"]:
        try:
            importlib.import_module(name)
        except Exception:  # any error of a foreign module at import; the tests will meet it again
            failed.append(name)
    _run_nothing(hello["args"])
    inspect.getmodule(
        _warm_up.__code__, "nowhere"
    )  # fills its table of files, 40 ms of every first traceback
    sys.path[:] = own
    foreign = [
        name
        for name, module in list(sys.modules.items())
        if (file := str(getattr(module, "__file__", None) or "")).startswith(inside_root)
        and "site-packages" not in file
    ]
    gc.collect()
    gc.freeze()  # keeps the collector from touching, and so copying, shared pages in every fork
    threads = max(threading.active_count(), _kernel_threads())
    seconds = time.perf_counter() - began
    return {"failed": failed, "foreign": foreign, "threads": threads, "seconds": seconds}


def _run_nothing(arguments: list[str]) -> None:
    """Let pytest collect an empty folder: it imports installed plugins with their asserts rewritten.

    Imported plainly they would be warned about in every run. Of the user's arguments only those that switch
    plugins off are taken: the rest may need the project.
    """
    import pytest

    pairs = itertools.pairwise(arguments)
    off = [word for pair in pairs if pair[0] == "-p" and pair[1].startswith("no:") for word in pair]
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, _silence(), contextlib.suppress(Exception):
        os.chdir(folder)
        empty = Path(folder, "pytest.ini")
        empty.write_text("[pytest]\n")
        pytest.main(["--collect-only", "-p", "no:cacheprovider", "-c", str(empty), *off, folder])
    os.chdir(here)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    null = os.open(os.devnull, os.O_WRONLY)
    saved = os.dup(1), os.dup(2)
    try:
        os.dup2(null, 1)
        os.dup2(null, 2)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(saved[0], 1)
        os.dup2(saved[1], 2)
        for fd in (null, *saved):
            os.close(fd)


def _kernel_threads() -> int:
    with contextlib.suppress(OSError):
        return len(list(Path("/proc/self/task").iterdir()))
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
