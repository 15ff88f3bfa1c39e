"""Secrets never leave: by value, by shape, in evidence."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_autofix.evidence.failure import Failure
from pytest_autofix.redact import REDACTED, looks_secret, redact

KEY_BLOCK = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nAbCd\n-----END RSA PRIVATE KEY-----"

SHAPES = [
    pytest.param("sk-proj-" + "a1B2" * 8, id="openai"),
    pytest.param("sk-ant-api03-" + "a1B2" * 8, id="anthropic"),
    pytest.param("ghp_" + "a1B2" * 9, id="github"),
    pytest.param("github_pat_" + "a1B2_" * 9, id="github-fine-grained"),
    pytest.param("AKIA" + "ABCD" * 4, id="amazon"),
    pytest.param("e2b_" + "0123456789abcdef" * 2, id="e2b"),
    pytest.param("xoxb-123456789012-abcdef", id="slack"),
    pytest.param("hf_" + "aB3" * 10, id="hugging-face"),
    pytest.param("lsv2_pt_" + "ab12" * 8 + "_0123456789", id="langsmith"),
    pytest.param("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", id="json-web-token"),
    pytest.param(KEY_BLOCK, id="private-key"),
    pytest.param(KEY_BLOCK.replace("\n", "\\n"), id="private-key-in-a-repr"),
]


@pytest.mark.parametrize("secret", SHAPES)
def test_known_shapes(secret: str) -> None:
    assert redact(f"before {secret} after", {}) == f"before {REDACTED} after"
    assert redact(f"x='{secret}'", {}) == f"x='{REDACTED}'"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        pytest.param("Authorization: Bearer abc.def", f"Authorization: Bearer {REDACTED}", id="header"),
        pytest.param(
            "{'Authorization': 'token abcdef'}", f"{{'Authorization': 'token {REDACTED}'}}", id="mapping"
        ),
        pytest.param("Authorization: " + "a1" * 12, f"Authorization: {REDACTED}", id="raw-key"),
        pytest.param("authorization=Basic dXNlcjpwdw==", f"authorization=Basic {REDACTED}", id="basic"),
        pytest.param("curl -H 'X: Bearer " + "a1" * 10 + "'", f"curl -H 'X: Bearer {REDACTED}'", id="bearer"),
        pytest.param("https://me:s3cr3t@host/x", f"https://me:{REDACTED}@host/x", id="url"),
        pytest.param("postgres://me:p%40ss@db:5432/x", f"postgres://me:{REDACTED}@db:5432/x", id="database"),
        pytest.param("-----BEGIN PRIVATE KEY-----\nMIIE", REDACTED, id="cut-private-key"),
    ],
)
def test_texts_around_secrets_stay(text: str, clean: str) -> None:
    assert redact(text, {}) == clean


@pytest.mark.parametrize(
    "text",
    [
        "assert task-1 == risk-based-approach-to-things",
        "sk-short",
        "https://host:8080/path@tag",
        "lexer token = 'NUMBER', key = 'name'",
        "Bearer of bad news",
        "def authorize(): return 'authorization'",
        "AKIA",
        "authorization = check(user)",
        "user@example.com",
        "sha256:" + "0a" * 32,
        "",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert redact(text, {}) == text


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY",
        "GITHUB_TOKEN",
        "DB_PASSWORD",
        "MYSECRET",
        "SENTRY_DSN",
        "AWS_SECRET_ACCESS_KEY",
        "apikey",
        "GH_PAT",
        "key",
        "SSH_PASSPHRASE",
    ],
)
def test_values_of_secret_variables(name: str) -> None:
    value = "p/l a'in\n+text"
    for form in (value, repr(value)[1:-1], quote(value, safe="")):
        assert redact(f"<{form}>", {name: value}) == f"<{REDACTED}>"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("HOME", "/home/somebody", id="ordinary"),
        pytest.param("PWD", "/srv/project", id="pwd"),
        pytest.param("KEYBOARD_LAYOUT", "qwertz-de", id="keyboard"),
        pytest.param("MONKEYS", "many-monkeys", id="monkeys"),
        pytest.param("API_TOKEN", "true", id="short"),
    ],
)
def test_values_of_other_variables_stay(name: str, value: str) -> None:
    assert redact(f"is {value} here", {name: value}) == f"is {value} here"


def test_a_secret_that_holds_another() -> None:
    environ = {"A_TOKEN": "abcdefgh", "B_TOKEN": "abcdefgh-ijkl"}
    assert redact("abcdefgh-ijkl", environ) == REDACTED


def test_the_environment_is_read_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    assert redact("late-comer-42") == "late-comer-42"
    monkeypatch.setenv("LATE_TOKEN", "late-comer-42")
    assert redact("late-comer-42") == REDACTED


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("password", True),
        ("db_password", True),
        ("access_token", True),
        ("token", False),
        ("key", False),
        ("keys", False),
    ],
)
def test_names_of_variables(name: str, secret: bool) -> None:
    assert looks_secret(name) is secret


@given(st.text())
def test_never_raises_and_is_idempotent(text: str) -> None:
    once = redact(text, {"X_TOKEN": "abcdefgh"})
    assert redact(once, {"X_TOKEN": "abcdefgh"}) == once


@pytest.mark.parametrize(
    "piece", ["a.", "eyJaaaaaaa.", "-----BEGIN PRIVATE KEY-----", "a://", "bearer ", "sk-"]
)
def test_long_texts_take_linear_time(piece: str) -> None:
    start = time.process_time()
    redact(piece * (100_000 // len(piece)), {})
    assert time.process_time() - start < 2


def test_no_secret_in_the_evidence_of_a_run(
    only: Callable[..., Failure], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", "very-secret-value")
    failure = only(
        {
            "test_x.py": """
            import os
            import pytest
            @pytest.mark.parametrize("url", ["https://me:url-secret@host/"])
            def test_x(url):
                value = os.environ["SERVICE_TOKEN"]
                config = {"password": "local-secret", "list": [value] * 3}
                print("printed", value)
                assert value == "ghp_" + "shapesecret" * 4, f"message {value}"
            """
        }
    )
    text = json.dumps({**failure.to_json(), "nodeid": ""})
    for secret in ("very-secret-value", "url-secret", "local-secret"):
        assert secret not in text
    assert failure.comparison is not None
    assert failure.comparison.left.repr == f"'{REDACTED}'"
    assert failure.comparison.right.repr == f"'{REDACTED}'"
    assert failure.output == {"Captured stdout call": f"printed {REDACTED}\n"}
