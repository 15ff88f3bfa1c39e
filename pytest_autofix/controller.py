"""What happens when the user's tests have ended: pytest's objects in, an exit status out."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_autofix.errors import AutofixError, ConfigurationError, SandboxUnavailable
from pytest_autofix.evidence.earlier import read_earlier
from pytest_autofix.evidence.recorder import Recorder
from pytest_autofix.invocation import read_invocation, third_party_modules
from pytest_autofix.settings import Settings

if TYPE_CHECKING:
    from pytest_autofix.console import Console
    from pytest_autofix.evidence.failure import Failure

__all__ = ["Controller", "Selection", "verify_patch"]

log = logging.getLogger("pytest_autofix")

PLAIN_WIDTH = 80  #: with `-p no:terminal` there is no writer that knows the screen


class Selection:
    """What was collected, and of that what failed in an earlier run. Registered in every process that runs tests."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        """Raises `pytest.UsageError` for a report that cannot be read."""
        self._config = config
        self._earlier: frozenset[str] | None = None
        self.whole: tuple[str, ...] = ()  #: node ids; none on the controller of xdist, which collects nothing
        self.marked: set[str] = set()
        if settings.earlier is not None:
            try:
                self._earlier = frozenset(read_earlier(settings.earlier, config.rootpath))
            except ConfigurationError as error:
                raise pytest.UsageError(str(error)) from None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None]:
        yield
        self.whole = tuple(item.nodeid for item in items)
        self.marked = {item.nodeid for item in items if item.get_closest_marker("autosolve")}
        if self._earlier is not None:
            failed = self._earlier
            dropped = [item for item in items if not _named(item.nodeid, failed)]
            items[:] = [item for item in items if _named(item.nodeid, failed)]
            self._config.hook.pytest_deselected(items=dropped)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # The keywords of a report hold the names of markers, but those of files and functions as well.
        if not self.whole and "autosolve" in report.keywords:
            self.marked.add(report.nodeid)


class Controller:
    """Registered under `--autosolve` in the process that the user started."""

    def __init__(
        self,
        config: pytest.Config,
        settings: Settings,
        recorder: Recorder,
        selection: Selection,
        sys_path: Sequence[str],
    ) -> None:
        """Raises `pytest.UsageError` for what can be known to fail before any test has run."""
        from pytest_autofix.preflight import check_settings
        from pytest_autofix.workbench import prepare_state_folder

        self._config = config
        self._settings = settings
        self._recorder = recorder
        self._selection = selection
        self._invocation = read_invocation(config, settings, sys_path)
        self._interrupted = False
        self._loaded_before = frozenset(sys.modules)
        try:
            check_settings(settings)
            prepare_state_folder(config.rootpath)
        except (ConfigurationError, SandboxUnavailable) as error:
            raise pytest.UsageError(str(error)) from None

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        self._interrupted = not isinstance(excinfo.value, pytest.Session.Interrupted)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Generator[None]:
        result = yield  # the user's ordinary report comes first, untouched
        broken = exitstatus in (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR)
        if not self._interrupted and not broken:
            status = self._solve(int(exitstatus))
            if status is not None:
                session.exitstatus = status
        return result

    def _solve(self, exit_status: int) -> int | None:
        """The new exit status, None to leave pytest's own."""
        failures = self._recorder.failures()
        if self._settings.select == "marked":
            failures = tuple(failure for failure in failures if failure.nodeid in self._selection.marked)
        with _console(self._config) as console:
            return _guarded(lambda: self._act(failures, exit_status, console), console, self._config)

    def _act(self, failures: tuple[Failure, ...], exit_status: int, console: Console) -> int | None:
        if not failures:
            marked = " marked" if self._settings.select == "marked" else ""
            console.terminal.write_line(f"autosolve: no{marked} test has failed, nothing to do")
            if self._settings.report is None:
                return None  # the heavy imports below are spared
        # Neither what pytest and its plugins brought before the tests, nor our own heavy modules that come now.
        loaded = [name for name in tuple(sys.modules) if name not in self._loaded_before]
        preload = third_party_modules(loaded, self._config.rootpath)
        from pytest_autofix.run import Request, report_nothing, solve

        # Under xdist with `--autosolve-from` only the failed tests are known here: the sandbox collects the whole.
        ran = self._recorder.collected() if self._settings.earlier is None else ()
        request = Request(
            settings=self._settings,
            invocation=replace(self._invocation, preload=preload),
            failures=failures,
            slowest=_slowest(self._recorder, failures),
            collected=self._selection.whole or ran,
            exit_status=exit_status,
        )
        if failures:
            return solve(request, console)
        report_nothing(request)
        return None


