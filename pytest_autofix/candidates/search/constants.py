"""Edits of constants: by one, to common values, to others of the file, to what the tests compare with.

Constant replacement is the most frequent single-statement fault after the operators (ManySStuBs4J, Karampatsis
and Sutton, MSR 2020: "change numeral", "change boolean literal").
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator
from typing import Any

from pytest_autofix.candidates.search.registry import operator
from pytest_autofix.candidates.search.site import Replacement, Site
from pytest_autofix.candidates.search.snippet import FACTOR, Snippet, atom

_EMPTY = {"list": "[]", "dict": "{}", "set": "set()", "tuple": "()", "str": '""'}


def literal(value: object) -> Snippet:
    """A constant as source text."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return atom(f'float("{value}")')
    if isinstance(value, str):
        text = repr(value)
        return atom(text if '"' in value or "'" in value else f'"{value}"' if text[1:-1] == value else text)
    text = repr(value)
    return Snippet(text, FACTOR) if text.startswith("-") else atom(text)


def _quoted(site: Site, value: str) -> Snippet:
    """A text in the quotes and with the prefix of the one it replaces, where that is possible."""
    old = site.text(site.node)
    text = repr(value)[1:-1]
    if old[:1] in "'\"" and old[:3] not in ('"""', "'''") and text == value and old[0] not in value:
        return atom(f"{old[0]}{value}{old[0]}")
    return literal(value)


def _usable(site: Site) -> bool:
    """Whether another literal may stand here."""
    return not isinstance(site.parent(), (ast.JoinedStr, ast.FormattedValue, ast.Expr, ast.pattern))


@operator("constant.step", prior=0.95, on=[ast.Constant], spread=True)
def step(site: Site) -> Iterator[Replacement]:
    """A whole number one too small or one too large."""
    value = site.node.value
    if type(value) is not int or not _usable(site):
        return
    yield site.replace(site.node, literal(value + 1), 1.0)
    yield site.replace(site.node, literal(value - 1), 1.0)


@operator("constant.common", prior=0.5, on=[ast.Constant, ast.UnaryOp])
def common(site: Site) -> Iterator[Replacement]:
    """A value that is often meant instead: 0, 1, -1, 2, infinity, the other truth value, nothing."""
    node = site.node
    if not _usable(site):
        return
    value: Any
    if isinstance(node, ast.UnaryOp):
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant) and site.is_value():
            for other in (0, 1, float("-inf")):
                yield site.replace(node, literal(other), 0.6)
        return
    value = node.value
    likely: tuple[tuple[object, float], ...] = ()
    if value is True or value is False:
        likely = ((not value, 1.5), (None, 0.2))
    elif value is None:
        likely = ((0, 0.5), ("", 0.3), (False, 0.5), (True, 0.3), (1, 0.2))
    elif isinstance(value, int):
        likely = ((0, 0.7), (1, 0.7), (-1, 0.5), (2, 0.4), (-value, 0.5), (value * 10, 0.1), (float(value), 0.2),
                  (float("inf"), 0.25), (float("-inf"), 0.15), (None, 0.15))  # fmt: skip
    elif isinstance(value, float):
        likely = (
            (0.0, 0.5),
            (1.0, 0.5),
            (-value, 0.5),
            (value * 10, 0.3),
            (value / 10, 0.3),
            (float("inf"), 0.3),
        )
        if value.is_integer():
            likely += ((int(value), 0.4),)
    elif isinstance(value, str):
        likely = (("", 0.5), (" ", 0.5)) if len(value) <= 1 else (("", 0.3),)
    for instead, weight in likely:
        if type(instead) is not type(value) or instead != value:
            yield site.replace(node, literal(instead), weight)


@operator("constant.text", prior=0.3, on=[ast.Constant])
def text(site: Site) -> Iterator[Replacement]:
    """A text with the wrong case, with a blank too many or missing, a separator too many, an `s` missing."""
    value = site.node.value
    if not isinstance(value, str) or not value or not _usable(site) or len(value) > 200:
        return
    forms = {value.lower(): 0.6, value.upper(): 0.5, value.capitalize(): 0.5, value.strip(): 0.8, value + " ": 0.4,
             " " + value: 0.4, value + "\n": 0.3, value.rstrip("\n"): 0.5, value[1:]: 0.3, value[:-1]: 0.4,
             value.replace("_", "-"): 0.3, value.replace("-", "_"): 0.3, value + "s": 0.2, value.rstrip("s"): 0.3,
             value.replace(" ", ""): 0.3, value[::-1]: 0.2}  # fmt: skip
    for form, weight in forms.items():
        if form != value:
            yield site.replace(site.node, _quoted(site, form), weight)


