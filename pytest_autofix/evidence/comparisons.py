"""The comparison that made a test fail, with both sides as they were.

pytest hands the operands of a failed `assert` to a hook while the assert is running; everything else is read out of
the traceback afterwards: the arguments of `unittest`'s assert methods, what `raises` waited for, a doctest's wanted
and printed text, and the variables of an assert that pytest did not rewrite.
"""

from __future__ import annotations

import ast
import builtins
import doctest
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import FrameType, ModuleType, TracebackType
from typing import Any

import pytest

from pytest_autofix.evidence.failure import Comparison, Operand
from pytest_autofix.evidence.frames import Place, parse_file
from pytest_autofix.evidence.values import Describer, type_name

__all__ = ["AssertWatch", "doctest_comparison", "find_comparison"]

_OPERAND_LIMIT = 2000
_EXPLANATION_LIMIT = 8000
_TEXT_LIMIT = 4000

_UNITTEST: dict[str, tuple[str, str, str]] = {
    "assertEqual": ("==", "first", "second"),
    "assertNotEqual": ("!=", "first", "second"),
    "assertAlmostEqual": ("almost ==", "first", "second"),
    "assertNotAlmostEqual": ("almost !=", "first", "second"),
    "assertCountEqual": ("== in any order", "first_seq", "second_seq"),
    "assertMultiLineEqual": ("==", "first", "second"),
    "assertSequenceEqual": ("==", "seq1", "seq2"),
    "assertListEqual": ("==", "list1", "list2"),
    "assertTupleEqual": ("==", "tuple1", "tuple2"),
    "assertSetEqual": ("==", "set1", "set2"),
    "assertDictEqual": ("==", "d1", "d2"),
    "assertGreater": (">", "a", "b"),
    "assertGreaterEqual": (">=", "a", "b"),
    "assertLess": ("<", "a", "b"),
    "assertLessEqual": ("<=", "a", "b"),
    "assertIn": ("in", "member", "container"),
    "assertNotIn": ("not in", "member", "container"),
    "assertIs": ("is", "expr1", "expr2"),
    "assertIsNot": ("is not", "expr1", "expr2"),
    "assertIsInstance": ("isinstance", "obj", "cls"),
    "assertNotIsInstance": ("not isinstance", "obj", "cls"),
    "assertRegex": ("matches", "text", "expected_regex"),
    "assertNotRegex": ("does not match", "text", "unexpected_regex"),
}
"""Assert method → operator, and the names of its variables that hold the left and the right side."""
_UNITTEST_SINGLE: dict[str, tuple[str, str, object]] = {
    "assertTrue": ("bool ==", "expr", True),
    "assertFalse": ("bool ==", "expr", False),
    "assertIsNone": ("is", "obj", None),
    "assertIsNotNone": ("is not", "obj", None),
}
_OPERATORS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}
_RAISES = ("raises", "assertRaises", "assertRaisesRegex")
_NOT_THE_TEST = ("_pytest.", "pluggy.", "pytest_autofix.")
_NOTHING_RAISED = Operand("no exception", "NoneType")
_UNKNOWN = object()


@dataclass(frozen=True, slots=True)
class _Watched:
    filename: str
    first_line: int
    line: int
    comparison: Comparison


class AssertWatch:
    """Remembers the last failing comparison of a rewritten assert, and where it stood.

    An assert may fail without failing the test (inside `try`, in a loop that waits), so a comparison counts only if
    the exception that ended the test comes from the very same line.
    """

    def __init__(self) -> None:
        self._last: _Watched | None = None

    def see(
        self, config: pytest.Config, op: str, left: object, right: object, explained: Sequence[Any]
    ) -> None:
        """Called from within `pytest_assertrepr_compare`; `explained` are the results of all its implementations."""
        frame = _asserting_frame()
        if frame is None:
            return
        describer = Describer()
        sides = (_operand(left, describer), _operand(right, describer))
        lines = _explanation(config, op, left, right, explained, full=all(_complete(side) for side in sides))
        text = describer.text("\n".join(lines), limit=_EXPLANATION_LIMIT)
        code = frame.f_code
        self._last = _Watched(
            code.co_filename, code.co_firstlineno, frame.f_lineno, Comparison(op, *sides, explanation=text)
        )

    def take(self, traceback: TracebackType | None) -> Comparison | None:
        """The remembered comparison if this traceback ends where it was made; forgets it in any case."""
        last, self._last = self._last, None
        while traceback is not None and traceback.tb_next is not None:
            traceback = traceback.tb_next
        if last is None or traceback is None:
            return None
        code = traceback.tb_frame.f_code
        here = (code.co_filename, code.co_firstlineno, traceback.tb_lineno)
        return last.comparison if here == (last.filename, last.first_line, last.line) else None


