"""Edits of what is called: confusable functions and methods, others of the same shape, calls too many or missing.

"Wrong function name" and "same function, wrong caller" of ManySStuBs4J (MSR 2020); method replacement of PAR
(Kim et al., ICSE 2013).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pytest_autofix.candidates.search.registry import operator
from pytest_autofix.candidates.search.site import Replacement, Site
from pytest_autofix.candidates.search.snippet import AWAIT, Snippet, atom, call, negated


def _pairs(table: str) -> tuple[tuple[str, str], ...]:
    words = [pair.split() for pair in table.split(",")]
    return tuple((first, second) for first, second in words)


_FUNCTIONS = _pairs("""
    min max, any all, sorted reversed, sorted list, floor ceil, list set, list tuple, int float, int round,
    int str, str repr, range list, sum len, sum max, sum min, len max, abs int, map filter, zip zip_longest,
    enumerate iter, isinstance issubclass, getattr hasattr, ord chr, dict OrderedDict, dict defaultdict, set
    frozenset, sin cos, log log2, log log10, log10 log2, combinations permutations, combinations
    combinations_with_replacement, permutations product, heappush heappop, bisect_left bisect_right, gt lt,
    ge le, nlargest nsmallest, takewhile dropwhile, loads load, dumps dump, copy deepcopy, bool int, mean
    median
""")
_METHODS = _pairs("""
    append extend, append add, append appendleft, append insert, extend extendleft, add update, add discard,
    remove discard, pop popleft, pop remove, get pop, get setdefault, items keys, items values, keys values,
    index find, find rfind, index rindex, index count, split rsplit, split splitlines, split partition,
    partition rpartition, strip lstrip, strip rstrip, lstrip rstrip, lower upper, title capitalize, upper
    capitalize, upper title, lower casefold, isupper islower, startswith endswith, ljust rjust, isdigit
    isalpha, isdigit isalnum, isalpha isalnum, isdigit isnumeric, isdigit isdecimal, union intersection,
    union difference, intersection difference, difference symmetric_difference, issubset issuperset, update
    difference_update, read readlines, read readline, write writelines, sort reverse, match search, match
    fullmatch, search findall, findall finditer, encode decode, removeprefix removesuffix, ljust center,
    rjust center, center zfill, rjust zfill, get get_nowait, put put_nowait, acquire release, read_text
    read_bytes, exists is_file, is_file is_dir, name stem, total_seconds seconds, replace strip, group
    groups, lstrip removeprefix, rstrip removesuffix
