"""Several solutions of one run become one set of files, which has a verdict of its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_autofix.candidates.candidate import Candidate, Origin
from pytest_autofix.errors import PatchError
from pytest_autofix.patching.changes import FileChange, changes_of
from pytest_autofix.solver.solve import TaskResult
from pytest_autofix.tasks.task import Task
from pytest_autofix.verdict.judge import Judge
from pytest_autofix.verdict.verdict import Verdict

__all__ = ["Combined", "combine", "covered_by"]


@dataclass(frozen=True)
class Combined:
    """What goes together: the tasks it solves, the files, the verdict on all of it."""

    results: tuple[TaskResult, ...] = ()  #: those whose patches are in `changes`
    changes: tuple[FileChange, ...] = ()
    verdict: Verdict | None = None
    revised: tuple[TaskResult, ...] = ()
    """tasks that ended otherwise than they did alone: left out, or solved by the patch for another one"""


def combine(results: Sequence[TaskResult], originals: Mapping[str, bytes], judge: Judge) -> Combined:
    """Put the solutions together; `results` are those of all tasks, solved or not.

    One solution alone keeps its verdict, several are judged again as one patch. If the whole is refused they are added
    one by one, those first that make the most failing tests of the run pass: one cause may have looked like several,
    and the patch that removes it does more than those that hide it. What the patch solves beyond its own tasks is
    found out and confirmed. Raises `SandboxError` if there is no verdict to be had.
    """
    solved = [result for result in results if result.candidate is not None]
    if not solved:
        return Combined()
    if len(solved) > 1:
        solved = _furthest_first(solved, results, judge)
    combined = _together(solved, originals, judge)
    return _extended(combined, results, judge)


def covered_by(task: Task, others: Sequence[TaskResult], judge: Judge) -> TaskResult | None:
    """Of `others`, one whose patch makes the tests of `task` pass too, as far as a single run can tell."""
    return next(
        (other for other in others if judge.passing(other.changes, task.nodeids).issuperset(task.nodeids)),
        None,
    )


def _furthest_first(
    solved: Sequence[TaskResult], results: Sequence[TaskResult], judge: Judge
) -> list[TaskResult]:
    failing = [nodeid for result in results for nodeid in result.task.nodeids]
    reach = {id(result): len(judge.passing(result.changes, failing)) for result in solved}
    return sorted(solved, key=lambda result: -reach[id(result)])


def _together(solved: Sequence[TaskResult], originals: Mapping[str, bytes], judge: Judge) -> Combined:
    """All of them if that is accepted, else as many as go together, from the first on."""
    first, *others = solved
    combined = Combined((first,), first.changes, first.verdict)
    if not others:
        return combined
    changes = _changes(solved, originals)
    if changes is not None:
        verdict = _judge(judge, solved, changes)
        if verdict.accepted:
            return Combined(tuple(solved), changes, verdict)
    for result in others:
        candidates = (*combined.results, result)
        changes = _changes(candidates, originals)
        why = "both change the same lines"
        if changes is not None:
            verdict = _judge(judge, candidates, changes)
            if verdict.accepted:
                combined = dataclasses.replace(combined, results=candidates, changes=changes, verdict=verdict)
                continue
            why = f"together they are refused by {verdict.refused_by}"
        reason = f"its patch does not go with that for {first.task.nodeids[0]}: {why}; run once more"
        refused = dataclasses.replace(result, outcome="rejected", reason=reason, candidate=None, changes=())
        combined = dataclasses.replace(combined, revised=(*combined.revised, refused))
    return combined


def _extended(combined: Combined, results: Sequence[TaskResult], judge: Judge) -> Combined:
    """The same patch, with the other tasks that it solves as well."""
    taken = {result.task.fingerprint for result in combined.results}
    others = [
        result
        for result in results
        if result.task.fingerprint not in taken and judge.baseline.failed.issuperset(result.task.nodeids)
    ]
    passing = judge.passing(combined.changes, [nodeid for other in others for nodeid in other.task.nodeids])
    also = [other for other in others if passing.issuperset(other.task.nodeids)]
    if not also:
        return combined
    verdict = _judge(judge, (*combined.results, *also), combined.changes)
    if not verdict.accepted:
        return combined
    reason = f"by the patch for {combined.results[0].task.nodeids[0]}"
    revised = {result.task.fingerprint: result for result in combined.revised}
    for other in also:
        revised[other.task.fingerprint] = dataclasses.replace(
            other, outcome="solved", reason=reason, candidate=None, changes=(), verdict=verdict
        )
    return dataclasses.replace(combined, verdict=verdict, revised=tuple(revised.values()))


def _judge(judge: Judge, results: Sequence[TaskResult], changes: Sequence[FileChange]) -> Verdict:
    must_pass = tuple(dict.fromkeys(nodeid for result in results for nodeid in result.task.nodeids))
    guards = sum(1 for result in results if result.verdict is not None and result.verdict.grade == "B")
    return judge.judge(changes, must_pass=must_pass, guards=guards)


def _changes(results: Sequence[TaskResult], originals: Mapping[str, bytes]) -> tuple[FileChange, ...] | None:
    """None if two solutions edit the same text; equal edits (one import for two tasks) count once."""
    edits = {edit for result in results if result.candidate for edit in result.candidate.edits}
    merged = Candidate(tuple(sorted(edits)), Origin("patch"))
    try:
        return changes_of(merged, originals)
    except PatchError:
        return None
