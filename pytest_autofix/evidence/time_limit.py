"""A time limit for every test under `--autosolve`, so that a hanging test is a failure like any other.

pytest-timeout does the work; here it is only told a limit where the user gave none.
"""

from __future__ import annotations

import os
import signal
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pytest_autofix.errors import ConfigurationError

if TYPE_CHECKING:
    import pytest

__all__ = ["apply_time_limit"]

_PLUGIN_NAMES = ("timeout", "pytest_timeout")  # as an entry point, and as `-p pytest_timeout`


def apply_time_limit(config: pytest.Config, seconds: float) -> None:
    """Give every test at most `seconds` unless the user set a limit of their own (0 switches it off, as ever).

    To be called in a `tryfirst` `pytest_configure`: pytest-timeout reads its settings in its own. pytest-xdist hands
    the changed options to its workers. The signal method is used wherever there are signals, also against a setting
    in an ini file: the other method ends the whole process, and the evidence with it. Only the command line and a
    test's own marker can ask for it. Raises `ConfigurationError` if pytest-timeout cannot be used.
    """
    manager = config.pluginmanager
    if not any(manager.hasplugin(name) for name in _PLUGIN_NAMES):
        raise ConfigurationError(_why_not(config))
    option = config.option
    if option.timeout is None and not os.environ.get("PYTEST_TIMEOUT") and not config.getini("timeout"):
        option.timeout = float(seconds)
    if option.timeout_method is None and hasattr(signal, "SIGALRM"):
        option.timeout_method = "signal"


def _why_not(config: pytest.Config) -> str:
    task = "--autosolve needs pytest-timeout to end hanging tests"
    if any(config.pluginmanager.is_blocked(name) for name in _PLUGIN_NAMES):
        return f"{task}, but `-p no:timeout` switches it off: leave that out, or give `--timeout=0` to run unlimited"
    if find_spec("pytest_timeout") is None:
        return f"{task}, but it is not installed: pip install 'pytest-autofix[solve]'"
    return f"{task}, but it was not loaded (is PYTEST_DISABLE_PLUGIN_AUTOLOAD set?): add `-p pytest_timeout`"
