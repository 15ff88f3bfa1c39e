"""Small conditions made from what is in scope, for guards and for conditions that are too weak or too strong.

The synthesised space is that of condition synthesis (Nopol, Xuan et al., TSE 2017): variables, null checks,
emptiness and comparisons of two values, one atom at a time.
"""

from __future__ import annotations

from collections.abc import Iterator

from pytest_autofix.candidates.search.site import Site
from pytest_autofix.candidates.search.snippet import COMPARE, NOT, Snippet

__all__ = ["atoms", "guard_atoms"]

_COLLECTIONS = ("list", "dict", "set", "tuple", "str", "deque", "bytes")
_MAX_VALUES = 10  #: pairs of values grow with the square


def atoms(site: Site) -> Iterator[tuple[Snippet, float]]:
    """Conditions over the values in scope, with how likely each is."""
    values = [(name, weight) for name, weight in site.values() if site.type_of(name) != "function"][
        :_MAX_VALUES
    ]
    for name, weight in values:
        yield from _of_one(site, name, weight)
    for left, one in values:
        for right, other in values:
            if left == right:
                continue
            yield from _of_two(site, left, right, one * other)


def _of_one(site: Site, name: str, weight: float) -> Iterator[tuple[Snippet, float]]:
    kind = site.type_of(name)
    yield Snippet(name), weight * 0.8
    yield Snippet(f"not {name}", NOT), weight * 0.8
    if kind in ("int", "float", ""):
        known = weight if kind else weight * 0.6
        for text, likely in (("> 0", 0.7), ("< 0", 0.6), ("== 0", 0.7), ("!= 0", 0.5), ("> 1", 0.4), ("== 1", 0.5),
                             ("<= 0", 0.4), (">= 0", 0.4), ("% 2 == 0", 0.2)):  # fmt: skip
            yield Snippet(f"{name} {text}", COMPARE), known * likely
    if kind in ("NoneType", ""):
        yield Snippet(f"{name} is None", COMPARE), weight * 0.6
        yield Snippet(f"{name} is not None", COMPARE), weight * 0.6
    if kind in _COLLECTIONS:
        yield Snippet(f"len({name}) == 1", COMPARE), weight * 0.4
        yield Snippet(f"len({name}) > 1", COMPARE), weight * 0.4


def _of_two(site: Site, left: str, right: str, weight: float) -> Iterator[tuple[Snippet, float]]:
    one, other = site.type_of(left), site.type_of(right)
    if other in _COLLECTIONS and one not in ("list", "dict", "set"):
        yield Snippet(f"{left} in {right}", COMPARE), weight * 0.7
        yield Snippet(f"{left} not in {right}", COMPARE), weight * 0.7
        if other in ("list", "tuple", "str") and one in ("int", ""):
            yield Snippet(f"{left} < len({right})", COMPARE), weight * 0.6
            yield Snippet(f"{left} >= len({right})", COMPARE), weight * 0.4
    if (
        one in ("int", "float", "str", "")
        and other in ("int", "float", "str", "")
        and (not one or not other or one == other)
    ):
        known = weight if one and other else weight * 0.5
        yield Snippet(f"{left} < {right}", COMPARE), known * 0.6
        yield Snippet(f"{left} <= {right}", COMPARE), known * 0.5
        if left < right:  # these two are symmetric
            yield Snippet(f"{left} == {right}", COMPARE), known * 0.7
            yield Snippet(f"{left} != {right}", COMPARE), known * 0.7


def guard_atoms(site: Site) -> Iterator[tuple[Snippet, float]]:
    """The conditions under which a function has nothing to do: empty, absent, zero, negative, equal arguments."""
    names = [name for name in site.scope.parameters if name not in ("self", "cls")][:6]
    for name in names:
        kind = site.type_of(name)
        yield Snippet(f"not {name}", NOT), 1.0
        if kind in ("NoneType", ""):
            yield Snippet(f"{name} is None", COMPARE), 0.7
        if kind in ("int", "float", ""):
            known = 1.0 if kind else 0.4
            for text, likely in (
                ("== 0", 0.4),
                ("< 0", 0.7),
                ("<= 0", 0.6),
                ("== 1", 0.5),
                ("<= 1", 0.5),
                ("< 2", 0.1),
            ):
                yield Snippet(f"{name} {text}", COMPARE), known * likely
        if kind in _COLLECTIONS:
            yield Snippet(f"len({name}) == 1", COMPARE), 0.6
            yield Snippet(f"len({name}) < 2", COMPARE), 0.4
    for index, left in enumerate(names):
        for right in names[index + 1 :]:
            one, other = site.type_of(left), site.type_of(right)
            if one and other and one != other:
                continue
            yield Snippet(f"{left} == {right}", COMPARE), 0.4
            if one in ("int", "float", "str", ""):
                yield Snippet(f"{left} > {right}", COMPARE), 0.3
                yield Snippet(f"{left} < {right}", COMPARE), 0.3
