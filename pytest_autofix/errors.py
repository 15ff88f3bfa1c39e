"""What can go wrong, one class per decision that a caller can take.

AutofixError
├── ConfigurationError      the user can fix it: the message says what was given, what is accepted, what to do
├── SandboxError            a sandbox misbehaved during a run: that run has no result
│   └── SandboxUnavailable  no sandbox can be had: stop, report, never fall back to a weaker one
├── ModelError              the model endpoint failed for good: keep what the search found
│   └── ModelReplyUnusable  the reply holds no edit: feed the reason back, count the attempt
├── PatchError              a patch is no patch
│   ├── PatchDoesNotApply   it does not fit the tree it was made for
│   └── PatchOutOfScope     it touches what may not be edited
└── BudgetExceeded          stop now, keep what was learned
"""

from __future__ import annotations

__all__ = [
    "AutofixError",
    "BudgetExceeded",
    "ConfigurationError",
    "ModelError",
    "ModelReplyUnusable",
    "PatchDoesNotApply",
    "PatchError",
    "PatchOutOfScope",
    "SandboxError",
    "SandboxUnavailable",
]


class AutofixError(Exception):
    """Base of all errors raised on purpose by this package."""


class ConfigurationError(AutofixError):
    """The user gave something that cannot be used; show the message as it is, in one line."""


class SandboxError(AutofixError):
    """A sandbox run ended without a result; the candidate has no verdict, try once more or give up."""


class SandboxUnavailable(SandboxError):
    """No sandbox can be opened here; report it with the ways out, never run code without one."""


class ModelError(AutofixError):
    """The model endpoint failed after all retries; keep what was found so far and end with `model`."""


class ModelReplyUnusable(ModelError):
    """The reply holds no edit that could be tried; feed the message back to the model."""


class PatchError(AutofixError):
    """A text that should be a patch is none; show the message."""


class PatchDoesNotApply(PatchError):
    """The patch was made for another tree; show the message with the place that differs."""


class PatchOutOfScope(PatchError):
    """The patch touches something that may not be edited; refuse it whole."""


class BudgetExceeded(AutofixError):
    """The budget of the run is spent; stop at once and keep what was learned."""
