"""The command of the README that runs the main job, on a fresh copy of what git tracks."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """As a stranger would have it: a checkout of its own, with the bugs of the example in it."""
    folder = tmp_path / "clone"
    done = subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=False, capture_output=True)
    if done.returncode:
        pytest.skip("this is no git checkout, there is nothing to clone")
    return folder


def first_command() -> tuple[list[str], list[str]]:
    """The steps before the last, and the last step, of the first shell block."""
    block = re.search(r"```sh\n(.*?)\n```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    *before, last = block[1].split(" && ")
    return before, shlex.split(last)


@pytest.mark.slow
def test_the_first_command_repairs_the_example(clone: Path) -> None:
    before, command = first_command()
    assert before[0].startswith("python3 -m venv .venv")
    assert before[-1].endswith("pip install -q -e '.[solve]'")
    assert command[0] == ".venv/bin/python"
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("OPENAI", "AUTOSOLVE"))
    }
    environment |= {"COLUMNS": "80", "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, *command[1:], "-p", "no:langsmith_plugin"],
        cwd=clone,
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert "6 of 6 tasks solved" in run.stdout, run.stdout[-3000:] + run.stderr[-2000:]
    assert run.returncode == 0
    changed = subprocess.run(
        ["git", "diff", "--name-only"], cwd=clone, capture_output=True, text=True, check=True
    )
    assert sorted(Path(name).stem for name in changed.stdout.split()) == [
        "cart",
        "catalog",
        "customers",
        "paging",
        "ratings",
        "shipping",
    ]
    status = subprocess.run(
        ["git", "status", "--short"], cwd=clone, capture_output=True, text=True, check=True
    )
    assert "??" not in status.stdout
