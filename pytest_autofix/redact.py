"""`redact`: take secrets out of a text before it leaves this process.

Called at every border: evidence, prompts, reports, events, pull requests. It works on two kinds of knowledge: the
values of environment variables whose names look secret, and the shapes that well-known services give their tokens.
Redact before cutting a text: half a token is still a leak, and is no longer recognised.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import quote

__all__ = ["LONGEST_TOKEN", "REDACTED", "looks_secret", "redact"]

REDACTED = "<redacted>"
LONGEST_TOKEN = 4096
"""Characters. Who cuts a text keeps this much context on each side while redacting, so that no token is split."""

_SHORTEST_VALUE = 8  # shorter values ("true", "1234") occur everywhere by chance

_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSW(?:OR)?D|PASSPHRASE|CREDENTIAL|API_?KEY|PRIVATE_?KEY|AUTHORIZATION"
    r"|(?:^|[_-])(?:KEYS?|PASS|PAT|DSN|COOKIES?)(?:[_-]|$)",
    re.IGNORECASE,
)
_SECRET_VARIABLE = re.compile(
    r"(?:^|_)(?:passw(?:or)?d|passphrase|secret|credential|api_?key|private_?key|secret_?key"
    r"|(?:access|auth|bearer|refresh|session)_?token)s?$",
    re.IGNORECASE,
)

_SHAPES = re.compile(
    r"""
    -----BEGIN\ [A-Z0-9 ]{0,40}PRIVATE\ KEY-----.*?(?:-----END\ [A-Z0-9 ]{0,40}PRIVATE\ KEY-----|\Z)
    | (?<![A-Za-z0-9])(?:
        sk-[A-Za-z0-9_-]{16,}                       # OpenAI, Anthropic, OpenRouter
      | [rs]k_(?:live|test)_[A-Za-z0-9]{16,}        # Stripe
      | gh[pousr]_[A-Za-z0-9]{20,}                  # GitHub
      | github_pat_[A-Za-z0-9_]{20,}
      | glpat-[A-Za-z0-9_-]{20,}                    # GitLab
      | (?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])       # Amazon
      | AIza[A-Za-z0-9_-]{35}                       # Google
      | ya29\.[A-Za-z0-9_-]{20,}
      | e2b_[A-Za-z0-9]{16,}
      | hf_[A-Za-z0-9]{20,}                         # Hugging Face
      | lsv2_(?:pt|sk)_[A-Za-z0-9_]{20,}            # LangSmith
      | xox[abeoprs]-[A-Za-z0-9-]{10,}              # Slack
      | npm_[A-Za-z0-9]{36}
      | pypi-[A-Za-z0-9_-]{40,}
      | eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]*   # JSON web token
      )
    """,
    re.VERBOSE | re.DOTALL,
)
_AUTHORIZATION = re.compile(
    r"""(authorization['"]?\s{0,5}[:=]\s{0,5}(?:[bf]?['"])?)
    (?:((?:bearer|basic|token|digest)\s{1,5})[^\s'",;]{4,} | [A-Za-z0-9._~+/=-]{20,})""",
    re.IGNORECASE | re.VERBOSE,
)
_BEARER = re.compile(r"(\bbearer\s+)[A-Za-z0-9._~+/=-]{16,}", re.IGNORECASE)
_URL_PASSWORD = re.compile(
    r"(\b[a-z][a-z0-9+.-]{0,20}://[^\s:/@'\"]{0,200}:)[^\s/@'\"]{1,500}@", re.IGNORECASE
)


def redact(text: str, environ: Mapping[str, str] | None = None) -> str:
    """`text` with every recognised secret replaced by `<redacted>`; never raises, changes nothing else.

    `environ` is the process's environment unless given. It is read at each call, since a `conftest.py` that loads
    a `.env` file brings secrets in the middle of a run.
    """
    if len(text) < _SHORTEST_VALUE:
        return text
    if values := _secret_values(os.environ if environ is None else environ):
        text = _values_pattern(values).sub(REDACTED, text)
    text = _SHAPES.sub(REDACTED, text)
    text = _AUTHORIZATION.sub(lambda found: f"{found[1]}{found[2] or ''}{REDACTED}", text)
    text = _BEARER.sub(rf"\g<1>{REDACTED}", text)
    return _URL_PASSWORD.sub(rf"\g<1>{REDACTED}@", text)


def looks_secret(name: str) -> bool:
    """Whether a variable of a program with this name most likely holds a secret.

    Narrower than the rule for environment variables: `token` and `key` are everyday names in parsers and mappings,
    and their values are what a repair needs to see.
    """
    return _SECRET_VARIABLE.search(name) is not None


@lru_cache(maxsize=1024)
def _is_secret_name(name: str) -> bool:
    return _SECRET_NAME.search(name) is not None


def _secret_values(environ: Mapping[str, str]) -> tuple[str, ...]:
    values = {environ.get(name, "").strip() for name in tuple(environ) if _is_secret_name(name)}
    return tuple(sorted(value for value in values if len(value) >= _SHORTEST_VALUE))


@lru_cache(maxsize=16)
def _values_pattern(values: tuple[str, ...]) -> re.Pattern[str]:
    """Matches each value as it is, as `repr` would show it, and as a URL would carry it; the longest first."""
    forms = {form for value in values for form in (value, repr(value)[1:-1], _quoted(value))}
    return re.compile("|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True)))


def _quoted(value: str) -> str:
    return quote(value, safe="", errors="replace")
