"""From what pytest holds at the end of a phase to one `Failure`. Nothing of pytest's is kept in it."""

from __future__ import annotations

import dataclasses
import doctest
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from pytest_autofix.evidence.chain import (
    doctest_failure,
    exception_chain,
    exception_text,
    is_timeout,
    leaves_of,
    missing_import,
    only_raises,
    tracebacks,
)
from pytest_autofix.evidence.comparisons import AssertWatch, doctest_comparison, find_comparison
from pytest_autofix.evidence.failure import Comparison, ExceptionFact, Failure, Frame, Kind, Phase
from pytest_autofix.evidence.frames import (
    Place,
    ProjectPaths,
    places,
    source_line,
    to_frames,
)
from pytest_autofix.evidence.hanging import Hang
from pytest_autofix.evidence.values import Describer, type_name

__all__ = ["describe_collection", "describe_item", "describe_text", "is_strict_xpass"]

_MESSAGE_LIMIT = 300
_OUTPUT_LIMIT = 8000
_NO_HANG = Hang()
_CRASH = re.compile(r"worker '.+' crashed while running|running the test CRASHED with signal")


def describe_item(
    item: pytest.Item,
    call: pytest.CallInfo[None],
    report: pytest.TestReport,
    paths: ProjectPaths,
    watch: AssertWatch,
    hang: Hang,
) -> Failure:
    """Evidence of one failed phase of a test. `hang` counts if it was a time limit that ended it."""
    if call.excinfo is None:
        return describe_text(report)
    describer = Describer()
    phase = _phase(report.when)
    story = _Story(call.excinfo.value, phase, paths, describer, watch, item=item, hang=hang)
    callspec = getattr(item, "callspec", None)
    parameters: dict[str, object] = callspec.params if callspec is not None else {}
    return Failure(
        nodeid=report.nodeid,
        phase=phase,
        kind=story.kind,
        message=story.message,
        path=_test_path(item, paths),
        function=_function(item),
        exceptions=story.exceptions,
        comparison=story.comparison,
        parameters={
            describer.text(name, limit=100): describer.value(value, limit=1000)
            for name, value in parameters.items()
        },
        fixtures=tuple(name for name in _fixtures(item, paths) if name not in parameters),
        output=_output(report, describer),
        missing=story.missing,
        seconds=report.duration,
    )


def describe_collection(
    collector: pytest.Collector,
    call: pytest.CallInfo[Any],
    report: pytest.CollectReport,
    paths: ProjectPaths,
    watch: AssertWatch,
) -> Failure:
    """Evidence of a file or folder that could not be collected."""
    if call.excinfo is None:
        return describe_text(report)
    describer = Describer()
    story = _Story(call.excinfo.value, "collect", paths, describer, watch, item=None)
    return Failure(
        nodeid=report.nodeid,
        phase="collect",
        kind=story.kind,
        message=story.message,
        path=_test_path(collector, paths),
        exceptions=story.exceptions,
        comparison=story.comparison,
        output=_output(report, describer),
        missing=story.missing,
        seconds=call.duration,
    )


def describe_text(report: pytest.TestReport | pytest.CollectReport) -> Failure:
    """The little that is known of a failure that came without an exception: a crash, or another plugin's verdict."""
    describer = Describer()
    text, problem = describer.call(_long_text, report)
    text = describer.text(problem if text is None else text)
    when = str(report.when)
    kind: Kind = "collection" if when == "collect" else "exception"
    if _CRASH.search(text):
        kind = "crash"
    elif when in ("setup", "teardown"):
        kind = "fixture"
    path, _, names = report.nodeid.partition("::")
    return Failure(
        nodeid=report.nodeid,
        phase=_phase(when),
        kind=kind,
        message=_first_line(text) or f"{when} failed without a reason",
        path=path,
        function=names.partition("[")[0],
        exceptions=(ExceptionFact("", text),) if text else (),
        output=_output(report, describer),
        seconds=float(getattr(report, "duration", 0.0)),
    )


