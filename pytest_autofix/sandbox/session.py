"""pytest inside the sandbox: one plain run, or a session that collects once and forks for each candidate.

Runs INSIDE, in the worker process: standard library and pytest only. Everything that is emitted here can be
forged by the code under test. It serves screening and evidence; the verdict rests on more than this.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import gc
import hashlib
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

# Relative: inside, this folder is a package of its own under a name that no project uses (see runner.py), so that
# a module `lines` or `wire` of the project stays importable and pytest_autofix itself is not needed.
from .behaviour import Call, CallRecorder, observe
from .lines import LineRecorder
from .transplant import FunctionIndex, Unsound, transplant
from .wire import WireBroken, read_frame, write_frame

Emit = Callable[[dict[str, Any]], None]

OBSERVE_FACTOR = 10  #: CPU time of looking at behaviour, in trials
INSIDE = "PYTEST_AUTOFIX_INSIDE"  #: as in `pytest_autofix.options`, which cannot be imported here
MESSAGE_LIMIT = 2000  #: characters of a crash message


def run_pytest(hello: dict[str, Any], job: dict[str, Any], emit: Emit) -> None:
    """Run the job's node ids (all that the arguments select if there are none) in this process."""
    _run(hello, job, [Events(hello, job, emit)])


def serve_batch(hello: dict[str, Any], job: dict[str, Any], emit: Emit, jobs_fd: int) -> None:
    """Collect the job's node ids, then fork for every `try` frame read from `jobs_fd` until `end`."""
    events = Events(hello, job, emit)
    _run(hello, job, [events, Batch(hello, job, emit, jobs_fd, events)])


def _run(hello: dict[str, Any], job: dict[str, Any], plugins: list[object]) -> None:
    sys.dont_write_bytecode = True
    os.chdir(hello["cwd"])
    sys.path[:] = hello["sys_path"]
    os.environ[INSIDE] = "1"
    arguments = [*hello["args"], f"--maxfail={job['maxfail']}"]
    # A warm process has imported the plugins before; where warnings are errors this one would end every run.
    arguments += ("-W", "ignore::pytest.PytestAssertRewriteWarning")
    seconds = job["limits"]["test_seconds"]
    if job["op"] == "batch":
        seconds = 4 * seconds + 1  # wall clock for one test; the CPU time of the trial is bounded below it
    arguments.append(f"--timeout={seconds}")
    if chosen := [*job["nodeids"], *job["whole_files"]]:
        arguments += dict.fromkeys(_file_argument(nodeid, hello["root"]) for nodeid in chosen)
    else:
        arguments += job["selection"]
    pytest.main(arguments, plugins=plugins)


def _file_argument(nodeid: str, root: str) -> str:
    """Node ids are selected after collection: thousands of them as arguments would be slow to resolve."""
    return os.path.join(root, nodeid.partition("::")[0])  # noqa: PTH118 - no pathlib on the fork server's path


class Events:
    """Sends what pytest reports, as it happens."""

    def __init__(self, hello: dict[str, Any], job: dict[str, Any], emit: Emit) -> None:
        self.emit = emit
        self.position = {nodeid: index for index, nodeid in enumerate(job["nodeids"])}
        self.whole_files = frozenset(job["whole_files"])
        self.collected: list[str] = []
        self.reverse = job["order"] == "reversed"
        self.recorder = LineRecorder(hello["root"], job["trace"]) if job["trace"] else None

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        os.environ.pop(INSIDE, None)  # our own plugin has read it; code under test has no business to
        if self.recorder:
            self.recorder.start()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None]:
        yield  # after every other plugin: ours is the last word on selection and order
        self.collected = [item.nodeid for item in items]
        if self.position or self.whole_files:
            items[:] = [item for item in items if self._chosen(item.nodeid)]
            items.sort(key=lambda item: self.position.get(item.nodeid, len(self.position)))
        if self.reverse:
            items.reverse()

    def _chosen(self, nodeid: str) -> bool:
        return nodeid in self.position or nodeid.partition("::")[0] in self.whole_files

    def pytest_collection_finish(self) -> None:
        if self.recorder:
            self.emit({"e": "lines", "id": "", "lines": self.recorder.take()})
        self.emit({"e": "collected", "ids": self.collected})

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._phase(report.nodeid, "collect", "failed", 0.0, False, report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        if self.recorder:
            self.recorder.take()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        xfail = hasattr(report, "wasxfail")
        self._phase(report.nodeid, report.when, report.outcome, report.duration, xfail, report)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        if self.recorder:
            self.emit({"e": "lines", "id": nodeid, "lines": self.recorder.take()})

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, exitstatus: int) -> Generator[None]:
        if self.recorder:
            self.recorder.stop()
        yield
        self.emit({"e": "finish", "status": int(exitstatus)})

    def _phase(self, nodeid: str, when: str, outcome: str, seconds: float, xfail: bool, report: Any) -> None:
        event: dict[str, Any] = {"e": "phase", "id": nodeid, "when": when, "outcome": outcome}
        event |= {"seconds": seconds, "xfail": xfail, "message": ""}
        if outcome == "failed":
            event["message"] = _message(report)
        self.emit(event)


