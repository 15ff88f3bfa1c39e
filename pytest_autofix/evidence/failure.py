"""`Failure` and its parts: plain, frozen, JSON-able values. Knows nothing of pytest."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["Comparison", "ExceptionFact", "Failure", "Frame", "Kind", "Operand", "Phase"]

Kind = Literal[
    "assertion", "exception", "import", "syntax", "fixture", "timeout", "stub", "crash", "collection"
]
Phase = Literal["setup", "call", "teardown", "collect"]


@dataclass(frozen=True, slots=True)
class Frame:
    """One stack frame inside the project."""

    path: str  #: relative to rootdir, with forward slashes
    line: int  #: 1-based line that was being executed
    function: str  #: qualified name, `<module>` at module level
    source: str  #: text of that line, stripped
    locals: dict[str, str] = field(default_factory=dict)  #: bounded reprs


@dataclass(frozen=True, slots=True)
class Operand:
    """One side of a comparison that failed."""

    repr: str  #: bounded
    type: str  #: qualified type name, e.g. `int`, `decimal.Decimal`


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison that made the test fail, with both sides as they were."""

    operator: str  #: `==`, `<`, `in`, `is`, `raises`, …
    left: Operand
    right: Operand
    explanation: str = ""  #: pytest's own explanation, untruncated by pytest, bounded by us


@dataclass(frozen=True, slots=True)
class ExceptionFact:
    """One exception of a chain."""

    type: str  #: qualified type name, builtins without a module
    message: str
    frames: tuple[Frame, ...] = ()  #: frames inside rootdir only, outermost first


@dataclass(frozen=True, slots=True)
class Failure:
    """What pytest saw of one failing node."""

    nodeid: str
    phase: Phase
    kind: Kind
    message: str  #: one line for people
    path: str  #: test file, relative to rootdir
    function: str = ""  #: the test without parameters: `test_f`, `TestC::test_f`; empty for collection errors
    exceptions: tuple[ExceptionFact, ...] = ()  #: as raised: the one pytest saw first, then its causes
    comparison: Comparison | None = None
    parameters: dict[str, str] = field(default_factory=dict)  #: parametrisation, name → bounded repr
    fixtures: tuple[str, ...] = ()
    output: dict[str, str] = field(default_factory=dict)  #: captured sections, name → bounded text
    missing: tuple[str, str] | None = None  #: kind `import`: (module, name or "") that could not be had
    seconds: float = 0.0

    @property
    def frames(self) -> tuple[Frame, ...]:
        """Project frames of the exception that pytest saw, outermost first."""
        return self.exceptions[0].frames if self.exceptions else ()

    def to_json(self) -> dict[str, Any]:
        """Plain builtin values only, so that it survives pytest-xdist's serialiser."""
        return dataclasses.asdict(self, dict_factory=_plain_dict)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Failure:
        """The inverse of `to_json`; raises `pydantic.ValidationError` on a wrong shape."""
        from pydantic import TypeAdapter  # 50 ms, needed only where failures are solved

        return TypeAdapter(cls).validate_python(data)


def _plain_dict(items: list[tuple[str, Any]]) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in items}
