from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import HumanMessage, SystemMessage

from pytest_autofix.candidates.model.scripted import ScriptedChatModel, ScriptedReply
from pytest_autofix.errors import ConfigurationError, ModelError

if TYPE_CHECKING:
    from pathlib import Path


def ask(model: ScriptedChatModel, text: str) -> str:
    return str(model.invoke([SystemMessage("s"), HumanMessage(text)], temperature=0.1).text)


def test_replies_come_in_order_and_calls_are_kept() -> None:
    model = ScriptedChatModel.of("one", ScriptedReply("two", finish_reason="length", output_tokens=9))
    assert ask(model, "a") == "one"
    message = model.invoke("b")
    assert message.text == "two"
    assert message.response_metadata["finish_reason"] == "length"
    assert message.usage_metadata is not None
    assert message.usage_metadata["output_tokens"] == 9
    assert [call["prompt"] for call in model.calls] == ["s\n\na", "b"]
    assert model.calls[0]["temperature"] == 0.1
    with pytest.raises(ModelError, match="no reply left for call 3"):
        ask(model, "c")


def test_replies_may_be_chosen_by_what_the_prompt_holds() -> None:
    model = ScriptedChatModel.of(
        ScriptedReply("add", match="def add"), ScriptedReply("twice", match="def sub", times=2), "other"
    )
    asked = ["def add", "def sub", "def add", "def sub", "def sub"]
    assert [ask(model, text) for text in asked] == ["add", "twice", "add", "twice", "other"]


TOML = """
[[replies]]
reply = '''
def f():
    return 1
'''
match = "def f"

[[replies]]
reply = "last"
"""


@pytest.mark.parametrize(
    ("name", "text", "count"),
    [
        pytest.param("a.toml", TOML, 2, id="toml"),
        pytest.param("a.json", '["x", {"reply": "y", "match": "z"}]', 2, id="json list"),
        pytest.param("a.json", '{"replies": []}', 0, id="json table"),
    ],
)
def test_scripts_are_read(tmp_path: Path, name: str, text: str, count: int) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert len(ScriptedChatModel.from_file(tmp_path / name).replies) == count


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        pytest.param("a.json", "[", "is not JSON: Expecting value", id="json"),
        pytest.param("a.toml", "x = ", "is not TOML", id="toml"),
        pytest.param("a.json", "3", "expected a list of replies", id="no list"),
        pytest.param(
            "a.json", '[{"match": "x"}]', "reply 1 is neither a text nor a table with `reply`", id="no reply"
        ),
        pytest.param(
            "a.json", '[{"reply": "x", "mach": "y"}]', "reply 1: 'mach' is none of reply, match", id="typo"
        ),
        pytest.param("a.json", '[{"reply": "x", "times": true}]', "reply 1: times must be int", id="type"),
        pytest.param("a.json", b"\xff", "is not JSON", id="bytes"),
        pytest.param("b.json", "", "b.json: No such file", id="missing"),
    ],
)
def test_wrong_scripts_say_what_is_wrong(tmp_path: Path, name: str, text: str | bytes, message: str) -> None:
    if name != "b.json":
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigurationError) as caught:
        ScriptedChatModel.from_file(tmp_path / name)
    assert message in str(caught.value)
