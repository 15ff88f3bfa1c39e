"""What was observed, as text: the executed facts of a failure, bounded, the decisive ones first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_autofix.candidates.model.prompts import fence

if TYPE_CHECKING:
    from pytest_autofix.evidence.failure import Failure, Frame

__all__ = ["facts_of", "shorten", "summary_of"]

_LOCALS = 12  #: of the innermost frame
_VALUE = 400  #: characters of one value


def facts_of(failure: Failure) -> str:
    """All that is known of one failure but its captured output."""
    lines = [f"test: {failure.nodeid}"]
    if failure.phase != "call":
        lines.append(f"failed in: {failure.phase}")
    if failure.parameters:
        lines.append("parameters: " + ", ".join(f"{k} = {shorten(v)}" for k, v in failure.parameters.items()))
    if failure.kind == "timeout":
        lines.append("the test did not end in time; the stack below is where it was")
    comparison = failure.comparison
    if comparison is not None:
        lines += [
            f"comparison that failed: left {comparison.operator} right",
            f"left: {shorten(comparison.left.repr)}  ({comparison.left.type})",
            f"right: {shorten(comparison.right.repr)}  ({comparison.right.type})",
        ]
    if failure.missing is not None:
        module, name = failure.missing
        lines.append(f"cannot be imported: {name} from {module}" if name else f"cannot be imported: {module}")
    for number, exception in enumerate(failure.exceptions):
        prefix = "raised" if number == 0 else "because of"
        lines.append(f"{prefix}: {exception.type}: {shorten(exception.message, 600)}")
        for position, frame in enumerate(exception.frames[-6:]):
            lines += _frame(frame, innermost=position == len(exception.frames[-6:]) - 1)
    if not failure.exceptions and not comparison:
        lines.append(shorten(failure.message, 600))
    text = fence("\n".join(lines))
    if comparison is not None and comparison.explanation.strip():
        text += "\n\npytest explains:\n\n" + fence(shorten(comparison.explanation, 1500))
    return text


def summary_of(failure: Failure) -> str:
    """One failure in one line."""
    parameters = ", ".join(f"{k}={shorten(v, 80)}" for k, v in failure.parameters.items())
    return (
        f"{failure.nodeid}"
        + (f" ({parameters})" if parameters else "")
        + f": {shorten(failure.message, 200)}"
    )


def shorten(text: str, limit: int = _VALUE) -> str:
    """The text, or its beginning and end with the number of characters left out between them."""
    if len(text) <= limit:
        return text
    tail = limit // 4
    head = limit - tail
    return f"{text[:head]}[… {len(text) - limit} characters not shown …]{text[-tail:]}"


def _frame(frame: Frame, *, innermost: bool) -> list[str]:
    lines = [f"  at {frame.path}:{frame.line} in {frame.function}: {frame.source}"]
    if innermost:
        lines += [f"    {name} = {shorten(value)}" for name, value in list(frame.locals.items())[:_LOCALS]]
        if len(frame.locals) > _LOCALS:
            lines.append(f"    ({len(frame.locals) - _LOCALS} more local variables not shown)")
    return lines
