"""Where the fault may be: a coverage spectrum over lines, raised by stack frames, ranked by definition.

The formula is Ochiai's similarity (Abreu, Zoeteweij, van Gemund: "An Evaluation of Similarity Coefficients for
Software Fault Localization", PRDC 2006, and "On the Accuracy of Spectrum-based Fault Localization", TAIC PART 2007):
with `ef` failing and `ep` passing tests that execute a line, and `F` failing tests in all,
`ef / sqrt(F × (ef + ep))`. It is 1 for a line that every failing and no passing test executes.
"""

from __future__ import annotations

import ast
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import PurePosixPath

from pytest_autofix.evidence.failure import Failure, Frame
from pytest_autofix.tasks.outline import Outline, Span, outline_of
from pytest_autofix.tasks.task import Target

__all__ = [
    "Hits",
    "Lines",
    "Scores",
    "count_hits",
    "impacted",
    "leading_frames",
    "mentioned",
    "module_file",
    "name_words",
    "ochiai",
    "raise_by_frames",
    "rank_targets",
    "score_lines",
    "syntax_error_place",
]

Lines = Mapping[str, Mapping[str, Sequence[int]]]
"""node id → path → executed lines, as a sandbox records them"""
Scores = dict[str, dict[int, float]]
"""path → line → suspiciousness, 0 to 1"""
Hits = Mapping[tuple[str, int], int]
"""(path, line) → number of tests"""


def ochiai(failing: Collection[str], passing: Collection[str], lines: Lines) -> Scores:
    """The score of each line that a failing test executed."""
    return score_lines(failing, count_hits(passing, lines), lines)


def score_lines(failing: Collection[str], passing_hits: Hits, lines: Lines) -> Scores:
    """`ochiai` for callers that score many sets of failing tests against the same passing ones."""
    total = len(set(failing))
    scores: Scores = {}
    for (path, line), ef in count_hits(failing, lines).items():
        ep = passing_hits.get((path, line), 0)
        scores.setdefault(path, {})[line] = ef / math.sqrt(total * (ef + ep))
    return scores


def count_hits(nodeids: Collection[str], lines: Lines) -> Hits:
    """By how many of these tests each line was executed."""
    counts: Counter[tuple[str, int]] = Counter()
    for nodeid in set(nodeids):
        for path, numbers in lines.get(nodeid, {}).items():
            counts.update((path, line) for line in set(numbers))
    return counts


def raise_by_frames(scores: Scores, stacks: Iterable[Sequence[Frame]], editable: Collection[str]) -> Scores:
    """The scores with each editable frame of the stacks (outermost first) moved towards 1.

    The innermost one goes half of the way, the next a quarter, and so on: the line that raised is often right and
    given a wrong value by its callers. Without recorded lines this alone makes the ranking.
    """
    raised = {path: dict(of_path) for path, of_path in scores.items()}
    for stack in stacks:
        weight = 0.5
        for frame in reversed(stack):
            if frame.path in editable and frame.line > 0:
                of_path = raised.setdefault(frame.path, {})
                before = scores.get(frame.path, {}).get(frame.line, 0.0)
                of_path[frame.line] = max(of_path.get(frame.line, 0.0), before + (1.0 - before) * weight)
                weight /= 2
    return raised


def leading_frames(failure: Failure, editable: Collection[str]) -> tuple[Frame, ...]:
    """The innermost editable frame of each exception of a failure: the one pytest saw first, then its causes."""
    leading = (
        next((frame for frame in reversed(exception.frames) if frame.path in editable), None)
        for exception in failure.exceptions
    )
    return tuple(frame for frame in leading if frame)


