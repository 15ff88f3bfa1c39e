"""Where things lie inside the local sandbox. Known on both sides; standard library only."""

from __future__ import annotations

__all__ = ["EXTRA", "HOME", "INSIDE", "PRIVATE", "SCRATCH", "TREE"]

INSIDE = "/run/autofix/inside"  #: our own modules
HOME = "/run/autofix/home"  #: empty for each job
PRIVATE = "/run/autofix/private"  #: the keeper's; covered before a worker starts
TREE = f"{PRIVATE}/tree"  #: the snapshot, read-only
EXTRA = f"{PRIVATE}/extra"  #: numbered copies of mounts that the job's own mounts would hide
SCRATCH = f"{PRIVATE}/scratch"  #: mount point of everything that a job writes
