"""The unmodified SDK against a real server on loopback."""

from __future__ import annotations

import logging
import random
import socket
import threading
import time
from email.utils import formatdate
from typing import TYPE_CHECKING, Any

import pytest
from openai_server import Answer, OpenAIServer

from pytest_autofix.budget import Budget, BudgetLimits
from pytest_autofix.candidates.model.client import ChatClient, Message
from pytest_autofix.candidates.model.transport import RetryPolicy, display_url
from pytest_autofix.errors import BudgetExceeded, ConfigurationError, ModelError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PROMPT = [Message("system", "You repair."), Message("user", "Repair this.")]
KEY = "sk-test-0123456789abcdef0123"
ENVIRON = {"OPENAI_API_KEY": KEY}


class Sleeps(list[float]):
    """Records waits instead of waiting."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


def client_for(server: OpenAIServer | str, models: Sequence[str] = ("m",), **options: Any) -> ChatClient:
    url = server if isinstance(server, str) else server.url
    options.setdefault("sleep", Sleeps())
    options.setdefault("retry", RetryPolicy(random=random.Random(1)))  # noqa: S311 - jitter, no secret
    return ChatClient.connect(models, base_url=url, environ=ENVIRON, **options)


def test_a_reply_comes_with_its_usage() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "total_tokens": 120,
        "prompt_tokens_details": {"cached_tokens": 60},
    }
    with OpenAIServer([Answer("hello", usage=usage, finish_reason="length")]) as server:
        budget = Budget()
        reply = client_for(server, max_output_tokens=777).complete(PROMPT, budget=budget, temperature=0.3)
    assert (reply.text, reply.finish_reason, reply.model, reply.retries) == ("hello", "length", "m", 0)
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cached_tokens) == (100, 20, 60)
    assert not reply.usage.estimated
    assert (budget.spent.calls, budget.spent.cached_tokens) == (1, 60)
    (request,) = server.requests
    assert request["_path"] == "/v1/chat/completions"
    assert request["model"] == "m"
    assert request["temperature"] == 0.3
    assert request["max_tokens"] == 777
    assert "max_completion_tokens" not in request
    assert "tools" not in request
    assert "response_format" not in request
    assert [message["role"] for message in request["messages"]] == ["system", "user"]


@pytest.mark.parametrize(
    "usage",
    [
        pytest.param(None, id="missing"),
        pytest.param({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, id="zero"),
        pytest.param({"prompt_tokens": -5, "completion_tokens": 3, "total_tokens": -2}, id="negative"),
    ],
)
def test_usage_that_cannot_be_true_is_estimated_and_said_so(usage: dict[str, Any] | None) -> None:
    with OpenAIServer([Answer("x" * 300, usage=usage)]) as server:
        budget = Budget()
        reply = client_for(server).complete(PROMPT, budget=budget)
    assert reply.usage.estimated
    assert reply.usage.output_tokens == 100
    assert reply.usage.input_tokens > 0
    assert "estimated" in budget.spent.notes[0]


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Answer(status=500), id="500"),
        pytest.param(Answer(status=503), id="503"),
        pytest.param(Answer(status=429), id="429"),
        pytest.param(Answer("x" * 5000, fault="reset"), id="reset in mid-answer"),
        pytest.param(Answer(fault="hang"), id="hang"),
    ],
)
def test_transient_faults_are_retried_in_one_layer(fault: Answer) -> None:
    sleeps = Sleeps()
    with OpenAIServer([fault, fault, Answer("done")]) as server:
        budget = Budget()
        reply = client_for(server, sleep=sleeps, timeout=0.5).complete(PROMPT, budget=budget)
        assert len(server.requests) == 3
    assert (reply.text, reply.retries) == ("done", 2)
    assert budget.spent.calls == 1
    assert len(sleeps) == 2
    assert 0.25 <= sleeps[0] <= 0.5 <= sleeps[1] <= 1.0


@pytest.mark.parametrize(
    ("headers", "low", "high"),
    [
        pytest.param({"retry-after": "7"}, 7, 7.5, id="seconds"),
        pytest.param({"retry-after-ms": "1500"}, 1.5, 2.0, id="milliseconds"),
        pytest.param({"retry-after": "in 20 s as a date"}, 10, 20.5, id="date"),
        pytest.param({"retry-after": "soon"}, 0.25, 0.5, id="nonsense"),
    ],
)
def test_the_wait_a_server_asks_for_is_kept(headers: dict[str, str], low: float, high: float) -> None:
    sleeps = Sleeps()
    if "date" in headers.get("retry-after", ""):
        headers = {"retry-after": formatdate(time.time() + 20, usegmt=True)}
    with OpenAIServer([Answer(status=429, headers=headers), "done"]) as server:
        client_for(server, sleep=sleeps).complete(PROMPT, budget=Budget())
    assert low <= sleeps[0] <= high


def test_a_wait_that_is_too_long_goes_to_the_next_model() -> None:
    sleeps = Sleeps()
    with OpenAIServer([Answer(status=429, headers={"retry-after": "3600"}), "done"]) as server:
        reply = client_for(server, ["a", "b"], sleep=sleeps).complete(PROMPT, budget=Budget())
    assert (reply.model, list(sleeps)) == ("b", [])


def test_attempts_end() -> None:
    with OpenAIServer([Answer(status=500)]) as server, pytest.raises(ModelError, match=r"HTTP 500: it broke"):
        client_for(server).complete(PROMPT, budget=Budget())
    assert len(server.requests) == 5


def test_retries_end_when_the_time_of_the_run_does() -> None:
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    budget = Budget(BudgetLimits(seconds=12), clock=lambda: now[0])
    with OpenAIServer([Answer(status=429, headers={"retry-after": "5"})]) as server:
        with pytest.raises(ModelError, match="429"):
            client_for(server, sleep=sleep).complete(PROMPT, budget=budget)
        assert len(server.requests) == 3
    assert now[0] < 12
    assert budget.spent.calls == 0


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param(
            Answer(status=401, error={"message": f"Incorrect API key provided: {KEY}"}),
            "the key was refused (401); set OPENAI_API_KEY",
            id="wrong key",
        ),
        pytest.param(Answer(status=403), "the key may not use it (403): it broke", id="forbidden"),
        pytest.param(
            Answer(status=404, error={"message": "The model `m` does not exist"}),
            "not found (404): The model `m` does not exist; check --autosolve-model and --autosolve-base-url",
            id="unknown model",
        ),
        pytest.param(
            Answer(status=429, error={"message": "pay", "code": "insufficient_quota"}),
            "the account's quota is used up (429): pay",
            id="no quota",
        ),
        pytest.param(
            Answer(
                status=400,
                error={"message": "the context length is 4096", "code": "context_length_exceeded"},
            ),
            "HTTP 400 (the prompt is larger than the model's context)",
            id="too long",
        ),
        pytest.param(Answer(fault="html"), "the answer is no chat completion", id="login page"),
        pytest.param(Answer(fault="not json"), "the answer is no chat completion", id="cut json"),
        pytest.param(Answer(fault="no choices"), "the answer is no chat completion", id="no choices"),
        pytest.param(
            Answer(fault="error body"), "the answer is no chat completion", id="error with status 200"
        ),
    ],
)
def test_lasting_faults_say_what_to_do_and_are_not_retried(
    answer: Answer, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "pytest_autofix")
    with OpenAIServer([answer]) as server:
        budget = Budget()
        with pytest.raises(ModelError) as caught:
            client_for(server).complete(PROMPT, budget=budget)
        assert len(server.requests) == 1
        assert server.url in str(caught.value)
    assert message in str(caught.value)
    assert KEY not in str(caught.value) + caplog.text
    assert budget.spent.calls == 0
    assert budget.remaining.tokens is None


def test_an_address_where_nobody_listens_is_named_without_credentials() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    sleeps = Sleeps()
    client = client_for(f"http://user:secret@127.0.0.1:{port}/v1", ["a", "b"], sleep=sleeps)
    with pytest.raises(ModelError) as caught:
        client.complete(PROMPT, budget=Budget())
    assert f"model 'a' at http://127.0.0.1:{port}/v1: cannot be reached" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert len(sleeps) == 1, "the second model is at the same address"
    with pytest.raises(ModelError, match="cannot be reached"):
        client.complete(PROMPT, budget=Budget())
    assert len(sleeps) == 1, "known to be down"


def test_the_chain_goes_on_after_an_unknown_model_and_remembers_it() -> None:
    with OpenAIServer([Answer(status=404), "one", "two"]) as server:
        client = client_for(server, ["a", "b"])
        replies = [client.complete(PROMPT, budget=Budget()) for _ in range(2)]
        assert [request["model"] for request in server.requests] == ["a", "b", "b"]
    assert [(reply.model, reply.text) for reply in replies] == [("b", "one"), ("b", "two")]


def test_the_chain_may_start_elsewhere() -> None:
    with OpenAIServer(["one"]) as server:
        assert client_for(server, ["a", "b"]).complete(PROMPT, budget=Budget(), first=1).model == "b"


def test_parameters_that_a_model_refuses_are_left_out_from_then_on() -> None:
    answers = [
        Answer(status=400, error={"message": "Unsupported value: 'temperature' does not support 0.2"}),
        Answer(status=400, error={"message": "Use 'max_completion_tokens' instead of 'max_tokens'"}),
        Answer("done"),
    ]
    with OpenAIServer(answers) as server:
        client = client_for(server)
        for _ in range(2):
            assert client.complete(PROMPT, budget=Budget(), temperature=0.2).text == "done"
    assert [
        ("temperature" in r, "max_tokens" in r, "max_completion_tokens" in r) for r in server.requests
    ] == [
        (True, True, False),
        (False, True, False),
        (False, False, True),
        (False, False, True),
    ]


def test_the_budget_is_asked_before_the_server() -> None:
    with OpenAIServer(["no"]) as server:
        client = client_for(server)
        with pytest.raises(BudgetExceeded, match="tokens"):
            client.complete(PROMPT, budget=Budget(BudgetLimits(tokens=100)))
        assert server.requests == []
        assert client.complete(PROMPT, budget=Budget(BudgetLimits(tokens=1000))).text == "no"
        assert 256 <= server.requests[0]["max_tokens"] < 1000, "the rest of the budget"


def test_a_server_without_keys_gets_none_and_no_key_is_needed() -> None:
    with OpenAIServer(["hi"]) as server:
        client = ChatClient.connect(["m"], environ={"OPENAI_BASE_URL": server.url + "/"})
        assert client.complete(PROMPT, budget=Budget()).text == "hi"
        assert server.requests[0]["_headers"]["authorization"] == "Bearer none"


def test_tracing_of_the_user_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with OpenAIServer(["traced"]) as tracer, OpenAIServer(["hi"]) as server:
        for name in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"):
            monkeypatch.setenv(name, "true")
        monkeypatch.setenv("LANGSMITH_ENDPOINT", tracer.url)
        monkeypatch.setenv("LANGSMITH_API_KEY", "x")
        before = threading.active_count()
        client_for(server).complete(PROMPT, budget=Budget())
        assert tracer.requests == []
        assert threading.active_count() <= before + 1, "no thread of a tracer; one may serve our request"


def test_an_answer_of_tool_calls_is_an_empty_text() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{not json"}}
    with OpenAIServer([Answer(None, tool_calls=[call])]) as server:
        assert client_for(server).complete(PROMPT, budget=Budget()).text == ""


@pytest.mark.parametrize(
    ("models", "url", "environ", "message"),
    [
        pytest.param([], "", {}, "no model given", id="no model"),
        pytest.param(["gpt"], "", {}, "model 'gpt': OPENAI_API_KEY is not set", id="no key"),
        pytest.param(["gpt"], "localhost:80", {}, "expected http:// or https://", id="no scheme"),
        pytest.param(["scripted:/nowhere.json"], "", {}, "model script /nowhere.json", id="no script"),
    ],
)
def test_what_cannot_be_asked_is_a_configuration_error(
    models: list[str], url: str, environ: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        ChatClient.connect(models, base_url=url, environ=environ)
    assert message in str(caught.value)


def test_a_script_is_a_model_of_the_chain(tmp_path: Path) -> None:
    script = tmp_path / "replies.json"
    script.write_text('["first"]', encoding="utf-8")
    client = ChatClient.connect([f"scripted:{script}"], environ={})
    budget = Budget()
    assert client.complete(PROMPT, budget=budget, temperature=0.5).text == "first"
    assert budget.spent.output_tokens == 2
    with pytest.raises(
        ModelError, match=r"scripted:replies.json: no reply left for call 2 \(the script has 1\)"
    ):
        client.complete(PROMPT, budget=budget)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:pw@host:8/v1?key=1#x", "https://host:8/v1"),
        ("http://[::1]:80/v1", "http://[::1]:80/v1"),
        ("", "an unnamed endpoint"),
    ],
)
def test_addresses_are_shown_without_secrets(url: str, shown: str) -> None:
    assert display_url(url) == shown
