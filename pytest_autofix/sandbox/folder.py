"""Private temporary folders that are removed even when their owner was killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

__all__ = ["RunFolder", "sweep"]

_PREFIX = "pytest-autofix-"
_LOCK = "lock"
_LOCKLESS_SECONDS = (
    3600.0  #: making a folder and locking it takes a moment; nobody is at work in one this old
)


class RunFolder:
    """A folder below the system's temporary folder that only this user may enter; `close` removes it.

    It is locked while its owner lives. The kernel lets go of the lock however the owner ends, so `sweep` can tell a
    folder that was left behind, which a process id could not in a container or after it was used again.
    """

    def __init__(self) -> None:
        sweep()
        self.path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
        self._lock = os.open(self.path / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def close(self) -> None:
        """Remove the folder and all that is in it; a second call does nothing."""
        if self._lock >= 0:
            _remove(self.path)
            os.close(self._lock)
            self._lock = -1


def sweep() -> int:
    """Remove folders whose owner is gone; returns how many."""
    swept = 0
    for path in _left_behind():
        with contextlib.suppress(OSError):
            if not (path / _LOCK).exists() and time.time() - path.stat().st_mtime > _LOCKLESS_SECONDS:
                _remove(path)  # its owner ended before it could lock, or while it removed
                swept += 1
                continue
            lock = os.open(path / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(path)
                swept += 1
            finally:
                os.close(lock)
    return swept


def _left_behind() -> Iterator[Path]:
    with contextlib.suppress(OSError):
        for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
            with contextlib.suppress(OSError):
                seen = path.lstat()
                if path.is_dir() and not path.is_symlink() and seen.st_uid == os.geteuid():
                    yield path


def _remove(path: Path) -> None:
    """Remove a tree even where copied folders are read-only. The lock goes last: what it stands for is gone then."""
    for folder, _, _ in os.walk(path):
        with contextlib.suppress(OSError):
            Path(folder).chmod(0o700)
    for entry in tuple(path.iterdir()):
        if entry.name != _LOCK:
            shutil.rmtree(entry, ignore_errors=True) if entry.is_dir() else entry.unlink(missing_ok=True)
    shutil.rmtree(path, ignore_errors=True)
