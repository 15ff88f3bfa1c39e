"""From a parsed reply to new file texts: which file a piece of code is for, and which definition it replaces."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_autofix.candidates.candidate import Edit
from pytest_autofix.errors import ModelReplyUnusable, PatchError
from pytest_autofix.patching.blocks import apply_blocks
from pytest_autofix.patching.locate import MODULE, definitions
from pytest_autofix.patching.spans import line_spans
from pytest_autofix.patching.splice import splice_definition
from pytest_autofix.redact import REDACTED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_autofix.candidates.model.reply import ParsedReply, ReplyCode
    from pytest_autofix.patching.blocks import Block
    from pytest_autofix.patching.locate import Definition
    from pytest_autofix.tasks.task import Target

__all__ = ["changed_files", "edits_between"]

_STUB_DECORATORS = ("autosolve",)
_Place = tuple[str, str, int | None]


def changed_files(
    reply: ParsedReply, targets: Sequence[Target], originals: Mapping[str, str], allowed: Iterable[str]
) -> dict[str, str]:
    """New texts of the files that the reply really changes; empty if it repeats what is there.

    `targets` are those that the model was shown, best first. Raises `ModelReplyUnusable` with what to do better.
    """
    files = {path: originals[path] for path in allowed if path in originals}
    changed: dict[str, str] = {}
    try:
        for path, blocks in _by_file(reply.blocks, targets).items():
            if path not in files:
                raise PatchError(f"{path} is not a file that may be changed")
            changed[path], _ = apply_blocks(files[path], blocks)
        for code, (path, name, line) in _placed(reply.codes, targets, files):
            source = changed.get(path, files[path])
            changed[path] = _splice(source, name, code, line, moved=path in changed)
    except PatchError as error:
        raise ModelReplyUnusable(str(error)) from error
    changed = {path: text for path, text in changed.items() if text != files[path]}
    for path, text in changed.items():
        if REDACTED in text and REDACTED not in files[path]:
            raise ModelReplyUnusable(
                f"the reply writes {REDACTED!r}, which stands for a text that was not shown"
            )
    return changed


def edits_between(originals: Mapping[str, str], changed: Mapping[str, str]) -> tuple[Edit, ...]:
    """The smallest whole-line edits that make the changed files from the originals."""
    return tuple(
        Edit(path, span.start, span.end, span.text)
        for path in sorted(changed)
        for span in line_spans(originals.get(path, ""), changed[path])
    )


def _placed(
    codes: Sequence[ReplyCode], targets: Sequence[Target], files: Mapping[str, str]
) -> list[tuple[ReplyCode, _Place]]:
    """Each piece with its place. Pieces that only define something new go with the first one that has a place."""
    places = [(code, _place(code, targets, files)) for code in codes]
    placed = [(code, place) for code, place in places if place is not None]
    if codes and not placed:
        wanted = ", ".join(f"{target.name} in {target.path}" for target in targets)
        has = ", ".join(name for code in codes for name in code.names)
        raise PatchError(f"the reply defines {has}, none of which is in the files; write {wanted}")
    helpers = [
        code.code
        for code, place in places
        if place is None and not all(name.lower().startswith("test") for name in code.names)
    ]
    if helpers:
        code, place = placed[-1]  # the last version of a definition is the one that counts, and may use them
        placed[-1] = (replace(code, code="\n\n".join([*helpers, code.code])), place)
    return placed


def _splice(source: str, name: str, code: ReplyCode, line: int | None, *, moved: bool) -> str:
    """Any definition of the file may change with it: it is an allowed file, and the tests decide."""
    also = {definition.name for definition in definitions(source)} | {MODULE}
    # After an earlier splice into the same file the line of the target is not that of the original any more.
    text, _ = splice_definition(
        source, name, code.code, line=None if moved else line, also=also, drop_decorators=_STUB_DECORATORS
    )
    return text


def _place(code: ReplyCode, targets: Sequence[Target], files: Mapping[str, str]) -> _Place | None:
    """File, qualified name and a line of the definition the code is for; None if it defines nothing known."""
    fits = [
        target
        for target in targets
        if target.path in files
        and code.path in ("", target.path)
        and set(target.name.split(".")) & set(code.names)
    ]
    exact = [target for target in fits if target.name.rpartition(".")[2] in code.names] or fits
    same_name = {
        (t.path, t.name) for t in exact if t.name.rpartition(".")[2] == exact[0].name.rpartition(".")[2]
    }
    if len(same_name) > 1 and not _names_class(code, exact[0]):
        places = ", ".join(f"{name} in {path}" for path, name in sorted(same_name))
        raise PatchError(
            f"{code.names[-1]!r} may be {places}: write the method inside its class, or name the file"
        )
    if exact:
        return exact[0].path, exact[0].name, exact[0].start_line
    elsewhere = [
        (path, definition.name)
        for path, text in files.items()
        if code.path in ("", path)
        for definition in _known(text)
        if definition.name in code.names
    ]
    paths = {path for path, _ in elsewhere}
    if len(paths) == 1:
        return elsewhere[0][0], elsewhere[0][1], None
    if paths:
        names = ", ".join(code.names)
        raise PatchError(f"{names} is defined in {', '.join(sorted(paths))}: say which file is meant")
    return None


def _names_class(code: ReplyCode, target: Target) -> bool:
    return bool(set(target.name.split(".")[:-1]) & set(code.names))


def _known(text: str) -> Iterable[Definition]:
    try:
        return definitions(text)
    except PatchError:
        return ()


def _by_file(blocks: Sequence[Block], targets: Sequence[Target]) -> dict[str, list[Block]]:
    grouped: dict[str, list[Block]] = {}
    for block in blocks:
        if not block.path and len({target.path for target in targets}) != 1:
            raise PatchError("a search/replace block does not say which file it is for")
        grouped.setdefault(block.path or targets[0].path, []).append(block)
    return grouped
