"""Put accepted changes into the working tree: whole files, all of them or none, once, at the end.

Writing is apart from deciding: what arrives here has been judged. The only question left is whether the files are
still those that were judged.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pytest_autofix.errors import AutofixError, PatchDoesNotApply, PatchOutOfScope
from pytest_autofix.patching.changes import FileChange, Tree

__all__ = ["FilesNotWritten", "WrittenFile", "sha256_of", "write_files"]


class FilesNotWritten(AutofixError):
    """The disk refused; the tree is as it was. Show the message, keep the patch in the report."""


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """One file that was written, with the hashes that prove from what to what."""

    path: str
    sha256_before: str | None  #: None: it did not exist
    sha256_after: str | None  #: None: it was removed


@dataclass(slots=True)
class _Step:
    change: FileChange
    place: Path
    staged: Path | None = None  #: the new content, complete, beside its place
    kept: Path | None = None  #: another name of the old file
    done: bool = False
    made: list[Path] = field(default_factory=list)  #: folders that did not exist, the innermost first


def sha256_of(content: bytes | None) -> str | None:
    """Hexadecimal hash of a content, None if there is none."""
    return None if content is None else hashlib.sha256(content).hexdigest()


def write_files(
    root: Path,
    changes: Sequence[FileChange],
    *,
    expected_sha256: Mapping[str, str | None] | None = None,
) -> tuple[WrittenFile, ...]:
    """Write all changes, or raise and leave every file as it was.

    `expected_sha256`: hash of each file when the run began, None if it did not exist; a path that is not there is
    expected to be as its change says. Raises `PatchDoesNotApply` when a file was changed since, `PatchOutOfScope`
    for links, `FilesNotWritten` when the disk refuses (read-only, full, no permission).
    """
    for change in changes:
        if change.kind == "symlink":
            raise PatchOutOfScope(f"{change.path}: a symbolic link is never written")
    expected = expected_sha256 or {}
    wanted = {change.path: expected.get(change.path, sha256_of(change.before)) for change in changes}
    _check_unchanged(root, wanted)
    steps = [_Step(change, root / change.path) for change in changes]
    try:
        with _cleared(steps):
            for step in steps:
                _stage(step)
            _check_unchanged(root, wanted)  # staging took time; now only renames are left
            for step in steps:
                _carry_out(step)
            _sync_folders(steps)
    except OSError as error:
        name = Path(error.filename).name if error.filename else root.name
        raise FilesNotWritten(f"nothing was written: {_reason(error)} ({name})") from error
    return tuple(WrittenFile(change.path, wanted[change.path], sha256_of(change.after)) for change in changes)


def _check_unchanged(root: Path, wanted: Mapping[str, str | None]) -> None:
    tree = Tree(root)
    differing = [
        path
        for path, digest in wanted.items()
        if sha256_of(tree.read(path)) != digest or (digest and tree.mode(path) == "120000")
    ]
    if differing:
        raise PatchDoesNotApply(
            f"nothing was written: {', '.join(differing)} changed since the run began; run again"
        )


@contextlib.contextmanager
def _cleared(steps: Sequence[_Step]) -> Iterator[None]:
    """Take back what was done if the block does not end, Ctrl-C included; leave no temporary file in any case."""
    try:
        yield
    except BaseException:
        for step in reversed(steps):
            _take_back(step)
        _unlink(steps)
        for step in reversed(steps):
            for folder in step.made:
                with contextlib.suppress(OSError):
                    folder.rmdir()
        raise
    _unlink(steps)


def _take_back(step: _Step) -> None:
    if step.done and step.kept is not None:
        os.replace(step.kept, step.place)  # noqa: PTH105 - the same call as where it was done
        step.kept = None
    elif step.done:
        step.place.unlink(missing_ok=True)


def _unlink(steps: Sequence[_Step]) -> None:
    for step in steps:
        for leftover in (step.staged, step.kept):
            if leftover is not None:
                with contextlib.suppress(OSError):
                    leftover.unlink()


def _stage(step: _Step) -> None:
    place, change = step.place, step.change
    before = place.lstat() if change.before is not None else None
    if before is not None:
        step.kept = _free_name(place)
        try:
            step.kept.hardlink_to(place)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV):
                raise
            _write(step.kept, change.before or b"", before)  # a file system without hard links
    if change.after is not None:
        for folder in (place.parent, *place.parent.parents):
            if folder.exists():
                break
            step.made.append(folder)
        place.parent.mkdir(parents=True, exist_ok=True)
        step.staged = _free_name(place)
        _write(step.staged, change.after, before)


def _free_name(place: Path) -> Path:
    # Hidden and without `.py` at its end: neither pytest nor an editor's watcher takes it for a module.
    return Path(tempfile.mktemp(prefix=f".{place.name}.", suffix=".autofix", dir=place.parent))  # noqa: S306 - both users create exclusively


def _write(place: Path, content: bytes, like: os.stat_result | None) -> None:
    mode = stat.S_IMODE(like.st_mode) if like else 0o666  # the umask takes its part of a new file's mode
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        if like is not None:
            if hasattr(os, "fchown"):
                with contextlib.suppress(PermissionError):
                    os.fchown(file.fileno(), like.st_uid, like.st_gid)
            place.chmod(mode)
        os.fsync(file.fileno())
    if like is not None and int(place.stat().st_mtime) == int(like.st_mtime):
        # Python recognises stale byte code by whole seconds and size: `a - b` → `a + b` within one second is not seen.
        os.utime(place, (like.st_atime, int(like.st_mtime) + 1))


def _carry_out(step: _Step) -> None:
    if step.staged is None:
        step.place.unlink()
    else:
        os.replace(step.staged, step.place)  # noqa: PTH105 - the name that says what it does: atomic
        step.staged = None
    step.done = True


def _sync_folders(steps: Sequence[_Step]) -> None:
    for folder in {step.place.parent for step in steps}:
        with contextlib.suppress(OSError):  # not every system can; the files themselves are on disk already
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _reason(error: OSError) -> str:
    words = {
        errno.ENOSPC: "the disk is full",
        errno.EDQUOT: "the disk quota is used up",
        errno.EROFS: "the file system is read-only",
        errno.EACCES: "no permission to write",
        errno.EPERM: "no permission to write",
    }
    return words.get(error.errno or 0, error.strerror or "the disk refuses")
