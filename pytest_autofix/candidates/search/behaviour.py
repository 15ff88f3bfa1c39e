"""Which of several plausible patches is meant: their behaviour on further inputs, compared with the program as it was.

Tests rarely decide between all candidates that pass them. Two things are known without an oracle. Patches with the
same results on many inputs are one behaviour, and if there is only one, it is nearly always right. And a program that
is wrong somewhere is right elsewhere (the competent programmer hypothesis: DeMillo, Lipton, Sayward, "Hints on Test
Data Selection", 1978): of several behaviours the one that changes the fewest results is the likeliest. Semantic
distance as a measure of repairs: D'Antoni, Samanta, Singh, "Qlose", CAV 2016.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Choice", "choose_by_behaviour"]

Behaviour = Sequence[tuple[str, bool]]


@dataclass(frozen=True, slots=True)
class Choice:
    """An order of preference over candidates, and how many behaviours they have."""

    order: tuple[int, ...]  #: positions of the candidates, the likeliest first
    behaviours: int  #: different ones; 0 if nothing is known


def choose_by_behaviour(original: Behaviour, candidates: Sequence[Behaviour]) -> Choice:
    """Order candidates (given best first) by how few results of the original they change.

    Only inputs count on which the original returned: where it raised or hung it is known to be wrong, or nothing is.
    A candidate without observations stays behind those with.
    """

    def distance(behaviour: Behaviour) -> float:
        if not behaviour or not original:
            return float("inf")
        return sum(before != after for before, after in zip(original, behaviour, strict=False) if before[1])

    order = sorted(range(len(candidates)), key=lambda position: (distance(candidates[position]), position))
    known = {tuple(behaviour) for behaviour in candidates if behaviour}
    return Choice(tuple(order), len(known))
