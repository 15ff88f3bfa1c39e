"""`Workbench`: the frozen project, the policy, the sandbox and the baseline of one run. Everything starts from it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from pytest_autofix.errors import ConfigurationError, PatchError, SandboxUnavailable
from pytest_autofix.patching.changes import Tree
from pytest_autofix.patching.locate import read_source
from pytest_autofix.patching.paths import Editable
from pytest_autofix.sandbox.folder import RunFolder
from pytest_autofix.sandbox.local import LocalSandbox
from pytest_autofix.sandbox.none import UnconfinedSandbox
from pytest_autofix.sandbox.protocol import Isolation, Job, Limits, Sandbox
from pytest_autofix.sandbox.snapshot import Snapshot, take_snapshot
from pytest_autofix.sandbox.workspace import build_workspace
from pytest_autofix.settings import Invocation, Settings
from pytest_autofix.verdict.baseline import Baseline, take_baseline
from pytest_autofix.verdict.judge import Judge

__all__ = ["STATE_FOLDER", "Workbench", "prepare_state_folder"]

STATE_FOLDER = ".pytest_autofix"
TEST_FLOOR = 2.0  #: seconds that every test gets in the sandbox
TEST_FACTOR = (
    5  #: and so many times what the slowest one took outside: a hanging test is waited for many times
)
WALL_FLOOR = 60.0  #: seconds that every run of candidates gets
WALL_FACTOR = 5  #: and so many times what a run of the baseline took
RUN_SECONDS = (
    1800.0  #: wall clock of one run of all tests in the sandbox; a limit against hanging, not a budget
)


def prepare_state_folder(root: Path) -> Path:
    """The folder that holds everything of ours, with its own `.gitignore`.

    Raises `ConfigurationError` if it cannot be written.
    """
    folder = root / STATE_FOLDER
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        kind = "a symbolic link" if folder.is_symlink() else "a file"
        raise ConfigurationError(f"{folder} is {kind}, expected a folder of our own; remove it")
    try:
        folder.mkdir(exist_ok=True)
        ignore = folder / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
        probe = folder / ".writable"
        probe.write_bytes(bytes(4096))  # a full disk lets a file be made, but not filled
        probe.unlink()
    except OSError as error:
        raise ConfigurationError(
            f"{folder} cannot be written: {error.strerror}; make it writable, or free some space"
        ) from error
    return folder


class Workbench:
    """Use as a context manager: it owns a private folder and the sandbox's processes."""

    def __init__(
        self,
        settings: Settings,
        invocation: Invocation,
        *,
        test_files: Iterable[str] = (),
        slowest: float | None = None,
    ) -> None:
        """Freezes the project. `test_files`: files that gave tests, as far as they are known. `slowest`: seconds of
        the slowest test that ended by itself, if they were run.

        Raises `ConfigurationError` for a project that cannot be copied.
        """
        self.settings = settings
        self._test_seconds = invocation.test_seconds
        if slowest is not None:
            self._test_seconds = min(self._test_seconds, TEST_FLOOR + TEST_FACTOR * slowest)
        self.invocation = invocation
        self.root = invocation.root
        self.policy = Editable.of(
            invocation.root,
            python_files=invocation.test_patterns,
            python_classes=invocation.class_patterns,
            python_functions=invocation.function_patterns,
            testpaths=invocation.test_paths,
            import_roots=invocation.import_roots,
            plugins=invocation.plugins,
            test_files=test_files,
        )
        self.state_folder = prepare_state_folder(invocation.root)
        self._folder = RunFolder()
        self._closing = False
        self._opened: Sandbox | None = None
        try:
            self.snapshot: Snapshot = take_snapshot(invocation.root, self._folder.path / "tree")
            self.originals = self._read(self.policy.editable_files())
        except BaseException:
            self._folder.close()
            raise
        self.texts = _decoded(self.originals)

    def read_texts(self, paths: Iterable[str]) -> dict[str, str]:
        """Text of frozen files, editable or not; what is missing or cannot be decoded is left out."""
        return _decoded(self._read(paths))

    def _read(self, paths: Iterable[str]) -> dict[str, bytes]:
        tree = Tree(self.snapshot.path)
        files = {path: tree.read(path) for path in paths if path in self.snapshot.hashes}
        return {path: data for path, data in files.items() if data is not None}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End every process and remove the copy."""
        self.stop()
        self._folder.close()

    def stop(self) -> None:
        """End every process now; whoever waits for one gets a `SandboxError`."""
        self._closing = True
        if self._opened is not None:
            self._opened.close()

    @property
    def isolation(self) -> Isolation | None:
        """What the probe has seen; None before a sandbox was opened."""
        return self._opened.isolation if self._opened else None

    @property
    def stopping(self) -> bool:
        return self._closing

    @property
    def limits(self) -> Limits:
        """Of one run of the tests in the sandbox."""
        return Limits(wall_seconds=RUN_SECONDS, test_seconds=self._test_seconds)

    def open_sandbox(self) -> Sandbox:
        """Probe and open what the settings ask for; raises `SandboxUnavailable`, never takes a weaker one."""
        if self._opened is not None:
            return self._opened
        self._opened = self._open(self.snapshot)
        return self._opened

    def _open(self, snapshot: Snapshot) -> Sandbox:
        directory = self.invocation.directory
        workspace = build_workspace(
            self.root,
            snapshot=snapshot.path,
            python=self.invocation.python,
            sys_path=self.invocation.sys_path,
            protected=tuple(
                path for path in self.policy.protected_files() if os.path.lexists(snapshot.path / path)
            ),
            args=self.invocation.arguments,
            cwd=directory if directory.is_relative_to(self.root) else self.root,
        )
        back_end = UnconfinedSandbox if self.settings.sandbox == "none" else LocalSandbox
        return back_end(workspace, preload=self.invocation.preload)

    def take_baseline(self, nodeids: Sequence[str] = (), *, hanging: Collection[str] = ()) -> Baseline:
        """See `verdict.baseline`; with the executed lines of every editable file."""
        return take_baseline(
            self.open_sandbox(),
            nodeids=nodeids,
            hanging=hanging,
            selection=() if nodeids else self.invocation.selection,
            trace=tuple(self.texts),
            limits=self.limits,
            jobs=self.settings.jobs,
        )

    def judge(self, baseline: Baseline) -> Judge:
        """The one way to accept a candidate."""
        return Judge(self.open_sandbox(), baseline, self.limits_after(baseline), self.policy.refusals)

    def limits_after(self, baseline: Baseline) -> Limits:
        """As `limits`, with a wall clock that a run needs which takes about as long as those of the baseline: a
        candidate that swallows the time limit of its tests is ended from outside."""
        longest = baseline.wall_seconds / max(baseline.runs, 1)
        return replace(self.limits, wall_seconds=min(RUN_SECONDS, WALL_FLOOR + WALL_FACTOR * longest))

    def run_working_tree(self) -> dict[str, str]:
        """Outcomes of the whole selection on the files as they are now, in a sandbox of its own.

        Raises `SandboxUnavailable` if none can be opened.
        """
        copy = self._folder.path / "after"
        shutil.rmtree(copy, ignore_errors=True)
        snapshot = take_snapshot(self.root, copy)
        sandbox = self._open(snapshot)
        try:
            result = sandbox.run(Job(selection=self.invocation.selection, limits=self.limits))
        finally:
            sandbox.close()
        if result.status != "finished":
            raise SandboxUnavailable(f"the tests could not be run once more: {result.status} {result.detail}")
        outcomes: dict[str, str] = dict(result.outcomes())
        outcomes |= {phase.nodeid: "failed" for phase in result.phases if phase.when == "collect"}
        return outcomes


def _decoded(files: Mapping[str, bytes]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for path, data in files.items():
        try:
            texts[path] = read_source(data).text
        except PatchError:
            continue  # what cannot be decoded can be no target
    return texts