def is_strict_xpass(report: pytest.TestReport | pytest.CollectReport) -> bool:
    """A test that was expected to fail and passed: nothing to repair."""
    return isinstance(report.longrepr, str) and report.longrepr.startswith("[XPASS(strict)]")


class _Story:
    """What one exception tells: its kind, its chain, its comparison."""

    def __init__(
        self,
        error: BaseException,
        phase: Phase,
        paths: ProjectPaths,
        describer: Describer,
        watch: AssertWatch,
        *,
        item: pytest.Item | None,
        hang: Hang = _NO_HANG,
    ) -> None:
        self._paths = paths
        self._describer = describer
        self._test_file = "" if item is None else _test_path(item, paths)
        chain = list(exception_chain(error))
        first = chain[0]
        leaves = [leaf for leaf in chain if not isinstance(leaf, BaseExceptionGroup)] or chain
        stack = places(leaves[0].__traceback__, paths)
        self.comparison = watch.take(leaves[0].__traceback__)
        if self.comparison is None:
            self.comparison = self._find_comparison(error, leaves[0], stack)
        elif not self.comparison.explanation:  # numbers: pytest has nothing to add to the assert itself
            text = exception_text(leaves[0], describer)
            self.comparison = dataclasses.replace(self.comparison, explanation=text)
        self.kind = self._kind(error, chain, phase)
        self.missing = missing_import(leaves[0]) if self.kind == "import" else None
        facts = [self._fact(one) for one in chain]
        example = _doctest_frame(error, item, describer)
        if example is not None:
            frames = (example, *(frame for frame in facts[0].frames if frame != example))
            facts[0] = ExceptionFact(facts[0].type, facts[0].message, frames)
        if self.kind == "timeout":
            facts[0] = ExceptionFact(facts[0].type, facts[0].message, facts[0].frames + hang.tasks)
            facts += hang.threads
        self.exceptions = tuple(facts)
        self.message = self._message(first, facts[0])

    def _find_comparison(
        self, error: BaseException, leaf: BaseException, stack: list[Place]
    ) -> Comparison | None:
        failure = doctest_failure(error)
        if isinstance(failure, doctest.DocTestFailure):
            return doctest_comparison(failure, self._describer)
        return find_comparison(leaf, leaf.__traceback__, stack, self._describer)

    def _kind(self, error: BaseException, chain: list[BaseException], phase: Phase) -> Kind:
        if any(is_timeout(one, self._describer) for one in chain):
            return "timeout"
        first = chain[0]
        if isinstance(first, BaseExceptionGroup):
            kinds = {self._own_kind(leaf) for leaf in leaves_of(first)}
            kind = kinds.pop() if len(kinds) == 1 else "exception"
        elif isinstance(doctest_failure(error), doctest.DocTestFailure):
            kind = "assertion"
        else:
            kind = self._own_kind(first)
        if kind in ("assertion", "exception") and phase != "call":
            return "collection" if phase == "collect" else "fixture"
        return kind

    def _own_kind(self, error: BaseException) -> Kind:
        if isinstance(error, NotImplementedError) and self._is_stub(error):
            return "stub"
        if isinstance(error, ImportError):
            return "import"
        if isinstance(error, SyntaxError):
            return "syntax"
        if isinstance(error, AssertionError | pytest.fail.Exception):
            return "assertion"
        return "exception"

    def _is_stub(self, error: NotImplementedError) -> bool:
        """Raised by the `@autosolve` decorator, or by a function of the project that does nothing else."""
        frames = [traceback.tb_frame for traceback in tracebacks(error.__traceback__)]
        if not frames:
            return False
        last = frames[-1]
        if last.f_globals.get("__name__") == "pytest_autofix":
            return True
        path = self._paths.relative(last.f_code.co_filename)
        if path is None or path == self._test_file:
            return False
        return only_raises(last.f_code.co_filename, last.f_code.co_name, last.f_lineno)

    def _fact(self, error: BaseException) -> ExceptionFact:
        frames = to_frames(places(error.__traceback__, self._paths), self._describer)
        if isinstance(error, SyntaxError) and (place := self._syntax_frame(error)) is not None:
            frames += (place,)
        if isinstance(error, NotImplementedError):
            frames += self._decorated_stub(error)
        text = self._paths.shorten(exception_text(error, self._describer))
        return ExceptionFact(type_name(type(error)), text, frames)

    def _syntax_frame(self, error: SyntaxError) -> Frame | None:
        """The broken line: it never ran, so no traceback leads to it."""
        path = self._paths.relative(error.filename) if isinstance(error.filename, str) else None
        if path is None:
            return None
        text = error.text if isinstance(error.text, str) else ""
        return Frame(path, error.lineno or 1, "<module>", self._describer.text(text.strip(), limit=400))

    def _decorated_stub(self, error: NotImplementedError) -> tuple[Frame, ...]:
        """The function behind `@autosolve`: its own body never runs, only the decorator holds it."""
        frame = next((tb.tb_frame for tb in reversed(list(tracebacks(error.__traceback__)))), None)
        if frame is None or frame.f_globals.get("__name__") != "pytest_autofix":
            return ()
        for value in frame.f_locals.values():
            if isinstance(value, FunctionType) and (path := self._paths.relative(value.__code__.co_filename)):
                line = value.__code__.co_firstlineno
                return (Frame(path, line, value.__qualname__, source_line(value.__code__.co_filename, line)),)
        return ()

    def _message(self, error: BaseException, fact: ExceptionFact) -> str:
        line = _first_line(fact.message)
        if isinstance(error, AssertionError | pytest.fail.Exception):
            if not line and fact.frames:
                return fact.frames[-1].source or "AssertionError"
            return line or "AssertionError"
        if isinstance(doctest_failure(error), doctest.DocTestFailure):
            return line
        name = fact.type.rpartition(".")[2]
        return f"{name}: {line}" if line else name


