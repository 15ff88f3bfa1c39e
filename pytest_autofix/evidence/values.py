"""`Describer`: short, safe, stable texts of arbitrary values.

A value comes from a failing program, so nothing about it can be trusted: it may be huge, refer to itself, raise in
its own `__repr__`, or never return from it. Containers are walked here, item by item, until the limit is reached;
foreign code is only called under a time limit. Memory addresses are left out, since evidence is compared between runs.
"""

from __future__ import annotations

import dataclasses
import re
import signal
import threading
import time
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from types import BuiltinFunctionType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

import pytest

from pytest_autofix.redact import LONGEST_TOKEN, REDACTED, looks_secret, redact

__all__ = ["Describer", "type_name"]

_DEPTH = 6
_FOREIGN_SECONDS = 0.5  # one call of foreign code
_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")
_MOCK_ID = re.compile(r"(<[\w ]{0,40}Mock[^<>]{0,200}) id='\d+'")
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_OPAQUE = (
    "_pytest.",
    "pytest.",
    "pluggy.",
    "pytest_autofix.",
)  # their attributes are our tools, not evidence
_ATOMS = (bool, float, complex, type(None), type(...), type(NotImplemented), range)
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))
_BRACKETS: dict[type, tuple[str, str]] = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    set: ("{", "}"),
    frozenset: ("frozenset({", "})"),
    deque: ("deque([", "])"),
}


class Describer:
    """Describes the values of one failure; foreign code gets `seconds` of time in total, then is no longer called."""

    def __init__(self, *, seconds: float = 2.0) -> None:
        self._seconds = seconds

    def value(self, value: object, *, limit: int = 300) -> str:
        """A text like `repr`, of about `limit` characters at most; never raises."""
        try:
            text = _Walk(self, limit).describe(value, 0)
        except Exception:
            # A hostile metaclass, a container that a thread changes: part of the evidence is better than none.
            text = f"<{type_name(type(value))}>"
        return self.text(text, limit=limit + 64)

    def text(self, text: str, *, limit: int = 4000) -> str:
        """`text` without secrets, terminal colours and lone surrogates, cut in the middle to `limit` characters."""
        return _clean(text, limit)

    def exception_message(self, error: BaseException, *, limit: int = 8000) -> str:
        """`str(error)`, or a note why there is none."""
        if _plain_str(type(error)) and len(error.args) == 1 and type(error.args[0]) is str:
            return self.text(error.args[0], limit=limit)
        text, problem = self.call(str, error)
        return self.text(problem if text is None else text, limit=limit)

    def call(self, function: Callable[[Any], object], value: object) -> tuple[str | None, str]:
        """The text that foreign code makes of a value, or None and why there is none."""
        name = type_name(type(value))
        if self._seconds <= 0:
            return None, f"<{name}>"
        start = time.perf_counter()
        try:
            with _time_limit(min(_FOREIGN_SECONDS, self._seconds)):
                text = function(value)
        except _TooLong:
            return None, f"<{name}: {function.__name__} takes too long>"
        except (Exception, pytest.fail.Exception) as error:  # whatever a `__repr__` may raise
            return None, f"<{name}: {function.__name__} raised {type_name(type(error))}>"
        finally:
            self._seconds -= time.perf_counter() - start
        if not isinstance(text, str):
            return None, f"<{name}>"
        return str.__str__(text), ""


