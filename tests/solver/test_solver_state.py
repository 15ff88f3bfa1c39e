"""Reducers and JSON forms of the solver's state."""

from __future__ import annotations

import json

from pytest_autofix.candidates.candidate import Candidate, Edit, Origin
from pytest_autofix.solver.nodes import after_execute, after_generate, after_reflect, after_verify
from pytest_autofix.solver.state import (
    SolveState,
    Tally,
    add_tallies,
    candidate_from_json,
    candidate_to_json,
    initial_state,
    verdict_from_json,
    verdict_to_json,
)
from pytest_autofix.verdict.verdict import Check, Verdict


def tally(**counts: int) -> Tally:
    zero = Tally(tried=0, passed=0, failed=0, timeout=0, crashed=0, invalid=0, seconds=0.5)
    return {**zero, **counts}  # type: ignore[typeddict-item]


def test_tallies_add_up_by_operator_and_leave_the_old_ones_alone() -> None:
    left = {"a": tally(tried=2, failed=2)}
    total = add_tallies(left, {"a": tally(tried=1, passed=1), "b": tally(tried=4)})
    assert total["a"]["tried"] == 3
    assert total["a"]["failed"] == 2
    assert total["a"]["passed"] == 1
    assert total["a"]["seconds"] == 1.0
    assert total["b"]["tried"] == 4
    assert left["a"]["tried"] == 2


def test_candidates_and_verdicts_survive_json() -> None:
    candidate = Candidate((Edit("a.py", 1, 2, "é"),), Origin("search", "compare", prompt="p@1"), 0.25)
    assert candidate_from_json(json.loads(json.dumps(candidate_to_json(candidate)))) == candidate
    verdict = Verdict(False, "-", (Check("paths", "failed", "no", 0.1),))
    assert verdict_from_json(json.loads(json.dumps(verdict_to_json(verdict)))) == verdict


def state(**changes: object) -> SolveState:
    return {**initial_state("search"), **changes}  # type: ignore[typeddict-item]


def test_the_ways_through_the_graph() -> None:
    assert after_generate(state(pending=[{}])) == "execute"
    assert after_generate(state(stage="model")) == "reflect"
    assert after_generate(state(stage="done")) == "give_up"
    assert after_execute(state(plausible=[{}])) == "verify"
    assert after_execute(state(plausible=[{}], outcome="budget")) == "reflect"
    assert after_execute(state()) == "reflect"
    assert after_verify(state(solution={})) == "accept"
    assert after_verify(state(plausible=[{}])) == "verify"
    assert after_verify(state(plausible=[{}], refused=[{}] * 8)) == "reflect"
    assert after_reflect(state()) == "generate"
    assert after_reflect(state(stage="done")) == "give_up"
