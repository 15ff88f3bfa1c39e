"""Read a unified diff: git's, with new, deleted, renamed, copied files, modes and links, or a plain `diff -u`.

Strict where being generous would change what is judged: a hunk that is longer or shorter than its header says,
a name that means two things, binary content and submodules are refused. Text between the files (a commit message,
`Index:` lines, a mail signature) is skipped, as git does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from pytest_autofix.errors import PatchError
from pytest_autofix.patching.changes import Mode

__all__ = ["FilePatch", "Hunk", "parse_patch"]

MAX_PATCH_BYTES = 16 * 1024 * 1024

Operation = Literal["change", "create", "delete", "rename", "copy"]

_HUNK = re.compile(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_OLD, _NEW = b"--- ", b"+++ "
_GIT = b"diff --git "
#: `diff -N` gives a file that is not there the first second of 1970, in the time zone of the machine.
_EPOCH = re.compile(rb"(1969-12-31|1970-01-01)[ T]\d\d:\d\d:\d\d")
_ESCAPED = {
    b"a": b"\a",
    b"b": b"\b",
    b"t": b"\t",
    b"n": b"\n",
    b"v": b"\v",
    b"f": b"\f",
    b"r": b"\r",
    b'"': b'"',
    b"\\": b"\\",
}
_BACKUP = re.compile(r"(\.orig|\.old|\.bak|\.save|~)$")
DEV_NULL = "/dev/null"


@dataclass(frozen=True, slots=True)
class Hunk:
    """One hunk: the lines it takes away and puts in, context included, line ends included."""

    old_start: int  #: 1-based; with no old lines: the line behind which the new ones come
    old: tuple[bytes, ...]
    new: tuple[bytes, ...]
    leading: int  #: lines of context before the first change
    trailing: int  #: lines of context behind the last change
    header: str  #: `@@ -1,3 +1,4 @@`, for messages


@dataclass(frozen=True, slots=True)
class FilePatch:
    """What a patch says about one file; the names as written, without git's `a/` and `b/`."""

    operation: Operation
    old_path: str  #: equal to `new_path` except for renames and copies
    new_path: str
    hunks: tuple[Hunk, ...]
    old_mode: Mode | None = None  #: as the patch claims it, None if it says nothing
    new_mode: Mode | None = None


def parse_patch(text: bytes) -> tuple[FilePatch, ...]:
    """The files of a patch in its order. Raises `PatchError` when it is none, or one we cannot carry out."""
    if len(text) > MAX_PATCH_BYTES:
        raise PatchError(f"the patch is larger than {MAX_PATCH_BYTES // 1024 // 1024} MiB")
    reader = _Reader(text)
    patches = []
    while (line := reader.peek()) is not None:
        if line.startswith(_GIT):
            patches.append(_git_file(reader))
        elif line.startswith(_OLD) and (reader.peek(1) or b"").startswith(_NEW):
            patches.append(_plain_file(reader))
        elif _HUNK.match(line):
            raise PatchError(f"line {reader.number}: a hunk without a file name before it")
        elif _is_binary(line):
            raise PatchError(f"line {reader.number}: a binary patch; only text can be judged")
        elif line.startswith((b"diff --cc ", b"diff --combined ")):
            raise PatchError(f"line {reader.number}: a combined diff of a merge; give a plain one")
        elif line.startswith(b"*** ") and (reader.peek(1) or b"").startswith(_OLD):
            raise PatchError(f"line {reader.number}: a context diff; give a unified one (`diff -u`)")
        else:
            reader.take()
    if not patches:
        raise PatchError("not a unified diff: no `diff --git` and no `---`/`+++` lines in it")
    return tuple(patches)


class _Reader:
    def __init__(self, text: bytes) -> None:
        self._lines = text.split(b"\n")
        self._ended = self._lines[-1] == b""  #: the last line has its line end
        if self._ended:
            self._lines.pop()
        self._position = 0

    @property
    def number(self) -> int:
        return self._position + 1

    def peek(self, ahead: int = 0) -> bytes | None:
        """A line without its end, and without a `\\r` there: for headers."""
        position = self._position + ahead
        return self._lines[position].removesuffix(b"\r") if position < len(self._lines) else None

    def raw(self) -> bytes | None:
        """The line with its `\\r` if it has one: for content."""
        return self._lines[self._position] if self._position < len(self._lines) else None

    def take(self) -> None:
        self._position += 1


