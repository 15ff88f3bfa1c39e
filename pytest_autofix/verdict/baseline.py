"""What the tests do on the original code, seen in the sandbox before any candidate runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Literal

from pytest_autofix.errors import SandboxError
from pytest_autofix.sandbox.protocol import Job, Limits, RunResult, Sandbox

__all__ = ["Baseline", "take_baseline"]

TRACE_SLOWDOWN = 20  #: measured upper bound of `sys.settrace` on loops, for the time limit of the traced run
HANGING_TRACE = 0.5  #: seconds: a loop without an end has shown its lines by then
TRACE_BUDGET = 30.0  #: seconds of untraced test time; beyond it only files with failing tests are traced


@dataclass(frozen=True)
class Baseline:
    """Outcomes of the unmodified program. Only what was the same in every run counts as known."""

    collected: tuple[str, ...]  #: node ids in file order
    outcomes: Mapping[str, str]  #: stable ones, as in `RunResult.outcomes`
    collect_errors: Mapping[str, str]  #: node id of a collector → message
    flaky: frozenset[str]  #: node ids whose outcome differed between two runs
    seconds: Mapping[str, float]  #: of each test, all phases
    second_order: Literal["file", "reversed"]  #: `file` if the tests depend on their order
    messages: Mapping[str, str] = field(default_factory=dict)  #: of failed tests
    lines: Mapping[str, Mapping[str, tuple[int, ...]]] = field(default_factory=dict)
    runs: int = 0
    wall_seconds: float = 0.0

    @property
    def failed(self) -> frozenset[str]:
        """Tests that always fail, and collectors that cannot collect."""
        failed = {nodeid for nodeid, outcome in self.outcomes.items() if outcome == "failed"}
        return frozenset(failed | set(self.collect_errors))

    @property
    def passed(self) -> tuple[str, ...]:
        """Tests that always pass, in file order."""
        return tuple(nodeid for nodeid in self.collected if self.outcomes.get(nodeid) == "passed")

    def leaving_out(self, nodeids: Collection[str]) -> Baseline:
        """The same without a known outcome for these: they are seen to change from run to run, so they would speak
        against candidates that have nothing to do with them."""
        outcomes = {nodeid: word for nodeid, word in self.outcomes.items() if nodeid not in nodeids}
        return replace(self, outcomes=outcomes, flaky=self.flaky.union(nodeids))

    def judged(self, must_pass: Sequence[str]) -> tuple[str, ...]:
        """Node ids that say something about a candidate for `must_pass`, in file order: those, and all with a
        stable outcome but failed. Other failing tests belong to other tasks."""
        wanted = set(must_pass)
        return tuple(
            nodeid
            for nodeid in self.collected
            if nodeid in wanted or self.outcomes.get(nodeid) in ("passed", "skipped", "xfailed")
        )


def take_baseline(
    sandbox: Sandbox,
    *,
    nodeids: Sequence[str] = (),
    selection: Sequence[str] = (),
    hanging: Collection[str] = (),
    trace: Sequence[str] = (),
    limits: Limits,
    jobs: int = 1,
) -> Baseline:
    """Run the tests twice, in file order and reversed, and once more recording the lines of the files `trace`.

    Tests whose outcome changed with the order get a third run that tells an order dependence from a flaky test.
    `hanging`: tests that ran out of time before, among `nodeids`; they are waited for only once.
    Raises `SandboxError` when the tests cannot be run at all.
    """
    plain = Job(nodeids=tuple(nodeids), selection=tuple(selection), limits=limits)
    again = replace(
        plain, nodeids=tuple(nodeid for nodeid in nodeids if nodeid not in hanging), order="reversed"
    )
    with ThreadPoolExecutor(max_workers=max(1, min(jobs, 2))) as pool:
        first_run = pool.submit(sandbox.run, plain)
        second_run = pool.submit(sandbox.run, again) if again.nodeids or not nodeids else first_run
        try:
            first, second = first_run.result(), second_run.result()
        except KeyboardInterrupt:
            sandbox.close()  # ends both runs, which the pool waits for
            raise
    _require(first)
    runs = [first, second]
    order: Literal["file", "reversed"] = "reversed"
    if second.status != "finished" or _differ(first, second):
        third = sandbox.run(plain)
        _require(third)
        runs.append(third)
        if not _differ(first, third):
            order = "file"
    compared = [run for run in runs if run is not second or order == "reversed"]
    outcomes, flaky = _stable(compared)
    baseline = Baseline(
        collected=first.collected,
        outcomes=outcomes,
        collect_errors={phase.nodeid: phase.message for phase in first.phases if phase.when == "collect"},
        flaky=flaky,
        seconds=_seconds(first),
        second_order=order,
        messages={phase.nodeid: phase.message for phase in first.phases if phase.outcome == "failed"},
        runs=len(runs),
        wall_seconds=sum(run.wall_seconds for run in runs),
    )
    if not trace:
        return baseline
    with ThreadPoolExecutor(max_workers=max(1, min(jobs, 2))) as pool:
        traced = list(pool.map(sandbox.run, _tracing_jobs(baseline, trace, limits, hanging)))
    return replace(
        baseline,
        lines={nodeid: lines for run in traced for nodeid, lines in run.lines.items()},
        runs=baseline.runs + len(traced),
        wall_seconds=baseline.wall_seconds + sum(run.wall_seconds for run in traced),
    )


def _differ(first: RunResult, second: RunResult) -> bool:
    """Whether a test that was in both runs ended otherwise."""
    left, right = first.outcomes(), second.outcomes()
    return any(left[nodeid] != right[nodeid] for nodeid in left.keys() & right.keys())


def _require(run: RunResult) -> None:
    if run.status != "finished":
        tail = run.output.strip().splitlines()[-1:] or [""]
        raise SandboxError(
            f"the tests could not be run in the sandbox: {run.status}, {run.detail} {tail[0]}".strip()
        )


def _stable(runs: Sequence[RunResult]) -> tuple[dict[str, str], frozenset[str]]:
    seen: dict[str, set[str]] = {}
    for run in runs:
        for nodeid, outcome in run.outcomes().items():
            seen.setdefault(nodeid, set()).add(outcome)
    collectors = {phase.nodeid for run in runs for phase in run.phases if phase.when == "collect"}
    stable = {
        nodeid: next(iter(words))
        for nodeid, words in seen.items()
        if len(words) == 1 and nodeid not in collectors
    }
    return stable, frozenset(nodeid for nodeid, words in seen.items() if len(words) > 1)


def _seconds(run: RunResult) -> dict[str, float]:
    seconds: dict[str, float] = {}
    for phase in run.phases:
        seconds[phase.nodeid] = seconds.get(phase.nodeid, 0.0) + phase.seconds
    return seconds


def _tracing_jobs(
    baseline: Baseline, trace: Sequence[str], limits: Limits, hanging: Collection[str]
) -> Iterator[Job]:
    nodeids: tuple[str, ...] = tuple(
        nodeid for nodeid in baseline.collected if baseline.outcomes.get(nodeid) in ("passed", "failed")
    )
    if sum(baseline.seconds.get(nodeid, 0.0) for nodeid in nodeids) > TRACE_BUDGET:
        files = {nodeid.partition("::")[0] for nodeid in baseline.failed}
        nodeids = tuple(nodeid for nodeid in nodeids if nodeid.partition("::")[0] in files)
    slowest = max((baseline.seconds.get(n, 0.0) for n in nodeids if n not in baseline.failed), default=0.0)
    seconds = min(limits.test_seconds, TRACE_SLOWDOWN * slowest + 1)
    for chosen, limit in (
        (tuple(nodeid for nodeid in nodeids if nodeid not in hanging), seconds),
        (tuple(nodeid for nodeid in nodeids if nodeid in hanging), min(seconds, HANGING_TRACE)),
    ):
        if chosen:
            yield Job(nodeids=chosen, trace=tuple(trace), limits=replace(limits, test_seconds=limit))
