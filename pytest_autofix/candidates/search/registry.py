"""What an operator is and how one is registered; a project adds its own the same way."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_autofix.candidates.search.facts import Facts
    from pytest_autofix.candidates.search.site import Replacement, Site

__all__ = ["Operator", "builtin_operators", "operator"]

Function = Callable[["Site"], "Iterator[Replacement]"]

FAMILIES = (
    "arguments",
    "arithmetic",
    "boolean",
    "calls",
    "comparison",
    "conditions",
    "constants",
    "crashes",
    "donors",
    "exceptions",
    "functions",
    "guards",
    "imports",
    "index",
    "loops",
    "names",
    "returns",
    "statements",
    "wrapping",
)
"""Modules of this folder that register operators."""

_REGISTERED: dict[str, Operator] = {}


@dataclass(frozen=True)
class Operator:
    """A family of edits at one kind of node.

    `prior` says how often such an edit is the repair, relative to an exchanged comparison operator (1.0); the
    weight of each replacement then splits it. `spread`: the same edit at all similar places of the definition
    is worth a try as well. `when`: what the failures must have shown; without it the operator is left out, which
    spares opening it at every place only to find that it has nothing to say.
    """

    name: str  #: `family.what`
    prior: float
    nodes: tuple[type[ast.AST], ...]
    function: Function
    spread: bool = False
    when: Callable[[Facts], object] | None = None

    def applies(self, facts: Facts) -> bool:
        return self.when is None or bool(self.when(facts))

    @property
    def summary(self) -> str:
        """First line of the docstring, for reports."""
        return (self.function.__doc__ or "").strip().partition("\n")[0]


def operator(
    name: str,
    *,
    prior: float,
    on: Sequence[type[ast.AST]],
    spread: bool = False,
    when: Callable[[Facts], object] | None = None,
) -> Callable[[Function], Function]:
    """Register a function that yields the replacements at a site whose node is one of `on`."""

    def register(function: Function) -> Function:
        if name in _REGISTERED:
            raise ValueError(f"operator {name!r} is registered twice")
        _REGISTERED[name] = Operator(name, prior, tuple(on), function, spread, when)
        return function

    return register


def builtin_operators() -> tuple[Operator, ...]:
    """All registered operators, those of this package and those added since."""
    for family in FAMILIES:
        importlib.import_module(f"{__package__}.{family}")
    return tuple(_REGISTERED.values())