def _message(report: Any) -> str:
    longrepr = report.longrepr
    crash = getattr(longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(longrepr)
    return text[:MESSAGE_LIMIT]


def _outcomes(told: Sequence[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """Node id, outcome and message of each test that a fork has told of."""
    return [(message["id"], message["outcome"], message["message"]) for message in told if "id" in message]


def _discard(output: os.stat_result) -> None:
    """Send every descriptor that leads to `output` (pytest keeps copies) to nowhere: trials would fill it."""
    null = os.open(os.devnull, os.O_WRONLY)
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(int(entry.name)), output):
                os.dup2(null, int(entry.name))


def _safe_text(value: BaseException) -> str:
    try:
        return str(value)[:MESSAGE_LIMIT]
    except Exception:  # code under test may raise anything here
        return "(its text cannot be had)"


class Batch:
    """Serves trials instead of running the collected tests.

    Every trial is a fork of this process, in which pytest has collected and nothing has run: parameters,
    fixtures and module state are as fresh as in a run of its own.
    """

    def __init__(
        self, hello: dict[str, Any], job: dict[str, Any], emit: Emit, jobs_fd: int, events: Events
    ) -> None:
        self.root: str = hello["root"]
        self.originals: dict[str, str] = job["originals"]
        self.expected: dict[str, str] = job["expected"]
        self.cpu_seconds: float = job["limits"]["test_seconds"]
        self.emit = emit
        self.jobs_fd = jobs_fd
        self.events = events
        self.output = os.fstat(1)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> pytest.TestReport | None:
        """Nobody reads the tracebacks of a trial, and rendering one takes up to a hundred times the test's time."""
        if call.excinfo is None or isinstance(call.excinfo.value, pytest.skip.Exception):
            return None
        message = f"{call.excinfo.typename}: {_safe_text(call.excinfo.value)}"
        when = call.when if call.when != "collect" else "setup"  # items have no phase `collect`
        return pytest.TestReport(
            item.nodeid, item.location, {}, "failed", message, when, duration=call.duration
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        sound, detail = self._check_unmodified(session.items)
        calls: list[Call] | None = None
        index = FunctionIndex({os.path.join(self.root, path): path for path in self.originals})  # noqa: PTH118
        gc.collect()
        gc.freeze()  # keeps the collector from touching shared pages in every fork
        _discard(self.output)
        self.emit({"e": "ready", "sound": sound, "detail": detail})
        with contextlib.suppress(WireBroken):
            while (frame := read_frame(self.jobs_fd)) is not None and frame["op"] != "end":
                if frame["op"] == "try":
                    self._trial(session.items, index, frame)
                elif frame["op"] == "observe":
                    if calls is None:
                        calls = self._record_calls(session.items, index)
                    self._observe(calls, index, frame)
        return True

    def _check_unmodified(self, items: Sequence[pytest.Item]) -> tuple[bool, str]:
        """Whether every test does here, in this order and one process, what it did in the baseline."""
        missing = [nodeid for nodeid in self.expected if nodeid not in {item.nodeid for item in items}]
        if missing:
            return False, f"{missing[0]} was not collected"
        start = 0
        while start < len(items):
            rest = items[start:]
            told, ending, _ = self._fork(functools.partial(self._run_items, rest, stop_at_red=False))
            outcomes = _outcomes(told)
            for nodeid, outcome, _ in outcomes:
                if outcome != self.expected.get(nodeid):
                    return False, f"{nodeid} is {outcome} here, not {self.expected.get(nodeid)}"
            start += len(outcomes)
            if start < len(items):  # the process ended inside this test
                if self.expected.get(items[start].nodeid) != "failed":
                    return False, f"{items[start].nodeid} ended the process: {ending}"
                start += 1
        return True, ""

    def _trial(self, items: Sequence[pytest.Item], index: FunctionIndex, frame: dict[str, Any]) -> None:
        began = time.perf_counter()

        def body(tell: Emit) -> None:
            try:
                transplant(index, self.originals, frame["edits"])
            except SyntaxError:
                tell({"verdict": "invalid"})
            except Unsound as reason:
                tell({"verdict": "unsound", "message": str(reason)})
            else:
                self._run_items(items, tell, stop_at_red=True)

        told, ending, cpu = self._fork(body)
        outcomes = _outcomes(told)
        event: dict[str, Any] = {"e": "trial", "index": frame["index"], "failed": "", "message": ""}
        event["passed"] = [nodeid for nodeid, outcome, _ in outcomes if outcome == "passed"]
        if ending in ("invalid", "unsound"):
            event["status"] = ending
        elif ending == "done" and len(event["passed"]) == len(items):
            event["status"] = "passed"
        elif ending == "done":
            event["status"] = "failed"
            event["failed"], _, event["message"] = outcomes[-1] if outcomes else ("", "", "no test ran")
        else:
            event["status"] = ending
            event["failed"] = items[len(outcomes)].nodeid if len(outcomes) < len(items) else ""
        event |= {"seconds": time.perf_counter() - began, "cpu": cpu}
        self.emit(event)

    def _record_calls(self, items: Sequence[pytest.Item], index: FunctionIndex) -> list[Call]:
        """Arguments that the tests give to functions under repair; collected in a fork, as everything that runs."""

        def body(tell: Emit) -> None:
            def tell_call(call: Call) -> None:
                tell({"call": [call[0], base64.b64encode(call[1]).decode("ascii")]})

            # A failing test may never end: those that passed come first.
            ordered = sorted(items, key=lambda item: self.expected.get(item.nodeid) != "passed")
            with CallRecorder(index.functions(), index.absolute.values(), tell_call):
                self._run_items(ordered, lambda message: None, stop_at_red=False)
            tell({"verdict": "done"})

        told, _, _ = self._fork(body, OBSERVE_FACTOR * self.cpu_seconds)
        return [(name, base64.b64decode(data)) for name, data in (m["call"] for m in told if "call" in m)]

    def _observe(self, calls: Sequence[Call], index: FunctionIndex, frame: dict[str, Any]) -> None:
        def body(tell: Emit) -> None:
            with contextlib.suppress(SyntaxError, Unsound):
                transplant(index, self.originals, frame["edits"])
                for text in observe(calls, index.named):
                    tell(
                        {
                            "result": hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[
                                :16
                            ],
                            "normal": not text.startswith(("raises ", "timeout", "unknown")),
                        }
                    )
            tell({"verdict": "done"})

        told, _, _ = self._fork(body, OBSERVE_FACTOR * self.cpu_seconds)
        results = [[message["result"], message["normal"]] for message in told if "result" in message]
        self.emit({"e": "observed", "index": frame["index"], "results": results})

    def _run_items(self, items: Sequence[pytest.Item], tell: Emit, *, stop_at_red: bool) -> None:
        """Runs inside the fork."""
        outcome: dict[str, Any] = {}

        def observe(event: dict[str, Any]) -> None:
            if event["e"] != "phase":
                return
            if event["outcome"] == "failed":
                outcome.update(word="failed", message=event["message"][:300])
            elif event["xfail"] and outcome.get("word") != "failed":
                outcome.update(word="xfailed")
            elif event["outcome"] == "skipped":
                outcome.setdefault("word", "skipped")

        self.events.emit = observe
        for position, item in enumerate(items):
            outcome.clear()
            following = items[position + 1] if position + 1 < len(items) else None
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            word = outcome.get("word", "passed")
            tell({"id": item.nodeid, "outcome": word, "message": outcome.get("message", "")})
            if stop_at_red and word != "passed":
                break
        tell({"verdict": "done"})

    def _fork(
        self, body: Callable[[Emit], None], cpu_seconds: float = 0.0
    ) -> tuple[list[dict[str, Any]], str, float]:
        """Run `body` in a fork: what it told; `done`, `invalid`, `unsound`, `timeout` or `crashed`; CPU seconds."""
        limit = cpu_seconds or self.cpu_seconds
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.close(reader)
                os.setpgid(0, 0)
                # The default action of SIGPROF ends the process, whatever the candidate catches.
                signal.signal(signal.SIGPROF, signal.SIG_DFL)
                signal.setitimer(signal.ITIMER_PROF, limit)
                body(lambda message: write_frame(writer, message))
                status = 0
            finally:
                os._exit(status)
        os.close(writer)
        told, timed_out = self._listen(reader, limit)
        os.close(reader)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        _, status, usage = os.wait4(child, 0)
        verdict = next((m["verdict"] for m in told if "verdict" in m), "")
        if not verdict:
            killed_by_timer = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF
            verdict = "timeout" if timed_out or killed_by_timer else "crashed"
        return told, verdict, usage.ru_utime + usage.ru_stime

    def _listen(self, reader: int, limit: float) -> tuple[list[dict[str, Any]], bool]:
        told: list[dict[str, Any]] = []
        deadline = time.monotonic() + 4 * limit + 1  # a sleeping candidate uses no CPU time
        while (left := deadline - time.monotonic()) > 0:
            ready, _, _ = select.select([reader], [], [], left)
            if not ready:
                return told, True
            try:
                message = read_frame(reader)
            except WireBroken:
                return told, False
            if message is None:
                return told, False
            told.append(message)
            if "verdict" in message:
                return told, False
        return told, True
