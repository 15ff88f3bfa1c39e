"""Which failing tests share a cause: the fewest definitions that explain all failures.

One broken helper makes fifty tests fail, two broken functions make two tests of one file fail. Each definition that
a failing test reaches could explain it; what explains many at once is the better explanation, unless passing tests
run the same lines. That is a weighted set cover, solved greedily (Chvátal, "A Greedy Heuristic for the Set-Covering
Problem", 1979); clustering failures before repairing them in parallel goes back to Jones, Bowring and Harrold,
"Debugging in Parallel", ISSTA 2007.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Hashable, Mapping
from typing import TypeVar

__all__ = ["DOUBT", "explain"]

DOUBT = 1.5
"""Price of the logarithm of passing tests that run a definition's most suspicious line, in causes.

So dear that two failing tests with a faultless definition each stay apart when one passing test runs what they share
(1 + 1.5 ln 2 > 2), and so cheap that fifty are one although a dozen passing tests do (1 + 1.5 ln 13 < 50)."""

Cause = TypeVar("Cause", bound=Hashable)


def explain(
    doubts: Mapping[str, Mapping[Cause, int]], *, prefer: Mapping[str, Collection[Cause]] | None = None
) -> dict[str, Cause]:
    """The chosen cause of each unit (a failing test); units without any possible cause are left out.

    `doubts`: unit → possible cause → number of passing tests that speak against it (those that run the most
    suspicious line which the unit reaches in it). `prefer`: unit → causes to choose among equals.
    """
    prefer = prefer or {}
    by_cause: dict[Cause, list[tuple[int, str]]] = {}
    for unit, causes in doubts.items():
        for cause, doubt in causes.items():
            by_cause.setdefault(cause, []).append((doubt, unit))
    left = {unit for unit, causes in doubts.items() if causes}

    def value(cause: Cause) -> tuple[float, int, set[str]]:
        """Explained units per price at the best level of doubt, how many of them prefer it, and which they are."""
        best: tuple[float, int, set[str]] = (0.0, 0, set())
        explained: set[str] = set()
        for doubt, unit in by_cause[cause]:
            if unit in left:
                explained.add(unit)
                worth = round(len(explained) / (1.0 + DOUBT * math.log1p(doubt)), 9)
                if worth >= best[0]:
                    best = (worth, sum(cause in prefer.get(unit, ()) for unit in explained), set(explained))
        return best

    for pairs in by_cause.values():
        pairs.sort()
    chosen: dict[str, Cause] = {}
    # The worth of a cause can only fall as units are explained: a stale entry is looked at again when it comes up.
    queue = [
        (-worth, -wanted, order, cause)
        for order, cause in enumerate(by_cause)
        for worth, wanted, _ in [value(cause)]
    ]
    heapq.heapify(queue)
    while left:
        _, _, order, cause = heapq.heappop(queue)
        worth, wanted, explained = value(cause)
        entry = (-worth, -wanted, order, cause)
        if queue and queue[0][:3] < entry[:3]:
            if worth:
                heapq.heappush(queue, entry)
            continue
        chosen |= dict.fromkeys(explained, cause)
        left -= explained
        heapq.heappush(queue, entry)
    return chosen
