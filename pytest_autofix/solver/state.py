"""The state of the solver graph: plain JSON values with real reducers, so that a checkpoint can hold it."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypedDict

from pytest_autofix.candidates.candidate import Candidate, Edit, Origin
from pytest_autofix.tasks.task import Outcome
from pytest_autofix.verdict.verdict import Check, Grade, Verdict

__all__ = [
    "AttemptState",
    "SolveState",
    "Stage",
    "Tally",
    "Update",
    "add_tallies",
    "candidate_from_json",
    "candidate_to_json",
    "initial_state",
    "verdict_from_json",
    "verdict_to_json",
]

Stage = Literal["search", "model", "done"]


class Tally(TypedDict):
    """What the candidates of one operator did, summed."""

    tried: int
    passed: int  #: all tests of the trial
    failed: int
    timeout: int
    crashed: int
    invalid: int
    seconds: float


class AttemptState(TypedDict):
    """One candidate of a model, or one call that gave none."""

    call: int  #: number of the model call; several candidates may come from one
    model: str
    prompt: str
    hash: str
    result: str
    message: str
    failed: str
    passed: list[str]
    candidate: dict[str, Any] | None
    seconds: float
    input_tokens: int
    output_tokens: int


def add_tallies(left: dict[str, Tally], right: dict[str, Tally]) -> dict[str, Tally]:
    """Sum by operator; neither argument is changed."""
    total = dict(left)
    for name, tally in right.items():
        before = total.get(name)
        total[name] = tally if before is None else _sum(before, tally)
    return total


def _sum(left: Tally, right: Tally) -> Tally:
    return Tally(
        tried=left["tried"] + right["tried"],
        passed=left["passed"] + right["passed"],
        failed=left["failed"] + right["failed"],
        timeout=left["timeout"] + right["timeout"],
        crashed=left["crashed"] + right["crashed"],
        invalid=left["invalid"] + right["invalid"],
        seconds=left["seconds"] + right["seconds"],
    )


class SolveState(TypedDict):
    """Everything that the nodes of one task hand on."""

    stage: Stage
    pending: list[dict[str, Any]]  #: candidates to execute next
    plausible: list[dict[str, Any]]  #: passed their trial, no verdict yet; best first
    tried: Annotated[int, operator.add]
    tallies: Annotated[dict[str, Tally], add_tallies]
    attempts: Annotated[list[AttemptState], operator.add]
    refused: Annotated[list[dict[str, Any]], operator.add]  #: {"candidate", "verdict"} that was not accepted
    behaviours: int  #: different ones among the plausible candidates; 0 if unknown
    best: int  #: most failing tests that one candidate made pass without an accepted verdict
    solution: dict[str, Any] | None
    verdict: dict[str, Any] | None
    outcome: Outcome | None
    reason: str


class Update(TypedDict, total=False):
    """What a node may return; a wrong key would be dropped by the graph without a word."""

    stage: Stage
    pending: list[dict[str, Any]]
    plausible: list[dict[str, Any]]
    tried: int
    tallies: dict[str, Tally]
    attempts: list[AttemptState]
    refused: list[dict[str, Any]]
    behaviours: int
    best: int
    solution: dict[str, Any] | None
    verdict: dict[str, Any] | None
    outcome: Outcome
    reason: str


def initial_state(stage: Stage) -> SolveState:
    """Where every task begins."""
    return SolveState(
        stage=stage,
        pending=[],
        plausible=[],
        tried=0,
        tallies={},
        attempts=[],
        refused=[],
        behaviours=0,
        best=0,
        solution=None,
        verdict=None,
        outcome=None,
        reason="",
    )


def candidate_to_json(candidate: Candidate) -> dict[str, Any]:
    """Plain values."""
    return {
        "edits": [[edit.path, edit.start, edit.end, edit.text] for edit in candidate.edits],
        "origin": [
            candidate.origin.source,
            candidate.origin.operator,
            candidate.origin.model,
            candidate.origin.prompt,
        ],
        "score": candidate.score,
    }


def candidate_from_json(data: dict[str, Any]) -> Candidate:
    """The inverse of `candidate_to_json`."""
    return Candidate(
        edits=tuple(Edit(*edit) for edit in data["edits"]),
        origin=Origin(*data["origin"]),
        score=data["score"],
    )


def verdict_to_json(verdict: Verdict) -> dict[str, Any]:
    """Plain values."""
    checks = [[check.name, check.status, check.detail, check.seconds] for check in verdict.checks]
    return {"accepted": verdict.accepted, "grade": verdict.grade, "checks": checks}


def verdict_from_json(data: dict[str, Any]) -> Verdict:
    """The inverse of `verdict_to_json`."""
    checks: Sequence[list[Any]] = data["checks"]
    grade: Grade = data["grade"]
    return Verdict(data["accepted"], grade, tuple(Check(*check) for check in checks))
