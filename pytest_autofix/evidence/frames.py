"""From tracebacks to `Frame`: which stack frames belong to the project, and what their variables held."""

from __future__ import annotations

import ast
import linecache
import os
import sysconfig
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType, TracebackType

from pytest_autofix.evidence.failure import Frame
from pytest_autofix.evidence.values import Describer
from pytest_autofix.redact import REDACTED, looks_secret

__all__ = ["Place", "ProjectPaths", "parse_file", "places", "source_line", "to_frames"]

_OUTERMOST, _INNERMOST = 8, 24  # frames kept of a deep stack: how it began, and where it ended
_LOCALS = 25  # variables of one frame
_LOCAL_LIMIT = 300  # characters of one variable
_LOCALS_BUDGET = 20_000  # characters of all variables of one stack
_LARGEST_FILE = 2_000_000  # bytes of source that are parsed for evidence


@dataclass(frozen=True, slots=True)
class Place:
    """A live frame inside the project and the line it executes. Never stored beyond one report."""

    frame: FrameType
    line: int
    path: str  #: relative to the root


class ProjectPaths:
    """Tells the project's own files from installed ones and names them relative to the root."""

    def __init__(self, root: Path) -> None:
        self._roots = tuple(dict.fromkeys((os.path.abspath(root), os.path.realpath(root))))  # noqa: PTH100  # keeps links
        libraries = {
            os.path.realpath(path)
            for name in ("stdlib", "platstdlib", "purelib", "platlib")
            if (path := sysconfig.get_paths().get(name))
        }
        self._libraries = tuple(
            f"{library}{os.sep}"
            for library in sorted(libraries)
            if not f"{self._roots[-1]}{os.sep}".startswith(f"{library}{os.sep}")
        )
        self._known: dict[str, str | None] = {}
        self._environments: dict[str, bool] = {}

    def relative(self, filename: str) -> str | None:
        """Path below the root with forward slashes, None for anything that is not the project's own file."""
        if filename not in self._known:
            self._known[filename] = self._relative(filename)
        return self._known[filename]

    def shorten(self, text: str) -> str:
        """`text` with absolute paths below the root made relative, so that it reads the same on every machine."""
        for root in self._roots:
            if len(root) > 1:
                text = text.replace(root + os.sep, "")
        return text

    def _relative(self, filename: str) -> str | None:
        if not filename or filename.startswith("<"):
            return None
        absolute = os.path.abspath(filename)  # noqa: PTH100  # a link inside the project keeps its name
        real = os.path.realpath(filename)
        if real.startswith(self._libraries):
            return None
        for root in self._roots:
            for path in (absolute, real):
                below = path.removeprefix(root.rstrip(os.sep) + os.sep)
                if below != path and not self._installed(root, below):
                    return below.replace(os.sep, "/")
        return None

    def _installed(self, root: str, below: str) -> bool:
        folders = Path(below).parts[:-1]
        if {"site-packages", "dist-packages"} & set(folders):
            return True
        return any(
            self._is_environment(os.path.join(root, *folders[: count + 1]))  # noqa: PTH118  # strings are the keys here
            for count in range(len(folders))
        )

    def _is_environment(self, folder: str) -> bool:
        if folder not in self._environments:
            self._environments[folder] = Path(folder, "pyvenv.cfg").exists()
        return self._environments[folder]


def places(traceback: TracebackType | None, paths: ProjectPaths) -> list[Place]:
    """The project's frames of a traceback, outermost first."""
    found: list[Place] = []
    while traceback is not None:
        frame = traceback.tb_frame
        path = paths.relative(frame.f_code.co_filename)
        # A module that is only being imported is listed as well: that is where an import error comes from.
        if path is not None:
            found.append(Place(frame, traceback.tb_lineno or frame.f_code.co_firstlineno, path))
        traceback = traceback.tb_next
    return found


def to_frames(stack: list[Place], describer: Describer) -> tuple[Frame, ...]:
    """Plain values of a stack; variables of the innermost frames first, until the budget is spent."""
    if len(stack) > _OUTERMOST + _INNERMOST:
        stack = stack[:_OUTERMOST] + stack[-_INNERMOST:]
    budget = _LOCALS_BUDGET
    frames: list[Frame] = []
    for place in reversed(stack):
        code = place.frame.f_code
        source = source_line(code.co_filename, place.line)
        variables = _variables(place, source, describer) if budget > 0 else {}
        budget -= sum(len(name) + len(text) for name, text in variables.items())
        frames.append(
            Frame(
                path=place.path,
                line=place.line,
                function=code.co_qualname,
                source=describer.text(source, limit=400),
                locals=variables,
            )
        )
    return tuple(reversed(frames))


def source_line(filename: str, line: int) -> str:
    """The text of a line without indentation, empty if there is none."""
    return linecache.getline(filename, line).strip()


def _variables(place: Place, source: str, describer: Describer) -> dict[str, str]:
    frame = place.frame
    values = frame.f_locals
    named = _words(source)
    names = [name for name in values if _shown(name, values[name])]
    if frame.f_code.co_name == "<module>":  # all globals: only what the line mentions
        names = [name for name in names if name in named]
    arguments = _argument_names(frame.f_code)
    names.sort(key=lambda name: (name not in named, name not in arguments))
    return {
        describer.text(name, limit=100): (
            REDACTED if looks_secret(name) else describer.value(values[name], limit=_LOCAL_LIMIT)
        )
        for name in names[:_LOCALS]
    }


def _shown(name: str, value: object) -> bool:
    # `@py_assert1` and the like are pytest's own; modules, functions and classes say nothing about this run.
    return (
        name.isidentifier()
        and not name.startswith("__")
        and not issubclass(type(value), ModuleType | FunctionType | type)
    )


def _words(source: str) -> set[str]:
    words = "".join(char if char.isidentifier() or char.isdigit() else " " for char in source[:1000])
    return set(words.split())


def _argument_names(code: CodeType) -> set[str]:
    return set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])


@lru_cache(maxsize=16)
def parse_file(filename: str) -> ast.Module | None:
    """Syntax tree of a source file as it was read for the traceback, None if it has none."""
    lines = linecache.getlines(filename)
    if sum(map(len, lines)) > _LARGEST_FILE:
        return None
    try:
        return ast.parse("".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