def rank_targets(
    scores: Scores,
    sources: Mapping[str, str],
    *,
    frames: Sequence[Frame] = (),
    hints: Collection[str] = (),
    mentions: Collection[str] = (),
    limit: int = 50,
) -> tuple[Target, ...]:
    """The definitions of `sources` that hold a scored line or a frame, best first.

    `hints` (`path:name` or `path`) are the user's word and come first of all, then the definitions of `frames` in
    their order, then by score. Between equal scores the one wins that a name in `mentions` speaks of (test names
    carry the name of what they test), then the one with more of its lines as suspicious, then the shorter one.
    """
    named = {hint.partition(":")[0] for hint in hints}
    outlines = {path: outline_of(sources[path]) for path in sources if path in scores or path in named}
    outlines |= {frame.path: outline_of(sources[frame.path]) for frame in frames if frame.path in sources}
    found: dict[tuple[str, Span], list[float]] = {}
    for path, outline in outlines.items():
        for line, score in scores.get(path, {}).items():
            found.setdefault((path, outline.owner(line)), []).append(score)
    order: dict[tuple[str, Span], int] = {}
    for frame in frames:
        if frame.path in outlines:
            key = (frame.path, outlines[frame.path].owner(frame.line))
            order.setdefault(key, len(order))
            found.setdefault(key, [0.5])
    hinted: dict[tuple[str, Span], int] = {}
    for hint in hints:
        for key in _hinted(hint, outlines):
            hinted.setdefault(key, len(hinted))
            found.setdefault(key, [1.0])
    words = frozenset(word for mention in mentions for word in name_words(mention))
    last = len(hinted) + len(order) + 1

    def rank(item: tuple[tuple[str, Span], list[float]]) -> tuple[object, ...]:
        (path, span), values = item
        return (
            hinted.get((path, span), last),
            order.get((path, span), last),
            not span.is_function,  # what runs at import is seen by whichever test imports first
            -round(max(values), 9),
            not mentioned(span.name, words),
            -round(sum(values) / len(values), 9),
            span.end - span.start,
            path,
            span.start,
        )

    return tuple(
        Target(path, span.name, span.start, span.end, max(values))
        for (path, span), values in sorted(found.items(), key=rank)[:limit]
    )


def impacted(targets: Sequence[Target], passing: Collection[str], lines: Lines) -> tuple[str, ...]:
    """Node ids of the passing tests that reach one of the targets, those that execute the fewest lines first."""
    ranges: dict[str, list[tuple[int, int]]] = {}
    for target in targets:
        ranges.setdefault(target.path, []).append((target.start_line, target.end_line))
    reaching: list[tuple[int, str]] = []
    for nodeid in set(passing):
        of_test = lines.get(nodeid, {})
        if any(
            start <= line <= end
            for path, spans in ranges.items()
            for line in of_test.get(path, ())
            for start, end in spans
        ):
            reaching.append((sum(map(len, of_test.values())), nodeid))
    return tuple(nodeid for _, nodeid in sorted(reaching))


def module_file(module: str, files: Collection[str]) -> str:
    """The file among `files` that a dotted module name means, below any import root; empty if there is none."""
    stem = module.replace(".", "/")
    endings = (f"{stem}.py", f"{stem}/__init__.py")
    fitting = [
        path for path in files if path in endings or path.endswith(tuple("/" + end for end in endings))
    ]
    return min(fitting, key=lambda path: (path.count("/"), path), default="")


def syntax_error_place(failure: Failure, sources: Mapping[str, str]) -> tuple[str, int] | None:
    """File and line of a `SyntaxError` in one of `sources`, None if it lies elsewhere.

    The traceback ends at the `import`, the file that does not parse is only named by the message: so it is parsed.
    """
    text = " ".join([failure.message, *(exception.message for exception in failure.exceptions)])
    framed = {frame.path for exception in failure.exceptions for frame in exception.frames}
    for path in sorted(sources, key=lambda path: (path not in framed, path)):
        if path not in framed and PurePosixPath(path).name not in text:
            continue
        try:
            ast.parse(sources[path])
        except SyntaxError as error:
            return path, error.lineno or 1
        except (ValueError, RecursionError, MemoryError):
            return path, 1
    return None


def _hinted(hint: str, outlines: Mapping[str, Outline]) -> Iterator[tuple[str, Span]]:
    path, _, name = hint.partition(":")
    if path in outlines:
        outline = outlines[path]
        spans = [span] if name and (span := outline.find(name)) else () if name else outline.spans[1:]
        yield from ((path, span) for span in spans)


@lru_cache(maxsize=4096)
def name_words(name: str) -> frozenset[str]:
    """The words of an identifier: `test_CartTotal` → test, cart, total."""
    return frozenset(word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name))


def mentioned(name: str, words: frozenset[str]) -> bool:
    """Whether all words of a definition's own name are among `words`."""
    of_name = name_words(name.rpartition(".")[2])
    return bool(of_name) and of_name <= words
