"""No sandbox: the same keeper on a throw-away copy of the project. For `--autosolve-sandbox=none`, typed by hand.

Not isolated, plainly: candidates run with the user's rights, read and write whatever the user may, and reach the
network. What remains: a copy of the tree in place of the project, an allowlisted environment, limits of time, CPU,
memory and file size, and an end to all processes of a job. Tests see the copy at another path than the project's.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_autofix.errors import SandboxUnavailable
from pytest_autofix.sandbox.folder import RunFolder
from pytest_autofix.sandbox.process import Keeper, Spawner
from pytest_autofix.sandbox.protocol import Isolation, Job, RunResult, Workspace
from pytest_autofix.sandbox.server import KeeperForkServer, hello_frame, preload_is_unfit, run_once

__all__ = ["UnconfinedSandbox"]

_PATIENCE = 3.0  #: seconds for the keeper to end its job; no kernel object does it here


class UnconfinedSandbox:
    """See `protocol.Sandbox`."""

    isolation = Isolation(
        backend="none",
        isolated=False,
        details=(
            "NOT isolated: candidates run with your rights, read and write your files and reach the network",
            "the project is a copy in a temporary folder; absolute paths to it still reach the original",
            "limits: wall clock, CPU time, memory and file size of each process",
        ),
    )

    def __init__(self, workspace: Workspace, *, preload: Sequence[str] = ()) -> None:
        """`preload`: third-party modules that fork servers import ahead."""
        if not hasattr(os, "fork"):
            raise SandboxUnavailable(
                f"--autosolve-sandbox=none needs fork, which {sys.platform} does not have"
            )
        self.workspace = workspace
        self._preload = tuple(preload)
        self._folder = RunFolder()
        self._spawner = Spawner()
        self._servers: list[KeeperForkServer] = []

    def _start(self, *, warm: bool = False) -> Keeper:
        hello = hello_frame(self.workspace, isolation="none", warm=warm, preload=self._preload)
        hello["scratch"] = str(self._folder.path)
        runner = Path(__file__).with_name("runner.py")

        def command(descriptors: Sequence[int]) -> Sequence[str]:
            return [str(self.workspace.python), "-I", str(runner), *map(str, descriptors)]

        return Keeper(self._spawner, command, hello, patience=_PATIENCE)

    def _start_warm(self) -> Keeper:
        keeper = self._start(warm=True)
        if self._preload and preload_is_unfit(keeper):
            keeper.close()
            self._preload = ()
            return self._start(warm=True)
        return keeper

    def run(self, job: Job) -> RunResult:
        """A fresh copy and a cold process, for this job only."""
        return run_once(self._start, job)

    def fork_server(self) -> KeeperForkServer:
        """A warm keeper with pytest and third-party modules imported."""
        server = KeeperForkServer(self._start_warm)
        self._servers.append(server)
        return server

    def close(self) -> None:
        """End every process that was started and remove the copies."""
        for server in self._servers:
            server.close()
        self._spawner.close()
        self._folder.close()