def _doctest_frame(error: BaseException, item: pytest.Item | None, describer: Describer) -> Frame | None:
    """The example in the docstring; doctest runs it under an invented file name."""
    failure = doctest_failure(error)
    if failure is None or item is None:
        return None
    example = failure.example
    source = describer.text(example.source.strip(), limit=400)
    path = item.nodeid.partition("::")[0]
    return Frame(path, (failure.test.lineno or 0) + example.lineno + 1, failure.test.name, source)


def _long_text(report: pytest.TestReport | pytest.CollectReport) -> str:
    return report.longrepr if isinstance(report.longrepr, str) else report.longreprtext


def _phase(when: str | None) -> Phase:
    for phase in ("setup", "teardown", "collect"):
        if when == phase:
            return phase
    return "call"  # pytest-xdist says "???" of a crash


def _test_path(node: pytest.Item | pytest.Collector, paths: ProjectPaths) -> str:
    path: Path | None = getattr(node, "path", None)
    return (paths.relative(str(path)) if path is not None else None) or node.nodeid.partition("::")[0]


def _function(item: pytest.Item) -> str:
    classes = [node.name for node in item.listchain() if isinstance(node, pytest.Class)]
    return "::".join([*classes, getattr(item, "originalname", None) or item.name])


def _fixtures(item: pytest.Item, paths: ProjectPaths) -> Iterator[str]:
    """Names of the fixtures that the test asks for or that the project defines; plugins' automatic ones are noise."""
    info = getattr(item, "_fixtureinfo", None)
    asked = getattr(info, "argnames", ())
    definitions = getattr(info, "name2fixturedefs", {})
    for name in getattr(item, "fixturenames", ()):
        if name == "request" or name.startswith(("_xunit_", "_unittest_")):
            continue
        code = getattr(getattr(next(iter(definitions.get(name, ())), None), "func", None), "__code__", None)
        if name in asked or (code is not None and paths.relative(code.co_filename) is not None):
            yield name


def _output(report: pytest.TestReport | pytest.CollectReport, describer: Describer) -> dict[str, str]:
    sections: Iterable[tuple[str, str]] = report.sections
    return {
        describer.text(str(name), limit=100): describer.text(str(text), limit=_OUTPUT_LIMIT)
        for name, text in sections
        if text
    }


def _first_line(text: str) -> str:
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= _MESSAGE_LIMIT else line[: _MESSAGE_LIMIT - 3] + "..."
