"""Operands of the comparison that made a test fail."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_autofix.evidence.failure import Failure

Only = Callable[..., Failure]

ASSERTS = [
    pytest.param("assert 1 + 1 == 3", ("==", "2", "int", "3", "int"), id="equal"),
    pytest.param("assert 'b' in ['a']", ("in", "'b'", "str", "['a']", "list"), id="in"),
    pytest.param("assert 'a' not in {'a': 1}", ("not in", "'a'", "str", "{'a': 1}", "dict"), id="not-in"),
    pytest.param("assert not 2 >= 1.5 or 3 < 2", ("<", "3", "int", "2", "int"), id="last-of-or"),
    pytest.param("assert 1 < 5 < 3", ("<", "5", "int", "3", "int"), id="chained"),
    pytest.param(
        "x = None\n    assert x is not None", ("is not", "None", "NoneType", "None", "NoneType"), id="is-not"
    ),
    pytest.param(
        "assert (\n        [1,\n         2]\n        ==\n        [1]\n    ), 'own message'",
        ("==", "[1, 2]", "list", "[1]", "list"),
        id="several-lines",
    ),
    pytest.param(
        "assert Decimal('1.5') == Decimal('2')",
        ("==", "Decimal('1.5')", "decimal.Decimal", "Decimal('2')", "decimal.Decimal"),
        id="qualified-type",
    ),
    pytest.param(
        "assert Point(1, [2]) == Point(1, [3])",
        ("==", "Point(x=1, y=[2])", "test_x.Point", "Point(x=1, y=[3])", "test_x.Point"),
        id="dataclass",
    ),
]


@pytest.mark.parametrize(("test", "expected"), ASSERTS)
def test_rewritten_asserts(only: Only, test: str, expected: tuple[str, ...]) -> None:
    failure = only(
        {
            "test_x.py": "from dataclasses import dataclass\nfrom decimal import Decimal\n"
            f"@dataclass\nclass Point:\n    x: int\n    y: list\ndef test_x():\n    {test}\n"
        }
    )
    found = failure.comparison
    assert found is not None
    assert (found.operator, found.left.repr, found.left.type, found.right.repr, found.right.type) == expected
    assert found.explanation


UNITTEST = [
    pytest.param("self.assertEqual(1, 2)", ("==", "1", "2"), id="assertEqual"),
    pytest.param("self.assertEqual([1], [2])", ("==", "[1]", "[2]"), id="assertEqual-lists"),
    pytest.param(
        "self.assertEqual({'a': 1}, {'a': 2})", ("==", "{'a': 1}", "{'a': 2}"), id="assertEqual-dicts"
    ),
    pytest.param("self.assertEqual('a', 'b', 'why')", ("==", "'a'", "'b'"), id="assertEqual-strings"),
    pytest.param("self.assertAlmostEqual(1.0, 1.5)", ("almost ==", "1.0", "1.5"), id="assertAlmostEqual"),
    pytest.param("self.assertCountEqual([1], [2])", ("== in any order", "[1]", "[2]"), id="assertCountEqual"),
    pytest.param("self.assertIn(1, [2])", ("in", "1", "[2]"), id="assertIn"),
    pytest.param("self.assertLess(2, 1)", ("<", "2", "1"), id="assertLess"),
    pytest.param("self.assertTrue([])", ("bool ==", "[]", "True"), id="assertTrue"),
    pytest.param("self.assertIsNone(3)", ("is", "3", "None"), id="assertIsNone"),
    pytest.param(
        "self.assertIsInstance(3, str)", ("isinstance", "3", "<class 'str'>"), id="assertIsInstance"
    ),
    pytest.param("self.assertRegex('ab', 'c')", ("matches", "'ab'", "re.compile('c')"), id="assertRegex"),
    pytest.param("self.assertEqualTwice(1, 2)", ("==", "1", "2"), id="own-helper"),
    pytest.param(
        "with self.assertRaises(ValueError): pass",
        ("raises", "ValueError", "no exception"),
        id="nothing-raised",
    ),
    pytest.param(
        "with self.assertRaises(ValueError): int([])",
        (
            "raises",
            "ValueError",
            "TypeError(\"int() argument must be a string, a bytes-like object or a real number, not 'list'\")",
        ),
        id="other-raised",
    ),
    pytest.param(
        "self.assertRaises(ValueError, [].pop)",
        ("raises", "ValueError", "IndexError('pop from empty list')"),
        id="other-raised-in-call",
    ),
    pytest.param(
        "with self.assertRaisesRegex(ValueError, 'digits'): raise ValueError('no')",
        ("raises", "ValueError", "ValueError('no')"),
        id="other-message",
    ),
]


@pytest.mark.parametrize(("test", "expected"), UNITTEST)
def test_unittest(only: Only, test: str, expected: tuple[str, str, str]) -> None:
    failure = only(
        {
            "test_x.py": f"""
            import unittest
            class TestX(unittest.TestCase):
                def assertEqualTwice(self, one, two):
                    self.assertEqual(one, two)
                    self.assertEqual(one, two)
                def test_x(self):
                    {test}
            """
        }
    )
    found = failure.comparison
    assert found is not None
    assert (found.operator, found.left.repr, found.right.repr) == expected
    assert found.explanation
    assert failure.frames[-1].path == "test_x.py"


RAISES = [
    pytest.param(
        "with pytest.raises(ValueError):\n        pass",
        ("assertion", "ValueError", "no exception"),
        id="nothing",
    ),
    pytest.param(
        "with pytest.raises((ValueError, KeyError)):\n        [].pop()",
        ("exception", "ValueError or KeyError", "IndexError('pop from empty list')"),
        id="another",
    ),
    pytest.param(
        "with pytest.raises(json.JSONDecodeError):\n        [].pop()",
        ("exception", "json.decoder.JSONDecodeError", "IndexError('pop from empty list')"),
        id="attribute-of-a-module",
    ),
    pytest.param(
        "with pytest.raises(kinds()[0]):\n        [].pop()",
        ("exception", "kinds()[0]", "IndexError('pop from empty list')"),
        id="expression-is-not-evaluated",
    ),
    pytest.param(
        "pytest.raises(ValueError, [].pop)",
        ("exception", "ValueError", "IndexError('pop from empty list')"),
        id="call-form",
    ),
    pytest.param(
        "with pytest.raises(IndexError, match='full'):\n        [].pop()",
        ("assertion", "IndexError", "IndexError('pop from empty list')"),
        id="message",
    ),
]


@pytest.mark.parametrize(("test", "expected"), RAISES)
def test_pytest_raises(only: Only, test: str, expected: tuple[str, str, str]) -> None:
    failure = only(
        {"test_x.py": f"import json, pytest\ndef kinds():\n    return [OSError]\ndef test_x():\n    {test}\n"}
    )
    found = failure.comparison
    assert found is not None
    assert found.operator == "raises"
    assert (failure.kind, found.left.repr, found.right.repr) == expected


def test_an_exception_outside_of_raises_was_not_expected(only: Only) -> None:
    failure = only(
        {
            "test_x.py": """
            import pytest
            def test_x():
                with pytest.raises(ValueError):
                    raise ValueError
                [].pop()
            """
        }
    )
    assert failure.comparison is None


def test_assert_in_a_module_that_pytest_does_not_rewrite(only: Only) -> None:
    failure = only(
        {
            "checks.py": "def check(got, want):\n    assert got == want\n",
            "test_x.py": "from checks import check\ndef test_x():\n    check([1], [2])\n",
        }
    )
    assert failure.comparison is not None
    assert (failure.comparison.left.repr, failure.comparison.right.repr) == ("[1]", "[2]")
    assert failure.message == "assert got == want"


def test_a_comparison_that_failed_earlier_is_not_mistaken(only: Only) -> None:
    failure = only(
        {
            "test_x.py": """
            def test_x():
                try:
                    assert 1 == 2
                except AssertionError:
                    pass
                assert not [1]
            """
        }
    )
    assert failure.comparison is None


LONG = {
    "test_x.py": """
    def test_x():
        left = {f"key{n}": n for n in range(60)}
        right = left | {"key59": 0}
        assert left == right
    """
}


def test_explanation_is_complete_while_the_user_s_output_is_not(
    pytester: pytest.Pytester, write: Callable[[dict[str, str]], None]
) -> None:
    from pytest_autofix.evidence.recorder import Recorder

    write(LONG)
    arguments = ("-p", "no:cacheprovider", "-o", "asyncio_default_fixture_loop_scope=function")
    plain = pytester.runpytest_inprocess(*arguments)
    recorder = Recorder()
    watched = pytester.runpytest_inprocess(*arguments, plugins=[recorder])

    def shown(result: pytest.RunResult) -> list[str]:
        return [line for line in result.outlines if line.startswith("E ")]

    assert shown(watched) == shown(plain) != []
    (failure,) = recorder.failures()
    assert failure.comparison is not None
    lines = failure.comparison.explanation.splitlines()
    assert "+     'key59': 59," in lines
    assert "-     'key59': 0," in lines
    assert not any("Use -v" in line or "truncated" in line for line in lines)


def test_a_huge_difference_is_left_to_pytest_s_own_bounds(only: Only) -> None:
    failure = only({"test_x.py": "def test_x():\n    assert [0] * 10**6 == [1] * 10**6\n"})
    assert failure.comparison is not None
    assert len(failure.comparison.left.repr) < 2100
    assert failure.comparison.left.repr.startswith("[0, 0, 0, ")
    assert "more]" in failure.comparison.left.repr
    assert len(failure.comparison.explanation) < 9000


def test_a_plugin_s_own_explanation_is_kept(only: Only) -> None:
    failure = only(
        {
            "conftest.py": """
            def pytest_assertrepr_compare(op, left, right):
                if isinstance(left, int):
                    return ["numbers differ", f"by {right - left}"]
            """,
            "test_x.py": "def test_x():\n    assert 1 == 5\n",
        }
    )
    assert failure.comparison is not None
    assert failure.comparison.explanation == "numbers differ\nby 4"
