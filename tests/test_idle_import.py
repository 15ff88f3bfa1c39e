"""Who has the plugin installed and runs plain pytest must not notice: nothing heavy is imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = (
    "langgraph",
    "langchain",
    "langsmith",
    "openai",
    "e2b",
    "github",
    "rich",
    "pydantic",
    "httpx",
    "tenacity",
)

REPORT = """
import json, sys
heavy = {heavy!r}
def loaded():
    tops = {{name.partition(".")[0] for name in sys.modules}}
    return sorted(top for top in tops if top.startswith(heavy))
"""


def execute(folder: Path, script: str) -> list[str]:
    """What `script` prints as its last line, in a fresh interpreter that knows no other plugin than ours."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))
    }
    completed = subprocess.run(
        [sys.executable, "-c", REPORT.format(heavy=HEAVY) + script],
        cwd=folder,
        env=environment | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    found: list[str] = json.loads(completed.stdout.splitlines()[-1])
    return found


def test_importing_the_package_loads_the_standard_library_only(tmp_path: Path) -> None:
    script = (
        "before = set(sys.modules); import pytest_autofix\n"
        "tops = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(json.dumps(sorted(tops - sys.stdlib_module_names - {'pytest_autofix'})))"
    )
    assert execute(tmp_path, script) == []


@pytest.mark.parametrize(
    "outcome", [pytest.param("True", id="a-passing-run"), pytest.param("False", id="a-failing-run")]
)
def test_plain_pytest_with_the_plugin_loads_nothing_heavy(tmp_path: Path, outcome: str) -> None:
    (tmp_path / "test_it.py").write_text(f"def test_it():\n    assert {outcome}\n", encoding="utf-8")
    script = (
        "import pytest\n"
        "status = pytest.main(['-q', '-p', 'pytest_autofix.plugin', '-p', 'no:cacheprovider', 'test_it.py'])\n"
        f"assert status == (0 if {outcome} else 1), status\n"
        "assert 'pytest_autofix.plugin' in sys.modules\n"
        "print(json.dumps(loaded()))"
    )
    assert execute(tmp_path, script) == []


def test_the_check_notices_a_heavy_module(tmp_path: Path) -> None:
    assert execute(tmp_path, "import tenacity\nprint(json.dumps(loaded()))") == ["tenacity"]
