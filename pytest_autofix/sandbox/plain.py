"""Run one job without isolation, on a throw-away copy. Runs in the keeper of `--autosolve-sandbox=none`.

The copy stands elsewhere, so everything that names the project by its absolute path has to be turned to the copy:
import path, arguments, environment, finders of editable installs. What names it in any other way (a path in a data
file, a compiled extension) still reaches the user's tree. Standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from .work import Hangup, close_all_but, path_is_below, set_limits, write_files

__all__ = ["Hangup", "run"]

_PR_SET_CHILD_SUBREAPER = 36
_GRACE = 0.25


def run(
    hello: dict[str, Any],
    job: dict[str, Any],
    body: Callable[[dict[str, Any]], None],
    keep: Iterable[int],
    host_fd: int,
) -> dict[str, Any]:
    """As `confine.run`, with a process group in place of namespaces."""
    began, used = time.monotonic(), os.times()
    outcome: dict[str, Any] = {"code": None, "signal": None, "timeout": False, "survivors": 0, "tampered": []}
    outcome["error"] = ""
    _adopt_orphans()
    folder = tempfile.mkdtemp(prefix="job-", dir=hello["scratch"])
    try:
        moved = _move(hello, folder)
        shutil.copytree(hello["tree"], moved["root"], symlinks=True)
        for name in ("home", "temporary"):
            Path(folder, name).mkdir()
        write_files(moved["root"], job, hello["protected"])
        guarded = {path: _digest(Path(moved["root"], path)) for path in hello["protected"]}
        worker = os.fork()
        if worker == 0:
            _in_worker(moved, job, body, keep)
        outcome |= _wait(worker, job["limits"]["wall_seconds"], host_fd)
        outcome["tampered"] = [
            path for path in guarded if _digest(Path(moved["root"], path)) != guarded[path]
        ]
    except OSError as error:
        outcome["error"] = str(error)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    now = os.times()
    outcome["cpu"] = now.children_user + now.children_system - used.children_user - used.children_system
    outcome["wall"] = time.monotonic() - began
    return outcome


def _move(hello: dict[str, Any], folder: str) -> dict[str, Any]:
    """The hello frame with every path into the project turned to the copy."""
    root: str = hello["root"]
    copy = f"{folder}/{Path(root).name}"

    def moved(path: str) -> str:
        """Only what was copied: a virtual environment inside the project stays where it is."""
        if not path_is_below(path, root) or not Path(hello["tree"] + path[len(root) :]).exists():
            return path
        return copy + path[len(root) :]

    def moved_within(text: str) -> str:
        name, equals, value = text.partition("=")
        return f"{name}={moved(value)}" if equals and value.startswith("/") else moved(text)

    environment = {
        name: os.pathsep.join(moved(part) for part in value.split(os.pathsep))
        for name, value in hello["environment"].items()
    }
    environment |= {"HOME": f"{folder}/home", "TMPDIR": f"{folder}/temporary"}
    return hello | {
        "root": copy,
        "cwd": moved(hello["cwd"]),
        "sys_path": [moved(entry) for entry in hello["sys_path"]],
        "args": [moved_within(word) for word in hello["args"]],
        "environment": environment,
        "moved": moved,
    }


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    pending = [path]
    while pending:
        current = pending.pop()
        digest.update(os.fsencode(current))
        if current.is_symlink():
            digest.update(os.fsencode(current.readlink()))
        elif current.is_dir():
            pending += sorted(child for child in current.iterdir() if child.name != "__pycache__")
        elif current.exists():
            digest.update(current.read_bytes())
    return digest.hexdigest()


def _in_worker(
    hello: dict[str, Any], job: dict[str, Any], body: Callable[[dict[str, Any]], None], keep: Iterable[int]
) -> None:
    """Never returns."""
    status = 70  # EX_SOFTWARE of sysexits.h
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        close_all_but({0, 1, 2, *keep})
        set_limits(job["limits"] | {"processes": 0})  # it would count every process of the user
        os.environ.update(hello["environment"])
        tempfile.tempdir = None
        _move_finders(hello["moved"])
        os.chdir(hello["cwd"])
        body(hello)
        status = 0
    except BaseException:  # SystemExit too: nothing may climb up into the keeper's code
        os.write(2, traceback.format_exc().encode())
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _move_finders(moved: Callable[[str], str]) -> None:
    """Editable installs of setuptools map package names to absolute paths in a module of their own."""
    for name, module in list(sys.modules.items()):
        mapping = getattr(module, "MAPPING", None)
        if name.startswith("__editable__") and isinstance(mapping, dict):
            mapping |= {package: moved(path) for package, path in mapping.items()}


def _wait(worker: int, seconds: float, host_fd: int) -> dict[str, Any]:
    poll = select.poll()
    poll.register(host_fd, 0)  # POLLHUP only: what the host sends belongs to the next job
    outcome: dict[str, Any] = {}
    deadline = time.monotonic() + seconds
    pause = 0.001
    while True:
        pid, status = os.waitpid(worker, os.WNOHANG)
        if pid == worker:
            break
        if time.monotonic() > deadline:
            outcome["timeout"] = True
            break
        if poll.poll(pause * 1000):
            _kill_group(worker)
            _end_orphans(grace=0.0)
            raise Hangup
        pause = min(pause * 1.5, 0.02)
    if not outcome.get("timeout"):
        if os.WIFSIGNALED(status):
            outcome["signal"] = os.WTERMSIG(status)
        else:
            outcome["code"] = os.WEXITSTATUS(status)
    else:
        _kill_group(worker)
    outcome["survivors"] = _end_orphans(grace=0.0 if outcome.get("timeout") else _GRACE)
    return outcome


def _kill_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _adopt_orphans() -> None:
    """Linux: processes that lose their parent become ours, so that none is left behind."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _end_orphans(*, grace: float) -> int:
    """Give them `grace` seconds, then kill; returns how many had to be killed."""
    deadline = time.monotonic() + grace
    killed: set[int] = set()
    while True:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        children = _children()
        if not children:
            return len(killed)
        if time.monotonic() >= deadline:
            killed.update(children)
            for child in children:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(child, signal.SIGKILL)
        time.sleep(0.005)


def _children() -> list[int]:
    with contextlib.suppress(OSError):
        return [int(word) for word in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
    return []
