"""`Project`: a small project on disk that is solved as a user would do it, in a real pytest process of its own."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pytest_autofix.report.json_report import schema

__all__ = ["STATE", "Project", "Run", "Terminal", "gone_within", "processes_of"]

TIMEOUT = 200  #: seconds that one run may take on a loaded machine; an idle one needs a few
QUIET = ("langsmith_plugin", "asyncio", "hypothesispytest", "anyio", "xdist", "pytest_cov", "cacheprovider")
"""Plugins that a test asks for by `plugins=` where it needs them: each costs every process its import."""
STATE = ".pytest_autofix"


@dataclass(frozen=True)
class Run:
    """What a user sees of one pytest process."""

    exit_code: int
    output: str  #: standard output
    errors: str
    root: Path
    report_path: Path
    seconds: float

    @property
    def stdout(self) -> pytest.LineMatcher:
        return pytest.LineMatcher(self.output.splitlines())

    @cached_property
    def report(self) -> dict[str, Any]:
        report: dict[str, Any] = json.loads(self.report_path.read_text(encoding="utf-8"))
        jsonschema.validate(report, schema())
        return report

    def task(self, nodeid: str) -> dict[str, Any]:
        """The task that a failing test belongs to."""
        return next(
            task
            for task in self.report["tasks"]
            if any(failure["nodeid"] == nodeid for failure in task["failures"])
        )

    @property
    def outcomes(self) -> dict[str, str]:
        """Node id → outcome of its task."""
        return {
            failure["nodeid"]: task["outcome"]
            for task in self.report["tasks"]
            for failure in task["failures"]
        }


class Project:
    """Files, a git repository, and pytest on them."""

    def __init__(self, root: Path, home: Path) -> None:
        self.root = root
        self.home = home
        self._report = home / "report.json"
        self.root.mkdir()
        self.home.mkdir()
        self._git("init", "-q")

    def write(self, path: str, text: str | bytes) -> Project:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return self

    def read(self, path: str) -> str:
        return (self.root / path).read_bytes().decode()

    def commit(self) -> Project:
        """Track every file: what git knows may be edited."""
        self._git("add", "-A")
        self._git(
            "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "-m", "x", "--allow-empty"
        )
        return self

    def status(self) -> str:
        """What git sees that was not committed."""
        return self._git("status", "--porcelain")

    def files(self) -> dict[str, bytes]:
        """Every file, but those of git and of ours."""
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and path.relative_to(self.root).parts[0] not in (".git", STATE)
        }

    def patches(self) -> list[str]:
        """Texts of the patches that were kept."""
        return [path.read_text() for path in sorted((self.root / STATE / "runs").glob("*/*.patch"))]

    def environment(self, **more: str) -> dict[str, str]:
        kept = {
            name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH", "TMPDIR") if name in os.environ
        }
        return {
            **kept,
            "HOME": str(self.home),
            "COLUMNS": "80",
            "LANG": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
            **more,
        }

    def command(self, *arguments: str, plugins: Sequence[str] = ()) -> list[str]:
        switches = [word for name in QUIET if name not in plugins for word in ("-p", f"no:{name}")]
        return [sys.executable, "-m", "pytest", *switches, *arguments]

    def pytest(
        self,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        plugins: Sequence[str] = (),
        cwd: Path | None = None,
        wrapper: Sequence[str] = (),
    ) -> Run:
        """A pytest process to its end, without a terminal."""
        began = time.monotonic()
        done = subprocess.run(
            [*wrapper, *self.command(*arguments, plugins=plugins)],
            cwd=cwd or self.root,
            env=self.environment(**(env or {})),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT,
            check=False,
        )
        seconds = time.monotonic() - began
        return Run(done.returncode, done.stdout, done.stderr, self.root, self._report, seconds)

    def autosolve(
        self,
        *arguments: str,
        replies: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        plugins: Sequence[str] = (),
    ) -> Run:
        """`pytest --autosolve` with a report, and with a scripted model if there are `replies`."""
        words = ["--autosolve", "--autosolve-report", str(self._report), *arguments]
        if replies:
            script = self.home / "replies.json"
            script.write_text(json.dumps(list(replies)))
            words += ["--autosolve-model", f"scripted:{script}"]
        run = self.pytest(*words, env=env, plugins=plugins)
        if self._report.exists():
            assert run.report["exit_status"] == run.exit_code, run.output
        return run

    def start(self, *arguments: str, plugins: Sequence[str] = ()) -> Terminal:
        """`pytest --autosolve` on a terminal of its own, in a process group of its own."""
        words = ["--autosolve", "--autosolve-report", str(self._report), *arguments]
        return Terminal(self.command(*words, plugins=plugins), self)

    def _git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.root,
            env=self.environment(GIT_CONFIG_NOSYSTEM="1"),
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout


class Terminal:
    """A process on a pseudo terminal: what it writes is read, keys can be pressed. A context manager."""

    def __init__(self, command: Sequence[str], project: Project) -> None:
        self._project = project
        self._master, slave = pty.openpty()
        self._began = time.monotonic()
        self.output = ""
        self._process = subprocess.Popen(
            command,
            cwd=project.root,
            env=project.environment(TERM="xterm", NO_COLOR="1"),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            preexec_fn=_own_terminal,
        )
        os.close(slave)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        os.close(self._master)

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_for(self, text: str, *, after: int = 0, seconds: float = TIMEOUT) -> int:
        """Read until the text was written; the position behind it."""
        deadline = time.monotonic() + seconds
        while (place := self.output.find(text, after)) < 0:
            if not self._read(deadline):
                raise AssertionError(f"{text!r} was not written:\n{self.output}")
        return place + len(text)

    def wait_until(self, condition: Callable[[], bool], *, seconds: float = TIMEOUT) -> None:
        """Read until something has happened elsewhere."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise AssertionError(f"it did not happen:\n{self.output}")
            ready, _, _ = select.select([self._master], [], [], 0.05)
            if ready:
                self._read(deadline)

    def type(self, keys: str) -> None:
        """Control characters act as they do on a terminal: `\\x03` is Ctrl-C."""
        os.write(self._master, keys.encode())

    def kill(self) -> None:
        """SIGKILL to pytest alone, as the kernel does when memory is short."""
        os.kill(self._process.pid, signal.SIGKILL)

    def end(self, *, seconds: float = TIMEOUT) -> Run:
        """Read to the end of the process."""
        deadline = time.monotonic() + seconds
        while self._read(deadline):
            pass
        code = self._process.wait(timeout=max(0.1, deadline - time.monotonic()))
        took = time.monotonic() - self._began
        return Run(
            code, self.output.replace("\r\n", "\n"), "", self._project.root, self._project._report, took
        )

    def _read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise AssertionError(f"nothing more was written in time:\n{self.output}")
        try:
            data = os.read(self._master, 65536)
        except OSError:  # the last process that had the terminal open is gone
            return False
        self.output += data.decode(errors="replace")
        return bool(data)


def _own_terminal() -> None:
    import fcntl
    import termios

    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def processes_of(*needles: str) -> list[str]:
    """Command lines of living processes that mention one of the texts, or stand in such a folder."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            place = str((folder / "cwd").readlink())
            alive = ") Z " not in (folder / "stat").read_text()
        except OSError:
            continue
        if alive and any(needle in command or needle in place for needle in needles):
            found.append(f"{folder.name}: {command[:300]} in {place}")
    return found


def gone_within(seconds: float, *needles: str) -> list[str]:
    """What is still there after so many seconds; empty as soon as nothing is."""
    deadline = time.monotonic() + seconds
    while (left := processes_of(*needles)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left
