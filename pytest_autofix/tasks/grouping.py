"""From failures to tasks: what has one root cause becomes one `Task` with its ranked targets."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence

from pytest_autofix.evidence.failure import Failure, Frame
from pytest_autofix.tasks.causes import explain
from pytest_autofix.tasks.fingerprint import base_nodeid, fingerprint, normalise_message
from pytest_autofix.tasks.localise import (
    Hits,
    Lines,
    Scores,
    count_hits,
    impacted,
    leading_frames,
    mentioned,
    module_file,
    name_words,
    raise_by_frames,
    rank_targets,
    score_lines,
    syntax_error_place,
)
from pytest_autofix.tasks.outline import MODULE, outline_of
from pytest_autofix.tasks.spread import spread_to_import_time
from pytest_autofix.tasks.task import Target, Task

__all__ = ["group"]

Place = tuple[str, str]
"""Path and qualified name of a definition"""
Cause = tuple[str, ...]
"""What failures are grouped by: a place, or a word with what it speaks of (`missing`, `hint`, `none`)"""
UNRECORDED = 0.25
"""Score of the other lines of a definition in a stack when no executed lines were recorded"""
REPR_SHARE = 0.5
"""Part of its score that a `__repr__` keeps: pytest calls it to explain an assertion, so only failing tests reach it"""


def group(
    failures: Sequence[Failure],
    lines: Lines,
    outcomes: Mapping[str, str],
    sources: Mapping[str, str],
    editable: Collection[str],
    *,
    hints: Mapping[str, Sequence[str]] | None = None,
) -> tuple[Task, ...]:
    """One task for each root cause, in the order in which pytest saw their first failures.

    `lines` and `outcomes` are those of a run on the original code, by node id (`passed` counts, any other word does
    not). `sources`: text of the files; only those in `editable` become targets. `hints`: node id → `path:name` or
    `path`, where the user says what to change. A task without targets is returned too: `no_target_reason` of
    `no_target.py` says why there is none.
    """
    files = {path: text for path, text in sources.items() if path in set(editable)}
    passing = sorted(
        nodeid
        for nodeid in lines
        if outcomes.get(nodeid) == "passed" and nodeid not in {failure.nodeid for failure in failures}
    )
    view = _View(files, lines, passing, count_hits(passing, lines), hints or {})
    units: dict[str, list[Failure]] = {}
    for failure in failures:
        units.setdefault(base_nodeid(failure), []).append(failure)
    groups: dict[Cause, list[Failure]] = {}
    for unit, cause in _causes(units, view).items():
        groups.setdefault(cause, []).extend(units[unit])
    order = {id(failure): number for number, failure in enumerate(failures)}
    tasks = [
        (cause, _task(sorted(members, key=lambda failure: order[id(failure)]), view))
        for cause, members in groups.items()
    ]
    merged = _merge(tasks, view, order)
    outline_of.cache_clear()  # the syntax trees of a large project are not carried through the whole run
    return tuple(sorted(merged, key=lambda task: order[id(task.failures[0])]))


@dataclasses.dataclass(frozen=True)
class _View:
    """What a run on the original code has shown."""

    files: Mapping[str, str]  #: the editable ones
    lines: Lines
    passing: Sequence[str]
    passing_hits: Hits
    hints: Mapping[str, Sequence[str]]

    def owner(self, path: str, line: int) -> Place:
        return path, outline_of(self.files[path]).owner(line).name


def _causes(units: Mapping[str, Sequence[Failure]], view: _View) -> dict[str, Cause]:
    """Unit (a test with all its rows) → what it is grouped by."""
    causes: dict[str, Cause] = {}
    doubts: dict[str, dict[Place, int]] = {}
    prefer: dict[str, Sequence[Place]] = {}
    for unit, failures in units.items():
        first = failures[0]
        if hinted := [hint for failure in failures for hint in view.hints.get(failure.nodeid, ())]:
            causes[unit] = ("hint", *dict.fromkeys(hinted))
        elif first.missing:
            causes[unit] = ("missing", *first.missing)
        elif possible := _possible(failures, view):
            doubts[unit] = possible
            prefer[unit] = [place for place in possible if mentioned(place[1], name_words(first.function))]
        else:
            causes[unit] = ("none", *_unplaced(unit, first))
    explained: dict[str, Place] = explain(doubts, prefer=prefer)
    causes.update(explained)
    return causes


def _possible(failures: Sequence[Failure], view: _View) -> dict[Place, int]:
    """The definitions that could be why a test fails, each with the number of passing tests that speak against it.

    All rows of a test must reach it. Where an exception was raised its own definition needs no other evidence, and
    the others have at least one doubt against them.
    """
    raised = [
        view.owner(frame.path, frame.line)
        for failure in failures
        for frame in (*leading_frames(failure, view.files), *_named_places(failure, view.files))
    ]
    reached: dict[Place, list[int]] = {}
    functions: set[Place] = set()
    for nodeid in dict.fromkeys(failure.nodeid for failure in failures):
        of_row: dict[Place, int] = {}
        for path, numbers in view.lines.get(nodeid, {}).items():
            if path in view.files:
                owner = outline_of(view.files[path]).owner
                for line in numbers:
                    span = owner(line)
                    hits = view.passing_hits.get((path, line), 0)
                    of_row[path, span.name] = min(hits, of_row.get((path, span.name), hits))
                    if span.is_function:
                        functions.add((path, span.name))
        for place, hits in of_row.items():
            reached.setdefault(place, []).append(hits)
    most = max(map(len, reached.values()), default=0)
    found: dict[Place, int] = dict.fromkeys(raised, 0)
    for place, doubts in sorted(reached.items(), key=lambda item: max(item[1])):
        if len(doubts) == most and (place in functions or not functions):
            least = 1 if raised or _only_shown(place[1], failures) else 0
            found.setdefault(place, max(least, *doubts))
    return found


def _only_shown(name: str, failures: Sequence[Failure]) -> bool:
    """Whether a definition is there to show values, and no test speaks of it."""
    return name.endswith("__repr__") and not any("repr" in failure.function.lower() for failure in failures)


def _named_places(failure: Failure, files: Mapping[str, str]) -> Iterator[Frame]:
    """Places that a failure names without a stack frame: the missing name's module, the file that does not parse."""
    if failure.missing:
        module, name = failure.missing
        if path := module_file(module, files):
            names = {span.name: span for span in outline_of(files[path]).spans[1:]}
            near = difflib.get_close_matches(name, names, n=1) if name else []
            line = names[near[0]].start if near else 0  # the module as a whole
            yield Frame(path, line, near[0] if near else MODULE, "")
    if failure.kind in ("syntax", "collection", "import") and (place := syntax_error_place(failure, files)):
        yield Frame(place[0], place[1], MODULE, "")
    if failure.kind == "stub":
        text = " ".join([failure.message, *(exception.message for exception in failure.exceptions)])
        for path, source in files.items():
            for span in outline_of(source).spans:
                if span.is_stub and span.name.rpartition(".")[2] in text:
                    yield Frame(path, span.body, span.name, "")