class _Walk:
    """One description: the characters that are left, and the containers that are being walked."""

    def __init__(self, describer: Describer, limit: int) -> None:
        self.describer = describer
        self.left = limit
        self.inside: set[int] = set()

    def describe(self, value: object, depth: int) -> str:
        before = self.left
        text = self._describe(value, depth)
        self.left = before - len(text)
        return text

    def _describe(self, value: Any, depth: int) -> str:
        kind = type(value)  # not `isinstance`, which asks the value for its `__class__`
        if kind in _ATOMS:
            return repr(value)
        if kind is int:
            bits = value.bit_length()  # printing is quadratic, and refused beyond 4300 digits
            return repr(value) if bits <= 2000 else f"<int of {bits} bits>"
        if kind is str:
            return repr(_cut(value, max(self.left, 16), redact))
        if kind in (bytes, bytearray):
            return self._bytes(value)
        if issubclass(kind, type):
            return f"<class '{type_name(value)}'>"
        if issubclass(kind, ModuleType):
            return f"<module '{getattr(value, '__name__', '?')}'>"
        if issubclass(kind, FunctionType | BuiltinFunctionType | MethodType):
            return f"<function {getattr(value, '__qualname__', '?')}>"
        if depth >= _DEPTH or self.left <= 0 or id(value) in self.inside:
            return "..."
        self.inside.add(id(value))
        try:
            return self._compound(value, kind, depth)
        finally:
            self.inside.discard(id(value))

    def _compound(self, value: Any, kind: type, depth: int) -> str:
        for base in (dict, *_BRACKETS):
            # An overridden `__iter__` is foreign code: the iterator of the base is used.
            if issubclass(kind, base) and _same_repr(kind, base):
                body = self._mapping(value, depth) if base is dict else self._sequence(value, base, depth)
                return body if kind is base else f"{kind.__name__}({body})"
        if kind in (OrderedDict, Counter):
            return f"{kind.__name__}({self._mapping(value, depth)})"
        if kind is defaultdict:
            return f"defaultdict({self.describe(value.default_factory, depth + 1)}, {self._mapping(value, depth)})"
        if kind in _VIEWS:
            return f"{kind.__name__}([{self._items(value, len(value), depth)}])"
        if issubclass(kind, tuple) and (names := _namedtuple_fields(kind)):
            return f"{kind.__name__}({self._pairs(zip(names, tuple.__iter__(value), strict=False), depth)})"
        if issubclass(kind, BaseException) and _same_repr(kind, BaseException):
            return f"{kind.__name__}({self._items(value.args, len(value.args), depth)})"
        if kind.__module__.startswith(_OPAQUE):
            return f"<{type_name(kind)}>"
        if names := _dataclass_fields(kind):
            return f"{kind.__qualname__}({self._pairs(_attributes(value, names), depth)})"
        if _same_repr(kind, object):
            attributes = self._pairs(_attributes(value, _attribute_names(value, kind)), depth, separator=" ")
            return f"<{kind.__qualname__}{' ' if attributes else ' object'}{attributes}>"
        text, problem = self.describer.call(repr, value)
        return problem if text is None else _clean(text, max(self.left, 16))

    def _bytes(self, value: bytes | bytearray) -> str:
        keep = max(self.left, 16)
        if len(value) <= keep:
            return repr(value)
        half = keep // 2
        return f"{bytes(value[:half])!r}...<{len(value)} bytes>...{bytes(value[-half:])!r}"

    def _sequence(self, value: Any, base: type, depth: int) -> str:
        opening, closing = _BRACKETS[base]
        size = base.__len__(value)  # type: ignore[attr-defined]  # every key of _BRACKETS is sized
        if not size and base in (set, frozenset):
            return f"{base.__name__}()"
        items = self._items(base.__iter__(value), size, depth, ordered=base not in (set, frozenset))  # type: ignore[attr-defined]  # and iterable
        return f"{opening}{items}{',' if base is tuple and size == 1 else ''}{closing}"

    def _items(self, items: Iterable[object], size: int, depth: int, *, ordered: bool = True) -> str:
        texts: list[str] = []
        for item in items:
            if self.left <= 0:
                break
            texts.append(self.describe(item, depth + 1))
            self.left -= 2
        if not ordered:
            texts.sort()
        return ", ".join(texts + _rest(size - len(texts)))

    def _mapping(self, value: dict[object, object], depth: int) -> str:
        texts: list[str] = []
        for key, item in dict.items(value):
            if self.left <= 0:
                break
            name = self.describe(key, depth + 1)
            secret = isinstance(key, str) and looks_secret(key)
            texts.append(f"{name}: {REDACTED if secret else self.describe(item, depth + 1)}")
            self.left -= 4
        return "{" + ", ".join(texts + _rest(dict.__len__(value) - len(texts))) + "}"

    def _pairs(self, pairs: Iterable[tuple[str, object]], depth: int, *, separator: str = ", ") -> str:
        texts: list[str] = []
        for name, item in islice(pairs, 50):
            if self.left <= 0:
                texts.append("...")
                break
            texts.append(f"{name}={REDACTED if looks_secret(name) else self.describe(item, depth + 1)}")
            self.left -= len(name) + 3
        return separator.join(texts)


