"""Several solutions of one run become one set of files, which has a verdict of its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_autofix.candidates.candidate import Candidate, Origin
from pytest_autofix.errors import PatchError
from pytest_autofix.patching.changes import FileChange, changes_of
from pytest_autofix.solver.solve import TaskResult
from pytest_autofix.verdict.judge import Judge
from pytest_autofix.verdict.verdict import Verdict

__all__ = ["Combined", "combine"]


@dataclass(frozen=True)
class Combined:
    """What goes together: the tasks it solves, the files, the verdict on all of it."""

    results: tuple[TaskResult, ...] = ()  #: those whose patches are in `changes`, in the order of the tasks
    left_out: tuple[TaskResult, ...] = ()  #: solved alone, but not together with the others; with the reason
    changes: tuple[FileChange, ...] = ()
    verdict: Verdict | None = None


def combine(results: Sequence[TaskResult], originals: Mapping[str, bytes], judge: Judge) -> Combined:
    """Put the solutions together. One alone keeps its verdict; several are judged again as one patch.

    If the whole is refused they are added one by one, each with a verdict, and those that do not fit are left out.
    Raises `SandboxError` if there is no verdict to be had.
    """
    solved = [result for result in results if result.candidate is not None]
    if not solved:
        return Combined()
    if len(solved) == 1:
        return Combined(tuple(solved), (), solved[0].changes, solved[0].verdict)
    changes = _changes(solved, originals)
    if changes is not None:
        verdict = _judge(judge, solved, changes)
        if verdict.accepted:
            return Combined(tuple(solved), (), changes, verdict)
    return _one_by_one(solved, originals, judge)


def _one_by_one(solved: Sequence[TaskResult], originals: Mapping[str, bytes], judge: Judge) -> Combined:
    kept = [solved[0]]
    combined = Combined((solved[0],), (), solved[0].changes, solved[0].verdict)
    for result in solved[1:]:
        changes = _changes([*kept, result], originals)
        verdict = None if changes is None else _judge(judge, [*kept, result], changes)
        if changes is not None and verdict is not None and verdict.accepted:
            kept.append(result)
            combined = dataclasses.replace(combined, results=tuple(kept), changes=changes, verdict=verdict)
            continue
        why = "both change the same lines" if verdict is None else f"refused by {verdict.refused_by}"
        reason = (
            f"its patch does not go together with that of {kept[0].task.nodeids[0]}: {why}; run once more"
        )
        refused = dataclasses.replace(result, outcome="rejected", reason=reason, candidate=None)
        combined = dataclasses.replace(combined, left_out=(*combined.left_out, refused))
    return combined


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
