"""Command line, environment and ini values, resolved once into a frozen `Settings`.

Precedence: command line, then environment (`AUTOSOLVE_MODE` for `--autosolve-mode`), then ini file
(`autosolve_mode`), then default. Every mistake is a `pytest.UsageError` of one line: what was given, what is
accepted, what to do.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from pytest_autofix.settings import Settings

__all__ = ["INSIDE", "ON_TERMINAL", "add_options", "on_a_terminal", "read_settings"]

INSIDE = "PYTEST_AUTOFIX_INSIDE"
"""Set in the environment of every pytest that we start ourselves: `--autosolve` in `addopts` is ignored there."""

ON_TERMINAL = pytest.StashKey[bool]()
"""Whether a person sits there; asked before pytest's capturing puts files in the place of the terminal"""

Parser = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class Option:
    """One option with its ini and environment twins."""

    name: str  #: `mode` for `--autosolve-mode`, `autosolve_mode`, `AUTOSOLVE_MODE`
    parse: Parser  #: raises ValueError with what is accepted
    default: Any
    help: str
    metavar: str = ""
    repeatable: bool = False

    @property
    def flag(self) -> str:
        return f"--autosolve-{self.name}"

    @property
    def key(self) -> str:
        return f"autosolve_{self.name.replace('-', '_')}"

    @property
    def variable(self) -> str:
        return self.key.upper()


def _one_of(*choices: str) -> Parser:
    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"one of {', '.join(choices)}")
        return text

    return parse


def _number(accepted: str, *, minimum: float, whole: bool = False) -> Parser:
    def parse(text: str) -> float | int:
        try:
            value = int(text) if whole else float(text)
        except ValueError:
            raise ValueError(accepted) from None
        if not math.isfinite(value) or value < minimum:
            raise ValueError(accepted)
        return value

    return parse


def _count(text: str) -> int:
    value: int = _number("a whole number, 1 or more", minimum=1, whole=True)(text)
    return value


def _seconds(text: str) -> float:
    value: float = _number("a number of seconds, more than 0", minimum=1e-3)(text)
    return value


def _text(text: str) -> str:
    if not text.strip():
        raise ValueError("a text that is not empty")
    return text.strip()


def _url(text: str) -> str:
    if not text.startswith(("http://", "https://")):
        raise ValueError("an address that begins with http:// or https://")
    return text


OPTIONS = (
    Option(
        "mode",
        _one_of("review", "apply", "report"),
        None,
        "what happens to files: review asks for each patch [changes files you accept], apply writes them "
        "[changes files], report never does; default: review on a terminal, report elsewhere",
        "MODE",
    ),
    Option("select", _one_of("failing", "marked"), "failing", "which tests to solve: failing, or "
           "marked: of those only the ones with @pytest.mark.autosolve; default: failing", "WHICH"),
    Option("strategy", _one_of("auto", "search", "model"), "auto", "search: without a model; model: model only; "
           "auto: search first, then the model if one is named; default: auto", "STRATEGY"),
    Option("model", _text, (), "name of a chat model, or scripted:FILE; repeat it for a fallback chain; "
           "default: none, search only", "NAME", repeatable=True),
    Option("base-url", _url, None, "address of an OpenAI-compatible endpoint; default: OPENAI_BASE_URL", "URL"),
    Option("sandbox", _one_of("auto", "local", "none"), "auto", "where candidates run: local is bubblewrap; none "
           "runs them unprotected on this machine and must be typed; default: auto", "NAME"),
    Option("jobs", _count, None, "processes used at the same time; default: number of cores", "N"),
    Option("attempts", _count, 4, "candidates asked of the model for each task; default: 4", "N"),
    Option("search-seconds", _seconds, 30.0, "time of the model-free search for each task; default: 30", "S"),
    Option("timeout", _seconds, 30.0, "time limit of each test; default: 30", "S"),
    Option("max-seconds", _seconds, None, "time of the whole run after the tests; default: no limit", "S"),
    Option("max-tokens", _count, None, "tokens of all model calls of the run; default: no limit", "N"),
    Option("max-calls", _count, None, "model calls of the run; default: no limit", "N"),
    Option("report", _text, None, "write a JSON report", "FILE"),
    Option("events", _text, None, "write every event as a JSON line", "FILE"),
    Option("from", _text, None, "solve what failed in an earlier run (junit xml or reportlog) instead of "
           "running the whole selection", "FILE"),
    Option("verify", _text, None, "run the verdict on a patch of yours (unified diff, or a folder of files laid "
           "over the project); exit status 0 accepted, 1 rejected; changes no files", "FILE"),
)  # fmt: skip


