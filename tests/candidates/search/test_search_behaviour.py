"""Preference between plausible candidates by their behaviour."""

from __future__ import annotations

import pytest

from pytest_autofix.candidates.search.behaviour import Choice, choose_by_behaviour

ORIGINAL = (("a", True), ("b", True), ("raise", False))
FAR = (("x", True), ("y", True), ("c", True))
NEAR = (("a", True), ("y", True), ("c", True))
SAME = (("a", True), ("b", True), ("z", True))


@pytest.mark.parametrize(
    ("candidates", "choice"),
    [
        pytest.param([FAR, NEAR, SAME], Choice((2, 1, 0), 3), id="fewest-changes-first"),
        pytest.param([NEAR, NEAR], Choice((0, 1), 1), id="one-behaviour-keeps-the-order"),
        pytest.param([(), FAR], Choice((1, 0), 1), id="unknown-stays-behind"),
        pytest.param([(), ()], Choice((0, 1), 0), id="nothing-known"),
        pytest.param(
            [SAME, (("a", True), ("b", True), ("q", True))], Choice((0, 1), 2), id="where-it-raised-is-free"
        ),
        pytest.param([], Choice((), 0), id="none"),
    ],
)
def test_choice(candidates: list[tuple[tuple[str, bool], ...]], choice: Choice) -> None:
    assert choose_by_behaviour(ORIGINAL, candidates) == choice


def test_a_candidate_that_ends_early_changes_what_it_does_not_reach() -> None:
    assert choose_by_behaviour(ORIGINAL, [(("a", True),), FAR]).order == (0, 1)