def verify_patch(config: pytest.Config, settings: Settings, sys_path: Sequence[str]) -> int:
    """Run the verdict on the user's patch: 0 accepted, 1 rejected; raises `pytest.UsageError` for no patch at all."""
    from pytest_autofix.preflight import check_settings
    from pytest_autofix.run import verify

    invocation = read_invocation(config, settings, sys_path)
    with _console(config) as console:
        try:
            check_settings(settings)
            return verify(settings, invocation, console)
        except (ConfigurationError, SandboxUnavailable) as error:
            raise pytest.UsageError(str(error)) from None
        except KeyboardInterrupt:
            console.terminal.write_line("autosolve: stopped; there is no verdict", yellow=True)
            return int(pytest.ExitCode.INTERRUPTED)
        except AutofixError as error:
            console.terminal.write_line(f"autosolve: {error}", red=True)
            return int(pytest.ExitCode.TESTS_FAILED)


def _guarded(action: Callable[[], int | None], console: Console, config: pytest.Config) -> int | None:
    """A stop or a bug of ours must not change what pytest found out."""
    try:
        return action()
    except KeyboardInterrupt:
        console.terminal.write_line("autosolve: stopped; no file was changed", yellow=True)
        return int(pytest.ExitCode.INTERRUPTED)
    except SandboxUnavailable as error:  # not what pytest found out, but that the request cannot be met
        console.terminal.write_line(f"autosolve: {error}", red=True)
        return int(pytest.ExitCode.USAGE_ERROR)
    except AutofixError as error:
        console.terminal.write_line(f"autosolve: {error}", red=True)
        return None
    except Exception as error:  # the plugin boundary
        console.terminal.write_line(
            f"autosolve: internal error, nothing was changed: {type(error).__name__}: {error}", red=True
        )
        if config.get_verbosity() > 0:
            raise
        log.debug("internal error", exc_info=error)
        return None


@contextlib.contextmanager
def _console(config: pytest.Config) -> Iterator[Console]:
    """pytest's terminal reporter with capturing off, so that progress is seen and questions can be answered."""
    from pytest_autofix.console import Console
    from pytest_autofix.report.terminal import PlainConsole

    reporter = config.pluginmanager.getplugin("terminalreporter")
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.suspend_global_capture(in_=True)

    def ask(question: str) -> str:
        if sys.stdin is None or not sys.stdin.isatty():
            raise EOFError
        return input(question)

    try:
        yield Console(
            terminal=reporter if reporter is not None else PlainConsole(sys.__stdout__),
            width=config.get_terminal_writer().fullwidth if reporter is not None else PLAIN_WIDTH,
            live=reporter is not None and bool(reporter.isatty),
            ask=ask,
        )
    finally:
        if capture is not None:
            capture.resume_global_capture()


def _slowest(recorder: Recorder, failures: Sequence[Failure]) -> float:
    """Seconds of the slowest test that ended by itself: what a repaired one may take, give or take."""
    hanging = {failure.nodeid for failure in failures if failure.kind == "timeout"}
    return max(
        (seconds for nodeid, seconds in recorder.durations().items() if nodeid not in hanging), default=0.0
    )


def _named(nodeid: str, failed: frozenset[str]) -> bool:
    """A report may name a whole file (collection failed) or a test without its parameters."""
    return nodeid in failed or nodeid.partition("::")[0] in failed or nodeid.partition("[")[0] in failed
