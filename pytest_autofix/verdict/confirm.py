"""Screen and confirm: what a candidate does to the tests, compared with the baseline."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pytest_autofix.errors import SandboxError
from pytest_autofix.patching.changes import FileChange
from pytest_autofix.sandbox.protocol import ForkServer, Job, Limits, RunResult, Sandbox
from pytest_autofix.verdict.baseline import Baseline
from pytest_autofix.verdict.verdict import Check

__all__ = ["Changed", "changed_of", "confirm", "differences", "file_passes", "passing", "screen"]

SHOWN = 3  #: problems that are spelled out in a detail


@dataclass(frozen=True, slots=True)
class Changed:
    """The candidate as files: what is laid over the pristine tree."""

    files: Mapping[str, bytes]
    delete: tuple[str, ...] = ()

    def job(
        self, nodeids: Sequence[str], limits: Limits, *, order: Literal["file", "reversed"] = "file"
    ) -> Job:
        return Job(
            nodeids=tuple(nodeids),
            files=self.files,
            delete=self.delete,
            order=order,
            maxfail=1,
            limits=limits,
        )


def changed_of(changes: Sequence[FileChange]) -> Changed:
    """What a patch lays over the tree."""
    return Changed(
        files={change.path: change.after for change in changes if change.after is not None},
        delete=tuple(change.path for change in changes if change.after is None),
    )


def differences(
    baseline: Baseline, result: RunResult, expected: Sequence[str], must_pass: Sequence[str]
) -> Iterator[str]:
    """What speaks against a candidate, one sentence each; nothing if the run is what it has to be.

    `expected`: node ids that were asked for; `must_pass`: failing ones (tests, or files that could not be
    collected) that have to pass now.
    """
    if result.tampered:
        yield f"protected files changed: {', '.join(result.tampered[:SHOWN])}"
    if result.survivors:
        yield f"{result.survivors} processes were left running"
    if result.status != "finished":
        yield f"the run did not end by itself: {result.status} {result.detail}".rstrip()
    outcomes = result.outcomes()
    for phase in result.phases:
        if phase.when == "collect":
            yield f"{phase.nodeid} cannot be collected: {_last_line(phase.message)}"
    blocked = {nodeid for nodeid in must_pass if nodeid in baseline.collect_errors}
    files = {nodeid.partition("::")[0] for nodeid in expected}
    known = {nodeid for nodeid in baseline.collected if nodeid.partition("::")[0] in files}
    found = set(result.collected)
    new = {nodeid for nodeid in found - known if nodeid.partition("::")[0] in blocked}
    if result.status == "finished":
        for nodeid in sorted(known - found):
            yield f"{nodeid} is gone"
        for nodeid in sorted(found - known - new):
            yield f"{nodeid} is new"
        for nodeid in sorted(blocked):
            own = [outcomes.get(test) for test in new if test.partition("::")[0] == nodeid]
            if "passed" not in own:
                yield f"no test of {nodeid} passes"
    needed = set(must_pass) - blocked
    for nodeid in (*expected, *sorted(new)):
        word = outcomes.get(nodeid, "not run")
        before = baseline.outcomes.get(nodeid, "")
        if nodeid in blocked or word == "passed":
            continue
        if nodeid in needed:
            yield f"{nodeid} is {word}, it has to pass"
        elif nodeid in new:
            if word not in ("skipped", "xfailed"):
                yield f"{nodeid} is {word}"
        elif word != before:
            yield f"{nodeid} was {before}, is {word}"


def _last_line(text: str) -> str:
    return next(reversed(text.strip().splitlines()), "")


def _files_first(nodeids: Sequence[str], first: Sequence[str]) -> tuple[str, ...]:
    """The same node ids, those in files of `first` before the others; order within kept."""
    files = {nodeid.partition("::")[0] for nodeid in first}
    return tuple(sorted(nodeids, key=lambda nodeid: nodeid.partition("::")[0] not in files))


def _detail(problems: Sequence[str]) -> str:
    more = len(problems) - SHOWN
    return "; ".join(problems[:SHOWN]) + (f"; and {more} more" if more > 0 else "")


def screen(
    server: ForkServer, baseline: Baseline, changed: Changed, *, must_pass: Sequence[str], limits: Limits
) -> Check:
    """The failing tests and a few that reach the same code, in a warm process.

    Cheap, and forgeable by design: the code under test shares the process that reports. It only saves the cost of
    `confirm` for candidates that fail anyway.
    """
    began = time.perf_counter()
    nodeids = tuple(nodeid for nodeid in must_pass if nodeid not in baseline.collect_errors)
    blocked = tuple(nodeid for nodeid in must_pass if nodeid in baseline.collect_errors)
    expected = nodeids + blocked
    result = server.run(_with_blocked(changed.job(nodeids, limits), blocked))
    if result.status == "broken":
        raise SandboxError(f"the sandbox failed: {result.detail}")
    problems = list(differences(baseline, result, expected, must_pass))
    seconds = time.perf_counter() - began
    if problems:
        return Check("screen", "failed", _detail(problems), seconds)
    return Check("screen", "passed", f"{len(expected)} failing tests pass in a warm process", seconds)


def confirm(
    sandbox: Sandbox, baseline: Baseline, changed: Changed, *, must_pass: Sequence[str], limits: Limits
) -> Check:
    """Twice in a fresh sandbox and a cold process: the pristine tree, the candidate's files, every test that has a
    known outcome; the second time in another order unless the tests depend on theirs."""
    began = time.perf_counter()
    blocked = tuple(nodeid for nodeid in must_pass if nodeid in baseline.collect_errors)
    judged = _files_first(baseline.judged(must_pass), must_pass)
    expected = judged + blocked
    orders: tuple[Literal["file", "reversed"], ...] = ("file", baseline.second_order)
    for number, order in enumerate(orders, start=1):
        result = sandbox.run(_with_blocked(changed.job(judged, limits, order=order), blocked))
        if result.status == "broken":
            raise SandboxError(f"the sandbox failed: {result.detail}")
        problems = list(differences(baseline, result, expected, must_pass))
        if problems:
            where = f"run {number}{' (reversed)' if order == 'reversed' else ''}: "
            return Check("confirm", "failed", where + _detail(problems), time.perf_counter() - began)
    kept = sum(1 for nodeid in judged if baseline.outcomes.get(nodeid) == "passed")
    detail = f"{len(must_pass)} failing now pass, {kept} that passed still pass; twice, cold"
    detail += ", the second time in reversed order" if baseline.second_order == "reversed" else ", same order"
    if baseline.flaky:
        detail += f"; {len(baseline.flaky)} flaky tests not judged"
    return Check("confirm", "passed", detail, time.perf_counter() - began)


def passing(
    sandbox: Sandbox, baseline: Baseline, changed: Changed, nodeids: Sequence[str], limits: Limits
) -> frozenset[str]:
    """Which of some failing tests (or files that cannot be collected) pass with these files, in one cold run."""
    blocked = tuple(nodeid for nodeid in nodeids if nodeid in baseline.collect_errors)
    tests = tuple(nodeid for nodeid in dict.fromkeys(nodeids) if nodeid not in blocked)
    result = sandbox.run(_with_blocked(replace(changed.job(tests, limits), maxfail=0), blocked))
    outcomes = result.outcomes()
    found = {nodeid for nodeid in tests if outcomes.get(nodeid) == "passed"}
    for file in blocked:
        if file_passes(outcomes, file):
            found.add(file)
    return frozenset(found)


def file_passes(outcomes: Mapping[str, str], file: str) -> bool:
    """Whether a file that could not be collected is repaired: one of its tests passes and none fails."""
    own = [outcome for nodeid, outcome in outcomes.items() if nodeid.partition("::")[0] == file]
    return "passed" in own and "failed" not in own


def _with_blocked(job: Job, blocked: Sequence[str]) -> Job:
    """Files that could not be collected have no node ids yet: all of their tests are run."""
    return replace(job, whole_files=tuple(blocked)) if blocked else job
