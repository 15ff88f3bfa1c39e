"""`ChatClient`: one question to a chain of models behind OpenAI-compatible endpoints.

Retries live here and nowhere else: the SDK's own are switched off, the graph retries ideas, not requests.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pytest_autofix.budget import estimate_tokens
from pytest_autofix.candidates.model.transport import Refusal, RetryPolicy, display_url, explain
from pytest_autofix.errors import ConfigurationError, ModelError

if TYPE_CHECKING:
    from langchain_core.language_models.chat_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from tenacity import RetryCallState

    from pytest_autofix.budget import Budget, Reservation

__all__ = ["ChatClient", "Endpoint", "Message", "Reply", "Usage"]

_logger = logging.getLogger("pytest_autofix")
_OPENAI = "https://api.openai.com/v1"
_LEAST_OUTPUT = (
    256  #: tokens; a shorter reply holds no definition, so a call for less is not worth its prompt
)


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt."""

    role: Literal["system", "user"]
    content: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0  #: part of `input_tokens`
    estimated: bool = False  #: the server did not report them


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered."""

    text: str
    finish_reason: str  #: `stop`, `length`, …; empty if the server does not say
    usage: Usage
    model: str
    seconds: float
    retries: int = 0


@dataclass
class Endpoint:
    """One model of the chain, built when it is first asked: the SDK costs a second to import."""

    model: str
    url: str  #: empty for models that are no servers
    build: Callable[[], BaseChatModel]
    send_temperature: bool = True  #: some models refuse it; learned from their first answer
    limit_parameter: str = "max_tokens"
    refused: str = ""  #: not empty: useless for the rest of the run, and why
    _chat: BaseChatModel | None = field(default=None, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def chat(self) -> BaseChatModel:
        """The chat model, built once."""
        with self._lock:
            if self._chat is None:
                self._chat = self.build()
            return self._chat


class ChatClient:
    """Asks the first model of the chain that answers. Thread-safe, one for a whole run."""

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        *,
        retry: RetryPolicy | None = None,
        timeout: float = 120.0,
        max_output_tokens: int = 4096,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.endpoints = tuple(endpoints)
        self.retry = retry or RetryPolicy()
        self.timeout = timeout
        self.max_output_tokens = max_output_tokens
        self._clock, self._sleep = clock, sleep

    @classmethod
    def connect(
        cls, models: Sequence[str], *, base_url: str = "", environ: Mapping[str, str], **options: Any
    ) -> ChatClient:
        """A client for these models (`scripted:FILE` or names at `base_url`), key and address from `environ`.

        Nothing is sent yet. Raises `ConfigurationError` when there is no model, or no key where one is needed.
        """
        if not models:
            raise ConfigurationError("no model given; name one with --autosolve-model")
        url = (
            base_url or environ.get("OPENAI_BASE_URL") or environ.get("OPENAI_API_BASE") or _OPENAI
        ).rstrip("/")
        key = environ.get("OPENAI_API_KEY", "")
        endpoints = []
        for model in models:
            if model.startswith("scripted:"):
                endpoints.append(_scripted(model))
                continue
            if not url.startswith(("http://", "https://")):
                raise ConfigurationError(
                    f"--autosolve-base-url {display_url(url)!r}: expected http:// or https://, for example {_OPENAI}"
                )
            if not key and url.startswith(_OPENAI):
                raise ConfigurationError(
                    f"model {model!r}: OPENAI_API_KEY is not set; set it, or name another server "
                    "with --autosolve-base-url (many need no key)"
                )
            endpoints.append(_openai(model, url, key))
        return cls(endpoints, **options)

    def complete(
        self, messages: Sequence[Message], *, budget: Budget, temperature: float | None = None, first: int = 0
    ) -> Reply:
        """The answer of the first model that gives one, starting with the `first` of the chain.

        Raises `BudgetExceeded` before spending what is not there, `ModelError` when no model of the chain answers.
        """
        reasons: list[str] = []
        for endpoint in (*self.endpoints[first:], *self.endpoints[:first]):
            if endpoint.refused:
                reasons.append(endpoint.refused)
                continue
            try:
                return self._ask(endpoint, messages, temperature, budget)
            except _Refused as error:
                self._give_up(endpoint, error.refusal)
                reasons.append(error.refusal.message)
        raise ModelError("; ".join(dict.fromkeys(reasons)))

    def _give_up(self, endpoint: Endpoint, refusal: Refusal) -> None:
        _logger.info("%s", refusal.message)
        for other in self.endpoints:
            same = other is endpoint or (refusal.scope == "endpoint" and other.url == endpoint.url)
            if same and refusal.scope != "call":
                other.refused = refusal.message

    def _ask(
        self, endpoint: Endpoint, messages: Sequence[Message], temperature: float | None, budget: Budget
    ) -> Reply:
        prompt_tokens = estimate_tokens("\n".join(message.content for message in messages))
        reservation = budget.reserve(
            model=endpoint.model,
            input_tokens=prompt_tokens,
            output_tokens=self.max_output_tokens,
            minimum_output=_LEAST_OUTPUT,
        )
        start = self._clock()
        try:
            answer, retries = self._retrying(endpoint, messages, temperature, reservation, budget)
        except BaseException:
            budget.release(reservation)
            raise
        text = str(answer.text)
        usage = _usage(answer, text, prompt_tokens)
        budget.commit(
            reservation,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cached_tokens=usage.cached_tokens,
            estimated=usage.estimated,
        )
        finish = str(answer.response_metadata.get("finish_reason") or "")
        return Reply(text, finish, usage, endpoint.model, self._clock() - start, retries)

    def _retrying(
        self,
        endpoint: Endpoint,
        messages: Sequence[Message],
        temperature: float | None,
        reservation: Reservation,
        budget: Budget,
    ) -> tuple[AIMessage, int]:
        import openai
        import tenacity

        def wait(state: RetryCallState) -> float:
            error = state.outcome.exception() if state.outcome else None
            return self.retry.wait(state.attempt_number, error) if error else 0.0

        def stop(state: RetryCallState) -> bool:
            error = state.outcome.exception() if state.outcome else None
            left = budget.remaining.seconds
            late = left is not None and state.upcoming_sleep >= left
            return late or error is None or not self.retry.allows(state.attempt_number, error)

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(openai.OpenAIError),
            wait=wait,
            stop=stop,
            sleep=self._sleep,
            reraise=True,
        )
        try:
            for attempt in retrying:
                with attempt:
                    answer = self._send(endpoint, messages, temperature, reservation, budget)
            return answer, attempt.retry_state.attempt_number - 1
        except openai.OpenAIError as error:
            raise _Refused(explain(error, model=endpoint.model, url=endpoint.url)) from error
        except ModelError as error:
            raise _Refused(Refusal(str(error), "call")) from error

    def _send(
        self,
        endpoint: Endpoint,
        messages: Sequence[Message],
        temperature: float | None,
        reservation: Reservation,
        budget: Budget,
    ) -> AIMessage:
        import openai
        from langchain_core.messages import HumanMessage, SystemMessage
        from langsmith import tracing_context

        chat = endpoint.chat()
        prompt = [
            SystemMessage(message.content) if message.role == "system" else HumanMessage(message.content)
            for message in messages
        ]
        left = budget.remaining.seconds
        timeout = self.timeout if left is None else max(0.1, min(self.timeout, left))
        while True:
            limit = {endpoint.limit_parameter: reservation.output_tokens}
            # In `extra_body`, since langchain renames `max_tokens` to a parameter that many servers do not know.
            options: dict[str, Any] = {"timeout": timeout, "extra_body": limit}
            if temperature is not None and endpoint.send_temperature:
                options["temperature"] = temperature
            try:
                # A user's LANGSMITH_TRACING would send prompts, with the source in them, to a third party.
                with tracing_context(enabled=False):
                    return chat.invoke(prompt, **options)
            except openai.BadRequestError as error:
                if not _adapt(endpoint, str(error), "temperature" in options):
                    raise
            except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
                # What langchain raises on answers of an unexpected shape: a login page, an empty list of choices.
                raise _Refused(explain(error, model=endpoint.model, url=endpoint.url)) from error


class _Refused(Exception):
    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


def _adapt(endpoint: Endpoint, message: str, sent_temperature: bool) -> bool:
    """Leave out or rename a parameter that the model refuses; False if the request has no such parameter left."""
    if sent_temperature and "temperature" in message:
        endpoint.send_temperature = False
        return True
    if endpoint.limit_parameter == "max_tokens" and "max_completion_tokens" in message:
        endpoint.limit_parameter = "max_completion_tokens"
        return True
    return False


def _openai(model: str, url: str, key: str) -> Endpoint:
    def build() -> BaseChatModel:
        from langchain_openai import ChatOpenAI
        from pydantic import SecretStr

        return ChatOpenAI(
            model=model,
            base_url=url,
            api_key=SecretStr(key or "none"),
            max_retries=0,
            cache=False,
            use_responses_api=None if url == _OPENAI else False,
        )

    official = url.startswith(_OPENAI)
    return Endpoint(model, url, build, limit_parameter="max_completion_tokens" if official else "max_tokens")


def _scripted(model: str) -> Endpoint:
    from pytest_autofix.candidates.model.scripted import ScriptedChatModel

    chat = ScriptedChatModel.from_file(Path(model.removeprefix("scripted:")))
    return Endpoint(model, "", lambda: chat)


def _usage(answer: AIMessage, text: str, prompt_tokens: int) -> Usage:
    reported = answer.usage_metadata
    if reported is not None:
        sent, received = reported["input_tokens"], reported["output_tokens"]
        details = reported.get("input_token_details") or {}
        if sent > 0 and received >= (1 if text else 0):
            return Usage(sent, received, min(max(details.get("cache_read") or 0, 0), sent))
    return Usage(prompt_tokens, estimate_tokens(text), estimated=True)