""")


def _partners(word: str, table: tuple[tuple[str, str], ...]) -> list[str]:
    return [pair[1 - pair.index(word)] for pair in table if word in pair]


@operator("call.confusable", prior=0.75, on=[ast.Call])
def confusable(site: Site) -> Iterator[Replacement]:
    """A function or method that is easily taken for another: `min` and `max`, `append` and `extend`."""
    function = site.node.func
    if isinstance(function, ast.Name):
        usable = site.scope.visible
        for name in _partners(function.id, _FUNCTIONS):
            if name in usable:
                yield site.replace(function, atom(name))
    elif isinstance(function, ast.Attribute):
        end = site.source.span(function)[1]
        names = _partners(function.attr, _METHODS)
        if isinstance(function.value, ast.Name) and function.value.id in site.context.module.imports:
            names += _partners(function.attr, _FUNCTIONS)
        for name in names:
            new = site.cut(end - len(function.attr), end, name)
            if name == "insert" and len(site.node.args) == 1:
                start = site.source.span(site.node.args[0])[0]
                yield Replacement((new, (start, start, "0, ")))
            elif name == "append" and function.attr == "insert":
                if len(site.node.args) == 2:
                    yield Replacement((new, *site.drop_item(site.node.args, 0).splices))
            else:
                yield Replacement((new,))


@operator("call.reference", prior=0.6, on=[ast.Name, ast.Attribute])
def reference(site: Site) -> Iterator[Replacement]:
    """A function passed by name that is easily taken for another: `key=min`, `map(int, …)`, `operator.lt`."""
    node = site.node
    if not site.is_value():
        return
    if isinstance(node, ast.Name):
        for name in _partners(node.id, _FUNCTIONS):
            if name in site.scope.visible:
                yield site.replace(node, atom(name))
    elif isinstance(node.value, ast.Name) and node.value.id in site.context.module.imports:
        for name in _partners(node.attr, _FUNCTIONS):
            yield site.replace(node, atom(f"{node.value.id}.{name}"))


@operator("call.same_shape", prior=0.6, on=[ast.Call])
def same_shape(site: Site) -> Iterator[Replacement]:
    """Another function of the file, or method of the class, that takes as many arguments."""
    node, function = site.node, site.node.func
    if any(isinstance(argument, ast.Starred) for argument in node.args):
        return
    count = len(node.args) + len(node.keywords)
    if isinstance(function, ast.Name) and function.id in site.scope.visible:
        for name, signature in site.context.module.functions.items():
            if name != function.id and signature.accepts(count):
                yield site.replace(
                    function, atom(name), 1.0 if function.id in site.context.module.functions else 0.3
                )
        for name in site.inner_functions():
            if name != function.id:
                yield site.replace(function, atom(name), 0.7)
        if function.id in site.context.module.classes:
            for name in site.context.module.classes:
                if name != function.id:
                    yield site.replace(function, atom(name), 0.8)
    elif isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        if function.value.id != site.scope.owner:
            return
        end = site.source.span(function)[1]
        for name, signature in site.scope.methods.items():
            if name != function.attr and signature.accepts(count) and not name.startswith("__"):
                yield Replacement(((end - len(function.attr), end, name),))


@operator("call.unwrap", prior=0.5, on=[ast.Call])
def unwrap(site: Site) -> Iterator[Replacement]:
    """A call too many: `f(x)` becomes `x`, `x.m()` becomes `x`."""
    node, function = site.node, site.node.func
    if isinstance(site.parent(), ast.Expr):
        return
    plain = [argument for argument in node.args if not isinstance(argument, ast.Starred)]
    for argument in plain:
        yield site.replace(node, site.take(argument), 1.0 if len(plain) == 1 else 0.5)
    if isinstance(function, ast.Attribute) and not _is_module(site, function.value):
        yield site.replace(node, site.take(function.value), 0.8 if not node.args else 0.5)


def _is_module(site: Site, node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in (*site.context.module.imports, "self", "cls")


@operator("call.missing", prior=0.6, on=[ast.Attribute, ast.Name, ast.Subscript])
def missing(site: Site) -> Iterator[Replacement]:
    """The function itself where its result is meant: `x.strip` becomes `x.strip()`."""
    node, parent = site.node, site.parent()
    if not site.is_load() or (isinstance(parent, ast.Call) and site.field() == "func"):
        return
    if isinstance(parent, ast.keyword) and parent.arg in ("key", "default_factory", "target"):
        return
    weight = 0.1
    if isinstance(node, ast.Attribute):
        if (
            node.attr in site.scope.methods
            and isinstance(node.value, ast.Name)
            and node.value.id == site.scope.owner
        ) or any(node.attr in pair for pair in _METHODS):
            weight = 1.0
        elif _is_module(site, node.value):
            weight = 0.2
    elif isinstance(node, ast.Name):
        known = site.context.module.functions.get(node.id)
        if known is not None and known.accepts(0):
            weight = 1.0
        elif site.type_of(node) != "function":
            return
    likely = weight > 0.1 or site.facts.has_raised("TypeError", "AttributeError")
    if likely and (not isinstance(parent, ast.Attribute) or weight == 1.0):
        yield site.replace(node, call(site.take(node)), weight)
    statement = site.statement()
    if isinstance(statement, ast.Expr) and statement.value is node:
        yield site.replace(node, call(site.take(node)))


@operator("call.extra", prior=0.5, on=[ast.Call])
def extra(site: Site) -> Iterator[Replacement]:
    """Parentheses too many: a property or a value that is no function is called."""
    node = site.node
    if node.args or node.keywords or isinstance(site.parent(), ast.Expr):
        return
    weight = 1.0 if site.facts.has_raised("TypeError") else 0.4
    yield site.replace(node, site.take(node.func), weight)


@operator("call.receiver", prior=0.3, on=[ast.Call])
def receiver(site: Site) -> Iterator[Replacement]:
    """Receiver and argument the wrong way round: `a.issubset(b)` becomes `b.issubset(a)`."""
    node, function = site.node, site.node.func
    if not isinstance(function, ast.Attribute) or len(node.args) != 1 or node.keywords:
        return
    if _is_module(site, function.value) or isinstance(
        node.args[0], (ast.Starred, ast.GeneratorExp, ast.Constant)
    ):
        return
    yield site.swap(function.value, node.args[0])


@operator("call.await", prior=0.8, on=[ast.Call, ast.Await])
def awaited(site: Site) -> Iterator[Replacement]:
    """A coroutine that is not awaited, or a value that is no coroutine and is."""
    node = site.node
    if isinstance(node, ast.Await):
        yield site.replace(node, site.take(node.value), 0.5)
    elif isinstance(site.function(), ast.AsyncFunctionDef) and not isinstance(site.parent(), ast.Await):
        yield site.replace(node, Snippet(f"await {site.take(node).text}", AWAIT))


@operator("call.quantifier", prior=0.3, on=[ast.Call])
def quantifier(site: Site) -> Iterator[Replacement]:
    """`any` and `all` with the opposite condition: `not any(…)`, `any(not …)`."""
    node = site.node
    if not (isinstance(node.func, ast.Name) and node.func.id in ("any", "all") and len(node.args) == 1):
        return
    inside = node.args[0]
    if not isinstance(site.parent(), ast.UnaryOp):
        yield site.replace(node, negated(site.take(node)), 0.6)
    if isinstance(inside, (ast.GeneratorExp, ast.ListComp)):
        element = inside.elt
        if isinstance(element, ast.UnaryOp) and isinstance(element.op, ast.Not):
            yield site.replace(element, site.take(element.operand))
        else:
            yield site.replace(element, negated(site.take(element)))
