"""The report of a run as data. Its JSON form (`json_report`) is an interface for other programs; so are these names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

# Pydantic evaluates the annotations when it makes the JSON Schema: these names must exist at run time.
from pytest_autofix.evidence.failure import Kind
from pytest_autofix.patching.changes import FileChange
from pytest_autofix.patching.diff import unified_diff
from pytest_autofix.patching.write import sha256_of
from pytest_autofix.sandbox.protocol import Isolation
from pytest_autofix.tasks.task import Outcome, Target
from pytest_autofix.verdict.verdict import Verdict

__all__ = [
    "SCHEMA",
    "AttemptReport",
    "CostReport",
    "FailureReport",
    "FileReport",
    "RunReport",
    "SolutionReport",
    "TaskReport",
    "TotalsReport",
    "search_attempts",
    "solution_of",
    "totals_of",
]

SCHEMA: Literal[1] = 1
"""A key may be added without notice; this number changes when one is renamed, goes away or means something else."""

RESULTS = ("passed", "failed", "timeout", "crashed", "invalid")
"""What a trial can end with, the best first."""


@dataclass(frozen=True, slots=True)
class FailureReport:
    """One failing test of a task."""

    nodeid: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class AttemptReport:
    """One candidate of a model, or all candidates of one search operator together."""

    source: Literal["search", "model", "memory", "patch"]
    result: str  #: of the trial: `passed`, `failed`, `timeout`, `crashed`, `invalid`, …; the best one of an operator
    hash: str = ""  #: normalised; empty for the sum of an operator
    seconds: float = 0.0
    tokens: int = 0
    operator: str = ""  #: search only
    model: str = ""  #: model only
    prompt: str = ""  #: model only: name and version of the prompt
    count: int = 1  #: candidates in this entry
    results: dict[str, int] = field(default_factory=dict)  #: result → how many of `count`


@dataclass(frozen=True, slots=True)
class FileReport:
    """One file of a solution, so that a reader can tell whether a tree is the one before or the one after."""

    path: str
    sha256_before: str | None  #: null: the file is new
    sha256_after: str | None  #: null: the file is removed


@dataclass(frozen=True, slots=True)
class SolutionReport:
    """An accepted patch."""

    patch: (
        str  #: unified diff for `git apply`; bytes that are not UTF-8 are lone surrogates (surrogateescape)
    )
    files: tuple[FileReport, ...]


@dataclass(frozen=True, slots=True)
class CostReport:
    """What was spent."""

    seconds: float = 0.0
    candidates_tried: int = 0
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = 0.0  #: null: a model without a known price was called
    warm_cpu_seconds: float | None = None  #: CPU time of one candidate tried warm, the mean; null: none was


@dataclass(frozen=True, slots=True)
class TaskReport:
    """One root cause and how it ended."""

    fingerprint: str
    failures: tuple[FailureReport, ...]
    targets: tuple[Target, ...]
    outcome: Outcome
    reason: str = ""  #: why there is no solution, for people
    attempts: tuple[AttemptReport, ...] = ()
    verdict: Verdict | None = None  #: of the solution; without one: of the candidate that came nearest
    solution: SolutionReport | None = None
    cost: CostReport = field(default_factory=CostReport)


@dataclass(frozen=True, slots=True)
class TotalsReport:
    """Sums over all tasks."""

    tasks: int
    solved: int
    failing_tests: int
    outcomes: dict[Outcome, int]  #: only those that occur
    seconds: float  #: wall clock of the whole run; tasks run side by side, so it is no sum
    candidates_tried: int
    model_calls: int
    input_tokens: int
    output_tokens: int
    usd: float | None


@dataclass(frozen=True, slots=True)
class RunReport:
    """One `--autosolve` or `--autosolve-verify` invocation."""

    versions: dict[str, str]  #: of Python, pytest, this package and what it stands on
    settings: dict[str, Any]  #: the options in force, without secrets
    sandbox: Isolation | None  #: null: the run ended before one was opened
    tasks: tuple[TaskReport, ...]
    totals: TotalsReport
    exit_status: int
    schema: Literal[1] = SCHEMA


def totals_of(tasks: Sequence[TaskReport], *, seconds: float) -> TotalsReport:
    """Sums of the tasks; `seconds` is the wall clock of the run."""
    outcomes: Counter[Outcome] = Counter(task.outcome for task in tasks)
    prices = [task.cost.usd for task in tasks]
    return TotalsReport(
        tasks=len(tasks),
        solved=outcomes["solved"],
        failing_tests=len({failure.nodeid for task in tasks for failure in task.failures}),
        outcomes=dict(outcomes.most_common()),
        seconds=seconds,
        candidates_tried=sum(task.cost.candidates_tried for task in tasks),
        model_calls=sum(task.cost.model_calls for task in tasks),
        input_tokens=sum(task.cost.input_tokens for task in tasks),
        output_tokens=sum(task.cost.output_tokens for task in tasks),
        usd=None if None in prices else sum(price for price in prices if price is not None),
    )


def search_attempts(tallies: Mapping[str, Mapping[str, Any]]) -> tuple[AttemptReport, ...]:
    """One entry for each operator out of its sums (`tried`, `seconds` and a number for each of `RESULTS`).

    Ordered by how many candidates an operator gave, so that the head of the list says where the time went.
    """
    entries = []
    for operator, tally in tallies.items():
        results = {word: int(tally.get(word, 0)) for word in RESULTS if tally.get(word, 0)}
        entries.append(
            AttemptReport(
                "search",
                next(iter(results), "failed"),
                seconds=float(tally["seconds"]),
                operator=operator,
                count=int(tally["tried"]),
                results=results,
            )
        )
    return tuple(sorted(entries, key=lambda entry: (-entry.count, entry.operator)))


def solution_of(changes: Iterable[FileChange]) -> SolutionReport:
    """The patch of these changes with the hashes of each file."""
    ordered = sorted(changes, key=lambda change: change.path)
    return SolutionReport(
        unified_diff(ordered),
        tuple(
            FileReport(change.path, sha256_of(change.before), sha256_of(change.after)) for change in ordered
        ),
    )
