"""`Candidate`: a set of edits to allowed files, where it came from, and its normalised hash."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from pytest_autofix.errors import PatchDoesNotApply

__all__ = ["Candidate", "Edit", "Origin", "normalised_hash"]


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Replace `source[start:end]` of one file by `text`; offsets count characters of the decoded text."""

    path: str  #: relative to rootdir, with forward slashes
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a candidate came from."""

    source: Literal["search", "model", "memory", "patch"]
    operator: str = ""  #: search: name of the operator, `a+b` for a pair
    model: str = ""
    prompt: str = ""  #: name and version of the prompt file


@dataclass(frozen=True)
class Candidate:
    """Edits relative to the original files of the run. An edit of a missing file creates it."""

    edits: tuple[Edit, ...]
    origin: Origin
    score: float = 0.0  #: the source's own estimate; comparable within one source only

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """The files that are changed, each once, sorted."""
        return tuple(sorted({edit.path for edit in self.edits}))

    def apply(self, originals: Mapping[str, str]) -> dict[str, str]:
        """New text of every changed file, line endings as in `originals` (decoded without translation).

        Raises `PatchDoesNotApply` when edits overlap or lie outside the text.
        """
        changed: dict[str, str] = {}
        for path in self.paths:
            text = originals.get(path, "")
            edits = sorted(edit for edit in self.edits if edit.path == path)
            pieces: list[str] = []
            position = 0
            for edit in edits:
                if not position <= edit.start <= edit.end <= len(text):
                    raise PatchDoesNotApply(f"{path}: edit {edit.start}..{edit.end} overlaps or lies outside")
                pieces += (text[position : edit.start], edit.text)
                position = edit.end
            pieces.append(text[position:])
            changed[path] = "".join(pieces)
        return changed


def normalised_hash(files: Mapping[str, str]) -> str:
    """16 hexadecimal digits that are equal for candidates whose files have the same syntax tree.

    Comments, layout and quotes do not count; a file that does not parse is hashed as text.
    """
    digest = hashlib.sha256()
    for path in sorted(files):
        try:
            form = ast.dump(ast.parse(files[path]))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            form = files[path]
        digest.update(f"{path}\0{form}\0".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]
