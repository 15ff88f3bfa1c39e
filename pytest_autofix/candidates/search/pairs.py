"""Two edits at once, for programs with two faults or one fault in two places.

All pairs would be millions. A pair is only promising when one half shows progress (it made a failing test pass)
or both are good singles, so the combinations are bounded on both sides and come best first.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pytest_autofix.candidates.candidate import Candidate, Edit, Origin
from pytest_autofix.candidates.search.source import Source, code_key, quiet_compile

__all__ = ["pairs"]

_FIRST_LIMIT = 40  #: partly successful singles that are combined
_SINGLES_LIMIT = 1500
_BEST_LIMIT = 120  #: singles combined with each other when none was partly successful


def pairs(
    plausible: Sequence[Candidate], singles: Iterable[Candidate], originals: Mapping[str, str]
) -> Iterator[Candidate]:
    """Combinations of edits that do not touch: `plausible` × `singles` first, then the best singles × themselves.

    `plausible` are singles that made at least one failing test pass, best first; `singles` the others in the order
    of the enumeration, of which a bounded number is read. A pair of singles scores the product of their scores.
    """
    rest = list(itertools.islice(singles, _SINGLES_LIMIT))
    checker = _Checker(originals)
    done: set[tuple[Edit, ...]] = set()
    first = list(plausible[:_FIRST_LIMIT])
    for group in (_products(first, [*first, *rest]), _products(rest[:_BEST_LIMIT], rest[:_BEST_LIMIT])):
        for score, left, right in group:
            edits = tuple(sorted({*left.edits, *right.edits}))
            if edits in done or not _apart(left.edits, right.edits):
                continue
            done.add(edits)
            if checker.compiles(edits):
                origin = Origin("search", operator=f"{left.origin.operator}+{right.origin.operator}")
                yield Candidate(edits, origin, score)


def _products(
    left: Sequence[Candidate], right: Sequence[Candidate]
) -> Iterator[tuple[float, Candidate, Candidate]]:
    """All pairs by falling product of scores, with one heap item for each of `left`."""
    right = sorted(right, key=lambda candidate: -candidate.score)
    heap = [(-one.score * right[0].score, row, 0) for row, one in enumerate(left)] if right else []
    heapq.heapify(heap)
    while heap:
        score, row, column = heapq.heappop(heap)
        if left[row] is not right[column]:
            yield -score, left[row], right[column]
        if column + 1 < len(right):
            heapq.heappush(heap, (-left[row].score * right[column + 1].score, row, column + 1))


def _apart(left: Sequence[Edit], right: Sequence[Edit]) -> bool:
    """Whether no two edits share a character or a place; two edits of the same text would be one candidate."""
    for one in left:
        for other in right:
            if one.path == other.path and one.start <= other.end and other.start <= one.end:
                return False
    return True


class _Checker:
    """Compiles the edited definitions of a pair, and drops pairs that do the same as one seen before."""

    def __init__(self, originals: Mapping[str, str]) -> None:
        self.originals = originals
        self.sources: dict[str, Source | None] = {}
        self.seen: set[int] = set()

    def compiles(self, edits: Sequence[Edit]) -> bool:
        parts: list[object] = []
        for path in sorted({edit.path for edit in edits}):
            mine = [(edit.start, edit.end, edit.text) for edit in edits if edit.path == path]
            text = self.originals.get(path, "")
            if path not in self.sources:
                self.sources[path] = Source.parse(path, text)
            source = self.sources[path]
            if source is None:
                return False
            rest = tuple(mine)
            for start, end in source.pieces:
                if not any(start <= splice[0] and splice[1] <= end for splice in rest):
                    continue
                inside = [splice for splice in rest if start <= splice[0] and splice[1] <= end]
                rest = tuple(splice for splice in rest if splice not in inside)
                code = quiet_compile(_edited(text, start, end, inside))
                if code is None:
                    return False
                parts.append((path, start, code_key(code)))
            parts.append(rest)
        key = hash(tuple(parts))
        if key in self.seen:
            return False
        self.seen.add(key)
        return True


def _edited(text: str, start: int, end: int, splices: Sequence[tuple[int, int, str]]) -> str:
    pieces: list[str] = []
    position = start
    for first, last, new in sorted(splices):
        pieces += (text[position:first], new)
        position = last
    return "".join([*pieces, text[position:end], "\n"])
