"""The back end without isolation: what it still keeps, and that escape probes do find something there."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sandbox_bench import Bench, assert_passed, in_this_process_unconfined, open_bench
from test_sandbox_conformance import ESCAPES

from pytest_autofix.sandbox.protocol import Limits

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork")


@pytest.fixture(scope="module")
def unconfined() -> Iterator[Bench]:
    folder = Path(tempfile.mkdtemp(prefix="autofix-bench-"))
    yield from open_bench(folder, in_this_process_unconfined)
    shutil.rmtree(folder)


def test_says_so(unconfined: Bench) -> None:
    isolation = unconfined.call("isolation")
    assert not isolation.isolated
    assert isolation.backend == "none"
    assert "NOT isolated" in isolation.details[0]


@pytest.mark.parametrize("body", ESCAPES)
def test_probes_can_fail(unconfined: Bench, body: str) -> None:
    """A probe that finds nothing here would prove nothing anywhere."""
    result = unconfined.probe(body)
    assert set(result.outcomes().values()) == {"failed"}
    unconfined.accepted()


def test_same_outcomes_on_a_copy(unconfined: Bench) -> None:
    before = unconfined.tree()
    for warm in (True, False):
        result = unconfined.run({"calc.py": "def add(a, b):\n    return 4\n"}, warm=warm)
        assert result.outcomes() == {"tests/test_calc.py::test_add": "failed"}
    assert_passed(unconfined.run())
    assert unconfined.tree() == before


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param("while True: pass", "timeout", id="hangs"),
        pytest.param("ctypes.string_at(0)", "crashed", id="segfault"),
        pytest.param("os._exit(0)", "exited", id="exits"),
        pytest.param(
            "with capfd.disabled():\n    while True:\n        os.write(1, b'x' * 65536)",
            "output",
            id="floods",
        ),
    ],
)
def test_ends_badly(unconfined: Bench, body: str, status: str) -> None:
    assert unconfined.probe(body, limits=Limits(wall_seconds=3, test_seconds=60)).status == status
    assert_passed(unconfined.probe("pass"))


@pytest.mark.skipif(sys.platform != "linux", reason="orphans are only adopted on Linux")
def test_daemon_does_not_survive(unconfined: Bench, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    daemon = f"""
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                pathlib.Path({str(mark)!r}).write_text(str(os.getpid()))
                time.sleep(60)
            os._exit(0)
        os.wait()
        while not os.path.exists({str(mark)!r}) or not pathlib.Path({str(mark)!r}).read_text():
            time.sleep(0.01)
    """
    result = unconfined.probe(daemon)
    assert result.status == "finished"
    assert result.survivors == 1
    assert not Path(f"/proc/{mark.read_text()}").exists()


def test_tampering_is_seen(unconfined: Bench) -> None:
    """Nothing is read-only here, so the content is compared."""
    result = unconfined.probe("pathlib.Path('tests/test_calc.py').write_text('')")
    assert result.tampered == ("tests",)
