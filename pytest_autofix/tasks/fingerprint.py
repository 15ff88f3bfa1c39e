"""A name for a root cause that is the same on every machine and in every run.

The solver's thread id, the memory of earlier runs and the pull request of the Action are found by it, so nothing
may enter that changes by itself: parameters, addresses, temporary paths, times, counts.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from pytest_autofix.evidence.failure import Failure
from pytest_autofix.tasks.task import Target

__all__ = ["base_nodeid", "fingerprint", "normalise_message"]

MESSAGE_LENGTH = 200

_VOLATILE = (
    (re.compile(r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*\""""), "''"),
    (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE), "#"),
    (re.compile(r"\b0x[0-9a-f]+\b", re.IGNORECASE), "#"),
    (re.compile(r"(?:\b[A-Za-z]:)?(?:[\\/][\w.~+@-]+){2,}[\\/]?"), "/"),
    (re.compile(r"[-+]?\d+(?:[._]\d+)*(?:e[-+]?\d+)?", re.IGNORECASE), "#"),
    (re.compile(r"\s+"), " "),
)


def fingerprint(failures: Iterable[Failure], target: Target | None) -> str:
    """16 hexadecimal digits for the failures of one root cause and the place it was traced to.

    Order and repetition of the failures do not count, nor how many rows of a parametrised test failed.
    The target counts by file and qualified name: lines move with every edit above them.
    """
    facts = {
        (
            base_nodeid(failure),
            failure.kind,
            failure.exceptions[0].type if failure.exceptions else "",
            normalise_message(failure.message),
        )
        for failure in failures
    }
    place = f"{target.path}::{target.name}" if target else ""
    text = "\n".join([place, *("\0".join(fact) for fact in sorted(facts))])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def base_nodeid(failure: Failure) -> str:
    """The node id without its parameters; a bracket in the name of the file is no parameter."""
    start = len(failure.path) if failure.nodeid.startswith(failure.path) else 0
    bracket = failure.nodeid.find("[", start)
    return failure.nodeid if bracket < 0 else failure.nodeid[:bracket]


def normalise_message(message: str) -> str:
    """The first line of a message without quoted text, addresses, absolute paths and numbers."""
    line = next((line for line in message.splitlines() if line.strip()), "")[: 10 * MESSAGE_LENGTH]
    for pattern, replacement in _VOLATILE:
        line = pattern.sub(replacement, line)
    return line.strip()[:MESSAGE_LENGTH]
