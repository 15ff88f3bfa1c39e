"""Frames between the host and the runner inside: 4 bytes of length, then JSON. Used on both sides.

`os.read` and `os.write` only, nothing buffered: inside, several processes take turns on the same descriptor.
"""

from __future__ import annotations

import json
import os
import struct
from typing import Any

__all__ = ["MAX_FRAME", "WireBroken", "read_frame", "write_frame"]

MAX_FRAME = 64 * 1024 * 1024  #: bytes; a longer frame is a sign of a forged or broken stream


class WireBroken(Exception):
    """The other side ended in the middle of a frame or sent no frame at all."""


def write_frame(fd: int, message: dict[str, Any]) -> None:
    """Send one message; raises `BrokenPipeError` when nobody reads any more."""
    body = json.dumps(message, ensure_ascii=True, separators=(",", ":")).encode("ascii")
    data = memoryview(struct.pack(">I", len(body)) + body)
    while data:
        data = data[os.write(fd, data) :]


def read_frame(fd: int) -> dict[str, Any] | None:
    """The next message, None at a clean end of the stream; raises `WireBroken` on anything else."""
    head = _read_exactly(fd, 4)
    if head is None:
        return None
    (length,) = struct.unpack(">I", head)
    if length > MAX_FRAME:
        raise WireBroken(f"a frame of {length} bytes")
    body = _read_exactly(fd, length)
    if body is None:
        raise WireBroken("the stream ended inside a frame")
    try:
        message = json.loads(body)
    except ValueError as error:
        raise WireBroken("a frame that is not JSON") from error
    if not isinstance(message, dict):
        raise WireBroken("a frame that is not an object")
    return message


def _read_exactly(fd: int, count: int) -> bytes | None:
    pieces: list[bytes] = []
    missing = count
    while missing:
        piece = os.read(fd, missing)
        if not piece:
            if pieces:
                raise WireBroken("the stream ended inside a frame")
            return None
        pieces.append(piece)
        missing -= len(piece)
    return b"".join(pieces)
