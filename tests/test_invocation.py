"""What of the user's command line our own runs repeat."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_autofix.invocation import carried_arguments
from pytest_autofix.options import with_joined_files


@pytest.mark.parametrize(
    ("words", "positional", "kept"),
    [
        pytest.param(["tests", "--autosolve"], ["tests"], [], id="paths-and-ours"),
        pytest.param(["--autosolve-mode", "apply", "--autosolve-jobs=2", "-k", "a"], [], ["-k", "a"], id="ours"),
        pytest.param(["-k", "tests", "tests"], ["tests"], ["-k", "tests"], id="value-that-looks-like-a-path"),
        pytest.param(["-p", "no:randomly", "-o", "a=b"], [], ["-p", "no:randomly", "-o", "a=b"], id="plugins"),
        pytest.param(["-p", "no:terminal", "-pno:terminal", "-p", "x"], [], ["-p", "x"], id="no-terminal"),
        pytest.param(["-n", "4", "--dist", "load", "-n2", "-x", "--pdb"], [], [], id="distribution-and-stops"),
        pytest.param(["--junitxml=r.xml", "--report-log", "l", "--cov", "--cov-report", "xml"], [], [], id="reports"),
        pytest.param(["--lf", "--ff", "--sw", "-vv", "-rA", "--tb", "no"], [], [], id="choice-and-looks"),
        pytest.param(["--import-mode=importlib", "--doctest-modules"], [],
                     ["--import-mode=importlib", "--doctest-modules"], id="what-counts"),
        pytest.param(["--strict-markers", "a/t.py::x"], ["a/t.py::x"], ["--strict-markers"], id="flag-before-path"),
    ],
)  # fmt: skip
def test_carried_arguments(words: list[str], positional: list[str], kept: list[str]) -> None:
    assert list(carried_arguments(words, positional=positional)) == kept


def test_paths_of_options_are_made_absolute() -> None:
    words = ["-c", "cfg/other.ini", "--rootdir=proj", "--ignore", "/abs", "-k", "cfg"]
    kept = carried_arguments(words, directory=Path("/home/me"))
    assert list(kept) == [
        "-c",
        "/home/me/cfg/other.ini",
        "--rootdir=/home/me/proj",
        "--ignore",
        "/abs",
        "-k",
        "cfg",
    ]


def test_files_are_joined_to_their_options_where_pytest_would_take_them_for_tests(tmp_path: Path) -> None:
    (tmp_path / "fix.patch").touch()
    joined = with_joined_files(["--autosolve-verify", "fix.patch", "tests", "-q"], tmp_path)
    assert joined == ["--autosolve-verify=fix.patch", "tests", "-q"]
    assert (
        with_joined_files(["--autosolve-report", "new.json", "--autosolve-mode", "apply"], tmp_path) is None
    )
    assert with_joined_files(["--autosolve-verify=fix.patch"], tmp_path) is None
