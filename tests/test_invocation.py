"""What of the user's command line our own runs repeat."""

from __future__ import annotations

import pytest

from pytest_autofix.invocation import carried_arguments


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
