"""Give up root, then become the sandbox. Started as `python -I -S launcher.py SPEC`; standard library only.

Real root inside a user namespace still owns root's files outside of it (`/proc/sys` for one) and is not held by
RLIMIT_NPROC. So the whole sandbox runs as a throw-away user. That user cannot reach an interpreter below a private
home, nor the private snapshot: both are shown at open places in a mount namespace that only this process and its
children see.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

_STAGES = ("/mnt", "/media", "/srv", "/opt", "/var/opt", "/var/lib")


def _linux() -> Any:
    spec = importlib.util.spec_from_file_location("_autofix_linux", Path(__file__).with_name("linux.py"))
    if spec is None or spec.loader is None:
        raise SystemExit("autofix: linux.py is missing beside launcher.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _stage(sources: list[str]) -> Path:
    """A folder that everybody may enter and that hides nothing we need when it is mounted over."""
    needed = [Path(source).resolve() for source in sources]
    for name in _STAGES:
        place = Path(name)
        open_to_all = place.is_dir() and all(
            folder.stat().st_mode & 0o001 for folder in (place, *place.parents)
        )
        if (
            open_to_all
            and place.resolve() == place
            and not any(path.is_relative_to(place) for path in needed)
        ):
            return place
    raise SystemExit(f"autofix: no folder to stage the sandbox in; tried {', '.join(_STAGES)}")


def main(text: str) -> None:
    """`text` is JSON: `uid`, `command`, and `stage` (host paths that words of the command refer to)."""
    spec = json.loads(text)
    linux = _linux()
    sources: list[str] = spec["stage"]
    place = _stage(sources)
    linux.unshare(linux.CLONE_NEWNS)
    linux.mount("none", "/", "", linux.MS_REC | linux.MS_PRIVATE)
    linux.mount("tmpfs", str(place), "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "size=1m,mode=0755")
    shown = []
    for number, source in enumerate(sources):
        target = place / str(number)
        if Path(source).is_dir():
            target.mkdir(mode=0o755)
        else:
            target.touch(mode=0o644)
        linux.bind(source, str(target), recursive=True)
        shown.append(str(target))
    uid = spec["uid"]
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    command = [_fill(word, shown) for word in spec["command"]]
    os.chdir("/")
    os.execv(command[0], command)  # noqa: S606 - no shell is wanted


def _fill(word: Any, shown: list[str]) -> str:
    """A word is text, or [number, rest]: the place where that source is shown, and a path below it."""
    if isinstance(word, str):
        return word
    number, rest = word
    return f"{shown[number]}/{rest}" if rest else shown[number]


if __name__ == "__main__":
    main(sys.argv[1])
