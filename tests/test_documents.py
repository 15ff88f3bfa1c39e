"""What the documents say about the program is true: options, modules, links, commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_autofix.options import OPTIONS

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def table_rows() -> dict[str, tuple[str, str]]:
    """Option → (description, default) of the README's table."""
    rows = re.findall(r"^\| `(--autosolve[\w-]*)[^`]*` \| (.*) \| (.*) \|$", README, re.MULTILINE)
    return {option: (text, default) for option, text, default in rows}


def test_the_options_table_is_complete() -> None:
    assert list(table_rows()) == ["--autosolve", *(option.flag for option in OPTIONS)]


@pytest.mark.parametrize(
    "option",
    [pytest.param(option, id=option.name) for option in OPTIONS if isinstance(option.default, (int, float))],
)
def test_the_numbers_in_the_options_table_are_the_defaults(option) -> None:
    assert float(table_rows()[option.flag][1]) == option.default


def test_every_option_that_a_document_names_exists() -> None:
    known = {"--autosolve", *(option.flag for option in OPTIONS)}
    named = {
        (path.name, flag)
        for path in DOCUMENTS
        for flag in re.findall(r"--autosolve[a-z-]*", path.read_text(encoding="utf-8"))
    }
    assert {(name, flag) for name, flag in named if flag not in known} == set()


@pytest.mark.parametrize("path", [pytest.param(path, id=path.name) for path in DOCUMENTS])
def test_links_inside_the_project_lead_somewhere(path: Path) -> None:
    targets = re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8"))
    local = [target.partition("#")[0] for target in targets if "://" not in target]
    assert [target for target in local if target and not (path.parent / target).exists()] == []


@pytest.mark.parametrize("path", [pytest.param(path, id=path.name) for path in DOCUMENTS])
def test_modules_that_a_document_names_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[\w-]+/)*[\w-]+\.py)`", text)) - {"conftest.py"}
    assert {
        name for name in named if not any((base / name).exists() for base in (ROOT, ROOT / "pytest_autofix"))
    } == set()


def test_the_readme_has_the_two_commands_each_on_one_line() -> None:
    commands = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    assert [command.count("\n") for command in commands] == [1, 1]
    assert "pytest examples/quickstart --autosolve" in commands[0]
    assert commands[1].rstrip().endswith("-m pytest")


def test_ci_runs_the_test_command_of_the_readme() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert '"$python" -m pytest "$@"' in script
    for words in ("--editable '.[solve]'", "--group test"):
        assert words in script
