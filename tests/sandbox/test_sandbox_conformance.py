"""What every isolating back end must do. Each test runs for root and for an ordinary user."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from sandbox_bench import Bench, assert_passed

from pytest_autofix.candidates.candidate import Candidate, Edit, Origin
from pytest_autofix.sandbox.protocol import Job, Limits

QUICK = Limits(wall_seconds=3, test_seconds=60, processes=64)


def test_passing_and_failing(bench: Bench) -> None:
    text = "def test_a(): pass\ndef test_b(): assert 1 == 2\n"
    result = bench.run({"more/test_more.py": text}, warm=False, selection=("more",))
    assert result.status == "finished", result.output
    assert result.exit_status == 1
    assert result.outcomes() == {"more/test_more.py::test_a": "passed", "more/test_more.py::test_b": "failed"}
    assert result.collected == ("more/test_more.py::test_a", "more/test_more.py::test_b")
    assert "1 == 2" in next(phase.message for phase in result.phases if phase.outcome == "failed")
    assert result.cpu_seconds > 0
    assert result.wall_seconds > 0


def test_cold_and_warm_agree(bench: Bench) -> None:
    cold, warm = bench.run(warm=False), bench.run(warm=True)
    assert cold.outcomes() == warm.outcomes() == {"tests/test_calc.py::test_add": "passed"}
    assert cold.collected == warm.collected
    assert warm.cpu_seconds < cold.cpu_seconds


@pytest.mark.parametrize(
    ("body", "status", "detail"),
    [
        pytest.param("while True: pass", "timeout", "3 s", id="hangs-busy"),
        pytest.param("time.sleep(60)", "timeout", "3 s", id="hangs-asleep"),
        pytest.param("os.kill(os.getpid(), signal.SIGSTOP)", "timeout", "3 s", id="stops-itself"),
        pytest.param("ctypes.string_at(0)", "crashed", "SIGSEGV", id="segfault"),
        pytest.param("os.kill(os.getpid(), signal.SIGKILL)", "crashed", "SIGKILL", id="kills-itself"),
        pytest.param("os._exit(0)", "exited", "without finishing", id="exits-with-success"),
        pytest.param("os._exit(3)", "exited", "status 3", id="exits-with-failure"),
        pytest.param(
            "os.execv('/bin/true', ['true'])", "exited", "without finishing", id="becomes-another-program"
        ),
        pytest.param("os.killpg(0, signal.SIGKILL)", "crashed", "SIGKILL", id="kills-its-group"),
        pytest.param(
            "with capfd.disabled():\n    while True:\n        os.write(1, b'x' * 65536)",
            "output",
            "output",
            id="floods-output",
        ),
    ],
)
def test_ends_badly(bench: Bench, body: str, status: str, detail: str) -> None:
    began = time.monotonic()
    # Only what hangs is to run into the limit: a busy machine is no time-out.
    limits = QUICK if status == "timeout" else replace(QUICK, wall_seconds=30)
    result = bench.probe(body, limits=limits)
    assert result.status == status, (result.detail, result.output[-500:])
    assert detail in result.detail
    assert result.exit_status is None
    assert len(result.output) <= 1 << 20
    assert time.monotonic() - began < 12
    assert_passed(bench.probe("pass"))  # and the next job is none the worse for it


ESCAPES = [
    pytest.param(
        """
        for address in (("127.0.0.1", PORT), ("192.0.2.1", 80), ("8.8.8.8", 53)):
            with socket.socket() as client, pytest.raises(OSError):
                client.settimeout(2)
                client.connect(address)
        with pytest.raises(OSError):
            socket.getaddrinfo("example.org", 80)
        """,
        id="network",
    ),
    pytest.param(
        """
        with socket.socket(socket.AF_UNIX) as client, pytest.raises(FileNotFoundError):
            client.connect(SOCKET)
        """,
        id="unix-socket",
    ),
    pytest.param("with pytest.raises(OSError):\n    open(SECRET)", id="file-of-the-user"),
]
"""Attempts that succeed without a sandbox; see `test_probes_can_fail`."""


@pytest.mark.parametrize(
    "body",
    [
        *ESCAPES,
        pytest.param(
            """
            with pytest.raises(OSError) as refusal:
                socket.socket(40, socket.SOCK_STREAM)
            assert refusal.value.errno == errno.EAFNOSUPPORT
            """,
            id="vsock",
        ),
        pytest.param(
            """
            assert "hunter2" not in str(dict(os.environ))
            assert "hunter2" not in str([path.read_bytes() for path in pathlib.Path("/proc").glob("[0-9]*/environ")
                                         if os.access(path, os.R_OK)])
            assert os.environ["HOME"] != os.path.dirname(SECRET)
            assert os.listdir(os.environ["HOME"]) == []
            """,
            id="environment",
        ),
        pytest.param(
            """
            for path in ("/root", "/home", "/var", "/sys", "/boot", "/mnt", "/srv"):
                above_the_interpreter = path in sys.prefix + sys.base_prefix
                assert not os.path.exists(path) or not os.listdir(path) or above_the_interpreter
            assert not os.path.exists("/run/dbus") and not os.path.exists("/var/run/docker.sock")
            assert not os.path.exists("/etc/shadow") and not os.path.exists("/etc/hostname")
            """,
            id="host-folders",
        ),
        pytest.param(
            """
            for name in ("tests/test_calc.py", "conftest.py", "pyproject.toml"):
                path = os.path.join(ROOT, name)
                for attempt in (
                    lambda: open(path, "a"), lambda: os.truncate(path, 0), lambda: os.unlink(path),
                    lambda: os.rename(path, path + "x"), lambda: os.chmod(path, 0o777),
                    lambda: os.replace(os.path.join(ROOT, "calc.py"), path),
                ):
                    with pytest.raises(OSError) as refusal:
                        attempt()
                    assert refusal.value.errno in (errno.EROFS, errno.EBUSY, errno.EXDEV), refusal.value
            for attempt in (
                lambda: open(os.path.join(ROOT, "tests", "new.py"), "w"),
                lambda: os.mkdir(os.path.join(ROOT, "tests", "new")),
                lambda: os.rename(os.path.join(ROOT, "tests"), os.path.join(ROOT, "old")),
                lambda: os.rename(ROOT, ROOT + "2"),
                lambda: os.rename(os.path.dirname(ROOT), os.path.dirname(ROOT) + "2"),
            ):
                with pytest.raises(OSError):
                    attempt()
            """,
            id="protected-files",
        ),
        pytest.param(
            """
            for name in ("core_pattern", "hostname", "modprobe"):
                with pytest.raises(OSError):
                    open(f"/proc/sys/kernel/{name}", "r+")
            for path in ("/proc/sysrq-trigger", "/proc/self/oom_score_adj", "/proc/1/oom_score_adj"):
                with pytest.raises(OSError):
                    open(path, "r+")
            """,
            id="kernel-settings",
        ),
        pytest.param(
            """
            libc = ctypes.CDLL(None, use_errno=True)
            for flag in (0x10000000, 0x00020000, 0x20000000, 0x40000000):
                assert libc.unshare(flag) == -1 and ctypes.get_errno() == errno.EPERM
            assert libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == -1 and ctypes.get_errno() == errno.EPERM
            assert libc.mount(None, ROOT.encode() + b"/tests", None, 0x20 | 0x1000, None) == -1
            assert libc.umount2(ROOT.encode() + b"/tests", 2) == -1 and ctypes.get_errno() == errno.EPERM
            assert libc.chroot(b"/tmp") == -1
            assert libc.ptrace(16, 1, None, None) == -1 and ctypes.get_errno() == errno.EPERM
            assert libc.setuid(0) == -1 or os.geteuid() != 0
            status = pathlib.Path("/proc/self/status").read_text()
            assert "CapEff:\\t0000000000000000" in status and "CapBnd:\\t0000000000000000" in status
            assert "NoNewPrivs:\\t1" in status and "Seccomp:\\t2" in status
            assert os.getuid() != 0
            """,
            id="privileges",
        ),
        pytest.param(
            """
            assert os.getppid() == 1
            assert all(int(name) in (1, os.getpid()) for name in os.listdir("/proc") if name.isdigit())
            for name in ("KILL", "TERM", "INT", "STOP", "HUP", "CHLD", "SEGV", "USR1", "ALRM"):
                os.kill(1, getattr(signal, f"SIG{name}"))
            time.sleep(0.2)
            assert os.getppid() == 1
            for name in ("mem", "environ", "maps"):
                with pytest.raises(OSError):
                    open(f"/proc/1/{name}", "rb").read(1)
            with pytest.raises(OSError):
                os.listdir("/proc/1/fd")
            """,
            id="first-process",
        ),
        pytest.param("with pytest.raises(MemoryError):\n    bytearray(6 << 30)", id="six-gibibytes"),
        pytest.param(
            """
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            with pytest.raises(OSError) as refusal, open(tmp_path / "big", "wb") as file:
                for _ in range(200):
                    file.write(bytes(1 << 20))
            assert refusal.value.errno == errno.EFBIG
            """,
            id="file-of-200-MiB",
        ),
        pytest.param(
            """
            with pytest.raises(OSError) as refusal:
                for number in range(100):
                    (tmp_path / str(number)).write_bytes(bytes(32 << 20))
            assert refusal.value.errno == errno.ENOSPC
            """,
            id="disk-full",
        ),
        pytest.param(
            """
            children = []
            with pytest.raises(BlockingIOError):
                for _ in range(1000):
                    child = os.fork()
                    if child == 0:
                        time.sleep(60)
                        os._exit(0)
                    children.append(child)
            for child in children:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
            assert 0 < len(children) < 80
            """,
            id="fork-many",
        ),
        pytest.param(
            """
            with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
                server.accept()[0].close()
            assert subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True, text=True).stdout == "1\\n"
            threads = [threading.Thread(target=time.sleep, args=(0.01,)) for _ in range(10)]
            [thread.start() for thread in threads], [thread.join() for thread in threads]
            import multiprocessing, pwd, tempfile
            with multiprocessing.get_context("fork").Pool(2) as pool:
                assert pool.map(abs, [-1, 2]) == [1, 2]
            assert pwd.getpwuid(os.getuid()).pw_name == "autofix"
            assert os.path.isdir(os.path.expanduser("~"))
            pathlib.Path(ROOT, "calc.py").write_text("written")
            os.rename(os.path.join(ROOT, "data/blob.bin"), os.path.join(ROOT, "data/moved.bin"))
            assert pathlib.Path(ROOT, "ünï code/naïve.txt").read_text() == "grüße"
            os.listdir("/proc/self/fd"), open("/dev/urandom", "rb").read(1), os.openpty()
            """,
            id="what-tests-may-do",
        ),
    ],
)
def test_no_escape(bench: Bench, body: str) -> None:
    before = bench.tree()
    assert_passed(bench.probe(body, limits=Limits(wall_seconds=60, test_seconds=40, processes=64)))
    assert bench.tree() == before
    assert not bench.accepted()


def test_fork_bomb_ends_with_the_job(bench: Bench) -> None:
    bomb = """
        with pytest.raises(OSError):
            while True:
                if os.fork() == 0:
                    signal.pause()
    """
    result = bench.probe(bomb, limits=Limits(wall_seconds=20, processes=32))
    assert result.status == "finished", result.detail
    assert result.survivors >= 20
    assert_passed(bench.probe("assert sum(name.isdigit() for name in os.listdir('/proc')) == 2"))


def test_memory_of_all_processes_is_bounded(bench: Bench) -> None:
    """Each process stays below its own limit; together they do not."""
    hungry = """
        for _ in range(8):
            if os.fork() == 0:
                block = bytearray(100 << 20)
                block[::4096] = b"x" * len(block[::4096])
                time.sleep(60)
        time.sleep(60)
    """
    result = bench.probe(hungry, limits=Limits(wall_seconds=20, test_seconds=60, memory_bytes=256 << 20))
    assert result.status == "crashed", result.output
    assert "memory" in result.detail
    assert_passed(bench.probe("pass"))


def test_daemon_does_not_survive(bench: Bench) -> None:
    daemon = """
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(1.5)
                pathlib.Path("/dev/shm/alive").write_text("still here")
                pathlib.Path("/tmp/alive").write_text("still here")
                time.sleep(60)
            os._exit(0)
        os.wait()
    """
    result = bench.probe(daemon)
    assert result.status == "finished"
    assert result.survivors == 1
    time.sleep(2)
    assert_passed(
        bench.probe("assert not os.path.exists('/tmp/alive') and not os.path.exists('/dev/shm/alive')")
    )


def test_jobs_share_nothing(bench: Bench) -> None:
    leave = """
        for path in ("/tmp/left", "/dev/shm/left", os.path.expanduser("~/left"), os.path.join(ROOT, "left")):
            pathlib.Path(path).write_text("left")
        import sysconfig
        packages = sysconfig.get_paths()["purelib"]
        for path in ("/left", "/dev/left", "/run/left", "/run/autofix/left", "/usr/left", f"{packages}/left"):
            with pytest.raises(OSError):
                pathlib.Path(path).write_text("left")
    """
    assert_passed(bench.probe(leave))
    look = """
        for path in ("/tmp/left", "/dev/shm/left", os.path.expanduser("~/left"), os.path.join(ROOT, "left")):
            assert not os.path.exists(path), path
        assert os.listdir("/dev/shm") == []
    """
    assert_passed(bench.probe(look))


def test_files_and_deletions(bench: Bench) -> None:
    probe = """
        assert pathlib.Path(ROOT, "data/blob.bin").read_bytes() == bytes(range(256))
        assert pathlib.Path(ROOT, "neu/ärger.txt").read_text() == "ß"
        assert not pathlib.Path(ROOT, "ünï code").exists()
        assert "raise" in pathlib.Path(ROOT, "tests/test_calc.py").read_text()
    """
    head = "import os, pathlib\nROOT = os.path.dirname(os.path.dirname(__file__))\ndef test_probe():"
    files: dict[str, str | bytes] = {
        "data/blob.bin": bytes(range(256)),
        "neu/ärger.txt": "ß",
        "tests/test_calc.py": "raise SystemExit",
        "probes/test_probe.py": head + probe.replace("\n        ", "\n    "),
    }
    assert_passed(bench.run(files, delete=("ünï code",), selection=("probes",)))


def test_job_with_changed_tests_keeps_them_read_only(bench: Bench) -> None:
    text = "def test_self():\n    open(__file__, 'a')\n"
    result = bench.run({"tests/test_calc.py": text}, selection=("tests",))
    assert result.outcomes() == {"tests/test_calc.py::test_self": "failed"}
    assert "Read-only file system" in result.phases[1].message


@pytest.mark.parametrize("path", ["../outside.py", "/etc/passwd", "a/../../b", ""])
def test_files_outside_the_project_are_refused(bench: Bench, path: str) -> None:
    result = bench.run({path: "x"})
    assert result.status == "broken"
    assert "not a path inside the project" in result.detail


def test_byte_code_is_never_stale(bench: Bench) -> None:
    for value in ("1", "2", "3", "1"):
        files: dict[str, str | bytes] = {
            "calc.py": f"def add(a, b):\n    return {value}\n",
            "probes/test_probe.py": f"from calc import add\ndef test_probe():\n    assert add(0, 0) == {value}\n",
        }
        for warm in (True, False):
            assert_passed(bench.run(files, warm=warm, selection=("probes",)))


def test_tampering_is_seen(bench: Bench) -> None:
    """A protected path that does not exist cannot be held by a mount; whoever makes it is found out."""
    result = bench.call(
        "with_protected", ("pyproject.toml", "pytest.ini"), "pathlib.Path(ROOT, 'pytest.ini').touch()"
    )
    assert result.tampered == ("pytest.ini",)


def test_forged_end_is_not_believed(bench: Bench) -> None:
    forge = """
        import json, struct
        def frame(**message):
            body = json.dumps(message).encode()
            return struct.pack(">I", len(body)) + body
        ended = frame(e="ended", code=0, signal=None, timeout=False, survivors=0, tampered=[], error="", wall=0, cpu=0)
        for fd in range(3, 1024):
            try:
                os.write(fd, ended)
            except OSError:
                pass
        os._exit(0)
    """
    result = bench.probe(forge)
    assert result.status == "exited"
    assert result.exit_status is None
    assert_passed(bench.probe("pass"))


@pytest.mark.parametrize(
    "garbage",
    [
        pytest.param("b'\\xff' * 1000", id="endless-frame"),
        pytest.param("b'\\x00\\x00\\x00\\x10half'", id="half-a-frame"),
        pytest.param("b'\\x00\\x00\\x00\\x02[]'", id="no-object"),
        pytest.param('b\'\\x00\\x00\\x00\\x0d{"e":"phase"}\'', id="missing-fields"),
        pytest.param('b\'\\x00\\x00\\x00\\x1e{"e":"finish","status":[1,2]}..\'', id="wrong-types"),
    ],
)
def test_broken_events_are_no_pass(bench: Bench, garbage: str) -> None:
    write = """
        for fd in map(int, os.listdir("/proc/self/fd")):
            if fd > 2 and os.path.exists(f"/proc/self/fd/{fd}") and "pipe" in os.readlink(f"/proc/self/fd/{fd}"):
                os.write(fd, %s)
    """
    result = bench.probe(write % garbage)
    assert result.status == "exited", result.detail
    assert_passed(bench.probe("pass"))


def test_batch(bench: Bench) -> None:
    source = (bench.root / "calc.py").read_text()
    start = source.index("a + b")

    def candidate(text: str) -> Candidate:
        return Candidate((Edit("calc.py", start, start + 5, text),), Origin("search"))

    texts = [
        "a - b",
        "b + a",
        "__import__('os')._exit(0)",
        "__import__('os').kill(-1, 9)",
        "a +",
        "a+b",
        "1 / 0",
    ]
    nodeid = "tests/test_calc.py::test_add"
    sound, results = bench.call(
        "batch",
        Job(nodeids=(nodeid,), limits=Limits(test_seconds=2)),
        [candidate(text) for text in texts],
        60.0,
        originals={"calc.py": source},
        expected={nodeid: "passed"},
    )
    assert sound
    assert [result.index for result in results] == list(range(len(texts)))
    assert [result.status for result in results] == [
        "failed", "passed", "crashed", "crashed", "invalid", "passed", "failed",
    ]  # fmt: skip
    assert_passed(bench.probe("pass"))


def test_isolation_is_reported(bench: Bench) -> None:
    isolation = bench.call("isolation")
    assert isolation.isolated
    assert isolation.backend == "local"
    assert "no network" in isolation.details
