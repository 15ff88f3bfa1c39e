"""`Settings`: what the user asked for, resolved. Plain values, no secret; made by `options.read_settings`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

__all__ = ["Invocation", "Mode", "SandboxName", "Select", "Settings", "Strategy"]

Mode = Literal["review", "apply", "report"]
Strategy = Literal["auto", "search", "model"]
SandboxName = Literal["auto", "local", "none"]
Select = Literal["failing", "marked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The options of one run. Holds no secret."""

    enabled: bool
    mode: Mode
    select: Select
    strategy: Strategy
    models: tuple[str, ...]
    base_url: str | None
    sandbox: SandboxName
    jobs: int  #: processes at the same time
    attempts: int  #: candidates asked of the model for each task
    search_seconds: float  #: of the model-free search, for each task
    test_seconds: float  #: limit of each test
    max_seconds: float | None  #: whole run, after the user's tests
    max_tokens: int | None
    max_calls: int | None
    report: Path | None
    events: Path | None
    earlier: Path | None  #: report of an earlier run that names the failing tests
    verify: Path | None  #: patch or folder to run the verdict on


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """How the user's pytest was started: what our own runs of the same tests must repeat."""

    root: Path  #: pytest's rootdir
    directory: Path  #: where it was started
    python: Path
    arguments: tuple[str, ...]  #: options that matter for a run of ours, without paths
    selection: tuple[str, ...]  #: paths and node ids as given, absolute; empty: pytest's own default
    sys_path: tuple[str, ...]  #: the import path before any conftest was read, absolute
    test_patterns: tuple[str, ...]  #: ini `python_files`
    class_patterns: tuple[str, ...]  #: ini `python_classes`
    function_patterns: tuple[str, ...]  #: ini `python_functions`
    test_paths: tuple[str, ...]  #: ini `testpaths`, relative to root
    import_roots: tuple[str, ...]  #: ini `pythonpath`, relative to root, without folders outside
    plugins: tuple[str, ...]  #: modules named by `-p` on the command line
    test_seconds: float = 30.0  #: time limit of a test that is in force, the user's own or ours
    preload: tuple[str, ...] = ()  #: third-party modules that the tests loaded
