"""Is a name that a stranger wrote a plain path inside a tree? Decided by the text alone, before any file is touched.

A name is refused on every system for what it could mean on any of them: a patch is often reviewed on one
machine and applied on another. The `.git` look-alikes are those of CVE-2014-9390 and CVE-2019-1352.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["fold_name", "is_git_name", "parents", "unsafe_name"]

MAX_NAME = 1024  #: characters of a whole path

_DRIVE = re.compile(r"[A-Za-z]:")
_DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)


def unsafe_name(path: str) -> str:
    """Why `path` is no plain relative path with forward slashes, empty if it is one."""
    if not path:
        return "an empty name"
    if len(path) > MAX_NAME:
        return f"a name of more than {MAX_NAME} characters"
    if path.startswith(("/", "~")) or _DRIVE.match(path):
        return "an absolute path"
    if "\\" in path:
        return "a backslash in the name"
    if "\0" in path:
        return "a NUL in the name"
    for character in path if not (path.isascii() and path.isprintable()) else "":
        if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
            return f"an invisible or control character (U+{ord(character):04X}) in the name"
    for part in path.split("/"):
        if part in ("", "."):
            return "an empty or `.` component in the name"
        if part == "..":
            return "a `..` component in the name"
        if part.endswith((".", " ")) or part.startswith(" "):
            return "a component that begins with a blank or ends with a blank or a dot"
        if ":" in part:
            return "a colon in the name"
        if _DEVICES.fullmatch(part):
            return "a name that is a device on some systems"
    return ""


def parents(path: str) -> list[str]:
    """The folders that hold `path`, the outermost first, without the root: `a`, `a/b` for `a/b/c.py`.

    Asked for every file of a tree, which `pathlib` makes ten times slower.
    """
    return [path[:position] for position, character in enumerate(path) if character == "/"]


def fold_name(path: str) -> str:
    """The form in which a file system may think two names equal: no case, one Unicode form."""
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKC", path).casefold())


def is_git_name(part: str) -> bool:
    """Whether one path component is `.git` or is read as `.git` by some file system."""
    if "git" not in part.lower() and part.isascii():
        return False
    kept = "".join(character for character in part if unicodedata.category(character) != "Cf")
    plain = fold_name(kept).split(":", 1)[0].rstrip(". ")
    return plain == ".git" or re.fullmatch(r"\.?git~[0-9]+", plain) is not None
