"""Run one job in namespaces of its own. Runs INSIDE, in the keeper: standard library only.

Four processes, from trusted to untrusted:

    keeper      lives over many jobs; holds the only descriptor whose frames the host trusts
    └ stage     exists because a process cannot enter a new pid namespace itself, only its children can
      └ init    pid 1 of the job: mounts, waits with a time limit, looks for tampering; its end ends all others
        └ worker   no capabilities, no new privileges, system call filter, limits: runs pytest and the candidate

None of them executes a program: fork is what makes a warm job cheap.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import stat
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from . import linux, seccomp
from .layout import EXTRA, HOME, PRIVATE, SCRATCH, TREE
from .work import Hangup, close_all_but, path_is_below, set_limits, write_files

__all__ = ["Hangup", "run"]

_WRITABLE = ("/tmp", "/dev/shm")  # noqa: S108 - inside, both are fresh for each job
_GRACE = 0.25  #: seconds that helpers of the test run (multiprocessing's tracker) get to end by themselves


def run(
    hello: dict[str, Any],
    job: dict[str, Any],
    body: Callable[[dict[str, Any]], None],
    keep: Iterable[int],
    host_fd: int,
) -> dict[str, Any]:
    """Run `body(hello)` confined and say how it ended, when no process of the job is left.

    `keep`: descriptors that the worker may use. `host_fd`: readable end of a pipe from the host; when the host
    closes it while the job runs, `Hangup` is raised.
    """
    began = time.monotonic()
    seccomp.program_for_this_machine()  # made here once, every worker gets it by fork
    reader, writer = os.pipe()
    stage = os.fork()
    if stage == 0:
        _in_stage(hello, job, body, keep, writer)
    os.close(writer)
    report = _read_report(reader, host_fd)
    os.close(reader)
    _, status, usage = os.wait4(stage, 0)
    ended: dict[str, Any] = {
        "code": None,
        "signal": None,
        "timeout": False,
        "survivors": 0,
        "tampered": [],
        "error": "" if report or status == 0 else f"the job's first process ended with status {status}",
    }
    ended |= report
    ended["wall"] = time.monotonic() - began
    ended["cpu"] = usage.ru_utime + usage.ru_stime
    return ended


def _read_report(reader: int, host_fd: int) -> dict[str, Any]:
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    poll.register(host_fd, 0)  # POLLHUP only: what the host sends belongs to the next job
    text = b""
    while True:
        for fd, _ in poll.poll():
            if fd == host_fd:
                raise Hangup
            piece = os.read(reader, 65536)
            if not piece:
                return dict(json.loads(text)) if text else {}
            text += piece


def _in_stage(
    hello: dict[str, Any],
    job: dict[str, Any],
    body: Callable[[dict[str, Any]], None],
    keep: Iterable[int],
    report: int,
) -> None:
    """Never returns."""
    status = 1
    try:
        linux.unshare(linux.CLONE_NEWPID | linux.CLONE_NEWNS | linux.CLONE_NEWIPC)
        init = os.fork()
        if init == 0:
            _in_init(hello, job, body, keep, report)
        os.close(report)
        _, status = os.waitpid(init, 0)
        status = int(status != 0)
    except OSError as error:
        _tell(report, {"error": f"no namespaces for the job: {error}"})
    finally:
        os._exit(status)


def _in_init(
    hello: dict[str, Any],
    job: dict[str, Any],
    body: Callable[[dict[str, Any]], None],
    keep: Iterable[int],
    report: int,
) -> None:
    """Never returns. Handlers are reset since pid 1 is safe only from signals that it does not handle."""
    outcome: dict[str, Any] = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        with contextlib.suppress(OSError):  # it may be read-only already
            Path("/proc/self/oom_score_adj").write_text("1000")
        touched = _mount_all(hello, job)
        guarded = _Guarded(hello["root"], hello["protected"], touched)
        worker = os.fork()
        if worker == 0:
            _in_worker(hello, job, body, keep)
        outcome = _wait(worker, job["limits"]["wall_seconds"])
        outcome["tampered"] = guarded.changed()
    except Exception as error:  # whatever it was, the host must hear of it, and pid 1 must end
        outcome["error"] = f"{type(error).__name__}: {error}"
    finally:
        _tell(report, outcome)
        os._exit(0)


def _tell(report: int, outcome: dict[str, Any]) -> None:
    data = memoryview(json.dumps(outcome).encode())
    while data:
        data = data[os.write(report, data) :]


# --- init: the file systems -------------------------------------------------------------------------------------


def _mount_all(hello: dict[str, Any], job: dict[str, Any]) -> list[str]:
    """Build the view of the job; returns the protected paths that the job itself changes."""
    root: str = hello["root"]
    quiet = linux.MS_NOSUID | linux.MS_NODEV
    linux.mount("none", "/", "", linux.MS_REC | linux.MS_PRIVATE)
    linux.mount("tmpfs", SCRATCH, "tmpfs", quiet, f"size={job['limits']['scratch_bytes']},mode=0700")
    for name in ("upper", "work", "home"):
        Path(SCRATCH, name).mkdir(mode=0o755)
    linux.bind(f"{SCRATCH}/home", HOME)
    for place in _WRITABLE:
        _fresh(place, root, hello["extra"])
    options = f"lowerdir={TREE},upperdir={SCRATCH}/upper,workdir={SCRATCH}/work,userxattr"
    linux.mount("overlay", root, "overlay", quiet, options)
    touched = write_files(root, job, hello["protected"])
    for path in hello["protected"]:
        _protect(root, path, changed=path in touched)
    for number, path in enumerate(hello["extra"]):
        if path_is_below(path, root):
            _show(number, path)
    linux.mount("proc", "/proc", "proc", quiet | linux.MS_NOEXEC | linux.MS_RDONLY)
    linux.bind("/proc/sys", "/proc/sys")  # read-only as /proc is, and it stays so if /proc were remounted
    linux.mount("tmpfs", PRIVATE, "tmpfs", quiet | linux.MS_RDONLY, "size=4k,mode=0000")
    return touched


def _fresh(place: str, root: str, extra: list[str]) -> None:
    """An empty world-writable folder at `place`, in which what the job needs below it shows again."""
    fresh = f"{SCRATCH}/{place.strip('/').replace('/', '-')}"
    Path(fresh).mkdir()
    Path(fresh).chmod(0o1777)
    needed = [(number, path) for number, path in enumerate(extra) if path_is_below(path, place)]
    for number, path in needed:
        _show(number, fresh + path[len(place) :])
    if path_is_below(root, place):
        Path(fresh + root[len(place) :]).mkdir(parents=True, exist_ok=True)
    linux.bind(fresh, place, recursive=True)
    # Whoever can rename a folder above the project puts another tree in its place; a mount cannot be renamed.
    shown = {path for _, path in needed} | ({root} if path_is_below(root, place) else set())
    tops = {f"{place}/{path[len(place) + 1 :].split('/')[0]}" for path in shown}
    for top in tops - shown:
        linux.bind_read_only(top, recursive=True)


def _show(number: int, target: str) -> None:
    source = f"{EXTRA}/{number}"
    if Path(source).is_dir():
        Path(target).mkdir(parents=True, exist_ok=True)
    else:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        Path(target).touch()
    linux.bind(source, target, recursive=True)


def _protect(root: str, relative: str, *, changed: bool) -> None:
    target = f"{root}/{relative}"
    if not Path(target).exists() or Path(target).is_symlink():
        return  # nothing to mount on; `_Guarded` notices what becomes of it
    if changed:
        linux.bind_read_only(target)
    else:
        linux.bind(f"{TREE}/{relative}", target)  # read-only since the mount of the tree is


class _Guarded:
    """Identity of the protected paths before and after: a mount that is still there is the same device and inode."""

    def __init__(self, root: str, protected: list[str], touched: list[str]) -> None:
        self._root = root
        self._paths = protected
        self._before = {path: self._identity(path) for path in protected}

    def _identity(self, relative: str) -> tuple[object, ...]:
        path = Path(self._root, relative)
        try:
            seen = path.lstat()
        except OSError:
            return ()
        if stat.S_ISLNK(seen.st_mode):
            return (str(path.readlink()),)
        if stat.S_ISDIR(seen.st_mode):
            return (seen.st_dev, seen.st_ino)
        return (seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns)

    def changed(self) -> list[str]:
        return [path for path in self._paths if self._identity(path) != self._before[path]]


# --- init: the wait ---------------------------------------------------------------------------------------------


def _wait(worker: int, seconds: float) -> dict[str, Any]:
    """Wait for the worker, reaping orphans; then end whatever is left, and say how much that was."""
    deadline = time.monotonic() + seconds
    outcome: dict[str, Any] = {"timeout": False, "survivors": 0}
    while (status := _reap(worker)) is None:
        left = deadline - time.monotonic()
        if left <= 0:
            outcome["timeout"] = True
            break
        signal.sigtimedwait({signal.SIGCHLD}, left)
    if status is not None:
        if os.WIFSIGNALED(status):
            outcome["signal"] = os.WTERMSIG(status)
        else:
            outcome["code"] = os.WEXITSTATUS(status)
        outcome["survivors"] = _survivors()
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)  # from pid 1: every process of the namespace but itself
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    return outcome


def _reap(worker: int) -> int | None:
    """Reap all that has ended; the worker's status if it was among them."""
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == worker:
                return status
            if pid == 0:
                break
    return None


