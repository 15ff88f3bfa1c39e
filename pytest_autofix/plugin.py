"""pytest's side of pytest-autofix: hooks only. Nothing heavy is imported before a failure under `--autosolve`."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Generator, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from pytest_autofix.options import ON_TERMINAL, add_options, on_a_terminal, read_settings, with_joined_files
from pytest_autofix.settings import Settings

__all__: list[str] = []

SYS_PATH = pytest.StashKey[Sequence[str]]()
"""`sys.path` before pytest and conftests changed it: our own runs start from the same place"""

SOLVE_MODULES = (
    "langgraph",
    "langgraph.checkpoint.sqlite",
    "langchain_openai",
    "pydantic",
    "tenacity",
    "pytest_timeout",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None]:
    early_config.stash[SYS_PATH] = tuple(sys.path)
    early_config.stash[ON_TERMINAL] = on_a_terminal()
    return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "autosolve: solve this test when it fails, see --autosolve-select")
    if not config.getoption("autosolve") and config.getoption("autosolve_verify") is None:
        _refuse_lone_options(config)
        return
    settings = read_settings(config)
    if settings.verify is None and not settings.enabled:
        return  # a run of our own
    _require_solve_extra()
    if settings.enabled:
        _enable(config, settings)


def _refuse_lone_options(config: pytest.Config) -> None:
    """An option of ours typed without `--autosolve` would do nothing; in `addopts` it waits for the flag."""
    lone = [word for word in map(str, config.invocation_params.args) if word.startswith("--autosolve-")]
    if lone and not hasattr(config, "workerinput"):
        raise pytest.UsageError(
            f"{lone[0].partition('=')[0]}: does nothing without --autosolve; add that flag"
        )


def _enable(config: pytest.Config, settings: Settings) -> None:
    from pytest_autofix.controller import Controller, Selection
    from pytest_autofix.errors import ConfigurationError
    from pytest_autofix.evidence.recorder import Recorder
    from pytest_autofix.evidence.time_limit import apply_time_limit

    if config.getoption("collectonly"):
        raise pytest.UsageError(
            "--autosolve: got --collect-only, which runs no test; leave one of the two out"
        )
    try:
        apply_time_limit(config, settings.test_seconds)
    except ConfigurationError as error:
        raise pytest.UsageError(str(error)) from None
    recorder = Recorder()
    config.pluginmanager.register(recorder, "autofix-recorder")
    selection = Selection(config, settings)
    config.pluginmanager.register(selection, "autofix-selection")
    if hasattr(config, "workerinput"):
        return  # an xdist worker records, the controller solves
    controller = Controller(config, settings, recorder, selection, config.stash[SYS_PATH])
    config.pluginmanager.register(controller, "autofix-controller")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """`--autosolve-verify` runs no session of its own: the tests run in the sandbox."""
    words = with_joined_files(
        [str(word) for word in config.invocation_params.args], config.invocation_params.dir
    )
    if words is not None:
        return _start_again(words)
    if config.getoption("autosolve_verify") is None or config.getoption("help"):
        return None
    config._do_configure()  # as pytest's own --markers and --version do: there is no public way
    try:
        settings = read_settings(config)
        if settings.verify is None:
            return None
        from pytest_autofix.controller import verify_patch

        return verify_patch(config, settings, config.stash[SYS_PATH])
    finally:
        config._ensure_unconfigure()


def _start_again(words: list[str]) -> int:
    """Run pytest with another command line in a process of its own, which gets the signals of the terminal."""
    script = Path(sys.argv[0])
    start = [sys.argv[0]] if script.name in ("pytest", "py.test") and script.is_file() else ["-m", "pytest"]
    child = subprocess.Popen([sys.executable, *start, *words])
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return child.wait()
    finally:
        signal.signal(signal.SIGINT, before)


def _require_solve_extra() -> None:
    missing = [name for name in SOLVE_MODULES if not _installed(name)]
    if missing:
        raise pytest.UsageError(
            f"--autosolve: {', '.join(missing)} not installed; "
            "install the solver with: pip install 'pytest-autofix[solve]'"
        )


def _installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # the parent package is missing
        return False
