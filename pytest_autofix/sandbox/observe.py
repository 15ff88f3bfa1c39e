"""What can be seen and done from where candidates run: the inside half of the probe. Standard library only.

It runs before any candidate has, in a worker that is confined like every other; its findings can be trusted.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["observe"]


def observe(hello: dict[str, Any], job: dict[str, Any], emit: Callable[[dict[str, Any]], None]) -> None:
    """Try each thing that must not work and send {finding: text}, empty where it is as it should be."""
    findings = {
        "network": _connected(job["tcp_port"]),
        "sockets": _reached(job["unix_socket"]),
        "home": _seen(job["secret"]),
        "environment": ", ".join(sorted(set(os.environ) - set(hello["environment"]))),
        "protected": next(filter(None, (_written(hello["root"], path) for path in hello["protected"])), ""),
        "kernel": _kernel_writable(),
        "privileges": _privileged(),
        "overlay": _overlay(job["marker"]),
        "tree": "" if Path(hello["root"], job["existing"]).exists() else f"{job['existing']} is missing",
    }
    emit({"e": "observed", "findings": findings, "uid": os.getuid()})


def _connected(port: int) -> str:
    for address in (
        ("127.0.0.1", port),
        ("192.0.2.1", 80),
    ):  # the host's own listener; a documentation address
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
            client.settimeout(1)
            try:
                client.connect(address)
            except TimeoutError:
                return f"packets to {address[0]} leave"
            except OSError:
                continue
            return f"connected to {address[0]}:{address[1]}"
    return ""


def _reached(path: str) -> str:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client, contextlib.suppress(OSError):
        client.connect(path)
        return f"connected to {path}"
    return ""


def _seen(path: str) -> str:
    with contextlib.suppress(OSError):
        Path(path).read_bytes()
        return f"read {path}"
    return ""


def _written(root: str, relative: str) -> str:
    path = Path(root, relative)
    if path.is_symlink() or not path.exists():
        return ""
    target = path / ".autofix-probe" if path.is_dir() else path
    try:
        os.close(os.open(target, os.O_WRONLY | (os.O_CREAT if path.is_dir() else 0), 0o600))
    except OSError as error:
        return "" if error.errno == errno.EROFS else f"{relative}: {error.strerror} instead of read-only"
    return f"{relative} could be opened for writing"


def _kernel_writable() -> str:
    try:
        os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY))
    except OSError:
        return ""
    return "/proc/sys/kernel/core_pattern could be opened for writing"


def _privileged() -> str:
    lines = Path("/proc/self/status").read_text().splitlines()
    status = dict(line.split(":", 1) for line in lines if ":" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        if int(status[name], 16):
            return f"{name} is {status[name].strip()}"
    if status["NoNewPrivs"].strip() != "1":
        return "new privileges can be gained"
    if status["Seccomp"].strip() != "2":
        return "no system call filter"
    return ""


def _overlay(marker: str) -> str:
    path = Path(marker)
    try:
        path.write_text("written inside")
    except OSError as error:
        return f"the project tree is not writable inside: {error}"
    return "" if path.read_text() == "written inside" else "what was written cannot be read back"