def type_name(kind: type) -> str:
    """Qualified name of a type, builtins without a module; never raises."""
    try:
        module, name = kind.__module__, kind.__qualname__
    except Exception:  # a metaclass may do anything
        return "object"
    return str(name) if module == "builtins" else f"{module}.{name}"


def _same_repr(kind: Any, base: Any) -> bool:
    return bool(kind.__repr__ is base.__repr__)


def _plain_str(kind: Any) -> bool:
    return bool(kind.__str__ is BaseException.__str__)


def _rest(count: int) -> list[str]:
    return [f"... {count} more"] if count > 0 else []


def _namedtuple_fields(kind: type) -> tuple[str, ...]:
    fields = kind.__dict__.get("_fields", ())
    return fields if isinstance(fields, tuple) and all(type(name) is str for name in fields) else ()


def _dataclass_fields(kind: type) -> tuple[str, ...]:
    """Names of the fields to show if the `__repr__` was made by `dataclass`; a hand-written one knows better."""
    generated = getattr(getattr(kind.__repr__, "__wrapped__", None), "__code__", None)
    if generated is None or generated.co_filename != "<string>" or not dataclasses.is_dataclass(kind):
        return ()
    return tuple(field.name for field in dataclasses.fields(kind) if field.repr)


def _attribute_names(value: object, kind: type) -> tuple[str, ...]:
    try:
        names = list(object.__getattribute__(value, "__dict__"))
    except AttributeError:
        names = []
    for base in kind.__mro__:
        slots = base.__dict__.get("__slots__", ())
        names += [slots] if isinstance(slots, str) else list(slots)
    return tuple(name for name in names if type(name) is str and not name.startswith("__"))


def _attributes(value: object, names: Iterable[str]) -> Iterator[tuple[str, object]]:
    for name in names:
        try:
            yield name, object.__getattribute__(value, name)
        except AttributeError:  # a slot that was never set
            continue


def _clean(text: str, limit: int) -> str:
    return _cut(text, limit, _washed)


def _cut(text: str, limit: int, wash: Callable[[str], str]) -> str:
    """`text` washed and then cut in the middle; of a very long text only what can be seen is washed."""
    half = limit // 2
    if len(text) > limit + 2 * LONGEST_TOKEN:
        head, tail = wash(text[: half + LONGEST_TOKEN]), wash(text[-half - LONGEST_TOKEN :])
    else:
        head = tail = wash(text)
        if len(head) <= limit:
            return head
    return f"{head[:half]}...<{len(text)} characters>...{tail[len(tail) - half :]}"


def _washed(text: str) -> str:
    # pytest-xdist sends strict UTF-8: a lone surrogate would end the worker.
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    text = _ANSI.sub("", text)
    if "0x" in text or "Mock" in text:
        text = _MOCK_ID.sub(r"\1", _ADDRESS.sub("", text))
    return redact(text)


class _TooLong(BaseException):
    """Not an `Exception`, so that a `__repr__` with its own error handling does not swallow it."""


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Interrupt foreign Python code after `seconds`, where signals allow it; a running alarm is put off, not lost."""
    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise _TooLong

    start = time.perf_counter()
    old_handler = signal.getsignal(signal.SIGALRM)
    old_delay, old_interval = signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        try:
            signal.signal(signal.SIGALRM, interrupt)
            signal.setitimer(
                signal.ITIMER_REAL, seconds, 0.05
            )  # again and again: a bare `except:` may swallow one
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        if old_handler is not None:  # None: set by C code, cannot be put back
            signal.signal(signal.SIGALRM, old_handler)
        if old_delay:
            left = old_delay - (time.perf_counter() - start)
            signal.setitimer(signal.ITIMER_REAL, max(left, 0.001), old_interval)