FILE_OPTIONS = tuple(option.flag for option in OPTIONS if option.metavar == "FILE")


def with_joined_files(words: Sequence[str], directory: Path) -> list[str] | None:
    """The command line with `--option FILE` as `--option=FILE`, None if there is nothing to join.

    pytest looks for its rootdir before it knows the options of plugins: a word that is an existing path counts as a
    place of tests then, and a patch or report that lies outside the project would move the rootdir there.
    """
    joined: list[str] = []
    changed = False
    for word in words:
        if joined and joined[-1] in FILE_OPTIONS and (directory / word).exists():
            joined[-1] = f"{joined[-1]}={word}"
            changed = True
        else:
            joined.append(word)
    return joined if changed else None


def add_options(parser: pytest.Parser) -> None:
    """Register `--autosolve` and its family with their ini twins."""
    group = parser.getgroup("autosolve", "repair of failing tests (pytest-autofix)")
    group.addoption(
        "--autosolve",
        action="store_true",
        default=False,
        dest="autosolve",
        help="after the run, search for patches that make the failing tests pass",
    )
    for option in OPTIONS:
        group.addoption(
            option.flag,
            action="append" if option.repeatable else "store",
            default=None,
            dest=option.key,
            metavar=option.metavar,
            help=option.help.replace("%", "%%"),
        )
        kind: Literal["args", "string"] = "args" if option.repeatable else "string"
        parser.addini(option.key, help=f"ini twin of {option.flag}", type=kind, default=None)


def read_settings(config: pytest.Config, environment: Mapping[str, str] = os.environ) -> Settings:
    """Resolve every option; raises `pytest.UsageError` for a value that cannot be used."""
    values = {option.key: _resolve(option, config, environment) for option in OPTIONS}
    models = values["autosolve_model"]

    def path(key: str) -> Path | None:
        text = values[key]
        return config.invocation_params.dir / text if text else None

    return Settings(
        enabled=bool(config.getoption("autosolve")) and INSIDE not in environment,
        mode=values["autosolve_mode"] or ("review" if config.stash.get(ON_TERMINAL, False) else "report"),
        select=values["autosolve_select"],
        strategy=values["autosolve_strategy"],
        models=(models,) if isinstance(models, str) else tuple(models),
        base_url=values["autosolve_base_url"] or environment.get("OPENAI_BASE_URL") or None,
        sandbox=values["autosolve_sandbox"],
        jobs=values["autosolve_jobs"] or _cores(),
        attempts=values["autosolve_attempts"],
        search_seconds=values["autosolve_search_seconds"],
        test_seconds=values["autosolve_timeout"],
        max_seconds=values["autosolve_max_seconds"],
        max_tokens=values["autosolve_max_tokens"],
        max_calls=values["autosolve_max_calls"],
        report=path("autosolve_report"),
        events=path("autosolve_events"),
        earlier=path("autosolve_from"),
        verify=None if INSIDE in environment else path("autosolve_verify"),
    )


def _resolve(option: Option, config: pytest.Config, environment: Mapping[str, str]) -> Any:
    given = config.getoption(option.key)
    origin = option.flag
    if given is None and environment.get(option.variable):
        given, origin = environment[option.variable], option.variable
    if given is None and (ini := config.getini(option.key)):
        given, origin = ini, f"ini option {option.key}"
    if given is None:
        return option.default
    texts = [given] if isinstance(given, str) else list(given)
    parsed = []
    for text in texts:
        try:
            parsed.append(option.parse(text))
        except ValueError as error:
            raise pytest.UsageError(f"{origin}: got {text!r}, expected {error}") from None
    return tuple(parsed) if option.repeatable else parsed[0]


def on_a_terminal() -> bool:
    """Whether questions can be asked and answered. True only outside of pytest's capturing."""
    return all(stream is not None and stream.isatty() for stream in (sys.__stdin__, sys.__stdout__))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
