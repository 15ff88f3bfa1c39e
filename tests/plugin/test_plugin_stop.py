"""Ctrl-C and SIGKILL at several moments: a clean tree, no process left over, and the next run works."""

from __future__ import annotations

import time

import pytest
from plugin_project import STATE, Project, gone_within

ADD = "def add(a, b):\n    return a - b\n"
ADD_TEST = "from calc import add\n\ndef test_add():\n    assert add(1, 2) == 3\n"
SECRET = (
    "def secret(n):\n    total = n\n    for i in range(n):\n        total = total * i + 1\n    return total\n"
)
SECRET_TEST = (
    "import pytest\nfrom secret import secret\n\n"
    "@pytest.mark.parametrize(('n', 'value'), [(1, 48271), (2, 182605), (3, 7), (4, 902384)])\n"
    "def test_secret(n, value):\n    assert secret(n) == value\n"
)
SLOW_INSIDE = (
    "import os, time\n\ndef test_slow_inside():\n"
    "    time.sleep(25 if os.environ.get('USER') == 'autofix' else 0)\n"
)


@pytest.fixture
def both(project: Project) -> Project:
    """One task that is solved at once, one that is searched for a long time."""
    project.write("calc.py", ADD).write("test_calc.py", ADD_TEST)
    return project.write("secret.py", SECRET).write("test_secret.py", SECRET_TEST).commit()


def test_ctrl_c_during_the_baseline(both: Project) -> None:
    both.write("test_slow.py", SLOW_INSIDE).commit()
    with both.start("--autosolve-mode=apply", "--timeout=60") as terminal:
        terminal.wait_for(" in ")  # the last line of pytest's own report
        time.sleep(4)
        pressed = time.monotonic()
        terminal.type("\x03")
        run = terminal.end()
        took = time.monotonic() - pressed
        pid = terminal.pid
    assert run.exit_code == 2, run.output
    assert took < 10  # not as long as the tests take
    run.stdout.fnmatch_lines(["*stopped*no file was changed*"])
    assert "Traceback" not in run.output
    assert both.status() == ""
    assert not gone_within(5, str(both.root), f"pytest-autofix-{pid}-")


def test_ctrl_c_during_the_search_keeps_what_was_found(both: Project) -> None:
    events = both.home / "events.jsonl"
    with both.start(
        "--autosolve-mode=apply", "--autosolve-search-seconds=300", f"--autosolve-events={events}"
    ) as terminal:
        terminal.wait_until(lambda: '"solved"' in events.read_text() if events.exists() else False)
        pressed = time.monotonic()
        terminal.type("\x03")
        run = terminal.end()
        took = time.monotonic() - pressed
        pid = terminal.pid
    assert run.exit_code == 2, run.output
    assert took < 15
    assert both.status() == ""  # asked to stop, so nothing is written
    assert run.report["exit_status"] == 2
    assert run.task("test_calc.py::test_add")["outcome"] == "solved"
    assert run.task("test_secret.py::test_secret[1-48271]")["outcome"] == "budget"
    assert run.task("test_secret.py::test_secret[1-48271]")["reason"] == "stopped by you"
    assert len(both.patches()) == 1
    assert "Traceback" not in run.output
    assert not gone_within(5, str(both.root), f"pytest-autofix-{pid}-")


def test_killed_during_the_search(both: Project) -> None:
    events = both.home / "events.jsonl"
    with both.start(
        "--autosolve-mode=apply", "--autosolve-search-seconds=300", f"--autosolve-events={events}"
    ) as terminal:
        terminal.wait_until(lambda: '"solved"' in events.read_text() if events.exists() else False)
        terminal.kill()
        assert terminal.end(seconds=30).exit_code == -9
        pid = terminal.pid
    assert not gone_within(5, str(both.root), f"pytest-autofix-{pid}-")
    assert both.status() == ""
    assert (both.root / STATE / "checkpoints.sqlite").exists()
    run = both.autosolve("--autosolve-mode=apply", "test_calc.py")
    assert run.exit_code == 0, run.output
    assert "a + b" in both.read("calc.py")


def test_ctrl_c_while_patches_are_put_together(project: Project) -> None:
    """Two tasks are solved, and the verdict on both together takes a while."""
    project.write("calc.py", ADD).write("test_calc.py", ADD_TEST)
    project.write("more.py", ADD).write("test_more.py", ADD_TEST.replace("calc", "more"))
    project.write("test_slow.py", SLOW_INSIDE.replace("25", "1.5")).commit()
    events = project.home / "events.jsonl"
    with project.start("--autosolve-mode=apply", f"--autosolve-events={events}") as terminal:
        terminal.wait_until(lambda: events.exists() and events.read_text().count('"solved"') == 2)
        terminal.type("\x03")
        run = terminal.end()
    assert run.exit_code == 2, run.output
    assert set(run.outcomes.values()) == {"solved"}
    assert len(project.patches()) == 2
    assert project.status() == ""
    run.stdout.fnmatch_lines(["stopped by you; 2 of 2 tasks solved; no file was changed*"])
    assert not gone_within(5, str(project.root))


def test_ctrl_c_when_the_files_are_written(project: Project) -> None:
    """It is too late to leave them as they were, and nobody says that they are."""
    project.write("calc.py", ADD).write("test_calc.py", ADD_TEST)
    project.write("test_slow.py", SLOW_INSIDE.replace("25", "2")).commit()
    with project.start("--autosolve-mode=apply") as terminal:
        terminal.wait_until(lambda: "a + b" in project.read("calc.py"))
        terminal.type("\x03")
        run = terminal.end()
    assert run.exit_code == 2, run.output
    run.stdout.fnmatch_lines(
        ["note: stopped before the tests were run once more", "*1 file changed: calc.py; *"]
    )
    assert "Traceback" not in run.output
    assert "no file was changed" not in run.output
    assert not gone_within(5, str(project.root))


def test_ctrl_c_during_the_user_s_tests(project: Project) -> None:
    """pytest's own affair: nothing is solved."""
    project.write(
        "test_it.py", "import time\n\ndef test_a():\n    assert 0\n\ndef test_b():\n    time.sleep(60)\n"
    )
    with project.start() as terminal:
        terminal.wait_for("test_it.py F")
        terminal.type("\x03")
        run = terminal.end(seconds=30)
    assert run.exit_code == 2
    assert "== autosolve ==" not in run.output
    assert not gone_within(5, str(project.root))