def find_comparison(
    error: BaseException, traceback: TracebackType | None, stack: list[Place], describer: Describer
) -> Comparison | None:
    """The comparison behind an exception as far as its frames tell, None if there is none."""
    explanation = describer.exception_message(error, limit=_EXPLANATION_LIMIT)
    frames = _all_frames(traceback)
    found = _from_unittest(frames, describer) or _from_raises(error, frames, describer)
    if found is None and isinstance(error, AssertionError):
        found = _from_plain_assert(stack, describer)
    if found is None and not isinstance(error, AssertionError | pytest.fail.Exception):
        found = _from_enclosing_raises(error, stack, describer)
    if found is None:
        return None
    return Comparison(found.operator, found.left, found.right, explanation)


def doctest_comparison(failure: doctest.DocTestFailure, describer: Describer) -> Comparison:
    """What the example printed on the left, what it should print on the right."""
    return Comparison(
        "==",
        Operand(describer.text(failure.got, limit=_TEXT_LIMIT), "doctest output"),
        Operand(describer.text(failure.example.want, limit=_TEXT_LIMIT), "doctest output"),
        describer.text(f">>> {failure.example.source}", limit=_TEXT_LIMIT),
    )


def _operand(value: object, describer: Describer) -> Operand:
    return Operand(describer.value(value, limit=_OPERAND_LIMIT), type_name(type(value)))


def _complete(operand: Operand) -> bool:
    return len(operand.repr) < _OPERAND_LIMIT


def _asserting_frame() -> FrameType | None:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and f"{frame.f_globals.get('__name__', '')}.".startswith(_NOT_THE_TEST):
        frame = frame.f_back
    return frame


def _explanation(
    config: pytest.Config, op: str, left: object, right: object, explained: Sequence[Any], *, full: bool
) -> list[str]:
    """The lines that pytest shows; without truncation if the operands are small enough for a complete diff.

    The complete one is made by asking pytest's own implementation again as if `-vv` had been given. A diff of large
    operands may take minutes there, hence `full`.
    """
    first = next((lines for lines in explained if lines), None)
    builtin = config.pluginmanager.get_plugin("assertion")
    if full and builtin is not None and len([lines for lines in explained if lines]) == 1:
        first = (
            builtin.pytest_assertrepr_compare(config=_Verbose(config), op=op, left=left, right=right) or first
        )
    # A plugin may return an iterator, which is pytest's to consume.
    return [str(line) for line in first] if isinstance(first, list | tuple) else []


