"""What the failing runs told: names, types and values that steer which edits are tried, and how early."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pytest_autofix.candidates.search.source import quiet_parse
from pytest_autofix.evidence.failure import Failure, Frame
from pytest_autofix.tasks.task import Task

__all__ = ["Facts", "Value", "facts_of", "type_of_repr"]

Value = str | int | float | bool | None

_MAX_VALUES = 40
_MAX_TEXT = 80  #: characters of a string constant; a longer one is data, not a value to put into code

_UNDEFINED = re.compile(r"(?:name|variable) '(\w+)'")
_NO_ATTRIBUTE = re.compile(
    r"(?:'([\w.]+)' object|type object '([\w.]+)'|module '([\w.]+)') has no attribute '(\w+)'"
)
_UNEXPECTED = re.compile(r"([\w.<>]+)\(\) got an unexpected keyword argument '(\w+)'")
_MISSING = re.compile(r"([\w.<>]+)\(\) missing \d+ required (?:positional|keyword-only) arguments?: (.+)")
_COUNT = re.compile(r"([\w.<>]+)\(\) takes (?:from )?(?:exactly )?(\d+).* (?:but|\() ?(\d+)")
_NO_NAME = re.compile(r"cannot import name '(\w+)' from (?:partially initialized module )?'([\w.]+)'")
_NO_MODULE = re.compile(r"No module named '([\w.]+)'")
_KEY = re.compile(r"^(['\"])(.*)\1$")
_DID_NOT_RAISE = re.compile(r"DID NOT RAISE.*?(?:<class '([\w.]+)'>|(\w+(?:\.\w+)*)\b[^\w.]*$)")
_CALLABLES = ("method", "function", "builtin_function_or_method")
_QUOTED = re.compile(r"'([^']+)'")


@dataclass(frozen=True)
class Facts:
    """All facts of one task; empty ones mean only that nothing was seen."""

    undefined: frozenset[str] = frozenset()  #: names of NameError and UnboundLocalError
    attributes: Mapping[str, str] = field(
        default_factory=dict
    )  #: missing attribute → type or module that lacks it
    unexpected_keywords: Mapping[str, str] = field(
        default_factory=dict
    )  #: keyword → function that rejects it
    missing_arguments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  #: function → parameters
    wrong_counts: frozenset[str] = frozenset()  #: functions called with too many positional arguments
    missing_names: Mapping[str, str] = field(default_factory=dict)  #: name → module it cannot be had from
    missing_modules: frozenset[str] = frozenset()
    missing_keys: frozenset[str] = frozenset()  #: string keys of KeyError
    raised: frozenset[str] = frozenset()  #: exception types that ended a test, without module
    expected_exceptions: tuple[str, ...] = ()  #: what `pytest.raises` waited for, without module
    crash_lines: frozenset[tuple[str, int]] = frozenset()  #: (path, line) where an exception came up
    frame_lines: frozenset[tuple[str, int]] = frozenset()  #: (path, line) of all frames
    types: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)
    """(path, qualified name) → local variable → builtin type name"""
    functions_compared: bool = False  #: a function or method stood where a value was expected
    not_callable: bool = False  #: a value was called
    values: tuple[Value, ...] = ()  #: constants in the tests' comparisons and parameters, the rarest last

    def has_raised(self, *names: str) -> bool:
        return not self.raised.isdisjoint(names)


def facts_of(task: Task) -> Facts:
    """Everything that the messages, frames and operands of the task's failures say."""
    return _Reader(task).facts()


def type_of_repr(text: str) -> str:
    """Builtin type name of a value by its (bounded) repr, empty if the repr does not tell.

    >>> type_of_repr("[1, 2, ..."), type_of_repr("-3"), type_of_repr("<Node at 0x7f>")
    ('list', 'int', '')
    """
    text = text.strip()
    if text in ("True", "False"):
        return "bool"
    if text == "None":
        return "NoneType"
    if re.match(r"-?\d[\d_]*(?:\.\.\.)?$", text):
        return "int"
    if re.match(r"-?(?:\d|inf|nan)", text):
        return "float"
    if re.match(r"[bB]['\"]", text):
        return "bytes"
    if text[:1] in ("'", '"'):
        return "str"
    if text.startswith("["):
        return "list"
    if text.startswith("("):
        return "tuple"
    if text.startswith(("set(", "frozenset(")):
        return "set"
    if text.startswith("deque("):
        return "deque"
    if text.startswith(("defaultdict(", "OrderedDict(", "Counter(")):
        return "dict"
    if text.startswith(("<function", "<bound method", "<built-in")):
        return "function"
    if text.startswith("{"):
        return "dict" if re.match(r"\{\s*\}|\{[^,{\[(]*:", text) else "set"
    return ""


