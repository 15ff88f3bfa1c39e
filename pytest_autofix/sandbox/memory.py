"""How much memory a process and all its descendants use, for limits where no cgroup can be had (Linux only)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

__all__ = ["descendants", "memory_of_tree"]


def descendants(pid: int) -> Iterator[int]:
    """`pid` and every process below it; processes that end meanwhile are passed over.

    A process that loses its parent falls to the first process of its pid namespace, so none leaves the tree.
    """
    pending = [pid]
    while pending:
        current = pending.pop()
        yield current
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{current}/task").iterdir():
                pending += map(int, (task / "children").read_text().split())


def memory_of_tree(pid: int, *, limit: int) -> int:
    """Bytes of anonymous and shared memory; exact only above `limit`.

    The cheap sum counts pages that forks share once for each of them. Only when it is above the limit the
    proportional set size, which walks page tables, is asked for.
    """
    pids = list(descendants(pid))
    total = sum(_status_bytes(each) for each in pids)
    if total <= limit:
        return total
    return sum(_proportional_bytes(each) for each in pids)


def _status_bytes(pid: int) -> int:
    return _sum_fields(Path(f"/proc/{pid}/status"), ("RssAnon:", "RssShmem:"))


def _proportional_bytes(pid: int) -> int:
    try:
        return _sum_fields(Path(f"/proc/{pid}/smaps_rollup"), ("Pss_Anon:", "Pss_Shmem:"), strict=True)
    except OSError:  # a process that is not dumpable, or ended
        return 0


def _sum_fields(path: Path, names: tuple[str, ...], *, strict: bool = False) -> int:
    total = 0
    try:
        for line in path.read_text().splitlines():
            if line.startswith(names):
                total += int(line.split()[1]) * 1024
    except OSError:
        if strict:
            raise
    return total
