"""Events of a worker are untrusted bytes: whatever they are, there is a result and no exception."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_autofix.sandbox.results import Assembly, Ended, FrameParser, Tail, read_trial

PHASE = {
    "e": "phase",
    "id": "t.py::a",
    "when": "call",
    "outcome": "passed",
    "seconds": 0.1,
    "xfail": False,
    "message": "",
}
COLLECTED = {"e": "collected", "ids": ["t.py::a"]}
FINISH = {"e": "finish", "status": 0}


def frame(message: object) -> bytes:
    body = json.dumps(message).encode()
    return struct.pack(">I", len(body)) + body


def assemble(*events: dict[str, Any], ended: Ended | None = None) -> Any:
    assembly = Assembly()
    for event in events:
        assembly.add(event)
    return assembly.result(ended or Ended(code=0), Tail(), 10)


@pytest.mark.parametrize(
    ("events", "ended", "status", "detail"),
    [
        pytest.param([COLLECTED, PHASE, FINISH], Ended(code=0), "finished", "", id="ordinary"),
        pytest.param([COLLECTED, PHASE], Ended(code=0), "exited", "without finishing", id="no-finish"),
        pytest.param([COLLECTED, FINISH], Ended(code=3), "exited", "status 3", id="finish-then-failure"),
        pytest.param([COLLECTED, FINISH], Ended(signal=11), "crashed", "SIGSEGV", id="finish-then-crash"),
        pytest.param(
            [COLLECTED, FINISH, PHASE], Ended(code=0), "exited", "after the session", id="late-phase"
        ),
        pytest.param(
            [COLLECTED, COLLECTED, FINISH], Ended(code=0), "exited", "two collections", id="two-collections"
        ),
        pytest.param([FINISH, FINISH], Ended(code=0), "exited", "after the session", id="two-finishes"),
        pytest.param([{"e": "ended"}, FINISH], Ended(code=0), "exited", "malformed", id="forged-end"),
        pytest.param([{}, FINISH], Ended(code=0), "exited", "malformed", id="no-kind"),
        pytest.param(
            [PHASE | {"outcome": "great"}, FINISH], Ended(code=0), "exited", "malformed", id="bad-outcome"
        ),
        pytest.param([PHASE | {"id": 7}, FINISH], Ended(code=0), "exited", "malformed", id="bad-node-id"),
        pytest.param([FINISH], Ended(timeout=True), "timeout", "10 s", id="timeout"),
        pytest.param([FINISH], Ended(error="no overlay"), "broken", "no overlay", id="broken"),
        pytest.param([FINISH], Ended(killed="output"), "output", "output", id="output"),
        pytest.param([FINISH], Ended(killed="memory"), "crashed", "memory", id="memory"),
        pytest.param([FINISH], Ended(signal=64), "crashed", "killed by", id="real-time-signal"),
    ],
)
def test_status(events: list[dict[str, Any]], ended: Ended, status: str, detail: str) -> None:
    result = assemble(*events, ended=ended)
    assert result.status == status
    assert detail in result.detail
    assert (result.exit_status is None) is (status != "finished")


def test_lines_are_merged() -> None:
    first = {"e": "lines", "id": "t.py::a", "lines": {"m.py": [3, 1]}}
    second = {"e": "lines", "id": "t.py::a", "lines": {"m.py": [2], "n.py": [1]}}
    assert assemble(first, second, FINISH).lines == {"t.py::a": {"m.py": (1, 2, 3), "n.py": (1,)}}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    ["id", "ids", "when", "outcome", "seconds", "xfail", "message", "lines", "status", "index", "passed"]
)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(["collected", "phase", "lines", "finish", "trial", "?"]), st.dictionaries(KEYS, JSON))
def test_no_event_raises(kind: str, rest: dict[str, Any]) -> None:
    event = rest | {"e": kind}
    assert assemble(event, FINISH).status in ("finished", "exited")
    read_trial(event)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.binary(max_size=40)))
def test_no_bytes_raise(pieces: list[bytes]) -> None:
    parser = FrameParser()
    for piece in pieces:
        assert all(isinstance(message, dict) for message in parser.feed(piece))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.dictionaries(st.text(), st.integers()), max_size=5), st.integers(1, 7))
def test_frames_survive_any_cutting(messages: list[dict[str, int]], size: int) -> None:
    stream = b"".join(map(frame, messages))
    parser = FrameParser()
    received = [m for start in range(0, len(stream), size) for m in parser.feed(stream[start : start + size])]
    assert received == messages
    assert not parser.pending
    assert not parser.broken


@pytest.mark.parametrize(
    "bad", [b"\xff\xff\xff\xff", frame([]), frame(1), struct.pack(">I", 2) + b"{]", b"\0\0\0\0"]
)
def test_nothing_is_read_after_a_broken_frame(bad: bytes) -> None:
    parser = FrameParser()
    assert parser.feed(frame({"a": 1}) + bad + frame({"b": 2})) == [{"a": 1}]
    assert parser.broken
    assert parser.feed(frame({"c": 3})) == []


def test_deep_nesting_is_a_broken_frame() -> None:
    parser = FrameParser()
    body = b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    assert parser.feed(struct.pack(">I", len(body)) + body) == []
    assert parser.broken


def test_tail_keeps_the_end() -> None:
    tail = Tail(keep=10)
    for number in range(1000):
        tail.feed(b"%d," % number)
    tail.feed(b"\xff end")
    assert tail.text == "8,999,\\xff end"[-len(tail.text) :]
    assert tail.text.endswith("\\xff end")
    assert tail.total == 3895