class _Reader:
    """Reads one task; a class because many small things are collected side by side."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.undefined: set[str] = set()
        self.attributes: dict[str, str] = {}
        self.unexpected: dict[str, str] = {}
        self.missing: dict[str, tuple[str, ...]] = {}
        self.wrong_counts: set[str] = set()
        self.names: dict[str, str] = {}
        self.modules: set[str] = set()
        self.keys: set[str] = set()
        self.raised: set[str] = set()
        self.expected: dict[str, None] = {}
        self.crashes: set[tuple[str, int]] = set()
        self.lines: set[tuple[str, int]] = set()
        self.types: dict[tuple[str, str], dict[str, str]] = {}
        self.functions_compared = False
        self.not_callable = False
        self.values: dict[tuple[str, Value], None] = {}

    def facts(self) -> Facts:
        for failure in self.task.failures:
            self._failure(failure)
        return Facts(
            undefined=frozenset(self.undefined),
            attributes=self.attributes,
            unexpected_keywords=self.unexpected,
            missing_arguments=self.missing,
            wrong_counts=frozenset(self.wrong_counts),
            missing_names=self.names,
            missing_modules=frozenset(self.modules),
            missing_keys=frozenset(self.keys),
            raised=frozenset(self.raised),
            expected_exceptions=tuple(self.expected),
            crash_lines=frozenset(self.crashes),
            frame_lines=frozenset(self.lines),
            types=self.types,
            functions_compared=self.functions_compared,
            not_callable=self.not_callable,
            values=tuple(value for _, value in self.values)[:_MAX_VALUES],
        )

    def _failure(self, failure: Failure) -> None:
        for exception in failure.exceptions:
            name = exception.type.rpartition(".")[2]
            self._message(name, exception.message)
            inside = [frame for frame in exception.frames if frame.path != failure.path]
            if inside:
                self.raised.add(name)
            if exception.frames and exception.frames[-1].path != failure.path:
                last = exception.frames[-1]
                self.crashes.add((last.path, last.line))
            for frame in exception.frames:
                self._frame(frame)
                if frame.path == failure.path:
                    self._constants(frame.source)
        if not failure.exceptions:
            self._message("", failure.message)
        if failure.missing is not None:
            module, name = failure.missing
            if name:
                self.names[name] = module
            else:
                self.modules.add(module)
        if failure.comparison is not None:
            sides = (failure.comparison.right, failure.comparison.left)
            if failure.comparison.operator == "raises":
                self.expected.update((side.repr.rpartition(".")[2].strip("'<>"), None) for side in sides[1:])
            if any(side.type.rpartition(".")[2] in _CALLABLES for side in sides):
                self.functions_compared = True
            for side in sides:
                self._constants(side.repr)
        for text in failure.parameters.values():
            self._constants(text)

    def _message(self, kind: str, message: str) -> None:
        if kind in ("NameError", "UnboundLocalError", ""):
            self.undefined.update(
                found[1] for found in _UNDEFINED.finditer(message) if kind or "is not defined" in message
            )
        for found in _NO_ATTRIBUTE.finditer(message):
            self.attributes[found[4]] = found[1] or found[2] or found[3]
        if "object is not callable" in message:
            self.not_callable = True
        if "'method'" in message or "'function'" in message:
            self.functions_compared = True
        for found in _UNEXPECTED.finditer(message):
            self.unexpected[found[2]] = found[1].rpartition(".")[2]
        for found in _MISSING.finditer(message):
            self.missing[found[1].rpartition(".")[2]] = tuple(_QUOTED.findall(found[2]))
        for found in _COUNT.finditer(message):
            self.wrong_counts.add(found[1].rpartition(".")[2])
        for found in _NO_NAME.finditer(message):
            self.names[found[1]] = found[2]
        self.modules.update(found[1] for found in _NO_MODULE.finditer(message))
        if kind == "KeyError" and (key := _KEY.match(message)):
            self.keys.add(key[2])
        for found in _DID_NOT_RAISE.finditer(message):
            self.expected[(found[1] or found[2]).rpartition(".")[2]] = None

    def _frame(self, frame: Frame) -> None:
        self.lines.add((frame.path, frame.line))
        known = self.types.setdefault((frame.path, frame.function), {})
        for name, text in frame.locals.items():
            if kind := type_of_repr(text):
                known.setdefault(name, kind)

    def _constants(self, text: str) -> None:
        for value in _constants_in(text):
            if isinstance(value, str) and not 0 < len(value) <= _MAX_TEXT:
                continue
            self.values[type(value).__name__, value] = None


def _constants_in(text: str) -> Iterator[Value]:
    """Constants of a line of source or of a repr, also of one that was cut or is the head of a block."""
    if len(text) > 2000:
        text = text[:2000]
    tree = quiet_parse(text) or quiet_parse(
        text.rstrip(":, ") + (": pass" if text.rstrip().endswith(":") else "")
    )
    if tree is None:
        for found in re.finditer(r"'([^'\\]*)'|\"([^\"\\]*)\"|(?<![\w.])(-?\d+)(?![\w.])", text):
            yield int(found[3][:18]) if found[3] else (found[1] or found[2] or "")
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, (str, int, float, bool)):
            yield node.value
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = node.operand.value if isinstance(node.operand, ast.Constant) else None
            if isinstance(value, (int, float)):
                yield -value
