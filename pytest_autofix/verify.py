"""`--autosolve-verify`: the same verdict on a patch that a person or another tool has made. Changes no file."""

from __future__ import annotations

import stat
import time
from dataclasses import dataclass
from pathlib import Path

from pytest_autofix.errors import (
    ConfigurationError,
    PatchDoesNotApply,
    PatchError,
    PatchOutOfScope,
    SandboxError,
)
from pytest_autofix.evidence.failure import Failure
from pytest_autofix.patching.apply import apply_patch
from pytest_autofix.patching.changes import FileChange, Tree, changes_from_directory
from pytest_autofix.patching.parse import parse_patch
from pytest_autofix.sandbox.protocol import Isolation
from pytest_autofix.solver.solve import TaskResult
from pytest_autofix.tasks.fingerprint import fingerprint
from pytest_autofix.tasks.task import Task
from pytest_autofix.verdict.baseline import Baseline
from pytest_autofix.verdict.verdict import CHECKS, Check, Verdict
from pytest_autofix.workbench import Workbench

__all__ = ["Verification", "load_patch", "verify_changes"]

MAX_PATCH_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True)
class Verification:
    """The verdict on a patch of the user's."""

    changes: tuple[FileChange, ...]
    verdict: Verdict
    result: TaskResult  #: for the report
    isolation: Isolation | None  #: None: refused before anything had to run
    seconds: float


def load_patch(source: Path, root: Path) -> tuple[tuple[FileChange, ...], str]:
    """The changes of a patch file, or of a folder laid over `root`, and what speaks against its paths already.

    Raises `ConfigurationError` for what is no patch or does not fit the tree.
    """
    flag = "--autosolve-verify"
    try:
        mode = source.stat().st_mode
    except OSError as error:
        raise ConfigurationError(
            f"{flag}: {source} cannot be read: {error.strerror}; give a unified diff, or a folder of files"
        ) from error
    tree = Tree(root)
    try:
        if stat.S_ISDIR(mode):
            changes = changes_from_directory(source, root)
        elif stat.S_ISREG(mode) and source.stat().st_size <= MAX_PATCH_BYTES:
            changes = apply_patch(parse_patch(source.read_bytes()), tree.read, mode_of=tree.mode)
        else:
            raise ConfigurationError(f"{flag}: {source} is no file of at most 32 MiB; give a unified diff")
    except PatchOutOfScope as error:
        return (), str(error)
    except PatchDoesNotApply as error:
        raise ConfigurationError(f"{flag}: {source} does not fit these files: {error}") from error
    except (PatchError, OSError) as error:
        raise ConfigurationError(
            f"{flag}: {source} is no patch: {error}; give a unified diff, or a folder of files"
        ) from error
    if not changes:
        raise ConfigurationError(f"{flag}: {source} changes nothing in {root}; is it applied already?")
    return changes, ""


def verify_changes(changes: tuple[FileChange, ...], objection: str, bench: Workbench) -> Verification:
    """Run the verdict. All tests of the selection that fail without the patch have to pass with it.

    Raises `SandboxError` if there is no verdict to be had.
    """
    began = time.perf_counter()
    reasons = (objection,) if objection else bench.policy.refusals(changes)
    if reasons:
        refused = Check("paths", "failed", "; ".join(reasons[:3]))
        others = (Check(name, "not_run", "refused by paths before") for name in CHECKS[1:])
        verdict = Verdict(False, "-", (refused, *others))
        return _verification(changes, verdict, (), None, began)
    sandbox = bench.open_sandbox()
    baseline = bench.take_baseline()
    if not baseline.collected and not baseline.collect_errors:
        raise SandboxError("the selection holds no test: give the tests that the patch is for")
    failing = tuple(sorted(baseline.failed))
    judge = bench.judge(baseline)
    server = sandbox.fork_server() if failing else None
    try:
        verdict = judge.judge(changes, must_pass=failing, server=server, guards=_guards(changes, baseline))
    finally:
        if server is not None:
            server.close()
    return _verification(changes, verdict, failing, sandbox.isolation, began)


def _guards(changes: tuple[FileChange, ...], baseline: Baseline) -> int:
    paths = {change.path for change in changes}
    return sum(1 for nodeid in baseline.passed if paths.intersection(baseline.lines.get(nodeid, ())))


def _verification(
    changes: tuple[FileChange, ...],
    verdict: Verdict,
    failing: tuple[str, ...],
    isolation: Isolation | None,
    began: float,
) -> Verification:
    failures = tuple(
        Failure(nodeid, "call", "exception", "fails without the patch", nodeid.partition("::")[0])
        for nodeid in failing
    )
    task = Task(fingerprint(failures, None), failures, (), tuple(change.path for change in changes))
    seconds = time.perf_counter() - began
    reason = "" if verdict.accepted else f"refused by {verdict.refused_by}"
    result = TaskResult(
        task,
        "solved" if verdict.accepted else "rejected",
        reason,
        changes=changes if verdict.accepted else (),
        verdict=verdict,
        seconds=seconds,
    )
    return Verification(changes, verdict, result, isolation, seconds)
