"""`FileChange`: what a patch does to one file, in bytes; made from a candidate or from a folder of files."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pytest_autofix.candidates.candidate import Candidate
from pytest_autofix.errors import PatchDoesNotApply, PatchError, PatchOutOfScope
from pytest_autofix.patching.locate import SourceText, read_source
from pytest_autofix.patching.names import unsafe_name

__all__ = ["FileChange", "Mode", "Tree", "changes_from_directory", "changes_of", "split_lines"]

Mode = Literal["100644", "100755", "120000"]
"""As git writes it: an ordinary file, an executable one, a symbolic link (its content is the link's target)."""

MAX_FILE_BYTES = 16 * 1024 * 1024  #: a larger file is no source; it is not read


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file before and after. A rename is two changes: the old name goes, the new one comes."""

    path: str  #: relative to rootdir, with forward slashes; as the patch says it, not yet judged
    before: bytes | None  #: None: there was no such file
    after: bytes | None  #: None: the file is removed
    mode_before: Mode = "100644"
    mode_after: Mode = "100644"
    renamed_from: str = ""  #: where the content came from, for a rename or a copy

    @property
    def created(self) -> bool:
        return self.before is None

    @property
    def deleted(self) -> bool:
        return self.after is None

    @property
    def kind(self) -> Literal["file", "symlink", "mode"]:
        """`symlink` if it was or becomes a link, `mode` if only the executable bit changes."""
        modes = (
            self.mode_before if self.before is not None else "",
            self.mode_after if self.after is not None else "",
        )
        if "120000" in modes:
            return "symlink"
        if self.mode_changed and self.before == self.after:
            return "mode"
        return "file"

    @property
    def mode_changed(self) -> bool:
        return self.before is not None and self.after is not None and self.mode_before != self.mode_after


def split_lines(content: bytes) -> list[bytes]:
    """Lines with their ends; `\\n` alone ends a line."""
    lines = content.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


@dataclass(frozen=True, slots=True)
class Tree:
    """Reads files below `root` without following a symbolic link."""

    root: Path

    def read(self, path: str) -> bytes | None:
        """Content of a file, target of a symbolic link, None if there is nothing.

        Raises `PatchOutOfScope` for a name that leaves the tree or leads through a link, `PatchError` for
        what is no file.
        """
        status = self._status(path)
        if status is None:
            return None
        place = self.root / path
        if stat.S_ISLNK(status.st_mode):
            return os.fsencode(place.readlink())
        if not stat.S_ISREG(status.st_mode):
            raise PatchError(f"{path}: is not a file")
        if status.st_size > MAX_FILE_BYTES:
            raise PatchError(f"{path}: larger than {MAX_FILE_BYTES // 1024 // 1024} MiB")
        descriptor = os.open(place, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(descriptor, "rb") as file:
            return file.read(MAX_FILE_BYTES + 1)

    def mode(self, path: str) -> Mode | None:
        """Mode of what is at `path`, None if there is nothing."""
        status = self._status(path)
        if status is None:
            return None
        if stat.S_ISLNK(status.st_mode):
            return "120000"
        return "100755" if status.st_mode & 0o100 else "100644"

    def _status(self, path: str) -> os.stat_result | None:
        if reason := unsafe_name(path):
            raise PatchOutOfScope(f"{path!r}: {reason}")
        place = self.root
        *parents, _ = path.split("/")
        for part in parents:
            place /= part
            if place.is_symlink():
                raise PatchOutOfScope(f"{path}: {place.relative_to(self.root).as_posix()} is a symbolic link")
        try:
            return (self.root / path).lstat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise PatchError(f"{path}: cannot be read: {error.strerror}") from error


def changes_of(
    candidate: Candidate, originals: Mapping[str, bytes], *, modes: Mapping[str, Mode] | None = None
) -> tuple[FileChange, ...]:
    """The candidate's edits as bytes, in each file's own encoding; byte order mark and line endings stay.

    `originals` holds the files of the run's beginning; a path that is not there is created in UTF-8.
    Raises `PatchDoesNotApply` when the edits do not fit or the new text has no form in the file's encoding.
    """
    sources: dict[str, SourceText] = {
        path: read_source(originals[path]) for path in candidate.paths if path in originals
    }
    texts = candidate.apply({path: source.text for path, source in sources.items()})
    changes = []
    for path, text in texts.items():
        mode = (modes or {}).get(path, "100644")
        try:
            after = sources[path].encode(text) if path in sources else text.encode()
        except (PatchError, UnicodeEncodeError) as error:
            raise PatchDoesNotApply(f"{path}: {error}") from error
        if after != originals.get(path):
            changes.append(FileChange(path, originals.get(path), after, mode, mode))
    return tuple(changes)


def changes_from_directory(directory: Path, root: Path) -> tuple[FileChange, ...]:
    """What changes when the files below `directory` are laid over `root`; equal files are left out.

    Every file counts, hidden ones and byte code too: what must not be there is for the policy to refuse.
    """
    overlay, tree = Tree(directory), Tree(root)
    changes = []
    for path in _files_below(directory):
        try:
            after, mode = overlay.read(path), overlay.mode(path)
            before, mode_before = tree.read(path), tree.mode(path)
        except PatchOutOfScope:
            # The name or a link in it is the policy's to refuse, with its own words; no content is needed.
            after, mode, before, mode_before = b"", "100644", None, None
        if after is None or mode is None or (before, mode_before) == (after, mode):
            continue
        changes.append(FileChange(path, before, after, mode_before or "100644", mode))
    return tuple(changes)


def _files_below(directory: Path) -> list[str]:
    def fail(error: OSError) -> None:
        raise PatchError(f"{directory}: cannot be read: {error.strerror}") from error

    found = []
    for folder, folders, files in os.walk(directory, onerror=fail):
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        found += [(Path(folder) / name).relative_to(directory).as_posix() for name in (*files, *links)]
    return sorted(found)
