"""Unified diffs as git writes them: made here from changes, read in `parse`, carried out in `apply`.

Everything is bytes; lines end at `\\n` only, so that `\\r` stays part of the line. Written here because the
known libraries lose what matters for a verdict: unidiff reads a quoted file name with a blank as a rename
(matiasb/python-unidiff#119) and knows no `--no-prefix` (#81), whatthepatch gives no modes, so links look like files.

The format: https://git-scm.com/docs/diff-generate-patch and the GNU diffutils manual, "Detailed Unified".
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence

from pytest_autofix.patching.apply import apply_patch
from pytest_autofix.patching.changes import FileChange, Mode, split_lines
from pytest_autofix.patching.parse import parse_patch

__all__ = ["apply_patch", "changed_lines", "parse_patch", "patch_bytes", "quote_name", "unified_diff"]

CONTEXT = 3
NO_NEWLINE = b"\\ No newline at end of file\n"

#: Above this many lines on both sides the exact comparison costs too much; common lines then count as noise.
_EXACT_LINES = 4000
_ESCAPES = {7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r", 34: '"', 92: "\\"}
_HEADING = re.compile(rb"[A-Za-z_$]")

Opcode = tuple[str, int, int, int, int]


def patch_bytes(patch: str) -> bytes:
    """The exact bytes of a text made by `unified_diff`."""
    return patch.encode("utf-8", "surrogateescape")


def unified_diff(changes: Iterable[FileChange]) -> str:
    """One git patch of all changes, sorted by path, that `git apply` takes.

    Bytes that are not UTF-8 become lone surrogates (`surrogateescape`); `patch_bytes` gives them back.
    A file with a NUL byte is named as binary, as git does, and has no content in the patch.
    """
    parts: list[bytes] = []
    for change in sorted(changes, key=lambda change: change.path):
        if change.before is not None and change.after is not None and _type_changes(change):
            # Git has no header for "a file became a link": the old one goes, the new one comes.
            parts += _file_diff(change.path, change.before, None, change.mode_before, change.mode_before)
            parts += _file_diff(change.path, None, change.after, change.mode_after, change.mode_after)
        else:
            parts += _file_diff(
                change.path, change.before, change.after, change.mode_before, change.mode_after
            )
    return b"".join(parts).decode("utf-8", "surrogateescape")


def changed_lines(change: FileChange) -> int:
    """Lines taken away plus lines added, as a diff shows them."""
    old, new = split_lines(change.before or b""), split_lines(change.after or b"")
    return sum(
        (old_end - old_start) + (new_end - new_start)
        for tag, old_start, old_end, new_start, new_end in _opcodes(old, new)
        if tag != "equal"
    )


def quote_name(name: str, prefix: str = "") -> str:
    """`prefix` + `name` as git prints it: in double quotes with C escapes where a byte is unusual."""
    raw = (prefix + name).encode("utf-8", "surrogateescape")
    quoted = "".join(
        f"\\{_ESCAPES[byte]}" if byte in _ESCAPES else chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}"
        for byte in raw
    )
    return quoted if quoted == prefix + name else f'"{quoted}"'


def _type_changes(change: FileChange) -> bool:
    return (change.mode_before == "120000") != (change.mode_after == "120000")


def _file_diff(
    path: str, before: bytes | None, after: bytes | None, mode_before: Mode, mode_after: Mode
) -> Iterator[bytes]:
    if before == after and mode_before == mode_after:
        return
    old_name, new_name = quote_name(path, "a/"), quote_name(path, "b/")
    header = [f"diff --git {old_name} {new_name}"]
    if before is None:
        header.append(f"new file mode {mode_after}")
    elif after is None:
        header.append(f"deleted file mode {mode_before}")
    elif mode_before != mode_after:
        header += (f"old mode {mode_before}", f"new mode {mode_after}")
    if before != after:
        same_mode = before is not None and after is not None and mode_before == mode_after
        header.append(
            f"index {_blob_id(before)}..{_blob_id(after)}" + (f" {mode_after}" if same_mode else "")
        )
    # Git ends a name with a blank in it by a tab, so that readers do not take the rest for a date.
    tab = "\t" if " " in path else ""
    old_label = "/dev/null" if before is None else old_name + tab
    new_label = "/dev/null" if after is None else new_name + tab
    old, new = before or b"", after or b""
    if old != new:
        if b"\0" in old or b"\0" in new:
            header.append(f"Binary files {old_label.rstrip()} and {new_label.rstrip()} differ")
        else:
            header += (f"--- {old_label}", f"+++ {new_label}")
    yield "".join(line + "\n" for line in header).encode("utf-8", "surrogateescape")
    if old != new and b"\0" not in old + new:
        yield from _hunks(split_lines(old), split_lines(new))


def _blob_id(content: bytes | None) -> str:
    if content is None:
        return "0" * 40
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _opcodes(old: Sequence[bytes], new: Sequence[bytes]) -> list[Opcode]:
    """difflib's opcodes; what both sides have in common at both ends is taken off first, which is nearly all."""
    shorter = min(len(old), len(new))
    head = 0
    while head < shorter and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < shorter - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    old_middle, new_middle = old[head : len(old) - tail], new[head : len(new) - tail]
    matcher = difflib.SequenceMatcher(
        None, old_middle, new_middle, autojunk=min(len(old_middle), len(new_middle)) > _EXACT_LINES
    )
    codes: list[Opcode] = [("equal", 0, head, 0, head)] if head else []
    codes += [(tag, a + head, b + head, c + head, d + head) for tag, a, b, c, d in matcher.get_opcodes()]
    if tail:
        codes.append(("equal", len(old) - tail, len(old), len(new) - tail, len(new)))
    return codes


def _hunks(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[bytes]:
    for group in _groups(_opcodes(old, new)):
        old_start, old_end, new_start, new_end = group[0][1], group[-1][2], group[0][3], group[-1][4]
        heading = next(
            (line for line in reversed(old[:old_start]) if _HEADING.match(line)),
            b"",
        ).rstrip()[:80]
        yield b"@@ -%s +%s @@%s\n" % (
            _range(old_start, old_end),
            _range(new_start, new_end),
            b" " + heading.rstrip() if heading else b"",
        )
        for tag, a, b, c, d in group:
            if tag == "equal":
                yield from (_body_line(b" ", line) for line in old[a:b])
            else:
                yield from (_body_line(b"-", line) for line in old[a:b])
                yield from (_body_line(b"+", line) for line in new[c:d])


def _groups(codes: Sequence[Opcode]) -> Iterator[list[Opcode]]:
    """Opcodes of one hunk each, with three lines of context around the changes."""
    group: list[Opcode] = []
    for index, (tag, a, b, c, d) in enumerate(codes):
        if tag != "equal":
            group.append((tag, a, b, c, d))
            continue
        first, last = index == 0, index == len(codes) - 1
        if not first and not last and b - a <= 2 * CONTEXT:
            group.append((tag, a, b, c, d))
            continue
        if not first:
            group.append((tag, a, min(b, a + CONTEXT), c, min(d, c + CONTEXT)))
            yield group
        if not last:
            start = max(0, b - a - CONTEXT)
            group = [(tag, a + start, b, c + start, d)]
        else:
            group = []
    if any(tag != "equal" for tag, *_ in group):
        yield group


def _range(start: int, end: int) -> bytes:
    length = end - start
    if length == 1:
        return b"%d" % (start + 1)
    return b"%d,%d" % (start + 1 if length else start, length)


def _body_line(sign: bytes, line: bytes) -> bytes:
    return sign + line if line.endswith(b"\n") else sign + line + b"\n" + NO_NEWLINE
