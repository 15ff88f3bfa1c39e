"""Edits of what a function gives back: `return` missing, of the wrong value, at the wrong time; `yield`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pytest_autofix.candidates.search.registry import operator
from pytest_autofix.candidates.search.site import Replacement, Site
from pytest_autofix.candidates.search.snippet import atom


@operator("return.missing", prior=0.8, on=[ast.Expr])
def missing(site: Site) -> Iterator[Replacement]:
    """The result of an expression is computed and thrown away: `return` or `yield from` in front, or assigned."""
    node = site.node
    value = node.value
    function = site.function()
    if isinstance(value, (ast.Yield, ast.YieldFrom, ast.Await)) or function is None:
        return
    start = site.source.span(node)[0]
    generator = site.is_generator(function)
    recursive = isinstance(value, ast.Call) and site.text(value.func).rpartition(".")[2] == function.name
    if not generator:
        yield Replacement(
            ((start, start, "return "),), 1.0 if recursive or not isinstance(value, ast.Call) else 0.4
        )
    else:
        yield Replacement(((start, start, "yield from "),), 1.0 if recursive else 0.5)
        yield Replacement(((start, start, "yield "),), 0.4)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        base = value.func.value  # a method that returns a new value: strings, `sorted`, `replace`
        if isinstance(base, (ast.Name, ast.Attribute)):
            known = site.type_of(base)
            yield Replacement(
                ((start, start, f"{site.text(base)} = "),), 1.0 if known in ("str", "bytes") else 0.3
            )
    elif isinstance(value, ast.Call) and value.args and isinstance(value.args[0], ast.Name):
        yield Replacement(((start, start, f"{value.args[0].id} = "),), 0.4)


@operator("return.assigned", prior=0.35, on=[ast.Assign])
def assigned(site: Site) -> Iterator[Replacement]:
    """`x = f(y)` where `return f(y)` is meant."""
    node = site.node
    if len(node.targets) == 1 and site.function() is not None:
        start, end = site.source.span(node)[0], site.source.outer_span(node.value)[0]
        last = site.block()[-1] is node
        yield Replacement(((start, end, "return "),), 1.0 if last else 0.3)


@operator("return.at_end", prior=0.5, on=[ast.FunctionDef, ast.AsyncFunctionDef])
def at_end(site: Site) -> Iterator[Replacement]:
    """The function ends without giving its result back."""
    node = site.node
    last = node.body[-1]
    if isinstance(last, (ast.Return, ast.Raise)) or node.name == "__init__":
        return
    if site.is_generator(node):
        return
    returns = any(isinstance(one, ast.Return) and one.value is not None for one in ast.walk(node))
    factor = 0.5 if returns else 1.0
    names = [(name, 1.0) for name in site.scope.locals] + [(name, 0.4) for name in site.scope.parameters]
    for name, weight in names:
        made = site.insert_after(last, f"return {name}")
        if made is not None:
            yield Replacement(made.splices, weight * factor)
    for text in ("None", "True", "False", "0", "1", "[]"):
        made = site.insert_after(last, f"return {text}")
        if made is not None and text != "None":
            yield Replacement(made.splices, 0.5 if returns else 0.2)


@operator("return.value", prior=0.45, on=[ast.Return])
def value(site: Site) -> Iterator[Replacement]:
    """Another value is returned: a variable, a truth value, the empty or a paired one."""
    node = site.node
    if node.value is None:
        end = site.source.span(node)[1]
        for name, weight in site.values():
            yield Replacement(((end, end, f" {name}"),), weight)
        for text in ("True", "False", "0", "[]", "None"):
            yield Replacement(((end, end, f" {text}"),), 0.4)
        return
    if isinstance(node.value, ast.Name):
        return  # `name.variable` does it
    for name, weight in site.values():
        yield site.replace(node.value, atom(name), weight * 0.6)
    for text, weight in (
        ("True", 0.3),
        ("False", 0.3),
        ("None", 0.3),
        ("0", 0.2),
        ("1", 0.2),
        ("[]", 0.2),
        ("-1", 0.1),
    ):
        yield site.replace(node.value, atom(text), weight)


@operator("return.self", prior=0.2, on=[ast.Return])
def chained(site: Site) -> Iterator[Replacement]:
    """Methods that are chained give the object itself back."""
    if site.scope.owner == "self" and site.node.value is not None:
        yield site.replace(site.node.value, atom("self"))


@operator("return.yield", prior=0.7, on=[ast.Yield, ast.YieldFrom, ast.Return])
def yielded(site: Site) -> Iterator[Replacement]:
    """`yield` of a sequence where its items are meant, or the other way round; `yield` and `return`."""
    node = site.node
    start = site.source.span(node)[0]
    if isinstance(node, ast.Yield) and node.value is not None:
        begin = site.source.outer_span(node.value)[0]
        yield Replacement((site.cut(start, begin, "yield from "),), 0.8)
        if isinstance(site.parent(), ast.Expr):
            yield Replacement((site.cut(start, begin, "return "),), 0.2)
    elif isinstance(node, ast.YieldFrom):
        yield Replacement((site.cut(start, site.source.outer_span(node.value)[0], "yield "),))
    elif isinstance(node, ast.Return) and node.value is not None:
        function = site.function()
        generator = site.is_generator(function)
        begin = site.source.outer_span(node.value)[0]
        factor = 1.0 if generator else 0.15
        yield Replacement((site.cut(start, begin, "yield "),), factor)
        if generator:
            yield Replacement((site.cut(start, begin, "yield from "),), 0.6)


@operator("return.early", prior=0.3, on=[ast.Return])
def early(site: Site) -> Iterator[Replacement]:
    """A result is returned unconditionally inside a loop: it should only be when it is found."""
    node = site.node
    if site.loop() is None or node.value is None or node.lineno != node.end_lineno:
        return
    place = site.lines(node)
    if place is None or not isinstance(
        node.value, (ast.Name, ast.Call, ast.Compare, ast.BoolOp, ast.UnaryOp)
    ):
        return
    indent, unit, newline = site.indent(node), site.indent_unit(), site.source.newline
    text = site.source.text[place[0] : place[1]].lstrip()
    condition = site.take(node.value).text
    if not isinstance(node.value, ast.Constant):
        yield Replacement(((*place, f"{indent}if {condition}:{newline}{indent}{unit}{text}"),))
        yield Replacement(
            ((*place, f"{indent}if {condition}:{newline}{indent}{unit}return True{newline}"),), 0.8
        )
        yield Replacement(
            ((*place, f"{indent}if not ({condition}):{newline}{indent}{unit}return False{newline}"),), 0.8
        )
