"""What a job needs with and without isolation: its files in the tree, its limits. Standard library only."""

from __future__ import annotations

import base64
import contextlib
import os
import resource
import shutil
import stat
from pathlib import Path
from typing import Any

__all__ = ["Hangup", "close_all_but", "path_is_below", "set_limits", "write_files"]

_SLACK = 8  #: processes of ours that count against RLIMIT_NPROC


class Hangup(Exception):
    """The host has gone: end everything."""


def path_is_below(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or lies in it; both absolute or both relative."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def write_files(root: str, job: dict[str, Any], protected: list[str]) -> list[str]:
    """Lay the job's files over the tree; returns the protected paths that this changed."""
    changed = [*job["files"], *job["delete"]]
    for relative in changed:
        if not relative or relative.startswith("/") or ".." in relative.split("/"):
            raise ValueError(f"{relative!r} is not a path inside the project")
    for relative in job["delete"]:
        path = Path(root, relative)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    for relative, content in job["files"].items():
        path = Path(root, relative)
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o644
        path.unlink(missing_ok=True)  # a link is replaced, never followed
        path.write_bytes(base64.b64decode(content))
        path.chmod(mode)
    return [path for path in protected if any(path_is_below(relative, path) for relative in changed)]


def close_all_but(keep: set[int]) -> None:
    """Close every descriptor not in `keep`."""
    bottom = 0
    for fd in sorted(keep):
        if bottom < fd:  # closerange(0, 0) closes everything: CPython 3.11 asks close_range(2) for 0 .. -1
            os.closerange(bottom, fd)
        bottom = fd + 1
    os.closerange(bottom, os.sysconf("SC_OPEN_MAX"))


def set_limits(limits: dict[str, Any]) -> None:
    """Set the limits of this process and those that it will start. 0 leaves one as it is."""
    _limit(resource.RLIMIT_CORE, 0)
    for which, value in (
        (resource.RLIMIT_CPU, limits["cpu_seconds"]),
        (resource.RLIMIT_FSIZE, limits["file_bytes"]),
        (resource.RLIMIT_NOFILE, limits["open_files"]),
        (resource.RLIMIT_NPROC, limits["processes"] and limits["processes"] + _SLACK),
        (resource.RLIMIT_AS, limits["memory_bytes"]),
    ):
        if value:
            _limit(which, int(value))


def _limit(which: int, value: int) -> None:
    _, hard = resource.getrlimit(which)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    with contextlib.suppress(ValueError):  # macOS refuses some that it lists
        resource.setrlimit(which, (value, value))
