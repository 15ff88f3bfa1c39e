"""A real HTTP server on loopback that speaks `/v1/chat/completions`, with faults, for the unmodified SDK."""

from __future__ import annotations

import json
import socket
import struct
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

__all__ = ["Answer", "OpenAIServer"]


@dataclass(frozen=True)
class Answer:
    """What the server does with one request."""

    text: str | None = "ok"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    finish_reason: str = "stop"
    usage: dict[str, Any] | None = field(
        default_factory=lambda: {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    )
    fault: Literal["", "reset", "hang", "html", "no choices", "error body", "not json"] = ""
    error: dict[str, Any] = field(default_factory=lambda: {"message": "it broke", "type": "server_error"})
    tool_calls: list[dict[str, Any]] | None = None


class OpenAIServer:
    """Serves the answers in order, the last one for ever. A context manager."""

    def __init__(self, answers: Sequence[Answer | str]) -> None:
        self.answers = [Answer(a) if isinstance(a, str) else a for a in answers]
        self.requests: list[dict[str, Any]] = []  #: bodies, with `_path` and `_headers` (names in lower case)
        self.released = threading.Event()
        self._lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                server.answer(self, body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self) -> OpenAIServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.released.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def answer(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        with self._lock:
            headers = {name.lower(): value for name, value in handler.headers.items()}
            self.requests.append({**body, "_path": handler.path, "_headers": headers})
            answer = self.answers[min(len(self.requests), len(self.answers)) - 1]
        if answer.fault == "hang":
            self.released.wait(30)
            handler.close_connection = True
            return
        data, kind = self._payload(answer, body)
        handler.send_response(answer.status)
        for name, value in answer.headers.items():
            handler.send_header(name, value)
        handler.send_header("content-type", kind)
        handler.send_header("content-length", str(len(data)))
        handler.end_headers()
        if answer.fault == "reset":
            handler.wfile.write(data[: len(data) // 2])
            handler.wfile.flush()
            # Linger 0 turns the close into a reset instead of an orderly end.
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            handler.connection.close()
            handler.close_connection = True
            return
        handler.wfile.write(data)

    def _payload(self, answer: Answer, body: dict[str, Any]) -> tuple[bytes, str]:
        if answer.fault == "html":
            return b"<html>please log in</html>", "text/html"
        if answer.fault == "not json":
            return b'{"choices": [', "application/json"
        if answer.status != 200 or answer.fault == "error body":
            return json.dumps({"error": answer.error}).encode(), "application/json"
        message: dict[str, Any] = {"role": "assistant", "content": answer.text}
        if answer.tool_calls is not None:
            message["tool_calls"] = answer.tool_calls
        reply: dict[str, Any] = {
            "id": "x",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": [{"index": 0, "finish_reason": answer.finish_reason, "message": message}],
        }
        if answer.fault == "no choices":
            reply["choices"] = []
        if answer.usage is not None:
            reply["usage"] = answer.usage
        return json.dumps(reply).encode(), "application/json"
