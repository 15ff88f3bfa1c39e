from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_autofix.budget import Budget, BudgetLimits, Price, estimate_tokens
from pytest_autofix.errors import BudgetExceeded


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_nothing_is_bounded_by_default() -> None:
    budget = Budget(clock=Clock())
    reservation = budget.reserve(model="m", input_tokens=10**9, output_tokens=10**9)
    budget.commit(reservation, input_tokens=5, output_tokens=6, cached_tokens=9, estimated=True)
    spent = budget.spent
    assert (spent.calls, spent.input_tokens, spent.output_tokens, spent.cached_tokens) == (1, 5, 6, 5)
    assert spent.usd is None
    assert spent.notes == (
        "the server reported no usage for 1 of 1 calls: estimated",
        "no price known for m: tokens only",
    )
    assert budget.remaining.tokens is None


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        pytest.param(BudgetLimits(seconds=5), "time: 5 s are over", id="seconds"),
        pytest.param(BudgetLimits(calls=1), "model calls: all 1 are spent", id="calls"),
        pytest.param(
            BudgetLimits(tokens=250), "tokens: the next call needs about 100 + 50, 100 of 250", id="tokens"
        ),
        pytest.param(
            BudgetLimits(usd=0.0004), "cost: the next call may cost 0.0002 USD, 0.0001 of 0.0004", id="usd"
        ),
        pytest.param(BudgetLimits(calls=0), "model calls: all 0", id="no calls"),
    ],
)
def test_a_limit_is_refused_before_it_is_crossed(limits: BudgetLimits, message: str) -> None:
    clock = Clock()
    budget = Budget(limits, {"m": Price(input=1.0, output=2.0)}, clock)
    if limits.calls != 0:
        reservation = budget.reserve(model="m", input_tokens=100, output_tokens=50)
        clock.now += 6
        budget.commit(reservation, input_tokens=100, output_tokens=50 if limits.tokens else 100)
    with pytest.raises(BudgetExceeded) as caught:
        budget.reserve(model="m", input_tokens=100, output_tokens=50)
    assert message in str(caught.value)


def test_a_call_may_be_granted_less_output_than_asked_for() -> None:
    budget = Budget(BudgetLimits(tokens=1000))
    reservation = budget.reserve(model="m", input_tokens=100, output_tokens=2000, minimum_output=256)
    assert reservation.output_tokens == 900
    assert budget.remaining.tokens == 0
    budget.release(reservation)
    assert budget.remaining.tokens == 1000
    money = Budget(BudgetLimits(usd=0.001), {"m": Price(input=1.0, output=2.0)})
    assert (
        money.reserve(model="m", input_tokens=200, output_tokens=2000, minimum_output=256).output_tokens
        == 400
    )


def test_more_than_was_reserved_is_counted_and_ends_the_run() -> None:
    budget = Budget(BudgetLimits(tokens=1000))
    budget.commit(
        budget.reserve(model="m", input_tokens=100, output_tokens=100), input_tokens=900, output_tokens=300
    )
    assert budget.spent.input_tokens == 900
    assert budget.remaining.tokens == -200
    with pytest.raises(BudgetExceeded, match="0 of 1000 are left"):
        budget.reserve(model="m", input_tokens=1, output_tokens=1)


def test_cached_tokens_have_their_own_price() -> None:
    price = Price(input=10.0, output=20.0, cached_input=1.0)
    assert price.cost(1_000_000, 500_000, 400_000) == pytest.approx(6.0 + 0.4 + 10.0)
    assert Price(input=10.0, output=0.0).cost(1_000_000, 1, 400_000) == pytest.approx(10.0)


def test_a_reservation_is_settled_once() -> None:
    budget = Budget()
    reservation = budget.reserve(model="m", input_tokens=1, output_tokens=1)
    budget.release(reservation)
    with pytest.raises(ValueError, match="not open"):
        budget.commit(reservation, input_tokens=1, output_tokens=1)


def test_time_is_checked_without_a_call() -> None:
    clock = Clock()
    budget = Budget(BudgetLimits(seconds=2), clock=clock)
    budget.check_time()
    clock.now += 2
    with pytest.raises(BudgetExceeded, match="time: 2 s"):
        budget.check_time()
    assert budget.spent.seconds == 2


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["seconds", "usd"])
def test_limits_are_numbers_that_are_not_negative(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} must be"):
        BudgetLimits(**{name: value})  # type: ignore[arg-type] # one of the two float limits


def test_parallel_tasks_do_not_exceed_a_limit_together() -> None:
    budget = Budget(BudgetLimits(calls=20, tokens=3000))
    ready = threading.Barrier(8)

    def work() -> int:
        ready.wait()
        done = 0
        for _ in range(10):
            try:
                reservation = budget.reserve(model="m", input_tokens=100, output_tokens=100)
            except BudgetExceeded:
                continue
            budget.commit(reservation, input_tokens=100, output_tokens=90)
            done += 1
        return done

    with ThreadPoolExecutor(8) as pool:
        done = sum(pool.map(lambda _: work(), range(8)))
    spent = budget.spent
    assert spent.calls == done <= 15
    assert spent.input_tokens + spent.output_tokens <= 3000


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 400), st.floats(0, 1)), max_size=20))
def test_honest_calls_never_exceed_the_limits(calls: list[tuple[int, int, float]]) -> None:
    budget = Budget(BudgetLimits(tokens=1000, usd=0.002), {"m": Price(input=1.0, output=3.0)})
    for input_tokens, output_tokens, share in calls:
        try:
            reservation = budget.reserve(
                model="m", input_tokens=input_tokens, output_tokens=output_tokens, minimum_output=1
            )
        except BudgetExceeded:
            continue
        used = int(reservation.output_tokens * share)
        budget.commit(reservation, input_tokens=input_tokens, output_tokens=used)
    spent = budget.spent
    assert spent.input_tokens + spent.output_tokens <= 1000
    assert spent.usd is not None
    assert spent.usd <= 0.002 + 1e-12


def test_estimates_are_rather_too_high() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens("return a + b\n") == 5
    assert estimate_tokens("€" * 3) == 3
    assert estimate_tokens("\ud800") == 1
