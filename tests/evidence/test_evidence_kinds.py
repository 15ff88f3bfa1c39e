"""Every kind of failure, from real pytest runs: kind, place, message and chain."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from pytest_autofix.evidence.failure import Failure
from pytest_autofix.evidence.recorder import Recorder

Only = Callable[..., Failure]
Record = Callable[..., Recorder]

LIB = """
def add(a, b):
    return a - b

def divide(a, b):
    total = [a, b]
    return a / b

class Stack:
    def __init__(self):
        self.items = []

    def pop(self):
        return self.items.pop()

class Shape:
    def area(self):
        '''Later.'''
        raise NotImplementedError
"""

CASES = [
    pytest.param(
        "def test_x():\n    assert lib.add(1, 2) == 3\n",
        ("assertion", "call", "assert -1 == 3", "test_x", [("test_lib.py", 4, "test_x")]),
        id="assertion",
    ),
    pytest.param(
        "def test_x():\n    lib.divide(1, 0)\n",
        (
            "exception",
            "call",
            "ZeroDivisionError: division by zero",
            "test_x",
            [("test_lib.py", 4, "test_x"), ("lib.py", 6, "divide")],
        ),
        id="exception",
    ),
    pytest.param(
        "def test_x():\n    lib.Shape().area()\n",
        (
            "stub",
            "call",
            "NotImplementedError",
            "test_x",
            [("test_lib.py", 4, "test_x"), ("lib.py", 18, "Shape.area")],
        ),
        id="stub",
    ),
    pytest.param(
        "def test_x():\n    def fake():\n        raise NotImplementedError\n    fake()\n",
        (
            "exception",
            "call",
            "NotImplementedError",
            "test_x",
            [("test_lib.py", 6, "test_x"), ("test_lib.py", 5, "test_x.<locals>.fake")],
        ),
        id="fake-in-the-test-is-no-stub",
    ),
    pytest.param(
        "def test_x():\n    import not_there.at_all\n",
        (
            "import",
            "call",
            "ModuleNotFoundError: No module named 'not_there'",
            "test_x",
            [("test_lib.py", 4, "test_x")],
        ),
        id="import-in-a-test",
    ),
    pytest.param(
        "def test_x():\n    pytest.fail('not yet')\n",
        ("assertion", "call", "not yet", "test_x", [("test_lib.py", 4, "test_x")]),
        id="pytest-fail",
    ),
    pytest.param(
        "@pytest.fixture\ndef broken():\n    lib.divide(1, 0)\ndef test_x(broken):\n    pass\n",
        (
            "fixture",
            "setup",
            "ZeroDivisionError: division by zero",
            "test_x",
            [("test_lib.py", 5, "broken"), ("lib.py", 6, "divide")],
        ),
        id="fixture-setup",
    ),
    pytest.param(
        "@pytest.fixture\ndef broken():\n    yield\n    assert lib.add(1, 1) == 2\ndef test_x(broken):\n    pass\n",
        ("fixture", "teardown", "assert 0 == 2", "test_x", [("test_lib.py", 6, "broken")]),
        id="fixture-teardown",
    ),
    pytest.param(
        "def test_x(no_such_fixture):\n    pass\n",
        ("fixture", "setup", "FixtureLookupError: fixture 'no_such_fixture' not found", "test_x", []),
        id="fixture-missing",
    ),
    pytest.param(
        "class TestA:\n    class TestB:\n        def test_x(self):\n            lib.Stack().pop()\n",
        (
            "exception",
            "call",
            "IndexError: pop from empty list",
            "TestA::TestB::test_x",
            [("test_lib.py", 6, "TestA.TestB.test_x"), ("lib.py", 13, "Stack.pop")],
        ),
        id="nested-classes",
    ),
    pytest.param(
        "import unittest\nclass TestU(unittest.TestCase):\n    def test_x(self):\n"
        "        self.assertEqual(lib.add(1, 2), 3)\n",
        ("assertion", "call", "-1 != 3", "TestU::test_x", [("test_lib.py", 6, "TestU.test_x")]),
        id="unittest",
    ),
    pytest.param(
        "import unittest\nclass TestU(unittest.TestCase):\n    def setUp(self):\n        lib.divide(1, 0)\n"
        "    def test_x(self):\n        pass\n",
        (
            "exception",
            "call",
            "ZeroDivisionError: division by zero",
            "TestU::test_x",
            [("test_lib.py", 6, "TestU.setUp"), ("lib.py", 6, "divide")],
        ),
        id="unittest-set-up",
    ),
    pytest.param(
        "@pytest.mark.asyncio\nasync def test_x():\n    assert lib.add(1, 2) == 3\n",
        ("assertion", "call", "assert -1 == 3", "test_x", [("test_lib.py", 5, "test_x")]),
        id="asyncio",
    ),
    pytest.param(
        "@pytest.fixture\ndef anyio_backend():\n    return 'trio'\n"
        "@pytest.mark.anyio\nasync def test_x(anyio_backend):\n    lib.divide(1, 0)\n",
        (
            "exception",
            "call",
            "ZeroDivisionError: division by zero",
            "test_x",
            [("test_lib.py", 8, "test_x"), ("lib.py", 6, "divide")],
        ),
        id="anyio-trio",
    ),
]


@pytest.mark.parametrize(("test", "expected"), CASES)
def test_one_failing_test(only: Only, test: str, expected: tuple[object, ...]) -> None:
    failure = only({"lib.py": LIB, "test_lib.py": f"import pytest\nimport lib\n{test}"})
    frames = [(frame.path, frame.line, frame.function) for frame in failure.frames]
    assert (failure.kind, failure.phase, failure.message, failure.function, frames) == expected
    assert failure.path == "test_lib.py"
    assert Failure.from_json(json.loads(json.dumps(failure.to_json()))) == failure


def test_locals_parameters_fixtures_and_output(only: Only) -> None:
    failure = only(
        {
            "lib.py": LIB,
            "test_lib.py": """
            import pytest, sys, lib
            @pytest.fixture
            def base():
                return 7
            @pytest.mark.parametrize(("a", "b"), [(1, 0)])
            def test_x(a, b, base, tmp_path):
                print("to out")
                print("to err", file=sys.stderr)
                stack = lib.Stack()
                lib.divide(a, b)
            """,
        }
    )
    assert failure.nodeid == "test_lib.py::test_x[1-0]"
    assert failure.parameters == {"a": "1", "b": "0"}
    assert failure.fixtures == ("base", "tmp_path")
    assert failure.output == {"Captured stdout call": "to out\n", "Captured stderr call": "to err\n"}
    test, divide = failure.frames
    assert (test.locals["stack"], test.locals["base"]) == ("<Stack items=[]>", "7")
    assert divide.locals == {"a": "1", "b": "0", "total": "[1, 0]"}
    assert divide.source == "return a / b"


@pytest.mark.parametrize(
    ("test", "types"),
    [
        pytest.param(
            "try:\n        lib.divide(1, 0)\n    except ZeroDivisionError as e:\n        raise KeyError('k') from e",
            ["KeyError", "ZeroDivisionError"],
            id="cause",
        ),
        pytest.param(
            "try:\n        lib.divide(1, 0)\n    finally:\n        raise KeyError('k')",
            ["KeyError", "ZeroDivisionError"],
            id="context",
        ),
        pytest.param(
            "try:\n        lib.divide(1, 0)\n    except ZeroDivisionError:\n        raise KeyError('k') from None",
            ["KeyError"],
            id="suppressed",
        ),
        pytest.param(
            "err = KeyError('k')\n    err.__cause__ = TypeError()\n    err.__cause__.__cause__ = err\n    raise err",
            ["KeyError", "TypeError"],
            id="circular",
        ),
        pytest.param(
            "raise ExceptionGroup('g', [ValueError(1), ExceptionGroup('h', [TypeError(2)])])",
            ["ExceptionGroup", "ValueError", "TypeError"],
            id="group",
        ),
    ],
)
def test_chain_of_exceptions(only: Only, test: str, types: list[str]) -> None:
    failure = only({"lib.py": LIB, "test_lib.py": f"import lib\ndef test_x():\n    {test}\n"})
    assert [fact.type for fact in failure.exceptions] == types
    assert failure.kind == "exception"


def test_a_decorated_stub_shows_the_function_behind_the_decorator(only: Only) -> None:
    failure = only(
        {
            "decorator.py": """
            __name__ = "pytest_autofix"
            def autosolve(function):
                def unsolved(*args, **kwargs):
                    raise NotImplementedError(f"{function.__qualname__} is to be solved")
                return unsolved
            """,
            "lib.py": "from decorator import autosolve\n@autosolve\ndef area(width):\n    ...\n",
            "test_x.py": "import lib\ndef test_x():\n    lib.area(3)\n",
        }
    )
    assert (failure.kind, failure.message) == ("stub", "NotImplementedError: area is to be solved")
    stub = failure.frames[-1]
    assert (stub.path, stub.function, stub.source) == ("lib.py", "area", "@autosolve")


def test_a_group_of_assertions_is_an_assertion(only: Only) -> None:
    failure = only(
        {
            "test_lib.py": """
            def test_x():
                errors = []
                for number in (1, 2):
                    try:
                        assert number == 3
                    except AssertionError as error:
                        errors.append(error)
                raise ExceptionGroup("checks", errors)
            """
        }
    )
    assert failure.kind == "assertion"
    assert [frame.line for frame in failure.exceptions[1].frames] == [5]


def test_collection_errors_of_several_files(record: Record) -> None:
    recorder = record(
        {
            "lib.py": LIB,
            "broken.py": "def f(:\n    pass\n",
            "test_module.py": "import not_there\n",
            "test_name.py": "from lib import subtract\n",
            "test_syntax.py": "import broken\n",
            "test_zero.py": "import lib\nlib.divide(1, 0)\n",
            "test_fine.py": "def test_fine():\n    pass\n",
        },
        "--continue-on-collection-errors",
    )
    found = {failure.nodeid: failure for failure in recorder.failures()}
    assert {name: (failure.kind, failure.phase, failure.missing) for name, failure in found.items()} == {
        "test_module.py": ("import", "collect", ("not_there", "")),
        "test_name.py": ("import", "collect", ("lib", "subtract")),
        "test_syntax.py": ("syntax", "collect", None),
        "test_zero.py": ("collection", "collect", None),
    }
    assert found["test_module.py"].exceptions[0].type == "ModuleNotFoundError"
    assert found["test_name.py"].exceptions[0].message == "cannot import name 'subtract' from 'lib' (lib.py)"
    broken = found["test_syntax.py"].frames[-1]
    assert (broken.path, broken.line, broken.source) == ("broken.py", 1, "def f(:")
    assert [frame.path for frame in found["test_zero.py"].frames] == ["test_zero.py", "lib.py"]
    assert recorder.outcomes()["test_fine.py::test_fine"] == "passed"


def test_a_conftest_that_cannot_be_imported(only: Only) -> None:
    failure = only(
        {"sub/conftest.py": "import not_there\n", "sub/test_x.py": "def test_x():\n    pass\n"}, "."
    )
    assert (failure.kind, failure.missing) == ("import", ("not_there", ""))
    assert failure.frames[-1].path == "sub/conftest.py"


def test_doctest_modules_report_a_broken_file_once(record: Record) -> None:
    failures = record({"test_x.py": "import not_there\n"}, "--doctest-modules").failures()
    assert [failure.nodeid for failure in failures] == ["test_x.py"]


def test_doctests(record: Record) -> None:
    wrong, raised = record(
        {
            "lib.py": '''
            def double(x):
                """
                >>> double(2)
                4
                """
                return x + 1

            def half(x):
                """
                >>> half(2)
                1
                """
                return x / 0
            '''
        },
        "--doctest-modules",
    ).failures()
    assert (wrong.kind, wrong.message) == ("assertion", "double(2) printed '3', expected '4'")
    assert wrong.comparison is not None
    assert (wrong.comparison.left.repr, wrong.comparison.right.repr) == ("3\n", "4\n")
    assert [(frame.path, frame.line, frame.source) for frame in wrong.frames] == [("lib.py", 3, "double(2)")]
    assert (raised.kind, raised.exceptions[0].type) == ("exception", "ZeroDivisionError")
    assert [(frame.path, frame.line) for frame in raised.frames] == [("lib.py", 10), ("lib.py", 13)]


@pytest.mark.skipif(not hasattr(pytest, "Subtests"), reason="subtests are part of pytest since 9.0")
def test_subtests_count_as_one_failure_with_their_parameters(record: Record) -> None:
    recorder = record(
        {
            "test_x.py": """
            import unittest
            def test_function(subtests):
                for i in range(3):
                    with subtests.test("row", i=i):
                        assert i == 1
            def test_passing(subtests):
                with subtests.test():
                    pass
            class TestU(unittest.TestCase):
                def test_method(self):
                    for i in range(3):
                        with self.subTest(i=i):
                            self.assertEqual(i, 1)
            """
        }
    )
    function, method = recorder.failures()
    assert (function.nodeid, function.parameters) == ("test_x.py::test_function", {"i": "0"})
    assert (method.nodeid, method.parameters) == ("test_x.py::TestU::test_method", {"i": "0"})
    for failure in (function, method):
        assert failure.comparison is not None
        assert (failure.comparison.left.repr, failure.comparison.right.repr) == ("0", "1")
    assert recorder.outcomes() == {
        "test_x.py::test_function": "failed",
        "test_x.py::test_passing": "passed",
        "test_x.py::TestU::test_method": "failed",
    }


def test_expected_failures_and_skips_are_no_failures(record: Record) -> None:
    recorder = record(
        {
            "test_x.py": """
            import pytest, unittest
            @pytest.mark.xfail
            def test_xfail(): assert 0
            @pytest.mark.xfail(strict=True)
            def test_strict_xpass(): pass
            @pytest.mark.xfail
            def test_xpass(): pass
            @pytest.mark.xfail(raises=ValueError)
            def test_other_exception(): assert 0
            def test_skip(): pytest.skip("no")
            class TestU(unittest.TestCase):
                @unittest.expectedFailure
                def test_expected(self): self.fail()
            """
        }
    )
    assert recorder.failures() == ()
    assert recorder.outcomes() == {
        "test_x.py::test_xfail": "xfailed",
        "test_x.py::test_strict_xpass": "failed",
        "test_x.py::test_xpass": "xfailed",
        "test_x.py::test_other_exception": "failed",
        "test_x.py::test_skip": "skipped",
        "test_x.py::TestU::test_expected": "xfailed",
    }


def test_the_first_failing_phase_wins(only: Only) -> None:
    failure = only(
        {
            "test_x.py": """
            import pytest
            @pytest.fixture
            def late():
                yield
                raise OSError("late")
            def test_x(late):
                raise ValueError("early")
            """
        }
    )
    assert (failure.phase, failure.message) == ("call", "ValueError: early")


def test_failure_without_an_exception(only: Only) -> None:
    failure = only(
        {
            "conftest.py": """
            import pytest
            @pytest.hookimpl(wrapper=True)
            def pytest_runtest_makereport(item, call):
                report = yield
                if call.when == "call":
                    report.outcome, report.longrepr = "failed", "style: too long\\nline 3"
                return report
            """,
            "test_x.py": "def test_x():\n    pass\n",
        }
    )
    assert (failure.kind, failure.message) == ("exception", "style: too long")
    assert failure.function == "test_x"
    assert failure.exceptions[0].message == "style: too long\nline 3"


def test_only_the_project_s_own_frames(only: Only, pytester: pytest.Pytester) -> None:
    call = "def call(function):\n    return function()\n"
    failure = only(
        {
            "env/pyvenv.cfg": "",
            "env/vendored.py": call,
            "third/site-packages/installed.py": call,
            "helpers/own.py": call,
            "test_x.py": """
            import json, sys
            sys.path += ["env", "third/site-packages", "helpers"]
            import installed, own, vendored
            def test_x():
                vendored.call(lambda: installed.call(lambda: own.call(lambda: json.loads("{"))))
            """,
        }
    )
    assert [frame.path for frame in failure.frames] == ["test_x.py"] * 3 + ["helpers/own.py", "test_x.py"]
    assert failure.exceptions[0].type == "json.decoder.JSONDecodeError"


def test_deep_recursion_is_shortened(only: Only) -> None:
    failure = only({"test_x.py": "def test_x(n=0):\n    test_x(n + 1)\n"})
    assert failure.exceptions[0].type == "RecursionError"
    assert failure.frames[0].locals == {"n": "0"}
    assert len(failure.frames) == 32
    assert len(json.dumps(failure.to_json())) < 20_000


def test_collected_and_durations(record: Record) -> None:
    recorder = record(
        {"test_x.py": "import time\ndef test_a():\n    time.sleep(0.05)\ndef test_b():\n    pass\n"},
        "-k",
        "test_a",
    )
    assert recorder.collected() == ("test_x.py::test_a",)
    assert list(recorder.durations()) == ["test_x.py::test_a"]
    assert recorder.durations()["test_x.py::test_a"] >= 0.05
