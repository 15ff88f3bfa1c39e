"""`record`: run pytest on a small project and hand back what the recorder gathered."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import pytest

from pytest_autofix.evidence.failure import Failure
from pytest_autofix.evidence.recorder import Recorder

Record = Callable[..., Recorder]


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("CI", "BUILD_NUMBER", "PYTEST_ADDOPTS", "PYTEST_TIMEOUT", "FORCE_COLOR", "PY_COLORS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def write(pytester: pytest.Pytester) -> Callable[[dict[str, str]], None]:
    def write(files: dict[str, str]) -> None:
        for name, text in files.items():
            path = pytester.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")

    return write


@pytest.fixture
def record(pytester: pytest.Pytester, write: Callable[[dict[str, str]], None]) -> Record:
    """`record({"test_x.py": "..."}, "-v")`: run in this process, then ask the recorder."""

    def record(files: dict[str, str], *arguments: str) -> Recorder:
        write(files)
        recorder = Recorder()
        pytester.syspathinsert()
        pytester.runpytest_inprocess(
            "-p",
            "no:cacheprovider",
            "-p",
            "no:cov",
            "-p",
            "no:hypothesispytest",
            "-o",
            "asyncio_default_fixture_loop_scope=function",
            *arguments,
            plugins=[recorder],
        )
        return recorder

    return record


@pytest.fixture
def only(record: Record) -> Callable[..., Failure]:
    """The one failure of a project."""

    def only(files: dict[str, str], *arguments: str) -> Failure:
        failures = record(files, *arguments).failures()
        assert len(failures) == 1, [failure.nodeid for failure in failures]
        return failures[0]

    return only
