"""Edits of exceptions: which is raised, which is caught, whether it is raised at all."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from pytest_autofix.candidates.search.registry import operator
from pytest_autofix.candidates.search.site import Replacement, Site
from pytest_autofix.candidates.search.snippet import atom

_COMMON = ("ValueError", "TypeError", "KeyError", "IndexError", "AttributeError", "RuntimeError",
           "NotImplementedError", "ZeroDivisionError", "OSError", "StopIteration", "LookupError",
           "FileNotFoundError", "Exception")  # fmt: skip


def _known(site: Site) -> dict[str, float]:
    """Exception types that may be meant: those the tests saw or wait for, those of the file, the common ones."""
    found: dict[str, float] = {}
    for name in (*site.facts.expected_exceptions, *sorted(site.facts.raised)):
        if name in site.scope.visible:
            found[name] = 1.0
    for name, node in site.context.module.classes.items():
        if name.endswith(("Error", "Exception")) or any(
            isinstance(base, ast.Name) and base.id.endswith(("Error", "Exception")) for base in node.bases
        ):
            found.setdefault(name, 0.6)
    for name in sorted(site.context.module.imports):
        if name.endswith(("Error", "Exception")):
            found.setdefault(name, 0.6)
    for name in _COMMON:
        found.setdefault(name, 0.25)
    return found


@operator("exception.raised", prior=0.8, on=[ast.Raise])
def raised(site: Site) -> Iterator[Replacement]:
    """Another exception type is raised."""
    exception = site.node.exc
    if exception is None:
        return
    name = exception.func if isinstance(exception, ast.Call) else exception
    if not isinstance(name, (ast.Name, ast.Attribute)):
        return
    for other, weight in _known(site).items():
        if other != site.text(name):
            yield site.replace(name, atom(other), weight)


@operator("exception.caught", prior=0.8, on=[ast.ExceptHandler])
def caught(site: Site) -> Iterator[Replacement]:
    """Another exception type is caught, or one more; a tuple of types with one too many."""
    node = site.node
    if node.type is None:
        return
    if isinstance(node.type, ast.Tuple):
        types = [site.text(element) for element in node.type.elts]
        end = site.source.span(node.type.elts[-1])[1]
        for other, weight in _known(site).items():
            if other not in types:
                yield Replacement(((end, end, f", {other}"),), weight)
        return
    old = site.text(node.type)
    for other, weight in _known(site).items():
        if other != old:
            yield site.replace(node.type, atom(other), weight * 0.7)
            if other in site.facts.raised:
                yield site.replace(node.type, atom(f"({old}, {other})"), 1.0)
    base = getattr(builtins, old, None)
    if isinstance(base, type) and issubclass(base, BaseException):
        for above in base.__mro__[1:-3]:
            yield site.replace(node.type, atom(above.__name__), 0.5)


@operator("exception.handler", prior=0.4, on=[ast.ExceptHandler])
def handler(site: Site) -> Iterator[Replacement]:
    """The handler swallows what it should pass on: `raise` at its end, or instead of its last statement."""
    last = site.node.body[-1]
    if isinstance(last, ast.Raise):
        yield Replacement(((*site.source.span(last), "pass"),), 0.5)
        for text in ("return None", "return False", "return 0", "continue" if site.loop() else ""):
            if text:
                yield Replacement(((*site.source.span(last), text),), 0.3)
        return
    yield Replacement(((*site.source.span(last), "raise"),))
    if not isinstance(last, ast.Return) and (made := site.insert_after(last, "raise")) is not None:
        yield made


@operator("exception.not_raised", prior=1.0, on=[ast.Expr, ast.Return])
def not_raised(site: Site) -> Iterator[Replacement]:
    """An exception is made, or returned, but not raised."""
    node = site.node
    value = node.value
    target = value.func if isinstance(value, ast.Call) else value
    if isinstance(target, (ast.Name, ast.Attribute)):
        name = site.text(target).rpartition(".")[2]
        if name.endswith(("Error", "Exception")) or name in ("StopIteration", "KeyboardInterrupt"):
            yield Replacement(((site.source.span(node)[0], site.source.span(value)[0], "raise "),))


@operator(
    "exception.instead",
    prior=0.3,
    on=[ast.Return, ast.Pass, ast.Expr],
    when=lambda facts: facts.expected_exceptions,
)
def instead(site: Site) -> Iterator[Replacement]:
    """A test waits for an exception where this statement goes on: it is raised here instead."""
    if site.docstring(site.node):
        return
    for name in site.facts.expected_exceptions[:3]:
        if name in site.scope.visible:
            yield Replacement(((*site.source.span(site.node), f"raise {name}"),))


@operator("exception.deleted", prior=0.3, on=[ast.Raise])
def deleted(site: Site) -> Iterator[Replacement]:
    """An exception where a result is expected."""
    node = site.node
    for text, weight in (
        ("return None", 0.6),
        ("return False", 0.6),
        ("return 0", 0.4),
        ("return []", 0.3),
        ("pass", 0.6),
    ):
        yield Replacement(((*site.source.span(node), text),), weight)
    if site.loop() is not None:
        yield Replacement(((*site.source.span(node), "continue"),), 0.6)
        yield Replacement(((*site.source.span(node), "break"),), 0.3)