@operator("constant.near", prior=0.6, on=[ast.Constant])
def near(site: Site) -> Iterator[Replacement]:
    """A misspelt text: one much like it is used elsewhere in the file, in the tests or as a missing key."""
    value = site.node.value
    if not isinstance(value, str) or not 2 < len(value) <= 80 or not _usable(site):
        return
    known = {other for other in _texts(site) if other != value}
    known.update(other for other in site.facts.values if isinstance(other, str) and other != value)
    for other in difflib.get_close_matches(value, sorted(known), n=3, cutoff=0.7):
        yield site.replace(site.node, _quoted(site, other))
    if value in site.facts.missing_keys:
        for other in sorted(known)[:30]:
            yield site.replace(site.node, _quoted(site, other), 0.3)


def _texts(site: Site) -> set[str]:
    return {value for value in site.source.constants if isinstance(value, str) and len(value) <= 80}


@operator("constant.donor", prior=0.35, on=[ast.Constant])
def donor(site: Site) -> Iterator[Replacement]:
    """Another constant of the same type of this function, then of the file."""
    value = site.node.value
    if value is None or isinstance(value, bool) or not _usable(site):
        return
    kinds = (int, float) if isinstance(value, (int, float)) else (type(value),)
    found: dict[tuple[str, str], tuple[object, float]] = {}
    own = site.context.once(
        "constants", lambda: [node.value for node in site.context.nodes if isinstance(node, ast.Constant)]
    )
    for values, weight in ((own, 1.0), (site.source.constants, 0.4)):
        for other in values:
            if type(other) in kinds and other != value and (not isinstance(other, str) or len(other) <= 40):
                found.setdefault((type(other).__name__, repr(other)), (other, weight))
    for other, weight in list(found.values())[:40]:
        yield site.replace(site.node, literal(other), weight)
    for name, expression in site.context.module.constants.items():
        if isinstance(expression, ast.Constant) and type(expression.value) in kinds:
            yield site.replace(site.node, atom(name), 0.4)


@operator("constant.variable", prior=0.35, on=[ast.Constant])
def variable(site: Site) -> Iterator[Replacement]:
    """A literal where a variable is meant: `range(10)` instead of `range(n)`."""
    value = site.node.value
    if not _usable(site) or isinstance(site.parent(), (ast.Dict, ast.arguments)):
        return
    kind = type(value).__name__
    kinds = ("int", "float") if kind in ("int", "float") else (kind,)
    for name, weight in site.values():
        if value is None or site.may_be(name, *kinds):
            yield site.replace(site.node, atom(name), weight * (1.0 if site.type_of(name) == kind else 0.5))


@operator("constant.tests", prior=0.12, on=[ast.Constant], when=lambda facts: facts.values)
def from_tests(site: Site) -> Iterator[Replacement]:
    """A value that the tests compare with; low, as it may only repeat the expected result."""
    value = site.node.value
    if isinstance(value, bool) or not _usable(site):
        return
    for other in site.facts.values:
        if other == value or isinstance(other, bool):
            continue
        if value is None or type(other) is type(value) or {type(other), type(value)} <= {int, float}:
            yield site.replace(site.node, literal(other), 0.5)


@operator("constant.collection", prior=0.4, on=[ast.List, ast.Dict, ast.Tuple, ast.Set, ast.Call])
def collection(site: Site) -> Iterator[Replacement]:
    """Another empty collection, a collection of one (empty) item, an item too many, a first one missing.

    Base cases of recursive and combinatorial functions often confuse "no result" with "one empty result".
    """
    node = site.node
    if isinstance(node, ast.Call):
        if node.args or node.keywords or not isinstance(node.func, ast.Name) or node.func.id not in _EMPTY:
            return
        kind, items = node.func.id, []
    else:
        if not site.is_value():
            return
        kind = type(node).__name__.lower()
        items = list(node.keys if isinstance(node, ast.Dict) else node.elts)
    if not items:
        for other, new in _EMPTY.items():
            if other != kind and other != "str":
                yield site.replace(node, atom(new), 0.5)
        if kind == "list":
            yield site.replace(node, atom("[[]]"), 0.8)
        yield site.replace(node, atom("None"), 0.4)
        if kind in ("list", "set"):
            opened, closed = ("[", "]") if kind == "list" else ("{", "}")
            for name, weight in site.values():
                yield site.replace(node, atom(f"{opened}{name}{closed}"), weight * 0.4)
            for value in ("0", "1", "None"):
                yield site.replace(node, atom(f"{opened}{value}{closed}"), 0.3)
        return
    if isinstance(node, ast.Dict):
        return
    if isinstance(node, ast.List):
        yield site.replace(node, atom("[]"), 0.5)
        if len(items) == 1 and not isinstance(items[0], ast.Starred):
            yield site.replace(node, site.take(items[0]), 0.4)
            inner = site.take(items[0])
            if not isinstance(items[0], ast.Constant):
                yield site.replace(node, atom(f"list({inner.text})"), 0.2)
    if len(items) > 1 and not isinstance(
        site.parent(), (ast.Subscript, ast.For, ast.Assign, ast.comprehension)
    ):
        if not isinstance(node, ast.Tuple) or len(items) > 2:
            for index in range(len(items)):
                yield site.drop_item(items, index, 0.3)
        for index in range(len(items) - 1):
            yield site.swap(items[index], items[index + 1], 0.5)
