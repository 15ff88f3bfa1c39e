"""What messages, frames and operands of a failure tell the search."""

from __future__ import annotations

import pytest

from pytest_autofix.candidates.search.facts import Facts, facts_of, type_of_repr
from pytest_autofix.evidence.failure import Comparison, ExceptionFact, Failure, Frame, Operand
from pytest_autofix.tasks.task import Task


def facts(kind: str, message: str, *frames: Frame) -> Facts:
    exception = ExceptionFact(kind, message, frames)
    return facts_of(
        Task(
            "0",
            (Failure("t.py::test", "call", "exception", message, "t.py", exceptions=(exception,)),),
            (),
            (),
        )
    )


@pytest.mark.parametrize(
    ("kind", "message", "field", "expected"),
    [
        pytest.param(
            "NameError",
            "name 'lenght' is not defined. Did you mean: 'length'?",
            "undefined",
            {"lenght"},
            id="name",
        ),
        pytest.param(
            "UnboundLocalError",
            "cannot access local variable 'n' where it is not associated with a value",
            "undefined",
            {"n"},
            id="unbound",
        ),
        pytest.param(
            "AttributeError",
            "'NoneType' object has no attribute 'x'",
            "attributes",
            {"x": "NoneType"},
            id="attribute",
        ),
        pytest.param(
            "AttributeError",
            "module 'math' has no attribute 'sqr'",
            "attributes",
            {"sqr": "math"},
            id="module",
        ),
        pytest.param(
            "AttributeError",
            "type object 'Shape' has no attribute 'area'",
            "attributes",
            {"area": "Shape"},
            id="type",
        ),
        pytest.param(
            "TypeError",
            "draw() got an unexpected keyword argument 'color'",
            "unexpected_keywords",
            {"color": "draw"},
            id="keyword",
        ),
        pytest.param(
            "TypeError",
            "Shape.draw() missing 2 required positional arguments: 'x' and 'y'",
            "missing_arguments",
            {"draw": ("x", "y")},
            id="missing",
        ),
        pytest.param(
            "TypeError", "f() takes 1 positional argument but 2 were given", "wrong_counts", {"f"}, id="count"
        ),
        pytest.param("TypeError", "'int' object is not callable", "not_callable", True, id="not-callable"),
        pytest.param(
            "TypeError",
            "unsupported operand type(s) for +: 'method' and 'int'",
            "functions_compared",
            True,
            id="method",
        ),
        pytest.param(
            "ImportError",
            "cannot import name 'dequeue' from 'collections' (/x.py)",
            "missing_names",
            {"dequeue": "collections"},
            id="import-name",
        ),
        pytest.param(
            "ModuleNotFoundError", "No module named 'maths'", "missing_modules", {"maths"}, id="no-module"
        ),
        pytest.param("KeyError", "'colour'", "missing_keys", {"colour"}, id="key"),
        pytest.param(
            "Failed",
            "DID NOT RAISE <class 'ValueError'>",
            "expected_exceptions",
            ("ValueError",),
            id="did-not-raise",
        ),
        pytest.param(
            "Failed",
            "DID NOT RAISE ValueError",
            "expected_exceptions",
            ("ValueError",),
            id="did-not-raise-new",
        ),
        pytest.param("ValueError", "name 'x' is odd", "undefined", set(), id="not-a-name-error"),
    ],
)
def test_messages(kind: str, message: str, field: str, expected: object) -> None:
    assert getattr(facts(kind, message), field) == expected


def test_frames_give_crash_lines_types_and_constants() -> None:
    found = facts(
        "ZeroDivisionError",
        "division by zero",
        Frame("t.py", 3, "test", "assert mean([], key='total') == 12", {"x": "1"}),
        Frame(
            "m.py", 7, "Stat.mean", "return sum(x) / n", {"x": "[1, 2]", "n": "0", "self": "<Stat at 0x1>"}
        ),
    )
    assert found.crash_lines == {("m.py", 7)}
    assert found.frame_lines == {("t.py", 3), ("m.py", 7)}
    assert found.raised == {"ZeroDivisionError"}
    assert found.types["m.py", "Stat.mean"] == {"x": "list", "n": "int"}
    assert set(found.values) == {"total", 12}


def test_an_assertion_of_the_test_is_no_crash() -> None:
    found = facts("AssertionError", "assert 1 == 2", Frame("t.py", 3, "test", "assert f() == 2"))
    assert found.crash_lines == frozenset()
    assert found.raised == frozenset()


def test_operands_and_parameters_give_constants() -> None:
    comparison = Comparison(
        "==", Operand("['a', -1.5", "list"), Operand("<bound method C.size of 1>", "method")
    )
    failure = Failure(
        "t.py::test", "call", "assertion", "", "t.py", comparison=comparison, parameters={"n": "{'k': 40}"}
    )
    found = facts_of(Task("0", (failure,), (), ()))
    assert {"a", "k", 40} <= set(found.values)
    assert found.functions_compared


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("True", "bool"),
        ("None", "NoneType"),
        ("-3", "int"),
        ("1.5", "float"),
        ("inf", "float"),
        ("'a", "str"),
        ("b'a'", "bytes"),
        ("[1, ...", "list"),
        ("(1,)", "tuple"),
        ("{1, 2}", "set"),
        ("{'a': 1}", "dict"),
        ("{}", "dict"),
        ("set()", "set"),
        ("deque([])", "deque"),
        ("<function f at 0x1>", "function"),
        ("<Node>", ""),
        ("Point(x=1)", ""),
    ],
)
def test_types_of_reprs(text: str, kind: str) -> None:
    assert type_of_repr(text) == kind
