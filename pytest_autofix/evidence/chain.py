"""Exceptions without pytest's wrapping: what holds them, what caused them, what they say."""

from __future__ import annotations

import ast
import doctest
import re
from collections.abc import Iterator
from types import TracebackType

import pytest

from pytest_autofix.evidence.frames import parse_file
from pytest_autofix.evidence.values import Describer

__all__ = [
    "doctest_failure",
    "exception_chain",
    "exception_text",
    "is_timeout",
    "leaves_of",
    "missing_import",
    "only_raises",
    "tracebacks",
]

_CHAIN = 8  # exceptions of one failure
_TIMEOUT = re.compile(r"Timeout \(?>")
_NAME_NOT_FOUND = re.compile(r"cannot import name '([^']+)'")


def exception_chain(error: BaseException) -> Iterator[BaseException]:
    """The exception that ended the phase, without pytest's wrapping, then what it holds and what caused it."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [_unwrapped(error)]
    while waiting and len(seen) < _CHAIN:
        current = waiting.pop(0)
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        inner = list(leaves_of(current)) if isinstance(current, BaseExceptionGroup) else []
        cause = current.__cause__
        if cause is None and not current.__suppress_context__:
            cause = current.__context__
        waiting = [*inner, cause, *waiting]


def leaves_of(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    waiting: list[BaseException] = [group]
    for _ in range(1000):
        if not waiting:
            return
        current = waiting.pop(0)
        if isinstance(current, BaseExceptionGroup):
            waiting = [*current.exceptions, *waiting]
        else:
            yield current


def _unwrapped(error: BaseException) -> BaseException:
    """pytest reports an import error as a text in an exception of its own; the real one is its cause."""
    for _ in range(_CHAIN):
        failure = doctest_failure(error)
        if isinstance(failure, doctest.UnexpectedException):
            error = failure.exc_info[1]
        elif isinstance(failure, doctest.DocTestFailure):
            return failure
        elif type(error).__module__.startswith("_pytest.") and not isinstance(error, pytest.fail.Exception):
            inner = getattr(error, "cause", None) or error.__cause__
            if not isinstance(inner, BaseException):
                return error
            error = inner
        else:
            return error
    return error


def doctest_failure(error: BaseException) -> doctest.DocTestFailure | doctest.UnexpectedException | None:
    failures = getattr(error, "failures", None) if type(error).__module__ == "_pytest.doctest" else None
    first = failures[0] if failures else error
    return first if isinstance(first, doctest.DocTestFailure | doctest.UnexpectedException) else None


def exception_text(error: BaseException, describer: Describer) -> str:
    if isinstance(error, doctest.DocTestFailure):
        example = error.example.source.strip()
        got, want = error.got.strip(), error.example.want.strip()
        return describer.text(f"{example} printed {got!r}, expected {want!r}")
    argument = getattr(error, "argname", None)
    if type(error).__name__ == "FixtureLookupError" and argument is not None:
        # Its own text shows the internal request object.
        return describer.text(getattr(error, "msg", None) or f"fixture '{argument}' not found")
    return describer.exception_message(error)


def is_timeout(error: BaseException, describer: Describer) -> bool:
    if not isinstance(error, pytest.fail.Exception):
        return False
    return _TIMEOUT.match(describer.exception_message(error)) is not None


def missing_import(error: BaseException) -> tuple[str, str] | None:
    """Module, and name in it, that could not be imported."""
    if not isinstance(error, ImportError) or not isinstance(error.name, str):
        return None
    if isinstance(error, ModuleNotFoundError):
        return error.name, ""
    name = getattr(error, "name_from", None)  # since Python 3.12
    if name is None:
        found = _NAME_NOT_FOUND.match(str(error.msg))
        name = found[1] if found else ""
    return error.name, str(name)


def only_raises(filename: str, name: str, line: int) -> bool:
    """Whether the function around a line consists of one `raise`, a docstring aside."""
    tree = parse_file(filename)
    for node in ast.walk(tree) if tree is not None else ():
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name != name:
            continue
        body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
        if node.lineno <= line <= (node.end_lineno or 0):
            return len(body) == 1 and isinstance(body[0], ast.Raise)
    return False


def tracebacks(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next