def _unplaced(unit: str, failure: Failure) -> tuple[str, ...]:
    """What failures that no editable file explains are grouped by: a fixture fails for many tests alike."""
    if failure.phase == "call" or not failure.frames:
        return (unit,)
    innermost = failure.frames[-1]
    return failure.kind, innermost.path, innermost.function, normalise_message(failure.message)


def _scores(failures: Sequence[Failure], view: _View) -> Scores:
    reached = {
        nodeid: {path: numbers for path, numbers in view.lines[nodeid].items() if path in view.files}
        for failure in failures
        if (nodeid := failure.nodeid) in view.lines
    }
    scores = score_lines(list(reached), view.passing_hits, reached) if reached else {}
    for path, of_path in scores.items():
        owner = outline_of(view.files[path]).owner
        for line in of_path:
            if owner(line).name.endswith("__repr__") and _only_shown(owner(line).name, failures):
                of_path[line] *= REPR_SHARE
    stacks: list[Sequence[Frame]] = [exc.frames for failure in failures for exc in failure.exceptions]
    stacks += [[frame] for failure in failures for frame in _named_places(failure, view.files)]
    if not any(scores.values()):
        for stack in stacks:
            for frame in stack:
                if frame.path in view.files:
                    span = outline_of(view.files[frame.path]).owner(frame.line)
                    if span.is_function:
                        of_path = scores.setdefault(frame.path, {})
                        of_path |= dict.fromkeys(range(span.body, span.end + 1), UNRECORDED)
    return raise_by_frames(scores, stacks, view.files)


def _rank(failures: Sequence[Failure], scores: Scores, view: _View, *, limit: int = 50) -> tuple[Target, ...]:
    """Targets of failures with one cause. A frame leads only if most of the failures end in its definition:
    one broken helper raises in the many functions that use its result."""
    places: dict[Place, tuple[set[str], Frame]] = {}
    for failure in failures:
        for frame in (*leading_frames(failure, view.files), *_named_places(failure, view.files)):
            place = view.owner(frame.path, frame.line)
            places.setdefault(place, (set(), frame))[0].add(failure.nodeid)
    count = len({failure.nodeid for failure in failures})
    frames = [frame for nodeids, frame in places.values() if 2 * len(nodeids) >= count]
    return rank_targets(
        scores,
        view.files,
        frames=frames,
        hints=tuple(
            dict.fromkeys(hint for failure in failures for hint in view.hints.get(failure.nodeid, ()))
        ),
        mentions=sorted({failure.function for failure in failures}),
        limit=limit,
    )


def _task(failures: Sequence[Failure], view: _View) -> Task:
    scores = _scores(failures, view)
    if scores:
        scores = spread_to_import_time(scores, view.files)
    targets = _rank(failures, scores, view)
    top = targets[0] if targets else None
    allowed = dict.fromkeys([*(target.path for target in targets), *sorted(scores)])
    return Task(
        fingerprint=fingerprint(failures, top),
        failures=tuple(failures),
        targets=targets,
        allowed_files=tuple(allowed),
        suspiciousness=scores,
        impacted=impacted(targets, view.passing, view.lines),
    )


def _merge(tasks: Sequence[tuple[Cause, Task]], view: _View, order: Mapping[int, int]) -> list[Task]:
    """Tasks with the same best target made one; missing names and the user's hints stay what they are."""
    merged: dict[Cause, Task] = {}
    for cause, task in tasks:
        fixed = cause[0] in ("hint", "missing", "none")
        key: Cause = cause if fixed or not task.targets else (task.targets[0].path, task.targets[0].name)
        if key in merged:
            members = sorted([*merged[key].failures, *task.failures], key=lambda failure: order[id(failure)])
            merged[key] = _task(members, view)
        else:
            merged[key] = task
    return list(merged.values())
