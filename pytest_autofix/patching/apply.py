"""Carry a parsed patch out on a tree, in memory and exactly: no fuzz, no guess.

Sequence as in git: changes of one file add up in order; a rename or a copy reads the file as it was before the
whole patch, so that two files can change places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from pytest_autofix.errors import PatchDoesNotApply, PatchOutOfScope
from pytest_autofix.patching.changes import FileChange, Mode, split_lines
from pytest_autofix.patching.names import unsafe_name
from pytest_autofix.patching.parse import FilePatch, Hunk

__all__ = ["apply_patch"]

MAX_DRIFT = 100
"""Lines by which a hunk may have moved, and only if its old lines stand nowhere else in the file."""

Read = Callable[[str], bytes | None]


def apply_patch(
    parsed: Iterable[FilePatch], read: Read, *, mode_of: Callable[[str], Mode | None] | None = None
) -> tuple[FileChange, ...]:
    """What the patch does to the tree that `read` shows, sorted by path; nothing is written.

    `mode_of` tells links and executable files; without it the patch is believed. Both must not follow links
    (`changes.Tree` has both). Raises `PatchDoesNotApply` with the place that differs, `PatchOutOfScope` for a
    name that leaves the tree.
    """
    state = _State(read, mode_of or (lambda path: None))
    patches = tuple(parsed)
    for patch in patches:
        for path in (patch.old_path, patch.new_path):
            if reason := unsafe_name(path):
                raise PatchOutOfScope(f"{path!r}: {reason}")
    state.leaving = {patch.old_path for patch in patches if patch.operation in ("rename", "delete")}
    for patch in patches:
        state.carry_out(patch)
    return state.changes()


@dataclass(slots=True)
class _State:
    read: Read
    mode_of: Callable[[str], Mode | None]
    leaving: set[str] = field(default_factory=set)  #: names that the patch frees
    written: dict[str, tuple[bytes, Mode]] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    origins: dict[str, str] = field(default_factory=dict)
    claimed: dict[str, Mode] = field(
        default_factory=dict
    )  #: old modes the patch names, where the tree has none

    def carry_out(self, patch: FilePatch) -> None:
        old, new = patch.old_path, patch.new_path
        if patch.operation == "create":
            self._must_be_free(new)
            content = _apply_hunks(new, b"", patch.hunks)
            self.written[new] = (content, patch.new_mode or "100644")
            return
        moved = patch.operation in ("rename", "copy")
        content, mode = self._original(old) if moved else self._current(old)
        mode = self._checked_mode(patch, mode)
        content = _apply_hunks(old, content, patch.hunks)
        if patch.operation == "delete":
            if content:
                raise PatchDoesNotApply(
                    f"{old}: deleted by the patch, but it holds more than the patch takes away"
                )
            self.written.pop(old, None)
            self.removed.add(old)
            return
        if moved:
            self._must_be_free(new)
            self.origins[new] = old
            if patch.operation == "rename":
                self.removed.add(old)
        self.written[new] = (content, patch.new_mode if patch.new_mode else mode)

    def changes(self) -> tuple[FileChange, ...]:
        found = []
        for path in sorted(self.removed | self.written.keys()):
            before = self.read(path)
            mode_before = self.mode_of(path) or self.claimed.get(path, "100644")
            after, mode_after = self.written.get(path, (None, mode_before))
            if before is None and after is None:
                continue
            if (before, mode_before) != (after, mode_after):
                found.append(
                    FileChange(path, before, after, mode_before, mode_after, self.origins.get(path, ""))
                )
        return tuple(found)

    def _must_be_free(self, path: str) -> None:
        if path in self.written or (path not in self.leaving and self.read(path) is not None):
            raise PatchDoesNotApply(f"{path}: created by the patch, but it exists")

    def _original(self, path: str) -> tuple[bytes, Mode | None]:
        content = self.read(path)
        if content is None:
            raise PatchDoesNotApply(f"{path}: no such file in the tree")
        if path in self.written and path not in self.origins:
            raise PatchDoesNotApply(f"{path}: changed by the patch and renamed or copied by it as well")
        return content, self.mode_of(path)

    def _current(self, path: str) -> tuple[bytes, Mode | None]:
        if path in self.written:
            return self.written[path]
        content = None if path in self.removed else self.read(path)
        if content is None:
            raise PatchDoesNotApply(f"{path}: no such file in the tree")
        return content, self.mode_of(path)

    def _checked_mode(self, patch: FilePatch, mode: Mode | None) -> Mode:
        """The mode before; a link and a file are never taken for each other."""
        if mode is None:
            self.claimed[patch.old_path] = mode = patch.old_mode or "100644"
            return mode
        if (mode == "120000") != (patch.old_mode == "120000"):
            is_link = mode == "120000"
            raise PatchDoesNotApply(
                f"{patch.old_path}: a {'symbolic link' if is_link else 'file'} in the tree,"
                f" a {'file' if is_link else 'symbolic link'} in the patch"
            )
        return mode


def _apply_hunks(path: str, content: bytes, hunks: Iterable[Hunk]) -> bytes:
    lines = split_lines(content)
    result: list[bytes] = []
    done = drift = 0
    for number, hunk in enumerate(hunks, 1):
        start = _place(path, number, lines, hunk, done, drift)
        drift = start - _stated(hunk)
        result += lines[done:start]
        result += hunk.new
        done = start + len(hunk.old)
    result += lines[done:]
    if any(not line.endswith(b"\n") for line in result[:-1]):
        raise PatchDoesNotApply(f"{path}: the patch puts lines behind a last line without a line end")
    return b"".join(result)


def _stated(hunk: Hunk) -> int:
    """0-based position that the header names."""
    return hunk.old_start - 1 if hunk.old else hunk.old_start


def _place(path: str, number: int, lines: list[bytes], hunk: Hunk, done: int, drift: int) -> int:
    old = list(hunk.old)
    wanted = _stated(hunk) + drift

    def fits(position: int) -> bool:
        if position < done or lines[position : position + len(old)] != old:
            return False
        # As in git: a hunk at the first line, and one without context behind it, say "here the file begins, ends".
        if hunk.old_start <= 1 and hunk.trailing and position:
            return False
        return not (hunk.leading and not hunk.trailing) or position + len(old) == len(lines)

    if wanted <= len(lines) and fits(wanted):
        return wanted
    if hunk.leading or hunk.trailing:
        # An insertion without context, or bare lines to take away, prove nothing about where they belong.
        places = [position for position in range(done, len(lines) - len(old) + 1) if fits(position)]
        if len(places) == 1 and abs(places[0] - wanted) <= MAX_DRIFT:
            return places[0]
        if len(places) > 1:
            raise PatchDoesNotApply(
                f"{path}: hunk {number} ({hunk.header}) is not where it says and fits in {len(places)} places"
            )
    raise PatchDoesNotApply(
        f"{path}: hunk {number} ({hunk.header}) does not fit: {_difference(lines, old, wanted)}"
    )


def _difference(lines: list[bytes], old: list[bytes], wanted: int) -> str:
    if not lines and old:
        return "the file is empty"
    for offset, expected in enumerate(old):
        position = wanted + offset
        if not 0 <= position < len(lines):
            return (
                f"the file has {len(lines)} lines, the patch expects {_show(expected)} in line {position + 1}"
            )
        if lines[position] != expected:
            found = lines[position]
            if found.rstrip(b"\r\n") == expected.rstrip(b"\r\n"):
                return (
                    f"line {position + 1} has another line end ({_show(found)}, expected {_show(expected)})"
                )
            return f"line {position + 1} is {_show(found)}, the patch expects {_show(expected)}"
    if not old and not 0 <= wanted <= len(lines):
        return f"the file has {len(lines)} lines"
    return "the file goes on where the patch says it begins or ends"


def _show(line: bytes) -> str:
    text = line.decode("utf-8", "replace")
    return ascii(text if len(text) <= 60 else text[:57] + "...")
