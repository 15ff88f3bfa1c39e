"""Why there is nothing to change for a task: one true sentence for the person who reads the report."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import PurePosixPath

from pytest_autofix.evidence.failure import Failure
from pytest_autofix.tasks.localise import Lines, module_file

__all__ = ["no_target_reason"]


def no_target_reason(failures: Sequence[Failure], *, lines: Lines, editable: Collection[str]) -> str:
    """One sentence, without a full stop, that says why these failures have no target.

    `lines` are those of the run on the original code: a test without an entry was not run there.
    """
    first = failures[0]
    if not editable:
        return "no file of the project may be edited"
    if first.kind == "crash":
        return "the process died in this test and left no stack to follow"
    if first.missing:
        return _missing(first, editable)
    innermost = first.frames[-1] if first.frames else None
    if first.kind == "syntax":
        return f"{innermost.path if innermost else first.path} does not parse, and it may not be edited"
    if first.phase in ("setup", "teardown"):
        where = f"{innermost.path}:{innermost.line} ({innermost.function})" if innermost else first.path
        return (
            f"the {first.phase} of the test fails by itself in {where}, before any editable file is involved"
        )
    if first.phase == "collect":
        where = f"{innermost.path}:{innermost.line}" if innermost else first.path
        return f"{where} fails while it is imported, and no editable file is in the stack"
    recorded = [failure.nodeid for failure in failures if failure.nodeid in lines]
    if not recorded:
        return "no executed lines were recorded for this test, and no editable file is in its stack"
    reached = sorted({path for nodeid in recorded for path, numbers in lines[nodeid].items() if numbers})
    if any(path in editable for path in reached):  # the caller asks although there are targets
        return "the lines that the test executes in editable files belong to no definition"
    if others := [path for path in reached if path != first.path]:
        shown = ", ".join(others[:3]) + (", …" if len(others) > 3 else "")
        return f"the test never reaches an editable file, only {shown}"
    if innermost and innermost.path != first.path:
        return f"the test never reaches an editable file; it fails in {innermost.path}:{innermost.line}"
    return "the test never reaches an editable file"


def _missing(failure: Failure, editable: Collection[str]) -> str:
    module, name = failure.missing or ("", "")
    importer = failure.frames[-1].path if failure.frames else failure.path
    if name:
        return f"{importer} imports {name!r} from {module!r}, which is no editable file of the project"
    top = module.partition(".")[0]
    inside = module_file(top, editable) or any(top in PurePosixPath(path).parts[:-1] for path in editable)
    if inside:
        return f"{importer} imports {module!r}, a module that does not exist in the project"
    return f"{importer} imports {module!r}, which is not installed and no part of the project"