def _git_file(reader: _Reader) -> FilePatch:
    first, number = (reader.peek() or b"")[len(_GIT) :], reader.number
    reader.take()
    facts: dict[str, str] = {}
    modes: dict[str, Mode] = {}
    while (line := reader.peek()) is not None:
        for words in _EXTENDED:
            if line.startswith(words):
                value = line[len(words) :]
                break
        else:
            break
        name = words.decode().strip()
        if name.endswith("mode"):
            modes[name] = _mode(value, reader.number)
        elif name == "index":
            if b" " in value:
                modes["index"] = _mode(value.rpartition(b" ")[2], reader.number)
        elif name.startswith(("rename", "copy")):
            facts[name.replace("rename old", "rename from").replace("rename new", "rename to")] = _name(value)
        reader.take()
    line = reader.peek()
    if line is not None and _is_binary(line):
        raise PatchError(f"line {reader.number}: a binary patch; only text can be judged")
    labels: tuple[str, str] | None = None
    if line is not None and line.startswith(_OLD) and (reader.peek(1) or b"").startswith(_NEW):
        labels = (_label(line)[0], _label(reader.peek(1) or b"")[0])
        reader.take()
        reader.take()
    hunks = _hunks(reader)
    operation: Operation = "change"
    for kind in ("rename", "copy"):
        if f"{kind} from" in facts and f"{kind} to" in facts:
            operation = "rename" if kind == "rename" else "copy"
            old, new = facts[f"{kind} from"], facts[f"{kind} to"]
    if operation == "change":
        if "new file mode" in modes or (labels and labels[0] == DEV_NULL):
            operation = "create"
        elif "deleted file mode" in modes or (labels and labels[1] == DEV_NULL):
            operation = "delete"
        old = new = _git_name(first, labels, number)
    _agree(operation, labels, old, new, number)
    if not hunks and operation == "change" and "new mode" not in modes:
        raise PatchError(f"line {number}: {new} has neither hunks nor a change of mode")
    return FilePatch(
        operation,
        old,
        new,
        hunks,
        modes.get("old mode") or modes.get("deleted file mode") or modes.get("index"),
        modes.get("new mode") or modes.get("new file mode"),
    )


_EXTENDED = (
    b"old mode ",
    b"new mode ",
    b"deleted file mode ",
    b"new file mode ",
    b"copy from ",
    b"copy to ",
    b"rename from ",
    b"rename to ",
    b"rename old ",
    b"rename new ",
    b"similarity index ",
    b"dissimilarity index ",
    b"index ",
)


def _plain_file(reader: _Reader) -> FilePatch:
    number = reader.number
    old_line, new_line = reader.peek() or b"", reader.peek(1) or b""
    reader.take()
    reader.take()
    (old, old_date), (new, new_date) = _label(old_line), _label(new_line)
    hunks = _hunks(reader)
    if not hunks:
        raise PatchError(f"line {number}: no hunk behind `---` and `+++`")
    operation: Operation = "change"
    if old == DEV_NULL or (_EPOCH.match(old_date) and not any(hunk.old for hunk in hunks)):
        operation = "create"
    elif new == DEV_NULL or (_EPOCH.match(new_date) and not any(hunk.new for hunk in hunks)):
        operation = "delete"
    path = _plain_name(old, new, number)
    return FilePatch(operation, path, path, hunks)


def _hunks(reader: _Reader) -> tuple[Hunk, ...]:
    hunks: list[Hunk] = []
    while (line := reader.peek()) is not None and (match := _HUNK.match(line)):
        hunks.append(_hunk(reader, match))
    line = reader.peek()
    if (
        hunks
        and line is not None
        and line[:1] in (b"+", b"-", b" ")
        and not _may_follow(line, reader.peek(1))
    ):
        raise PatchError(f"line {reader.number}: the hunk {hunks[-1].header} is longer than its header says")
    return tuple(hunks)


def _may_follow(line: bytes, following: bytes | None) -> bool:
    """The next file of a plain diff, or a mail signature."""
    return line in (b"-- ", b"--") or (line.startswith(_OLD) and (following or b"").startswith(_NEW))


def _hunk(reader: _Reader, match: re.Match[bytes]) -> Hunk:
    number, header = reader.number, match.group().decode()
    old_left, new_left = (1 if group is None else int(group) for group in (match[2], match[4]))
    reader.take()
    old: list[bytes] = []
    new: list[bytes] = []
    signs: list[bytes] = []
    while old_left or new_left:
        line = reader.raw()
        if line is None:
            raise PatchError(f"line {number}: the hunk {header} ends too early")
        # Mailers and editors take the blank of an empty line of context away.
        sign, content = (line[:1], line[1:] + b"\n") if line not in (b"", b"\r") else (b" ", line + b"\n")
        if sign == b"\\" and signs:
            _no_newline(signs[-1], old, new)
            reader.take()
            continue
        if sign not in (b" ", b"-", b"+"):
            raise PatchError(f"line {reader.number}: not a line of a hunk; {header} ends too early")
        if sign != b"+":
            old.append(content)
            old_left -= 1
        if sign != b"-":
            new.append(content)
            new_left -= 1
        if old_left < 0 or new_left < 0:
            raise PatchError(f"line {reader.number}: the hunk {header} is longer than its header says")
        signs.append(sign)
        reader.take()
    if (reader.raw() or b"").startswith(b"\\") and signs:
        _no_newline(signs[-1], old, new)
        reader.take()
    changes = [index for index, sign in enumerate(signs) if sign != b" "]
    if not changes:
        raise PatchError(f"line {number}: the hunk {header} changes nothing")
    return Hunk(int(match[1]), tuple(old), tuple(new), changes[0], len(signs) - 1 - changes[-1], header)


