"""Edits of subscripts and slices: position, bounds, direction, missing or extra index, lookups that may fail."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pytest_autofix.candidates.search.registry import operator
from pytest_autofix.candidates.search.site import Replacement, Site
from pytest_autofix.candidates.search.snippet import ATOM, FACTOR, LAMBDA, atom, binary, call, subscript

_SEQUENCES = ("list", "str", "tuple", "deque", "bytes")


@operator("index.position", prior=0.55, on=[ast.Subscript])
def position(site: Site) -> Iterator[Replacement]:
    """Another position: first or last, the mirrored one, a variable instead of a constant."""
    node, inside = site.node, site.node.slice
    if isinstance(inside, (ast.Slice, ast.Tuple)):
        return
    first_or_last = {"0": ("-1", "1"), "-1": ("0", "-2"), "1": ("0", "-1")}.get(site.text(inside), ())
    for new in first_or_last:
        yield site.replace(inside, atom(new), 1.0)
    if not isinstance(inside, ast.Constant) and site.may_be(inside, "int"):
        yield site.replace(inside, atom("0"), 0.3)
        yield site.replace(inside, atom("-1"), 0.4)
        if not isinstance(inside, ast.UnaryOp):
            value = site.take(inside)
            yield site.replace(inside, atom(f"-{value.at(FACTOR)}"), 0.2)
            length = call("len", site.take(node.value))
            yield site.replace(inside, binary(binary(length, "-", atom("1")), "-", value), 0.2)


@operator("index.swap", prior=0.5, on=[ast.Subscript])
def swap(site: Site) -> Iterator[Replacement]:
    """Row and column the wrong way round: `grid[x][y]`, `grid[x, y]`; container and index exchanged."""
    node = site.node
    if isinstance(node.value, ast.Subscript):
        inner = node.value.slice
        if not isinstance(inner, ast.Slice) and not isinstance(node.slice, ast.Slice):
            yield site.swap(inner, node.slice)
    if isinstance(node.slice, ast.Tuple) and len(node.slice.elts) == 2:
        yield site.swap(node.slice.elts[0], node.slice.elts[1])


@operator("index.slice", prior=0.45, on=[ast.Slice])
def bounds(site: Site) -> Iterator[Replacement]:
    """The bounds of a slice: one dropped, one added, first and second half exchanged, reversed."""
    node = site.node
    start, end = site.source.span(node)
    lower, upper, step = (
        site.take(part).at(LAMBDA) if part else "" for part in (node.lower, node.upper, node.step)
    )
    tail = f":{step}" if step else ""
    new: list[tuple[str, float]] = []
    if lower:
        new.append((f":{upper}{tail}", 0.6))
    if upper:
        new.append((f"{lower}:{tail}", 0.6))
    if lower and not upper:
        new.append((f":{lower}{tail}", 0.6))
    if upper and not lower:
        new.append((f"{upper}:{tail}", 0.6))
        new.append((f"-{upper}:{tail}", 0.3))
    if lower and upper:
        new.append((f"{upper}:{lower}{tail}", 0.3))
    if not lower:
        new += [(f"1:{upper}{tail}", 0.7), (f"2:{upper}{tail}", 0.15)]
        new += [(f"{name}:{upper}{tail}", weight * 0.4) for name, weight in _positions(site)]
        new += [(f"{name} + 1:{upper}{tail}", weight * 0.3) for name, weight in _positions(site)]
    if not upper:
        new += [(f"{lower}:-1{tail}", 0.7)]
        new += [(f"{lower}:{name}{tail}", weight * 0.4) for name, weight in _positions(site)]
        new += [(f"{lower}:{name} + 1{tail}", weight * 0.3) for name, weight in _positions(site)]
    if step:
        new.append((f"{lower}:{upper}", 0.6))
        new.append(
            (f"{lower}:{upper}:-{step}" if not step.startswith("-") else f"{lower}:{upper}:{step[1:]}", 0.6)
        )
    else:
        new += [(f"{lower}:{upper}:-1", 0.5), (f"{lower}:{upper}:2", 0.2)]
    for text, weight in new:
        yield Replacement(((start, end, text),), weight)


def _positions(site: Site) -> list[tuple[str, float]]:
    return [(name, weight) for name, weight in site.variables() if site.may_be(name, "int")]


@operator("index.slice_to_item", prior=0.3, on=[ast.Subscript])
def slice_or_item(site: Site) -> Iterator[Replacement]:
    """An item where a slice is meant, or the other way round: `x[i]`, `x[i:]`, `x[:i]`."""
    node, inside = site.node, site.node.slice
    if not isinstance(node.ctx, ast.Load) or isinstance(inside, ast.Tuple):
        return
    if isinstance(inside, ast.Slice):
        for part in (inside.lower, inside.upper):
            if part is not None:
                yield site.replace(node, subscript(site.take(node.value), site.take(part).text), 0.6)
    elif site.may_be(inside, "int"):
        start, end = site.source.span(inside)
        text = site.take(inside).at(LAMBDA)
        yield Replacement(((start, end, f"{text}:"),), 0.5)
        yield Replacement(((start, end, f":{text}"),), 0.5)


@operator("index.remove", prior=0.5, on=[ast.Subscript])
def remove(site: Site) -> Iterator[Replacement]:
    """The whole container where a part of it stands, or the index itself."""
    node = site.node
    if not isinstance(node.ctx, ast.Load):
        return
    yield site.replace(node, site.take(node.value))
    if not isinstance(node.slice, (ast.Slice, ast.Constant, ast.Tuple)):
        yield site.replace(node, site.take(node.slice), 0.5)


@operator("index.add", prior=0.35, on=[ast.Name, ast.Attribute, ast.Call, ast.Subscript])
def add(site: Site) -> Iterator[Replacement]:
    """A part of the container where the whole stands: an item, the rest, the reverse."""
    node, parent = site.node, site.parent()
    if not site.is_value() or site.is_condition() or isinstance(parent, (ast.keyword, ast.Subscript)):
        return
    kind = site.type_of(node)
    if kind in ("int", "float", "bool", "function", "set", "NoneType", "generator"):
        return
    known = 1.0 if kind in _SEQUENCES else 0.4
    value = site.take(node)
    iterated = isinstance(parent, (ast.For, ast.comprehension))
    if kind != "dict":
        for text, weight in (
            ("1:", 0.8),
            (":-1", 0.6),
            ("::-1", 0.6),
            ("0", 0.5),
            ("-1", 0.5),
            ("1", 0.3),
            (":", 0.2),
        ):
            if iterated and text in ("0", "-1", "1"):
                weight *= 0.3
            yield site.replace(node, subscript(value, text), weight * known)
    for name, weight in site.variables():
        if name == value.text or not (kind == "dict" or site.may_be(name, "int")):
            continue
        index = 1.0 if site.type_of(name) == "int" or kind == "dict" else 0.4
        if not iterated:
            yield site.replace(node, subscript(value, name), weight * known * index * 0.6)
        if kind != "dict":
            yield site.replace(node, subscript(value, f"{name}:"), weight * known * index * 0.3)
            yield site.replace(node, subscript(value, f":{name}"), weight * known * index * 0.3)
            yield site.replace(node, subscript(value, f"{name} + 1:"), weight * known * index * 0.2)


@operator("index.lookup", prior=0.4, on=[ast.Subscript, ast.Call])
def lookup(site: Site) -> Iterator[Replacement]:
    """A lookup that may fail, or must: `d[k]` becomes `d.get(k)` or `d.get(k, 0)`, and back."""
    node = site.node
    if isinstance(node, ast.Call):
        function = node.func
        if not (isinstance(function, ast.Attribute) and function.attr == "get" and 1 <= len(node.args) <= 2):
            return
        if isinstance(node.args[0], ast.Starred):
            return
        yield site.replace(node, subscript(site.take(function.value), site.take(node.args[0]).text), 0.5)
        if len(node.args) == 1:
            end = site.source.outer_span(node.args[0])[1] if node.keywords else site.source.span(node)[1] - 1
            for default in ("0", '""', "[]", "False", "{}"):
                yield Replacement(((end, end, f", {default}"),), 0.6)
        return
    if not isinstance(node.ctx, ast.Load) or isinstance(node.slice, (ast.Slice, ast.Tuple)):
        return
    if site.type_of(node.value) in _SEQUENCES or isinstance(site.parent(), ast.Delete):
        return
    factor = 1.0 if site.facts.has_raised("KeyError") else 0.3
    head = f"{site.take(node.value).at(ATOM)}.get({site.take(node.slice).at(LAMBDA)}"
    for default, weight in ((")", 1.0), (", 0)", 0.8), (', "")', 0.4), (", [])", 0.4), (", False)", 0.3)):
        yield site.replace(node, atom(head + default), weight * factor)
    for name, weight in site.variables():
        yield site.replace(node, atom(f"{head}, {name})"), weight * factor * 0.3)


@operator("index.wrap_around", prior=0.2, on=[ast.Subscript])
def wrap_around(site: Site) -> Iterator[Replacement]:
    """A position that runs over the end: taken modulo the length, or clamped to it."""
    node, inside = site.node, site.node.slice
    if isinstance(inside, (ast.Slice, ast.Tuple, ast.Constant)) or not site.may_be(inside, "int"):
        return
    if not site.may_be(node.value, *_SEQUENCES):
        return
    factor = 1.0 if site.facts.has_raised("IndexError") else 0.4
    length = call("len", site.take(node.value))
    yield site.replace(inside, binary(site.take(inside), "%", length), factor)
    yield site.replace(inside, call("min", site.take(inside), binary(length, "-", atom("1"))), factor * 0.4)
