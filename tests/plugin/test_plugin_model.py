"""A model is asked where the search is not: over HTTP on loopback, and from a script. Nothing secret leaves."""

from __future__ import annotations

import json

import pytest
from openai_server import OpenAIServer
from plugin_project import STATE, Project

KEY = "sk-proj-Zq3vK8sT1mXw5Yb7Nd2Lr9Hf4Gj6PcAe"
SOURCE = 'def label(name, size):\n    """Name, padded with dots."""\n    return name\n'
TEST = (
    "from labels import label\n\ndef test_padded():\n    assert label('ab', 5) == 'ab...'\n\n"
    "def test_full():\n    assert label('abc', 3) == 'abc'\n"
)
WRONG = "Padding:\n\n```python\ndef label(name, size):\n    return name.rjust(size, '.')\n```\n"
RIGHT = "```python\ndef label(name, size):\n    return name.ljust(size, '.')\n```\n"


@pytest.fixture
def labels(project: Project) -> Project:
    return project.write("labels.py", SOURCE).write("test_labels.py", TEST).commit()


def test_second_reply_is_right(labels: Project) -> None:
    events = labels.home / "events.jsonl"
    with OpenAIServer([WRONG, RIGHT]) as server:
        run = labels.autosolve(
            "--autosolve-mode=apply",
            "--autosolve-strategy=model",
            "--autosolve-model=some-model",
            f"--autosolve-base-url={server.url}",
            f"--autosolve-events={events}",
            "--log-level=DEBUG",
            env={"OPENAI_API_KEY": KEY},
        )
        requests = server.requests
    assert run.exit_code == 0, run.output
    assert "name.ljust(size, '.')" in labels.read("labels.py")
    assert len(requests) == 2
    prompts = [json.dumps(request["messages"]) for request in requests]
    assert "test_padded" in prompts[0]
    assert "...ab" in prompts[1]  # what the first reply did when it was executed
    assert "rjust" in prompts[1]

    (task,) = run.report["tasks"]
    assert [attempt["result"] for attempt in task["attempts"]] == ["failed", "passed"]
    assert {attempt["model"] for attempt in task["attempts"]} == {"some-model"}
    assert all(attempt["prompt"] and attempt["hash"] for attempt in task["attempts"])
    assert task["cost"]["model_calls"] == run.report["totals"]["model_calls"] == 2
    assert (task["cost"]["input_tokens"], task["cost"]["output_tokens"]) == (22, 14)

    assert all(request["_headers"]["authorization"] == f"Bearer {KEY}" for request in requests)
    kept = [path for path in (labels.root / STATE).rglob("*") if path.is_file()]
    said = [run.output, run.errors, *prompts, run.report_path.read_text(), events.read_text()]
    assert not [text for text in said if KEY in text]
    assert not [path for path in kept if KEY.encode() in path.read_bytes()]


def test_model_calls_are_limited(labels: Project) -> None:
    run = labels.autosolve("--autosolve-strategy=model", "--autosolve-max-calls=1", replies=[WRONG, RIGHT])
    (task,) = run.report["tasks"]
    assert (run.exit_code, task["outcome"]) == (1, "budget")
    assert run.report["totals"]["model_calls"] == 1
    assert task["reason"] == "model calls: all 1 are spent"
    run.stdout.fnmatch_lines(["*--autosolve-max-calls*"])
    assert labels.status() == ""


def test_useless_replies_are_counted_and_end(labels: Project) -> None:
    test_edit = "```python\n# test_labels.py\ndef test_padded():\n    pass\n```\n"
    replies = ["I cannot help with that.", test_edit, WRONG, WRONG, WRONG, WRONG, WRONG]
    run = labels.autosolve("--autosolve-strategy=model", "--autosolve-attempts=3", replies=replies)
    (task,) = run.report["tasks"]
    assert (run.exit_code, task["outcome"]) == (1, "exhausted")
    assert 3 <= len(task["attempts"]) <= 4
    assert "passed" not in {attempt["result"] for attempt in task["attempts"]}
    assert labels.status() == ""