def _no_newline(sign: bytes, old: list[bytes], new: list[bytes]) -> None:
    if sign != b"+":
        old[-1] = old[-1].removesuffix(b"\n")
    if sign != b"-":
        new[-1] = new[-1].removesuffix(b"\n")


def _is_binary(line: bytes) -> bool:
    return line.startswith(b"GIT binary patch") or (
        line.startswith((b"Binary files ", b"Files ")) and line.endswith(b" differ")
    )


def _mode(value: bytes, number: int) -> Mode:
    text = value.decode("ascii", "replace").strip()
    if text == "160000":
        raise PatchError(f"line {number}: a change of a submodule cannot be judged")
    if text == "120000":
        return "120000"
    if re.fullmatch(r"100[0-7]{3}", text):
        return "100755" if int(text, 8) & 0o100 else "100644"
    raise PatchError(f"line {number}: {text!r} is no file mode")


def _unquote(text: bytes) -> tuple[bytes, bytes] | None:
    """Content of a C-quoted string at the start of `text` and what follows it; None if it does not end."""
    result = bytearray()
    position = 1
    while position < len(text):
        character = text[position : position + 1]
        if character == b'"':
            return bytes(result), text[position + 1 :]
        if character != b"\\":
            result += character
            position += 1
        elif octal := re.match(rb"[0-3][0-7]{2}", text[position + 1 :]):
            result.append(int(octal.group(), 8))
            position += 4
        elif (escaped := text[position + 1 : position + 2]) in _ESCAPED:
            result += _ESCAPED[escaped]
            position += 2
        else:
            return None
    return None


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def _name(value: bytes) -> str:
    if value.startswith(b'"') and (unquoted := _unquote(value)):
        return _text(unquoted[0])
    return _text(value)


def _label(line: bytes) -> tuple[str, bytes]:
    """Name and date of a `---` or `+++` line."""
    value = line[4:]
    if value.startswith(b'"') and (unquoted := _unquote(value)):
        return _text(unquoted[0]), unquoted[1].strip()
    name, _, date = value.partition(b"\t")
    return _text(name.rstrip(b" ")), date.strip()


def _git_name(first: bytes, labels: tuple[str, str] | None, number: int) -> str:
    """The one name of a git header that is no rename."""
    pair: tuple[str, str] | None = None
    if first.startswith(b'"'):
        unquoted = _unquote(first)
        if unquoted and unquoted[1].startswith(b" "):
            pair = (_text(unquoted[0]), _name(unquoted[1][1:]))
    elif first.endswith(b'"') and b' "' in first:
        position = first.index(b' "')
        pair = (_text(first[:position]), _name(first[position + 1 :]))
    elif len(first) % 2 and first[len(first) // 2 : len(first) // 2 + 1] == b" ":
        # Two names of the same length with a blank between them: blanks inside make no doubt.
        pair = (_text(first[: len(first) // 2]), _text(first[len(first) // 2 + 1 :]))
    if pair is None and labels is not None and DEV_NULL not in labels:
        pair = labels
    if pair is None:
        raise PatchError(f"line {number}: the two names behind `diff --git` cannot be told apart")
    return _plain_name(*pair, number)


def _plain_name(old: str, new: str, number: int) -> str:
    """The file that two labels mean: `a/x` and `b/x`, `old/x` and `new/x`, `x` and `x`, `x.orig` and `x`."""
    if DEV_NULL in (old, new):
        name = new if old == DEV_NULL else old
        if name == DEV_NULL:
            raise PatchError(f"line {number}: both names are /dev/null")
        first, _, rest = name.partition("/")
        return rest if first == ("b" if old == DEV_NULL else "a") and rest else name
    old_first, _, old_rest = old.partition("/")
    new_first, _, new_rest = new.partition("/")
    if old_rest and old_rest == new_rest and old_first != new_first:
        return new_rest
    if old == new:
        return new
    if _BACKUP.sub("", old) == new:
        return new
    if _BACKUP.sub("", old_rest) == new_rest and new_rest:
        return new_rest
    raise PatchError(f"line {number}: two different files, {old!r} and {new!r}, and no rename")


def _agree(operation: Operation, labels: tuple[str, str] | None, old: str, new: str, number: int) -> None:
    """`---` and `+++` must name the files of the header: otherwise a reader and we see different patches."""
    if labels is None:
        return
    for label, name, absent in ((labels[0], old, "create"), (labels[1], new, "delete")):
        if (label == DEV_NULL) != (operation == absent):
            raise PatchError(f"line {number}: the header says {operation}, `---` and `+++` say otherwise")
        if label not in (DEV_NULL, name) and label.partition("/")[2] != name:
            raise PatchError(f"line {number}: the header names {name!r}, `---` or `+++` name {label!r}")
