"""Recording calls of functions, varying their arguments, and telling behaviours apart."""

from __future__ import annotations

import pickle
import signal
import types
from collections.abc import Callable, Iterator

import pytest

from pytest_autofix.sandbox.behaviour import INPUTS, Call, CallRecorder, observe

FILE = "/project/shop.py"


def load(source: str) -> types.ModuleType:
    module = types.ModuleType("shop")
    exec(compile(source, FILE, "exec"), module.__dict__)
    return module


@pytest.fixture(autouse=True)
def _signals_as_before() -> Iterator[None]:
    handler = signal.getsignal(signal.SIGVTALRM)
    yield
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, handler)


def recorded(module: types.ModuleType, name: str, use: Callable[[], object]) -> list[Call]:
    calls: list[Call] = []
    with CallRecorder([getattr(module, name)], [FILE], calls.append):
        use()
    return calls


def results(source: str, calls: list[Call]) -> list[str]:
    module = load(source)
    return list(observe(calls, lambda name: getattr(module, name, None)))


ADD = "def add(a, b=1, *rest, k=0, **more):\n    return a + b + k\n"


def test_arguments_are_recorded_as_they_were_given() -> None:
    module = load(ADD)
    calls = recorded(module, "add", lambda: (module.add(1), module.add(2, 3, 4, k=5, z=6), module.add(1)))
    assert [(name, pickle.loads(data)) for name, data in calls] == [
        ("add", ((1, 1), {"k": 0})),
        ("add", ((2, 3, 4), {"k": 5, "z": 6})),
    ]


def test_inner_calls_are_no_inputs() -> None:
    module = load("def fact(n):\n    return 1 if n < 2 else n * fact(n - 1)\n")
    calls = recorded(module, "fact", lambda: module.fact(5))
    assert [pickle.loads(data)[0] for _, data in calls] == [(5,)]


def test_a_call_that_changes_its_argument_is_recorded_before() -> None:
    module = load("def take(items):\n    items.clear()\n")
    calls = recorded(module, "take", lambda: module.take([1, 2]))
    assert pickle.loads(calls[0][1])[0] == ([1, 2],)


def test_inputs_are_many_and_the_same_every_time() -> None:
    module = load("def total(items):\n    return sum(items)\n")
    calls = recorded(module, "total", lambda: module.total([3, 1, 2, 5]))
    source = "def total(items):\n    return sum(items)\n"
    first = results(source, calls)
    assert first == results(source, calls)
    assert len(first) > 50
    assert len(first) <= INPUTS
    assert len(set(first)) > 10


SORT = "def order(items):\n    items.sort()\n"


@pytest.mark.parametrize(
    ("before", "after", "equal"),
    [
        pytest.param("def f(x):\n    return x + x\n", "def f(x):\n    return 2 * x\n", True, id="same"),
        pytest.param("def f(x):\n    return x + 1\n", "def f(x):\n    return x - 1\n", False, id="result"),
        pytest.param(
            "def f(x):\n    return 1 // x\n", "def f(x):\n    return 1 % x\n", False, id="exception-at-0"
        ),
        pytest.param("def f(x):\n    yield x\n", "def f(x):\n    yield -x\n", False, id="generator"),
        pytest.param("def f(x):\n    return 1\n", "def f(x):\n    return True\n", False, id="type"),
        pytest.param("def f(x):\n    return x\n", "def f(x):\n    while True: pass\n", False, id="hangs"),
    ],
)
def test_behaviours_are_told_apart(before: str, after: str, equal: bool) -> None:
    calls: list[Call] = [("f", pickle.dumps(((value,), {}))) for value in (3, 5)]
    assert (results(before, calls)[:6] == results(after, calls)[:6]) is equal


def test_what_becomes_of_an_argument_counts() -> None:
    calls: list[Call] = [("order", pickle.dumps((([2, 3, 1],), {})))]
    assert results(SORT, calls) != results(SORT.replace("sort()", "sort(reverse=True)"), calls)


def test_objects_are_compared_without_their_addresses() -> None:
    source = "class C: pass\n\ndef f(x):\n    return C()\n"
    calls: list[Call] = [("f", pickle.dumps(((1,), {})))]
    assert results(source, calls) == results(source, calls)
