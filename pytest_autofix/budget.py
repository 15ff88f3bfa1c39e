"""`Budget`: what a run may spend, reserved before a call and settled after it, shared by all tasks.

Reserving first is what keeps parallel tasks from exceeding a limit together: each sees what the others may still spend.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pytest_autofix.errors import BudgetExceeded

__all__ = ["Budget", "BudgetLimits", "Price", "Remaining", "Reservation", "Spent", "estimate_tokens"]

_BYTES_PER_TOKEN = 3.0
"""Code in UTF-8 has 3 to 4 bytes a token with the tokenizers in use; the low end, to estimate rather too much."""


@dataclass(frozen=True, slots=True)
class BudgetLimits:
    """Upper bounds of a whole run; None is unbounded."""

    seconds: float | None = None
    calls: int | None = None  #: answered model calls
    tokens: int | None = None  #: input and output together
    usd: float | None = None

    def __post_init__(self) -> None:
        for name in ("seconds", "calls", "tokens", "usd"):
            value = getattr(self, name)
            if value is not None and not (value >= 0 and math.isfinite(value)):
                raise ValueError(f"{name} must be a number that is not negative, not {value}")


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens."""

    input: float
    output: float
    cached_input: float | None = None  #: None: as `input`

    def cost(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> float:
        """US dollars; `cached_tokens` is the part of `input_tokens` that was read from the provider's cache."""
        cached = min(cached_tokens, input_tokens)
        cached_price = self.input if self.cached_input is None else self.cached_input
        total = (input_tokens - cached) * self.input + cached * cached_price + output_tokens * self.output
        return total / 1_000_000


@dataclass(frozen=True, slots=True)
class Reservation:
    """Tokens and money set aside for one call; give it back with `commit` or `release`."""

    number: int
    model: str
    input_tokens: int
    output_tokens: int  #: granted, may be less than what was asked for
    usd: float


@dataclass(frozen=True, slots=True)
class Spent:
    """What was spent so far, for the report."""

    seconds: float
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0  #: part of `input_tokens`
    usd: float | None = 0.0  #: None as soon as a model without a known price was called
    estimated_calls: int = 0  #: calls without a usage report, whose tokens are estimated
    unpriced_models: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the numbers must know."""
        notes = []
        if self.estimated_calls:
            notes.append(
                f"the server reported no usage for {self.estimated_calls} of {self.calls} calls: estimated"
            )
        if self.unpriced_models:
            notes.append(f"no price known for {', '.join(self.unpriced_models)}: tokens only")
        return tuple(notes)


@dataclass(frozen=True, slots=True)
class Remaining:
    """What may still be spent, open reservations taken off; None is unbounded."""

    seconds: float | None
    calls: int | None
    tokens: int | None
    usd: float | None


@dataclass
class Budget:
    """Thread-safe account of a run. The clock is any monotonic one, in seconds; it starts now."""

    limits: BudgetLimits = field(default_factory=BudgetLimits)
    prices: Mapping[str, Price] = field(default_factory=dict)  #: model name → price
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._start = self.clock()
        self._open: dict[int, Reservation] = {}
        self._number = 0
        self._calls = self._input = self._output = self._cached = self._estimated = 0
        self._usd = 0.0
        self._unpriced: dict[str, None] = {}

    @property
    def spent(self) -> Spent:
        with self._lock:
            return Spent(
                seconds=self.clock() - self._start,
                calls=self._calls,
                input_tokens=self._input,
                output_tokens=self._output,
                cached_tokens=self._cached,
                usd=None if self._unpriced else self._usd,
                estimated_calls=self._estimated,
                unpriced_models=tuple(self._unpriced),
            )

    @property
    def remaining(self) -> Remaining:
        with self._lock:
            return self._remaining()

    def check_time(self) -> None:
        """Raise `BudgetExceeded` when the time is over; for loops that call no model."""
        with self._lock:
            self._check_time(self._remaining())

    def reserve(
        self, *, model: str, input_tokens: int, output_tokens: int, minimum_output: int | None = None
    ) -> Reservation:
        """Set aside one call. Grants less output than asked for, down to `minimum_output`, when that still fits.

        Raises `BudgetExceeded`, with the limit that would be crossed, before anything is spent.
        """
        least = output_tokens if minimum_output is None else min(minimum_output, output_tokens)
        with self._lock:
            left = self._remaining()
            self._check_time(left)
            if left.calls is not None and left.calls < 1:
                raise BudgetExceeded(f"model calls: all {self.limits.calls} are spent")
            granted = output_tokens
            if left.tokens is not None:
                granted = min(granted, left.tokens - input_tokens)
                if granted < least:
                    raise BudgetExceeded(
                        f"tokens: the next call needs about {input_tokens} + {least}, "
                        f"{max(left.tokens, 0)} of {self.limits.tokens} are left"
                    )
            price = self.prices.get(model)
            if price is not None and left.usd is not None:
                for_output = left.usd - price.cost(input_tokens, 0)
                if price.output > 0:
                    granted = min(granted, int(for_output * 1_000_000 / price.output))
                if for_output < 0 or granted < least:
                    raise BudgetExceeded(
                        f"cost: the next call may cost {price.cost(input_tokens, least):.4f} USD, "
                        f"{max(left.usd, 0.0):.4f} of {self.limits.usd} are left"
                    )
            self._number += 1
            usd = price.cost(input_tokens, granted) if price else 0.0
            reservation = Reservation(self._number, model, input_tokens, granted, usd)
            self._open[reservation.number] = reservation
            return reservation

    def commit(
        self,
        reservation: Reservation,
        *,
        input_tokens: int,
        output_tokens: int,
        cached_tokens: int = 0,
        estimated: bool = False,
    ) -> None:
        """Settle a call that was answered. More than was reserved is counted as it is: it was spent."""
        with self._lock:
            self._close(reservation)
            self._calls += 1
            self._input += input_tokens
            self._output += output_tokens
            self._cached += min(cached_tokens, input_tokens)
            self._estimated += estimated
            price = self.prices.get(reservation.model)
            if price is None:
                self._unpriced[reservation.model] = None
            else:
                self._usd += price.cost(input_tokens, output_tokens, cached_tokens)

    def release(self, reservation: Reservation) -> None:
        """Give back what was set aside for a call that had no answer."""
        with self._lock:
            self._close(reservation)

    def _close(self, reservation: Reservation) -> None:
        if self._open.pop(reservation.number, None) is None:
            raise ValueError(f"reservation {reservation.number} is not open")

    def _remaining(self) -> Remaining:
        limits, reserved = self.limits, self._open.values()
        seconds = calls = tokens = usd = None
        if limits.seconds is not None:
            seconds = limits.seconds - (self.clock() - self._start)
        if limits.calls is not None:
            calls = limits.calls - self._calls - len(reserved)
        if limits.tokens is not None:
            open_tokens = sum(each.input_tokens + each.output_tokens for each in reserved)
            tokens = limits.tokens - self._input - self._output - open_tokens
        if limits.usd is not None:
            usd = limits.usd - self._usd - sum(each.usd for each in reserved)
        return Remaining(seconds, calls, tokens, usd)

    def _check_time(self, left: Remaining) -> None:
        if left.seconds is not None and left.seconds <= 0:
            raise BudgetExceeded(f"time: {self.limits.seconds:g} s are over")


def estimate_tokens(text: str) -> int:
    """About how many tokens a text has, rather too many than too few; no tokenizer fits every model."""
    return math.ceil(len(text.encode("utf-8", "surrogatepass")) / _BYTES_PER_TOKEN)