class _Verbose:
    """A `Config` that answers as if `-vv` had been given; everything else is the real one's."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def get_verbosity(self, _kind: str | None = None) -> int:
        return 2

    def __getattr__(self, name: str) -> Any:
        return getattr(self._config, name)


def _all_frames(traceback: TracebackType | None) -> list[FrameType]:
    frames = []
    while traceback is not None:
        frames.append(traceback.tb_frame)
        traceback = traceback.tb_next
    return frames


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _from_unittest(frames: list[FrameType], describer: Describer) -> Comparison | None:
    """Arguments of the outermost assert method: `assertEqual` calls `assertListEqual` calls `assertSequenceEqual`."""
    if not frames or "__unittest" not in frames[-1].f_globals:
        return None
    for frame in frames:
        name = frame.f_code.co_name
        if "__unittest" not in frame.f_globals or not name.startswith("assert"):
            continue
        values = frame.f_locals
        if name in _UNITTEST:
            operator, left, right = _UNITTEST[name]
            if left in values and right in values:
                return Comparison(
                    operator, _operand(values[left], describer), _operand(values[right], describer)
                )
        elif name in _UNITTEST_SINGLE:
            operator, left, expected = _UNITTEST_SINGLE[name]
            if left in values:
                return Comparison(operator, _operand(values[left], describer), _operand(expected, describer))
    return None


def _from_raises(error: BaseException, frames: list[FrameType], describer: Describer) -> Comparison | None:
    """`pytest.raises` and `assertRaises`, failing by themselves or called with a function: expected, happened."""
    for frame in reversed(frames):
        values, name, module = frame.f_locals, frame.f_code.co_name, _module(frame)
        manager = values.get("self")
        if module in ("_pytest.raises", "_pytest.python_api") and name in ("__exit__", "raises"):
            expected = values.get("expected_exception", _UNKNOWN)
            for attribute in ("expected_exceptions", "expected_exception"):
                expected = getattr(manager, attribute, expected)
            happened = values.get("exc_val") if name == "__exit__" else error
        elif module == "unittest.case" and name == "__exit__":
            expected = getattr(manager, "expected", _UNKNOWN)
            happened = values.get("exc_value")
        elif module == "unittest.case" and name in ("assertRaises", "assertRaisesRegex"):
            expected = values.get("expected_exception", _UNKNOWN)
            happened = error
        else:
            continue
        if expected is not _UNKNOWN:
            return Comparison("raises", _expected(expected, describer), _happened(happened, describer))
    return None


def _happened(error: object, describer: Describer) -> Operand:
    return _NOTHING_RAISED if error is None else _operand(error, describer)


def _expected(expected: object, describer: Describer) -> Operand:
    kinds = expected if isinstance(expected, tuple) else (expected,)
    text = " or ".join(type_name(k) if isinstance(k, type) else describer.value(k) for k in kinds)
    return Operand(text, "type")


def _from_plain_assert(stack: list[Place], describer: Describer) -> Comparison | None:
    """`assert got == want` in a module that pytest did not rewrite: names and constants can be looked up."""
    if not stack:
        return None
    place = stack[-1]
    tree = parse_file(place.frame.f_code.co_filename)
    for node in ast.walk(tree) if tree is not None else ():
        if not isinstance(node, ast.Assert) or not node.lineno <= place.line <= (node.end_lineno or 0):
            continue
        test = node.test
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            left, right = _look_up(test.left, place.frame), _look_up(test.comparators[0], place.frame)
            if left is not _UNKNOWN and right is not _UNKNOWN:
                return Comparison(
                    _OPERATORS[type(test.ops[0])], _operand(left, describer), _operand(right, describer)
                )
    return None


def _from_enclosing_raises(
    error: BaseException, stack: list[Place], describer: Describer
) -> Comparison | None:
    """Another exception than the expected one passes through `with pytest.raises(...)`: read what was expected."""
    for place in reversed(stack):
        tree = parse_file(place.frame.f_code.co_filename)
        if tree is None:
            continue
        for node in ast.walk(tree):
            if not isinstance(node, ast.With | ast.AsyncWith) or not _holds(node, place):
                continue
            for item in node.items:
                expression = _expected_expression(item.context_expr)
                if expression is None:
                    continue
                expected = _look_up(expression, place.frame)
                if expected is _UNKNOWN:
                    wanted = Operand(describer.text(ast.unparse(expression), limit=300), "type")
                elif _is_expected(error, expected):
                    continue
                else:
                    wanted = _expected(expected, describer)
                return Comparison("raises", wanted, _happened(error, describer))
    return None


def _holds(node: ast.With | ast.AsyncWith, place: Place) -> bool:
    return (
        node.body[0].lineno <= place.line <= (node.end_lineno or 0)
        and place.frame.f_code.co_firstlineno <= node.lineno
    )


def _expected_expression(call: ast.expr) -> ast.expr | None:
    if not isinstance(call, ast.Call):
        return None
    name = getattr(call.func, "attr", None) or getattr(call.func, "id", None)
    if name not in _RAISES:
        return None
    keyword = next((k.value for k in call.keywords if k.arg == "expected_exception"), None)
    return call.args[0] if call.args else keyword


def _is_expected(error: BaseException, expected: object) -> bool:
    kinds = expected if isinstance(expected, tuple) else (expected,)
    return any(isinstance(kind, type) and kind in type(error).__mro__ for kind in kinds)


def _look_up(node: ast.expr, frame: FrameType) -> Any:
    """Value of a name, a constant, an attribute of a module, or a tuple of those. Runs no code of the project."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        for scope in (frame.f_locals, frame.f_globals, vars(builtins)):
            if node.id in scope:
                return scope[node.id]
    elif isinstance(node, ast.Attribute):
        owner = _look_up(node.value, frame)
        if isinstance(owner, ModuleType):
            return vars(owner).get(node.attr, _UNKNOWN)
    elif isinstance(node, ast.Tuple):
        values = tuple(_look_up(element, frame) for element in node.elts)
        if not any(value is _UNKNOWN for value in values):
            return values
    return _UNKNOWN
