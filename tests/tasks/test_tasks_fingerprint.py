from __future__ import annotations

import subprocess
import sys

import pytest

from pytest_autofix.evidence.failure import ExceptionFact, Failure
from pytest_autofix.tasks.causes import explain
from pytest_autofix.tasks.fingerprint import base_nodeid, fingerprint, normalise_message
from pytest_autofix.tasks.task import Target

TARGET = Target("m.py", "f", 1, 5, 0.9)


def failing(nodeid: str = "t.py::test_a", message: str = "assert 1 == 2", **kwargs: object) -> Failure:
    values: dict[str, object] = {"kind": "assertion", "exceptions": (ExceptionFact("AssertionError", ""),)}
    return Failure(nodeid, "call", message=message, path="t.py", **(values | kwargs))  # type: ignore[arg-type]  # table


BASE = fingerprint([failing()], TARGET)


@pytest.mark.parametrize(
    ("failures", "target"),
    [
        pytest.param([failing(), failing()], TARGET, id="twice"),
        pytest.param([failing("t.py::test_a[3-x]")], TARGET, id="a-row"),
        pytest.param([failing("t.py::test_a[1]"), failing("t.py::test_a[2]")], TARGET, id="rows"),
        pytest.param([failing(message="assert 3.5 == -17")], TARGET, id="other-numbers"),
        pytest.param([failing(seconds=3.0, output={"stdout": "x"})], TARGET, id="time-and-output"),
        pytest.param([failing()], Target("m.py", "f", 40, 80, 0.1), id="the-target-moved"),
    ],
)
def test_same_cause_same_fingerprint(failures, target) -> None:
    assert fingerprint(failures, target) == BASE


@pytest.mark.parametrize(
    ("failures", "target"),
    [
        pytest.param([failing("t.py::test_b")], TARGET, id="other-test"),
        pytest.param([failing(), failing("t.py::test_b")], TARGET, id="one-more-test"),
        pytest.param([failing(kind="exception")], TARGET, id="other-kind"),
        pytest.param([failing(exceptions=(ExceptionFact("KeyError", ""),))], TARGET, id="other-exception"),
        pytest.param([failing(message="assert f(1) is None")], TARGET, id="other-message"),
        pytest.param([failing()], Target("m.py", "g", 1, 5, 0.9), id="other-function"),
        pytest.param([failing()], Target("n.py", "f", 1, 5, 0.9), id="other-file"),
        pytest.param([failing()], None, id="no-target"),
    ],
)
def test_other_cause_other_fingerprint(failures, target) -> None:
    assert fingerprint(failures, target) != BASE


def test_order_does_not_count_and_the_form_is_16_hexadecimal_digits() -> None:
    one, two = failing("t.py::test_a"), failing("t.py::test_b")
    assert fingerprint([one, two], TARGET) == fingerprint([two, one], TARGET)
    assert len(BASE) == 16
    assert set(BASE) <= set("0123456789abcdef")


def test_another_process_with_another_hash_seed_agrees() -> None:
    script = (
        "from pytest_autofix.evidence.failure import *; from pytest_autofix.tasks.task import Target\n"
        "from pytest_autofix.tasks.fingerprint import fingerprint\n"
        "f = Failure('t.py::test_a', 'call', 'assertion', 'assert 1 == 2', 't.py',"
        " exceptions=(ExceptionFact('AssertionError', ''),))\n"
        "g = Failure('t.py::test_b', 'call', 'assertion', 'assert 1 == 2', 't.py',"
        " exceptions=(ExceptionFact('AssertionError', ''),))\n"
        "print(fingerprint([f, g], Target('m.py', 'f', 1, 5, 0.9)))"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert seen == {fingerprint([failing(), failing("t.py::test_b")], TARGET)}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param("KeyError: 'alice'", "KeyError: ''", id="quotes"),
        pytest.param('ValueError: no "it\'s" here', "ValueError: no '' here", id="quotes-in-quotes"),
        pytest.param("<Box object at 0x7f3a> != None", "<Box object at #> != None", id="address"),
        pytest.param("assert -1.5e10 == 3", "assert # == #", id="numbers"),
        pytest.param("cannot open /tmp/pytest-of-me/x-1/data.csv", "cannot open /", id="absolute-path"),
        pytest.param(r"cannot open C:\Users\me\x.csv now", "cannot open / now", id="windows-path"),
        pytest.param("id 123e4567-e89b-12d3-a456-426614174000", "id #", id="uuid"),
        pytest.param("\n  first line\nsecond", "first line", id="first-line-with-text"),
        pytest.param("a/b == c", "a/b == c", id="a-division-stays"),
        pytest.param("", "", id="empty"),
        pytest.param("x" * 5000, "x" * 200, id="bounded"),
        pytest.param("\ud800 lone", "\ud800 lone", id="surrogate"),
    ],
)
def test_normalise_message(message: str, expected: str) -> None:
    assert normalise_message(message) == expected
    assert fingerprint([failing(message=message)], None)


@pytest.mark.parametrize(
    ("nodeid", "path", "expected"),
    [
        pytest.param("t.py::test_a[1]", "t.py", "t.py::test_a", id="row"),
        pytest.param("t.py::C::test_a[a::b[0]]", "t.py", "t.py::C::test_a", id="odd-row"),
        pytest.param("t[1].py::test_a[1]", "t[1].py", "t[1].py::test_a", id="bracket-in-the-file-name"),
        pytest.param("t.py", "t.py", "t.py", id="file"),
    ],
)
def test_base_nodeid(nodeid: str, path: str, expected: str) -> None:
    failure = Failure(nodeid, "call", "assertion", "", path)
    assert base_nodeid(failure) == expected


@pytest.mark.parametrize(
    ("doubts", "prefer", "expected"),
    [
        pytest.param({}, {}, {}, id="nothing"),
        pytest.param({"a": {}}, {}, {}, id="no-cause"),
        pytest.param(
            {"a": {"x": 0}, "b": {"x": 0, "y": 0}}, {}, {"a": "x", "b": "x"}, id="what-explains-both"
        ),
        pytest.param(
            {"a": {"x": 0, "u": 1}, "b": {"y": 0, "u": 1}}, {}, {"a": "x", "b": "y"}, id="doubt-parts"
        ),
        pytest.param(
            {name: {name.upper(): 0, "u": 9} for name in "abcdefgh"},
            {},
            dict.fromkeys("abcdefgh", "u"),
            id="many-outweigh-doubt",
        ),
        pytest.param(
            {"a": {"u": 0}, "b": {"u": 400}, "c": {"u": 0}},
            {},
            dict.fromkeys("abc", "u"),
            id="the-only-cause-of-a-doubtful-one",
        ),
        pytest.param({"a": {"x": 0, "y": 0}}, {"a": ["y"]}, {"a": "y"}, id="preference-among-equals"),
    ],
)
def test_explain(doubts, prefer, expected) -> None:
    assert explain(doubts, prefer=prefer) == expected