def _survivors() -> int:
    deadline = time.monotonic() + _GRACE
    while True:
        _reap(-1)
        alive = sum(name.isdigit() for name in os.listdir("/proc")) - 1  # noqa: PTH208 - /proc, on the fast path
        left = deadline - time.monotonic()
        if alive == 0 or left <= 0:
            return alive
        signal.sigtimedwait({signal.SIGCHLD}, min(left, 0.02))


# --- worker -----------------------------------------------------------------------------------------------------


def _in_worker(
    hello: dict[str, Any], job: dict[str, Any], body: Callable[[dict[str, Any]], None], keep: Iterable[int]
) -> None:
    """Never returns."""
    status = 70  # EX_SOFTWARE of sysexits.h
    try:
        _confine_worker(hello, job, keep)
        body(hello)
        status = 0
    except BaseException:  # SystemExit too: nothing may climb up into init's code
        os.write(2, traceback.format_exc().encode())
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _confine_worker(hello: dict[str, Any], job: dict[str, Any], keep: Iterable[int]) -> None:
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    close_all_but({0, 1, 2, *keep})
    set_limits(job["limits"])
    linux.set_dumpable(True)  # its own /proc/self must be readable; init and keeper stay closed
    linux.drop_all_capabilities()
    os.chdir(hello["cwd"])
    linux.install_filter(seccomp.program_for_this_machine())
