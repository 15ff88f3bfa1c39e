"""How the user's pytest was started, as plain values: what our own runs of the same tests must repeat."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections import deque
from collections.abc import Callable, Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from pytest_autofix.settings import Invocation, Settings

__all__ = ["carried_arguments", "read_invocation", "third_party_modules"]

# Options that make no sense in a run of ours: they write reports, wait for a person, or choose by the last run.
_DROPPED_FLAGS = frozenset(
    """--pdb --trace --lf --last-failed --ff --failed-first --nf --new-first --sw --stepwise --sw-skip
    --stepwise-skip --sw-reset --stepwise-reset --cache-clear --autosolve --verbose --quiet --no-cov -v -vv -vvv
    -vvvv -q -qq -pno:terminal -x --exitfirst -l --showlocals --full-trace --setup-show""".split()  # noqa: SIM905 - a word list reads better than a column of quotes
)
_DROPPED_WITH_VALUE = frozenset(
    """--pdbcls --lfnf --last-failed-no-failures --junitxml --junit-xml --junitprefix --junit-prefix --report-log
    --html --css --json-report-file --log-file --debug --cov-report --cov-config --cov-fail-under --cov-context
    --pastebin --maxfail -r --tb --color --durations --durations-min -n --numprocesses --maxprocesses --dist --tx
    --rsyncdir --timeout --timeout-method --basetemp --alluredir --cov --verbosity""".split()  # noqa: SIM905 - as above
)
# Options whose next word is a value, not a path: needed to tell one from the other.
_KEPT_WITH_VALUE = frozenset(
    """-k -m -p -c -o -W --config-file --override-ini --rootdir --import-mode --ignore --ignore-glob --deselect
    --confcutdir --capture --log-level --log-cli-level --assert --pythonwarnings --cache-show
    --doctest-report --doctest-glob""".split()  # noqa: SIM905 - as above
)

# Of these, relative paths, which mean another place where our runs start elsewhere.
_PATH_VALUED = frozenset(("-c", "--config-file", "--rootdir", "--confcutdir", "--ignore"))

_QUIET = ("-q", "--no-header", "--no-summary", "--color=no", "--tb=short")


def read_invocation(config: pytest.Config, settings: Settings, sys_path: Iterable[str]) -> Invocation:
    """`sys_path`: the import path before any conftest was read."""
    directory = config.invocation_params.dir
    given = config.args_source is pytest.Config.ArgsSource.ARGS
    selection = tuple(config.args) if given else ()
    words = [*shlex.split(os.environ.get("PYTEST_ADDOPTS", "")), *config.invocation_params.args]
    arguments = carried_arguments(map(str, words), positional=selection, directory=directory)
    return Invocation(
        root=config.rootpath,
        directory=directory,
        python=Path(sys.executable),
        arguments=(*arguments, *_neutralised_plugins(config), *_QUIET),
        selection=tuple(_absolute(word, directory) for word in selection),
        sys_path=tuple(os.path.abspath(entry or os.curdir) for entry in sys_path),  # noqa: PTH100 - no symlinks
        test_patterns=tuple(config.getini("python_files")),
        class_patterns=tuple(config.getini("python_classes")),
        function_patterns=tuple(config.getini("python_functions")),
        test_paths=tuple(config.getini("testpaths")),
        import_roots=tuple(
            path.relative_to(config.rootpath).as_posix()
            for path in config.getini("pythonpath")
            if path.is_relative_to(config.rootpath)
        ),
        test_seconds=_time_limit(config, settings.test_seconds),
        plugins=tuple(name for name in config.getoption("plugins", []) if not name.startswith("no:")),
    )


def _time_limit(config: pytest.Config, default: float) -> float:
    """What pytest-timeout would use for a test without a marker, in the order in which it looks."""
    sources: tuple[Callable[[], Any], ...] = (
        lambda: config.getoption("timeout", None),
        lambda: os.environ.get("PYTEST_TIMEOUT"),
        lambda: config.getini("timeout"),  # raises ValueError without pytest-timeout
    )
    for source in sources:
        with contextlib.suppress(TypeError, ValueError):
            if (seconds := float(source())) > 0:
                return seconds
    return default


def carried_arguments(
    words: Iterable[str], *, positional: Iterable[str] = (), directory: Path | None = None
) -> tuple[str, ...]:
    """The command line without paths, without our own options and without what a rerun must not do."""
    paths = frozenset(positional)
    kept: list[str] = []
    pending = deque(words)
    while pending:
        word = pending.popleft()
        name, equals, given = word.partition("=")
        if name in _PATH_VALUED and directory is not None:
            kept += (
                (f"{name}={directory / given}",) if equals else (name, *_places(_value(pending), directory))
            )
        elif name in _KEPT_WITH_VALUE and not equals:
            value = _value(pending)
            if (word, value) != ("-p", ("no:terminal",)):  # it knows the options that a run of ours is given
                kept += (word, *value)
        elif name in _DROPPED_WITH_VALUE or name.startswith("--autosolve-"):
            if not equals:
                _value(pending)
        elif word not in _DROPPED_FLAGS and word not in paths and not word.startswith(("-r", "-n")):
            kept.append(word)
    return tuple(kept)


def _value(pending: deque[str]) -> tuple[str, ...]:
    return (pending.popleft(),) if pending and not pending[0].startswith("-") else ()


def _places(values: Iterable[str], directory: Path) -> tuple[str, ...]:
    return tuple(str(directory / value) for value in values)


def _absolute(word: str, directory: Path) -> str:
    path, separator, rest = word.partition("::")
    return f"{directory / path}{separator}{rest}"


def _neutralised_plugins(config: pytest.Config) -> list[str]:
    """Switches for plugins that distribute, shuffle, measure or trace: a run of ours is one plain process."""
    has = config.pluginmanager.hasplugin
    switches = []
    if has("xdist"):
        switches.append("-n0")
    if has("_cov") or has("pytest_cov"):
        switches.append("--no-cov")
    if has("randomly") or has("pytest_randomly"):
        switches.append("--randomly-dont-reorganize")
    if has("benchmark"):
        switches.append("--benchmark-disable")
    if has("langsmith_plugin"):
        switches += ("-p", "no:langsmith_plugin")  # 0.7 s of CPU for each run, see docs/explanation
    return switches


def third_party_modules(loaded: Iterable[str], root: Path) -> tuple[str, ...]:
    """Of the modules that the user's tests loaded, those a fork server may import ahead: none of the project,
    none of a distribution with pytest plugins (pytest wants to rewrite their assertions itself)."""
    plugin_packages: set[str] = set()
    for distribution in metadata.distributions():
        points = [point for point in distribution.entry_points if point.group == "pytest11"]
        plugin_packages.update(
            point.module.partition(".")[0] for point in points
        )  # editable ones list no files
        if points:
            files = (str(file) for file in distribution.files or ())
            plugin_packages.update(
                file.partition("/")[0].removesuffix(".py") for file in files if file.endswith(".py")
            )
    names = []
    for name in loaded:
        module = sys.modules.get(name)
        file = getattr(module, "__file__", None)
        spec = getattr(module, "__spec__", None)
        if not file or spec is None or spec.name != name or name.partition(".")[0] in plugin_packages:
            continue
        in_site_packages = "site-packages" in file or "dist-packages" in file
        if in_site_packages or not Path(file).is_relative_to(root):
            names.append(name)
    return tuple(names)
