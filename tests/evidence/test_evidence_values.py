"""Texts of hostile, huge and ordinary values."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import datetime
import json
import signal
import threading
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_autofix.evidence.failure import Failure
from pytest_autofix.evidence.values import Describer, type_name


class Raises:
    def __repr__(self) -> str:
        raise ValueError("no repr")


class NoText:
    def __repr__(self) -> str:
        return 3  # type: ignore[return-value]  # that is the point


class Endless:
    def __repr__(self) -> str:
        while True:
            with contextlib.suppress(Exception):
                time.sleep(0.01)


class Plain:
    def __init__(self) -> None:
        self.items = [1]
        self.password = "hunter22"
        self.me = self


class Slots:
    __slots__ = ("a", "b")

    def __init__(self) -> None:
        self.a = 1


class OwnList(list[int]):
    def __iter__(self) -> Any:
        raise AssertionError("foreign code")


@dataclasses.dataclass
class Point:
    x: int
    y: Any
    hidden: int = dataclasses.field(default=0, repr=False)


Pair = collections.namedtuple("Pair", "a b")
CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)

VALUES = [
    pytest.param(None, "None", id="none"),
    pytest.param(-1.5, "-1.5", id="float"),
    pytest.param("it's", '"it\'s"', id="string"),
    pytest.param("\udc80", r"'\udc80'", id="lone-surrogate"),
    pytest.param(b"\x00\xff", r"b'\x00\xff'", id="bytes"),
    pytest.param((1,), "(1,)", id="tuple-of-one"),
    pytest.param({3, 1, 2}, "{1, 2, 3}", id="set-is-sorted"),
    pytest.param({"b", "a"}, "{'a', 'b'}", id="set-of-strings"),
    pytest.param(set(), "set()", id="empty-set"),
    pytest.param(frozenset({1}), "frozenset({1})", id="frozenset"),
    pytest.param({"a": [{}]}, "{'a': [{}]}", id="nested"),
    pytest.param({"api_key": "abc"}, "{'api_key': <redacted>}", id="secret-key"),
    pytest.param(CIRCLE, "[...]", id="circle"),
    pytest.param(OwnList([1]), "OwnList([1])", id="subclass-with-own-iteration"),
    pytest.param(Pair(1, "x"), "Pair(a=1, b='x')", id="namedtuple"),
    pytest.param(Point(1, [2]), "Point(x=1, y=[2])", id="dataclass"),
    pytest.param(collections.Counter("aab"), "Counter({'a': 2, 'b': 1})", id="counter"),
    pytest.param(collections.deque([1]), "deque([1])", id="deque"),
    pytest.param({"a": 1}.keys(), "dict_keys(['a'])", id="dict-view"),
    pytest.param(Decimal("1.50"), "Decimal('1.50')", id="decimal"),
    pytest.param(datetime.date(2020, 1, 2), "datetime.date(2020, 1, 2)", id="date"),
    pytest.param(ValueError("x"), "ValueError('x')", id="exception"),
    pytest.param(Plain(), "<Plain items=[1] password=<redacted> me=...>", id="attributes"),
    pytest.param(Slots(), "<Slots a=1>", id="slots"),
    pytest.param(object(), "<object object>", id="no-address"),
    pytest.param(Mock(name="m"), "<Mock name='m'>", id="mock-without-its-number"),
    pytest.param(len, "<function len>", id="function"),
    pytest.param(int, "<class 'int'>", id="class"),
    pytest.param(10**5000, "<int of 16610 bits>", id="huge-int"),
    pytest.param(Raises(), f"<{__name__}.Raises: repr raised ValueError>", id="repr-raises"),
    pytest.param([Raises(), 1], f"[<{__name__}.Raises: repr raised ValueError>, 1]", id="repr-raises-inside"),
    pytest.param(NoText(), f"<{__name__}.NoText: repr raised TypeError>", id="repr-is-no-text"),
]


@pytest.mark.parametrize(("value", "text"), VALUES)
def test_value(value: object, text: str) -> None:
    assert Describer().value(value) == text


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("x" * 10**7, id="string"),
        pytest.param(b"x" * 10**7, id="bytes"),
        pytest.param(bytearray(10**7), id="bytearray"),
        pytest.param(list(range(10**6)), id="list"),
        pytest.param(dict.fromkeys(range(10**6)), id="dict"),
        pytest.param([["x" * 1000] * 1000] * 1000, id="nested"),
        pytest.param(ValueError(list(range(10**6))), id="exception"),
        pytest.param(Point(1, "y" * 10**6), id="dataclass"),
    ],
)
def test_huge_values_cost_little(value: object) -> None:
    start = time.process_time()
    text = Describer().value(value, limit=200)
    assert len(text) < 400
    assert time.process_time() - start < 0.2


def test_endless_repr_is_interrupted_and_then_left_alone() -> None:
    describer = Describer(seconds=0.3)
    start = time.perf_counter()
    assert describer.value(Endless()) == f"<{__name__}.Endless: repr takes too long>"
    assert describer.value([Endless(), Decimal(1)]) == f"[<{__name__}.Endless>, <decimal.Decimal>]"
    assert time.perf_counter() - start < 5


@pytest.fixture
def alarm() -> Any:
    """The alarm of pytest-timeout put away for the time of a test."""
    handler, left = signal.getsignal(signal.SIGALRM), signal.setitimer(signal.ITIMER_REAL, 0)
    yield
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, *left)


@pytest.mark.usefixtures("alarm")
def test_a_running_alarm_is_put_off_and_comes() -> None:
    rung = threading.Event()
    signal.signal(signal.SIGALRM, lambda *_: rung.set())
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    Describer(seconds=0.4).value(Endless())
    deadline = time.perf_counter() + 5
    while not rung.is_set() and time.perf_counter() < deadline:
        time.sleep(0.01)
    assert rung.is_set()


def test_no_signals_in_other_threads() -> None:
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(Describer().value(Decimal(1))))
    thread.start()
    thread.join()
    assert found == ["Decimal('1')"]


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        pytest.param("\x1b[31mred\x1b[0m", "red", id="colours"),
        pytest.param("<A object at 0x7f00dead>", "<A object>", id="address"),
        pytest.param("a\udc80", r"a\udc80", id="surrogate"),
        pytest.param("0123456789" * 3, "01234...<30 characters>...56789", id="cut-in-the-middle"),
    ],
)
def test_text(text: str, clean: str) -> None:
    assert Describer().text(text, limit=11 if len(text) == 30 else 100) == clean


@pytest.mark.parametrize("position", [0, 80, 95, 100, 105, 5000, 9950, 9999])
def test_no_part_of_a_secret_survives_a_cut(position: int) -> None:
    token = "ghp_" + "Z" * 36
    text = "." * position + token + "." * (10_000 - position)
    for shown in (Describer().text(text, limit=200), Describer().value(text, limit=200)):
        assert "Z" not in shown


@pytest.mark.parametrize(
    ("kind", "name"), [(int, "int"), (Decimal, "decimal.Decimal"), (Point, f"{__name__}.Point")]
)
def test_type_name(kind: type, name: str) -> None:
    assert type_name(kind) == name


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=30,
)


@settings(max_examples=150, deadline=None)
@given(anything, st.integers(20, 400))
def test_any_builtin_value_gives_a_bounded_sendable_text(value: object, limit: int) -> None:
    text = Describer().value(value, limit=limit)
    assert len(text) <= limit + 128
    text.encode("utf-8")


def test_hostile_values_in_a_real_run(only: Callable[..., Failure]) -> None:
    failure = only(
        {
            "test_x.py": r"""
            class Meta(type):
                def __repr__(cls): raise RuntimeError
            class Evil(metaclass=Meta):
                def __repr__(self): raise ValueError
                def __eq__(self, other): return False
                __hash__ = None
                def __getattribute__(self, name): raise OSError(name)
            class EvilError(Exception):
                def __str__(self): raise KeyError("no text")
                __repr__ = __str__
            def test_x():
                evil, kind = Evil(), Evil
                circle = {}
                circle["me"] = circle
                exotic = [b"\xff\x00", "\udc80", float("nan")]
                huge = list(range(10**6))
                raise EvilError
            """
        }
    )
    assert (failure.kind, failure.exceptions[0].type) == ("exception", "test_x.EvilError")
    assert failure.exceptions[0].message == "<test_x.EvilError: str raised KeyError>"
    variables = failure.frames[0].locals
    assert variables["evil"].startswith("<test_x.Evil")
    assert variables["circle"] == "{'me': ...}"
    assert variables["exotic"] == r"[b'\xff\x00', '\udc80', nan]"
    assert len(variables["huge"]) < 400
    json.dumps(failure.to_json()).encode("utf-8")
