"""Search/replace blocks: edits for several places, for module level, and for files that do not parse."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_autofix.errors import PatchDoesNotApply, PatchError
from pytest_autofix.patching.locate import Lines, dominant_newline, parse_source
from pytest_autofix.patching.spans import Span, apply_spans

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Block", "apply_blocks"]


@dataclass(frozen=True, slots=True)
class Block:
    """Replace whole lines by others. `path` is empty when the reply does not say."""

    search: str
    replace: str
    path: str = ""


def apply_blocks(source: str, blocks: Sequence[Block]) -> tuple[str, list[Span]]:
    """The new text and its spans. All blocks are found in the original text and must not overlap.

    A block's lines must occur exactly once: as they are, else without regard to trailing white space, else at one
    other indentation, which the replacement then takes too. Raises `PatchDoesNotApply` with the closest lines.
    """
    spans = sorted(_span(source, block, number) for number, block in enumerate(blocks, 1))
    text = apply_spans(source, spans)
    if _parses(source) and not _parses(text):
        try:
            parse_source(text, "the file with the blocks applied")
        except PatchError as error:
            raise PatchDoesNotApply(str(error)) from error
    return text, spans


def _span(source: str, block: Block, number: int) -> Span:
    wanted = _split(block.search)
    if not any(line.strip() for line in wanted):
        raise PatchDoesNotApply(f"block {number} searches for nothing: name the lines to replace")
    lines = Lines(source)
    have = [lines[n] for n in range(1, len(lines) + 1)]
    windows = range(len(have) - len(wanted) + 1)
    for same in (_exactly, _but_for_trailing_space, _but_for_indentation):
        found = [at for at in windows if same(have[at : at + len(wanted)], wanted)]
        if len(found) == 1:
            at = found[0]
            new = _split(block.replace)
            if same is _but_for_indentation:
                new = _reindent(new, have[at : at + len(wanted)], wanted)
            return _replacement(source, lines, at + 1, at + len(wanted), new)
        if found:
            places = ", ".join(str(at + 1) for at in found[:5])
            raise PatchDoesNotApply(
                f"block {number} fits {len(found)} places, at lines {places}: add lines around it until it fits one"
            )
    raise PatchDoesNotApply(f"block {number} is not in the file; closest lines:\n{_closest(have, wanted)}")


def _replacement(source: str, lines: Lines, first: int, last: int, new: list[str]) -> Span:
    newline = dominant_newline(source)
    if new:
        return Span(lines.start(first), lines.end(last), newline.join(new))
    return Span(lines.start(first), lines.start(last + 1), "")


def _split(text: str) -> list[str]:
    body = text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
    return body.split("\n") if body else []


def _exactly(have: list[str], wanted: list[str]) -> bool:
    return have == wanted


def _but_for_trailing_space(have: list[str], wanted: list[str]) -> bool:
    return [line.rstrip() for line in have] == [line.rstrip() for line in wanted]


def _but_for_indentation(have: list[str], wanted: list[str]) -> bool:
    if [line.strip() for line in have] != [line.strip() for line in wanted]:
        return False
    before, after = _margins(have, wanted)
    return all(
        line.rstrip() == (after + other.removeprefix(before)).rstrip()
        for line, other in zip(have, wanted, strict=True)
        if line.strip()
    ) and all(other.startswith(before) for other in wanted if other.strip())


def _margins(have: list[str], wanted: list[str]) -> tuple[str, str]:
    """Smallest indentation of the searched lines, and that of the same lines in the file."""
    at = min((n for n, line in enumerate(wanted) if line.strip()), key=lambda n: _width(wanted[n]))
    return wanted[at][: _width(wanted[at])], have[at][: _width(have[at])]


def _width(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _reindent(new: list[str], have: list[str], wanted: list[str]) -> list[str]:
    before, after = _margins(have, wanted)
    if any(line.strip() and not line.startswith(before) for line in new):
        raise PatchDoesNotApply("a block's replacement is indented less than what it replaces")
    return [after + line.removeprefix(before) if line.strip() else "" for line in new]


def _closest(have: list[str], wanted: list[str]) -> str:
    size = max(1, len(wanted))
    target = [line.strip() for line in wanted]
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(target)

    def score(at: int) -> float:
        window = [line.strip() for line in have[at : at + size]]
        matcher.set_seq1(window)
        return (
            matcher.ratio()
            + sum(
                difflib.SequenceMatcher(None, one, two).quick_ratio()
                for one, two in zip(window, target, strict=False)
            )
            / size
        )

    best = max(range(max(1, len(have) - size + 1)), key=score)
    return "\n".join(f"{best + n + 1}: {line}" for n, line in enumerate(have[best : best + size][:12]))


def _parses(source: str) -> bool:
    try:
        parse_source(source)
    except PatchError:
        return False
    return True
