"""A frozen copy of the project, taken once per run; every job sees it as the lower layer of its overlay."""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import os
import stat
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pytest_autofix.errors import ConfigurationError

__all__ = ["EXCLUDED", "Snapshot", "give_to", "take_snapshot"]

EXCLUDED = (
    ".git", ".hg", ".svn", "__pycache__", "*.pyc", "*.pyo", ".tox", ".nox", ".mypy_cache", ".ruff_cache",
    ".pytest_cache", ".hypothesis", ".pytest_autofix", "node_modules", ".DS_Store",
    ".env", ".env.*", ".envrc", ".netrc", ".pypirc", ".aws", ".ssh", ".gnupg", ".npmrc", ".git-credentials",
    "*.pem", "*.key", "*.p12", "*.pfx", "*.keystore", "*.kdbx", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*",
)  # fmt: skip
"""Names that are not copied: history, caches (stale byte code would run instead of an edit), and secrets.

What git ignores is copied all the same: built extensions, `_version.py` and `*.egg-info` are needed by tests.
"""

_BLOCK = 1 << 20
_MAX_BYTES = 2 << 30


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What was copied, and what was not."""

    root: Path
    path: Path
    hashes: Mapping[str, str]  #: relative path with forward slashes → sha256 of each regular file
    left_out: tuple[tuple[str, str], ...] = ()  #: relative path, reason; excluded names are not listed
    environments: tuple[Path, ...] = ()  #: virtual environments inside the project; empty folders in the copy
    size: int = 0  #: bytes


@dataclass(slots=True)
class _Plan:
    folders: list[tuple[str, os.stat_result]] = field(default_factory=list)
    files: list[tuple[str, os.stat_result]] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    environments: list[str] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)


def take_snapshot(
    root: Path, destination: Path, *, exclude: Sequence[str] = EXCLUDED, max_bytes: int = _MAX_BYTES
) -> Snapshot:
    """Copy `root` to `destination`, which must not exist, keeping modes and times.

    Raises `ConfigurationError` naming the largest folders if there is more than `max_bytes` to copy.
    """
    root = root.absolute()
    plan = _Plan()
    _walk(root, "", plan, exclude, own=destination.absolute())
    size = sum(seen.st_size for _, seen in plan.files)
    if size > max_bytes:
        raise ConfigurationError(_too_large(root, plan, size, max_bytes))

    destination.mkdir(parents=True, mode=0o700)
    for relative, _ in plan.folders:
        (destination / relative).mkdir()
    for relative in plan.environments:
        (destination / relative).mkdir()
    hashes: dict[str, str] = {}
    left_out = plan.left_out
    for relative, seen in plan.files:
        try:
            hashes[relative] = _copy(root / relative, destination / relative, seen)
        except OSError as error:
            left_out.append((relative, error.strerror or str(error)))
    for relative in plan.links:
        (destination / relative).symlink_to((root / relative).readlink())
    for relative, seen in reversed(plan.folders):
        path = destination / relative
        path.chmod(stat.S_IMODE(seen.st_mode) & 0o777 | 0o700)
        os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    return Snapshot(
        root=root,
        path=destination,
        hashes=hashes,
        left_out=tuple(sorted(left_out)),
        environments=tuple(root / relative for relative in plan.environments),
        size=size,
    )


def _walk(root: Path, folder: str, plan: _Plan, exclude: Sequence[str], own: Path) -> None:
    try:
        entries = sorted(os.scandir(root / folder), key=lambda entry: entry.name)
    except OSError as error:
        plan.left_out.append((folder, error.strerror or str(error)))
        return
    for entry in entries:
        relative = f"{folder}/{entry.name}" if folder else entry.name
        if any(fnmatch.fnmatchcase(entry.name, pattern) for pattern in exclude):
            continue
        try:
            entry.name.encode("utf-8")
            seen = entry.stat(follow_symlinks=False)
        except UnicodeEncodeError:
            plan.left_out.append((relative.encode("utf-8", "replace").decode(), "its name is no Unicode"))
            continue
        except OSError:
            continue  # gone meanwhile
        if stat.S_ISLNK(seen.st_mode):
            _link(root, relative, plan)
        elif stat.S_ISDIR(seen.st_mode):
            if Path(entry.path) == own:
                continue
            if Path(entry.path, "pyvenv.cfg").is_file():
                plan.environments.append(relative)
                continue
            plan.folders.append((relative, seen))
            _walk(root, relative, plan, exclude, own)
        elif stat.S_ISREG(seen.st_mode):
            plan.files.append((relative, seen))
        else:
            plan.left_out.append((relative, "a special file"))


def _link(root: Path, relative: str, plan: _Plan) -> None:
    """Links that stay inside the tree are kept; one that leads out would show another file or none inside."""
    path = root / relative
    target = Path(os.path.normpath(path.parent / path.readlink()))
    with contextlib.suppress(OSError, RuntimeError):
        target = path.resolve()
    if target.is_relative_to(root.resolve()) or target.is_relative_to(root):
        plan.links.append(relative)
    else:
        plan.left_out.append((relative, f"a link out of the project, to {path.readlink()}"))


def _copy(source: Path, target: Path, seen: os.stat_result) -> str:
    digest = hashlib.sha256()
    with source.open("rb", buffering=0) as reader, target.open("xb", buffering=0) as writer:
        while block := reader.read(_BLOCK):
            digest.update(block)
            writer.write(block)
    target.chmod(stat.S_IMODE(seen.st_mode) & 0o777)  # set-uid bits have no business in a copy
    os.utime(target, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    return digest.hexdigest()


def _too_large(root: Path, plan: _Plan, size: int, max_bytes: int) -> str:
    folders: Counter[str] = Counter()
    for relative, seen in plan.files:
        folders["/".join(relative.split("/")[:-1][:2]) or "."] += seen.st_size
    largest = ", ".join(f"{name} ({count >> 20} MiB)" for name, count in folders.most_common(3))
    return (
        f"{root} holds {size >> 20} MiB, more than the {max_bytes >> 20} MiB that are copied for the sandbox."
        f" Largest folders: {largest}. Move data out of the project."
    )


def give_to(path: Path, uid: int) -> None:
    """Make `uid` the owner of a tree (as root only); times stay as they are."""
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            os.chown(Path(folder, name), uid, uid, follow_symlinks=False)
    os.chown(path, uid, uid)
