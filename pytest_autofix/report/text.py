"""Text that others wrote, made harmless for a terminal and cut to a width. Everything that is shown passes here.

A test id, a diff or an error message may hold escape sequences that repaint the screen, controls that turn the
reading direction (CVE-2021-42574) and lines that a CI runner takes for commands.
"""

from __future__ import annotations

import unicodedata

__all__ = ["counted", "cut", "cut_left", "pad", "visible", "width_of", "wrapped"]

_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
ELLIPSIS = "..."


def visible(text: str) -> str:
    """One line: every control, invisible or direction-changing character shown as its escape.

    Workflow commands of GitHub (`::set-output`, `##[group]`) lose their first character to an escape: a runner reads
    them at the start of any line of a log, behind blanks too.
    """
    if not (text.isascii() and text.isprintable()):
        text = "".join(
            character if unicodedata.category(character) not in _HIDDEN else _escape(character)
            for character in text.expandtabs(4)
        )
    start = len(text) - len(text.lstrip())
    if text.startswith("::", start):
        text = f"{text[:start]}\\x3a{text[start + 1 :]}"
    return text.replace("##[", "\\x23#[")


def _escape(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00  # a byte that is not UTF-8, kept by `surrogateescape`
    named = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
    if character in named:
        return named[character]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def width_of(text: str) -> int:
    """Columns that a terminal needs for `text`, which is `visible` already."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, width: int) -> str:
    """At most `width` columns, the end replaced by dots if it is longer."""
    if width_of(text) <= width:
        return text
    kept, used = [], 0
    for character in text:
        used += _columns(character)
        if used > width - len(ELLIPSIS):
            break
        kept.append(character)
    return "".join(kept) + ELLIPSIS[: max(width, 0)]


def cut_left(text: str, width: int) -> str:
    """As `cut`, but the end stays: of a path or a node id it says more than the start."""
    if width_of(text) <= width:
        return text
    kept, used = [], 0
    for character in reversed(text):
        used += _columns(character)
        if used > width - len(ELLIPSIS):
            break
        kept.append(character)
    return ELLIPSIS[: max(width, 0)] + "".join(reversed(kept))


def pad(text: str, width: int) -> str:
    """Filled with blanks up to `width` columns."""
    return text + " " * (width - width_of(text))


def wrapped(text: str, width: int, *, first: str = "", rest: str = "", lines: int = 6) -> list[str]:
    """`text` in lines of at most `width` columns, each with its lead; after `lines` of them dots say there was more.

    Made for wide characters, which `textwrap` counts as one column.
    """
    found: list[str] = []
    line = ""
    # Each word by itself once more: any of them may come to stand at the start of a line.
    for word in map(visible, visible(text.replace("\n", " ")).split()):
        room = width - width_of(first if not found else rest)
        if line and width_of(line) + 1 + width_of(word) > room:
            found.append((rest if found else first) + line)
            line = ""
            room = width - width_of(rest)
        line = f"{line} {word}" if line else cut(word, room)
        if len(found) >= lines:
            break
    if line and len(found) < lines:
        found.append((rest if found else first) + line)
    elif line:
        found[-1] = cut(found[-1] + " " + ELLIPSIS + ELLIPSIS, width)
    return found or [first.rstrip()]


def counted(number: int, noun: str) -> str:
    """`1 test`, `2 tests`, `1,200 tests`."""
    return f"{number:,} {noun}{'' if number == 1 else 'es' if noun.endswith(('ch', 's')) else 's'}"
