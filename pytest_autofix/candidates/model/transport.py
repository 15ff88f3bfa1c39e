"""What to do about a failed model call: wait and retry, change the request, or give up with a reason."""

from __future__ import annotations

import email.utils
import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit, urlunsplit

from pytest_autofix.redact import redact

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = [
    "Refusal",
    "RetryPolicy",
    "display_url",
    "explain",
    "is_transient",
    "is_unreachable",
    "retry_after",
]

_TRANSIENT_STATUS = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential waits with jitter; the server's own `Retry-After` goes first."""

    attempts: int = 5
    unreachable_attempts: int = 2  #: nothing listens there: a longer wait rarely helps
    first_wait: float = 0.5  #: seconds
    longest_wait: float = 60.0  #: seconds; a server that asks for more is given up
    random: random.Random = field(default_factory=random.Random)

    def wait(self, attempt: int, error: BaseException) -> float:
        """Seconds to wait after the 1-based `attempt`."""
        asked = retry_after(error)
        spread = min(self.longest_wait, self.first_wait * 2.0 ** (attempt - 1))
        if asked is not None:
            return asked + self.random.uniform(0, self.first_wait)
        return self.random.uniform(spread / 2, spread)

    def allows(self, attempt: int, error: BaseException) -> bool:
        """Whether another attempt is to be made after the 1-based `attempt` failed."""
        if not is_transient(error) or (retry_after(error) or 0.0) > self.longest_wait:
            return False
        return attempt < (self.unreachable_attempts if is_unreachable(error) else self.attempts)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a model could not be asked."""

    message: str
    scope: Literal["call", "model", "endpoint"]
    """what is known to be useless now: this call only, this model for the whole run, all models of this endpoint"""


def is_transient(error: BaseException) -> bool:
    """Whether the same request may succeed later: rate limits, server errors, timeouts, lost connections."""
    import openai

    if isinstance(error, openai.APIConnectionError):  # timeouts are of this class, too
        return True
    status = getattr(error, "status_code", None)
    if status == 429:
        return not _is_out_of_quota(error)
    return isinstance(error, openai.APIStatusError) and status in _TRANSIENT_STATUS


def is_unreachable(error: BaseException) -> bool:
    """Whether no connection could be made at all: refused, no such host, no route."""
    # By name, since the SDK brings its own copy of httpx.
    return any(cls.__name__ == "ConnectError" for cause in _causes(error) for cls in type(cause).__mro__)


def retry_after(error: BaseException) -> float | None:
    """Seconds that the server asks to wait, None if it does not say."""
    headers: Mapping[str, str] = getattr(getattr(error, "response", None), "headers", {})
    try:
        if milliseconds := headers.get("retry-after-ms"):
            return max(0.0, float(milliseconds) / 1000)
        text = headers.get("retry-after", "")
        if not text:
            return None
        return max(0.0, float(text))
    except ValueError:
        pass
    date = email.utils.parsedate_tz(headers.get("retry-after", ""))
    return None if date is None else max(0.0, email.utils.mktime_tz(date) - time.time())


def explain(error: BaseException, *, model: str, url: str) -> Refusal:
    """One line for the user: what happened, with which model at which address, what to do."""
    import openai

    where = f"model {model!r} at {display_url(url)}"
    detail = _detail(error)
    if isinstance(error, openai.AuthenticationError):
        # The server's text may quote a part of the key.
        return Refusal(f"{where}: the key was refused (401); set OPENAI_API_KEY to a valid one", "endpoint")
    if isinstance(error, openai.PermissionDeniedError):
        return Refusal(f"{where}: the key may not use it (403): {detail}", "model")
    if isinstance(error, openai.NotFoundError):
        return Refusal(
            f"{where}: not found (404): {detail}; check --autosolve-model and --autosolve-base-url", "model"
        )
    if isinstance(error, openai.RateLimitError):
        if _is_out_of_quota(error):
            return Refusal(f"{where}: the account's quota is used up (429): {detail}", "endpoint")
        asked = retry_after(error)
        hint = f"; the server asks to wait {asked:.0f} s" if asked is not None else ""
        return Refusal(f"{where}: too many requests (429){hint}", "call")
    if isinstance(error, openai.APITimeoutError):
        return Refusal(f"{where}: no answer in time", "call")
    if isinstance(error, openai.APIConnectionError):
        if is_unreachable(error):
            cause = list(_causes(error))[-1]
            return Refusal(
                f"{where}: cannot be reached ({redact(str(cause))}); "
                "is the server running, is --autosolve-base-url right?",
                "endpoint",
            )
        return Refusal(f"{where}: the connection was lost", "call")
    if isinstance(error, openai.APIStatusError):
        size = " (the prompt is larger than the model's context)" if _is_too_long(error) else ""
        return Refusal(f"{where}: HTTP {error.status_code}{size}: {detail}", "call")
    return Refusal(f"{where}: the answer is no chat completion: {detail}", "call")


def display_url(url: str) -> str:
    """The address without user, password, query and fragment."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", "")) if host else "an unnamed endpoint"


def _is_out_of_quota(error: BaseException) -> bool:
    # OpenAI uses 429 for this, too, where waiting does not help.
    return "insufficient_quota" in f"{getattr(error, 'code', '')} {getattr(error, 'body', '')} {error}"


def _is_too_long(error: BaseException) -> bool:
    text = str(error).lower()
    return "context" in text and any(word in text for word in ("length", "window", "exceed", "size"))


def _detail(error: BaseException) -> str:
    body = getattr(error, "body", None)
    message = body.get("message") if isinstance(body, dict) else None
    text = " ".join(str(message or getattr(error, "message", "") or error).split())
    return redact(text[:300]) or type(error).__name__


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
