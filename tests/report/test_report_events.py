"""One ordered stream for all sinks, as versioned JSON lines without secrets."""

from __future__ import annotations

import inspect
import json
import threading
from pathlib import Path

import pytest

from pytest_autofix.report import events
from pytest_autofix.report.events import Event, Fanout, JsonLines


class Memory:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)


def read(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_kind_of_event_is_plain_json() -> None:
    kinds = set()
    for name in events.__all__:
        cls = getattr(events, name)
        if not (inspect.isclass(cls) and issubclass(cls, Event)) or cls is Event:
            continue
        values = {"str": "x", "int": 1, "float": 0.5, "bool": True, "tuple[str, ...]": ("a", "b")}
        event = cls(**{field: values[kind] for field, kind in cls.__annotations__.items() if field != "kind"})
        assert json.loads(json.dumps(event.to_json()))["kind"] == cls.kind
        kinds.add(cls.kind)
    assert kinds == {
        "run_started",
        "sandbox_ready",
        "baseline",
        "task_started",
        "progress",
        "executed",
        "reflected",
        "verdict",
        "solved",
        "gave_up",
        "note",
        "run_finished",
    }


def test_lines_are_numbered_and_versioned(tmp_path: Path) -> None:
    sink = JsonLines(tmp_path / "deep" / "events.jsonl")
    sink.emit(events.TaskStarted("t", ("a", "b"), "x.py:f"))
    sink.emit(events.Solved("t", 5))
    first, second = read(tmp_path / "deep" / "events.jsonl")  # before it is closed: a killed run can be read
    sink.close()
    assert (first["version"], first["sequence"], second["sequence"]) == (1, 1, 2)
    assert first["nodeids"] == ["a", "b"]
    assert (second["kind"], second["tried"]) == ("solved", 5)


def test_all_sinks_see_one_order() -> None:
    left, right = Memory(), Memory()
    stream = Fanout([left, right])

    def tell(name: str) -> None:
        for number in range(200):
            stream.emit(events.Solved(name, number))

    threads = [threading.Thread(target=tell, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(left.events) == 800
    assert left.events == right.events


@pytest.mark.parametrize(
    "secret",
    ["sk-" + "a1b2c3d4" * 5, "-----BEGIN RSA PRIVATE KEY-----\nabc"],
)
def test_secrets_go_and_the_line_stays_json(tmp_path: Path, secret: str) -> None:
    sink = JsonLines(tmp_path / "e")
    sink.emit(events.GaveUp("t", "model", f"said {secret}"))
    sink.emit(events.TaskStarted("t", (secret,), ""))
    sink.close()
    assert [line["kind"] for line in read(tmp_path / "e")] == ["gave_up", "task_started"]
    assert secret[-8:] not in (tmp_path / "e").read_text()


def test_full_disk_ends_the_file_not_the_run() -> None:
    sink = JsonLines(Path("/dev/full"))
    for _ in range(3):
        sink.emit(events.Note("x"))
    sink.close()
