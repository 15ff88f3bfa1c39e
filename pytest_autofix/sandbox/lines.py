"""Which lines of chosen files a test executes. Runs INSIDE: standard library only.

`sys.monitoring` (PEP 669) where there is one: a line that was seen is switched off until the next test, so a hot
loop costs nothing. Before Python 3.12 a trace function that follows frames of the chosen files only.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable
from types import CodeType, FrameType
from typing import Any


class LineRecorder:
    """Records executed lines of `files` (relative to `root`); `take` hands out and forgets."""

    def __init__(self, root: str, files: Iterable[str]) -> None:
        self._wanted = {os.path.join(root, path): path for path in files}  # noqa: PTH118 - hot start-up path
        self._seen: dict[str, set[int]] = {}
        self._tool: int | None = None

    def start(self) -> None:
        """Begin to record in all threads."""
        if sys.version_info >= (3, 12):
            monitoring = sys.monitoring
            self._tool = next((tool for tool in (4, 3, 5) if monitoring.get_tool(tool) is None), None)
            if self._tool is not None:
                monitoring.use_tool_id(self._tool, "pytest-autofix")
                monitoring.register_callback(self._tool, monitoring.events.LINE, self._monitor)
                monitoring.set_events(self._tool, monitoring.events.LINE)
                return
        threading.settrace(self._trace)
        sys.settrace(self._trace)

    def stop(self) -> None:
        """End recording; what was not taken is lost."""
        if sys.version_info >= (3, 12) and self._tool is not None:
            sys.monitoring.set_events(self._tool, 0)
            sys.monitoring.free_tool_id(self._tool)
            return
        sys.settrace(None)
        threading.settrace(None)

    def take(self) -> dict[str, list[int]]:
        """Relative path → sorted lines executed since the last call."""
        seen, self._seen = self._seen, {}
        if sys.version_info >= (3, 12) and self._tool is not None:
            sys.monitoring.restart_events()
        elif sys.gettrace() is None:
            sys.settrace(self._trace)  # a test switched tracing off
        return {path: sorted(lines) for path, lines in seen.items()}

    def _monitor(self, code: CodeType, line: int) -> Any:
        path = self._wanted.get(code.co_filename)
        if path is not None:
            self._seen.setdefault(path, set()).add(line)
        if sys.version_info >= (3, 12):
            return sys.monitoring.DISABLE
        return None

    def _trace(self, frame: FrameType, event: str, argument: object) -> Any:
        path = self._wanted.get(frame.f_code.co_filename)
        if path is None:
            return None

        def local(frame: FrameType, event: str, argument: object) -> Any:
            if event == "line":
                self._seen.setdefault(path, set()).add(frame.f_lineno)
            return local

        return local
