"""A chat model that answers from a script, so that a set-up can be tried without a key and without a network.

`--autosolve-model scripted:replies.toml` (or `.json`) chooses it. A script is a list of replies: plain texts, or tables

    [[replies]]
    reply = "def add(a, b):\\n    return a + b"
    match = "def add("        # answer only prompts that hold this text; without it, replies go in order, each once
    times = 2                 # how often; default: once without `match`, always with it
    finish_reason = "stop"
    input_tokens = 10         # reported usage; default: estimated from the texts
    output_tokens = 10
"""

from __future__ import annotations

import json
import threading
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr

from pytest_autofix.budget import estimate_tokens
from pytest_autofix.errors import ConfigurationError, ModelError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.callbacks import CallbackManagerForLLMRun
    from langchain_core.messages import BaseMessage

__all__ = ["ScriptedChatModel", "ScriptedReply"]


@dataclass(frozen=True, slots=True)
class ScriptedReply:
    """One reply of a script."""

    reply: str
    match: str = ""  #: the prompt must hold this text
    times: int | None = None  #: None: once without `match`, always with it
    finish_reason: str = "stop"
    input_tokens: int | None = None
    output_tokens: int | None = None

    @property
    def limit(self) -> int | None:
        """How often it answers, None for always."""
        if self.times is not None:
            return self.times
        return None if self.match else 1


class ScriptedChatModel(BaseChatModel):
    """A real `langchain_core` chat model with replies known in advance. Thread-safe."""

    replies: tuple[ScriptedReply, ...] = ()
    name_of_model: str = "scripted"

    _lock: threading.Lock = PrivateAttr(default_factory=threading.Lock)
    _given: dict[int, int] = PrivateAttr(default_factory=dict)
    _calls: list[dict[str, Any]] = PrivateAttr(default_factory=list)

    @classmethod
    def of(cls, *replies: str | ScriptedReply) -> ScriptedChatModel:
        """A model that gives these replies in order."""
        return cls(replies=tuple(ScriptedReply(r) if isinstance(r, str) else r for r in replies))

    @classmethod
    def from_file(cls, path: Path) -> ScriptedChatModel:
        """Read a script; raises `ConfigurationError` that says what is wrong with it."""
        return cls(replies=tuple(_read(path)), name_of_model=f"scripted:{path.name}")

    @property
    def calls(self) -> list[dict[str, Any]]:
        """What was asked so far: `prompt` (all messages as one text) and the parameters of each call."""
        with self._lock:
            return list(self._calls)

    @property
    def _llm_type(self) -> str:
        return "pytest-autofix-scripted"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        prompt = "\n\n".join(str(message.text) for message in messages)
        with self._lock:
            self._calls.append({"prompt": prompt, **kwargs})
            reply = self._next(prompt)
        input_tokens = estimate_tokens(prompt) if reply.input_tokens is None else reply.input_tokens
        output_tokens = estimate_tokens(reply.reply) if reply.output_tokens is None else reply.output_tokens
        message = AIMessage(
            content=reply.reply,
            response_metadata={"finish_reason": reply.finish_reason, "model_name": self.name_of_model},
            usage_metadata={
                "input_tokens": input_tokens,
                "output_tokens": output_tokens,
                "total_tokens": input_tokens + output_tokens,
            },
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _next(self, prompt: str) -> ScriptedReply:
        for index, reply in enumerate(self.replies):
            given = self._given.get(index, 0)
            if reply.match in prompt and (reply.limit is None or given < reply.limit):
                self._given[index] = given + 1
                return reply
        raise ModelError(
            f"{self.name_of_model}: no reply left for call {len(self._calls)} (the script has {len(self.replies)})"
        )


def _read(path: Path) -> Sequence[ScriptedReply]:
    try:
        text = path.read_text(encoding="utf-8")
        data = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except OSError as error:
        raise ConfigurationError(f"model script {path}: {error.strerror or error}") from error
    except ValueError as error:
        kind = "TOML" if path.suffix == ".toml" else "JSON"
        raise ConfigurationError(f"model script {path} is not {kind}: {error}") from error
    entries = data.get("replies") if isinstance(data, dict) else data
    if not isinstance(entries, list):
        raise ConfigurationError(f"model script {path}: expected a list of replies, or `replies = [...]`")
    return [_entry(path, number, entry) for number, entry in enumerate(entries, 1)]


def _entry(path: Path, number: int, entry: object) -> ScriptedReply:
    if isinstance(entry, str):
        return ScriptedReply(entry)
    known = {
        "reply": str,
        "match": str,
        "times": int,
        "finish_reason": str,
        "input_tokens": int,
        "output_tokens": int,
    }
    if not isinstance(entry, dict) or "reply" not in entry:
        raise ConfigurationError(
            f"model script {path}: reply {number} is neither a text nor a table with `reply`"
        )
    for key, value in entry.items():
        if key not in known:
            raise ConfigurationError(
                f"model script {path}: reply {number}: {key!r} is none of {', '.join(known)}"
            )
        if not isinstance(value, known[key]) or isinstance(value, bool):
            raise ConfigurationError(
                f"model script {path}: reply {number}: {key} must be {known[key].__name__}"
            )
    return ScriptedReply(**entry)
