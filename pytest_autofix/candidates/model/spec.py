"""`Spec`: what a model is told about a task. What decides and nothing else, within a number of tokens.

Pieces are ranked; when they do not all fit, the least important ones go, whole, and the text says which. The
definition that the model is to write again is always there in full.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pytest_autofix.budget import estimate_tokens
from pytest_autofix.candidates.model.context import context_of
from pytest_autofix.candidates.model.facts import facts_of, shorten, summary_of
from pytest_autofix.candidates.model.prompts import fence
from pytest_autofix.candidates.model.testcode import source_of_test
from pytest_autofix.errors import PatchError
from pytest_autofix.patching.locate import MODULE, Lines, locate_definition

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_autofix.evidence.failure import Failure
    from pytest_autofix.patching.locate import Definition
    from pytest_autofix.tasks.task import Target, Task

__all__ = ["Spec", "build_spec"]

_TARGETS = 5  #: definitions shown in full, the first and as many more as fit
_OTHER_FAILURES = 12
_WHOLE_FILE = 200  #: lines up to which a file is shown whole where no definition can be
_AROUND = 20  #: lines shown before and behind a suspicious one
_LARGEST_SHARE = 0.6  #: of the tokens that one definition may take before it is edited by blocks instead


@dataclass(frozen=True, slots=True)
class Spec:
    """The text for the model, and what of the code it shows."""

    text: str
    format: Literal["definition", "blocks"]  #: how the answer is to be given
    targets: tuple[Target, ...]  #: shown in full, best first; for blocks the target the excerpts are about
    cuts: tuple[str, ...]  #: what was left out for lack of room


@dataclass(frozen=True, slots=True)
class _Piece:
    title: str
    text: str
    rank: int  #: 0 is never left out, higher numbers go first
    target: Target | None = None


def build_spec(
    task: Task,
    originals: Mapping[str, str],
    tests: Mapping[str, str],
    *,
    max_tokens: int = 6000,
    hint: str = "",
) -> Spec:
    """The spec of a task; `originals` and `tests` map relative paths to the texts of source and test files.

    Raises `PatchError` when the task has no target in `originals`.
    """
    targets = [target for target in task.targets if target.path in originals]
    if not targets:
        raise PatchError("the task has no target whose source is known")
    code = list(_definition_pieces(targets, originals))
    whole = bool(code) and code[0].target == targets[0]
    if not whole or estimate_tokens(code[0].text) > max_tokens * _LARGEST_SHARE:
        code = [_excerpt(task, targets[0], originals[targets[0].path])]
        whole = False
    pieces = [*_failure_pieces(task.failures, tests), *code, *_context_pieces(code, originals)]
    if hint:
        pieces.insert(0, _Piece("A hint from the user", fence(hint), 0))
    kept = _fitting(pieces, max_tokens)
    cuts = tuple(f"{piece.title} ({len(piece.text)} characters)" for piece in pieces if piece not in kept)
    text = "\n\n".join(f"## {piece.title}\n\n{piece.text}" for piece in kept)
    if cuts:
        text += "\n\nNot shown for lack of room: " + "; ".join(cuts) + "."
    shown = tuple(piece.target for piece in kept if piece.target is not None)
    return Spec(text, "definition" if whole else "blocks", shown, cuts)


def _fitting(pieces: list[_Piece], max_tokens: int) -> list[_Piece]:
    left = max_tokens
    kept: list[_Piece] = []
    for piece in sorted(pieces, key=lambda piece: piece.rank):
        size = estimate_tokens(piece.title + piece.text) + 4
        if piece.rank == 0 or size <= left:
            kept.append(piece)
            left -= size
    return [piece for piece in pieces if piece in kept]


def _failure_pieces(failures: tuple[Failure, ...], tests: Mapping[str, str]) -> Iterator[_Piece]:
    first = failures[0]
    yield _Piece("The failure", facts_of(first), 1)
    for path, text in source_of_test(first, tests):
        is_test = path == first.path
        title = f"The test, in {path}" if is_test else f"Fixtures of the test, in {path}"
        yield _Piece(title, fence(text, "python"), 2 if is_test else 4)
    others = failures[1:]
    if others:
        lines = [summary_of(failure) for failure in others[:_OTHER_FAILURES]]
        if len(others) > _OTHER_FAILURES:
            lines.append(f"and {len(others) - _OTHER_FAILURES} more")
        yield _Piece("Other failures with the same cause", fence("\n".join(lines)), 3)
    shown = {(first.path, first.function)}
    for failure in others:
        if (failure.path, failure.function) not in shown:
            shown.add((failure.path, failure.function))
            for path, text in source_of_test(failure, tests)[:1]:
                title = f"Another failing test, {failure.function or failure.nodeid}, in {path}"
                yield _Piece(title, fence(text, "python"), 7)
    output = "\n".join(f"[{name}]\n{text}" for name, text in first.output.items() if text.strip())
    if output:
        yield _Piece("Captured output", fence(shorten(output, 2000)), 8)


def _definition_pieces(targets: list[Target], originals: Mapping[str, str]) -> Iterator[_Piece]:
    shown: list[Target] = []
    for target in targets:
        inside = any(
            other.path == target.path
            and other.start_line <= target.start_line
            and target.end_line <= other.end_line
            for other in shown
        )
        definition = None if inside or target.name == MODULE else _locate(originals[target.path], target)
        if definition is None:
            continue
        shown.append(target)
        source = originals[target.path]
        title = f"The definition to correct: `{target.name}` in {target.path}"
        if len(shown) > 1:
            title = f"Also suspicious: `{target.name}` in {target.path}"
        text = fence(_normal(source[definition.start : definition.end]), "python")
        yield _Piece(title, text, 0 if len(shown) == 1 else 4 + len(shown), target)
        if len(shown) == _TARGETS:
            return


def _locate(source: str, target: Target) -> Definition | None:
    try:
        return locate_definition(source, target.name, line=target.start_line)
    except PatchError:
        return None


def _context_pieces(code: list[_Piece], originals: Mapping[str, str]) -> Iterator[_Piece]:
    for position, piece in enumerate(code):
        target = piece.target
        definition = _locate(originals[target.path], target) if target and target.name != MODULE else None
        if target is None or definition is None:
            continue
        if text := context_of(originals[target.path], definition):
            title = f"Around `{target.name}` in {target.path}, bodies left out"
            yield _Piece(title, fence(_normal(text), "python"), 4 if position == 0 else 9)


def _excerpt(task: Task, target: Target, source: str) -> _Piece:
    """The whole file if it is small, else the surroundings of the suspicious lines."""
    lines = Lines(source)
    count = len(lines)
    if count <= _WHOLE_FILE:
        return _Piece(f"The file to correct: {target.path}", fence(_normal(source), "python"), 0, target)
    scores = task.suspiciousness.get(target.path, {})
    centres = sorted(scores, key=lambda line: (-scores[line], line))[:5]
    for failure in task.failures[:3]:
        centres += [frame.line for frame in failure.frames if frame.path == target.path][-2:]
    centres = centres or [target.start_line]
    wanted = sorted({n for at in centres for n in range(max(1, at - _AROUND), min(count, at + _AROUND) + 1)})
    texts: list[str] = []
    for position, number in enumerate(wanted):
        if position and number > wanted[position - 1] + 1:
            texts.append(f"[lines {wanted[position - 1] + 1} to {number - 1} not shown]")
        texts.append(lines[number])
    title = f"Parts of the file to correct: {target.path} ({count} lines)"
    return _Piece(title, fence("\n".join(texts), "python"), 0, target)


def _normal(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
