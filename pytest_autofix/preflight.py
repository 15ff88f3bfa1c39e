"""What can be known to fail before any test has run. Imports nothing heavy: most runs have nothing to solve."""

from __future__ import annotations

import os
from pathlib import Path

from pytest_autofix.errors import ConfigurationError
from pytest_autofix.report.events import JsonLines
from pytest_autofix.report.json_report import check_report_path
from pytest_autofix.sandbox.bubblewrap import find_all
from pytest_autofix.sandbox.local import NO_BUBBLEWRAP
from pytest_autofix.sandbox.probe import refuse
from pytest_autofix.settings import SandboxName, Settings

__all__ = ["check_settings", "open_events"]


def check_settings(settings: Settings) -> None:
    """Raises `ConfigurationError`, or `SandboxUnavailable` where no sandbox can be opened for certain."""
    if settings.report is not None:
        check_report_path(settings.report)
    if settings.events is not None:
        open_events(settings.events).close()
    _check_sandbox(settings.sandbox)
    if settings.strategy == "search":
        return
    if settings.models:
        from pytest_autofix.candidates.model.client import ChatClient  # brings langchain

        ChatClient.connect(settings.models, base_url=settings.base_url or "", environ=os.environ)
    elif settings.strategy == "model":
        raise ConfigurationError("--autosolve-strategy model: got no model; name one with --autosolve-model")


def open_events(path: Path) -> JsonLines:
    """The events file, begun anew; raises `ConfigurationError` if it cannot be written."""
    try:
        return JsonLines(path)
    except OSError as error:
        raise ConfigurationError(
            f"--autosolve-events: {path} cannot be written: {error.strerror}; give another file"
        ) from error


def _check_sandbox(name: SandboxName) -> None:
    """Whether there is a bubblewrap at all. Whether it works is seen by the probe, which costs a real run."""
    if name != "none" and not find_all():
        raise refuse([NO_BUBBLEWRAP])
