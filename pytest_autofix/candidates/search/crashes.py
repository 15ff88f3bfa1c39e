"""Guards that answer an exception: absent object, position out of range, missing key, division by zero.

"Null pointer checker" and "range checker" of PAR (Kim et al., ICSE 2013). They fire only on the lines where such an
exception came up, and only for the operands that can have caused it, so they can come very early.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pytest_autofix.candidates.search.registry import operator
from pytest_autofix.candidates.search.site import Replacement, Site
from pytest_autofix.candidates.search.snippet import (
    ATOM,
    COMPARE,
    OR,
    SUM,
    TEST,
    Snippet,
    boolean,
    compare,
    negated,
)

_JUMPS = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def _crashed(site: Site) -> bool:
    statement = site.statement()
    if statement is None:
        return False
    last = site.node.end_lineno or site.line
    lines = {site.line, last, statement.lineno}
    return any((site.source.path, line) in site.facts.crash_lines for line in lines)


def _condition(site: Site) -> ast.expr | None:
    """The whole condition around the node, if it stands in one."""
    node: ast.AST = site.node
    for above in site.ancestors():
        where = site.field(node)
        if (
            isinstance(above, (ast.If, ast.While, ast.IfExp))
            and where == "test"
            and isinstance(node, ast.expr)
        ):
            return node
        if isinstance(above, ast.comprehension) and where == "ifs" and isinstance(node, ast.expr):
            return node
        if isinstance(above, ast.stmt):
            return None
        node = above
    return None


def _simple(node: ast.AST) -> bool:
    """Whether the expression may be evaluated twice: names, attributes and items of such."""
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        return _simple(node.value)
    return isinstance(node, ast.Name)


def _guards(site: Site, bad: Snippet, good: Snippet) -> Iterator[Replacement]:
    """The condition protected, or the statement left out or left early, where `bad` holds."""
    condition = _condition(site)
    if condition is not None:
        value = site.take(condition)
        yield site.replace(condition, boolean("or", bad, value))
        yield site.replace(condition, boolean("and", good, value))
        return
    statement = site.statement()
    if statement is None or site.lines(statement) is None:
        return
    block = site.block(statement)
    for before in block[: block.index(statement)] if statement in block else ():
        if isinstance(before, ast.If) and isinstance(before.body[-1], _JUMPS):  # a guard that lacks this case
            yield site.replace(before.test, boolean("or", site.take(before.test), bad), 0.7)
            yield site.replace(before.test, boolean("or", bad, site.take(before.test)), 0.5)
    function = site.function()
    leave: list[tuple[str, float]] = []
    if site.loop() is not None:
        leave += [("continue", 0.8), ("break", 0.8)]
    if function is not None:
        texts = {
            site.text(node.value): 1.0
            for node in ast.walk(function)
            if isinstance(node, ast.Return) and isinstance(node.value, ast.Constant)
        }
        for text, weight in (
            ("None", 0.8),
            ("False", 0.5),
            ("0", 0.5),
            ("[]", 0.4),
            ("True", 0.3),
            ('""', 0.2),
        ):
            texts.setdefault(text, weight)
        leave += [(f"return {text}", weight) for text, weight in texts.items()]
        leave += [
            (f"return {name}", 0.3) for name in site.scope.parameters[:4] if name not in ("self", "cls")
        ]
    for text, weight in leave:
        made = site.insert_before(statement, f"if {bad.text}:", f"\t{text}")
        if made is not None:
            yield Replacement(made.splices, weight)
    place = site.lines(statement)
    if (
        place is not None
        and statement.lineno == statement.end_lineno
        and not isinstance(statement, ast.Return)
    ):
        head = f"{site.indent(statement)}if {good.text}:{site.source.newline}"
        inner = site.reindented(statement, site.indent(statement) + site.indent_unit())
        if inner is not None:
            yield Replacement(((*place, head + inner),))


@operator(
    "crash.none",
    prior=1.2,
    on=[ast.Attribute, ast.Subscript],
    when=lambda facts: facts.has_raised("AttributeError", "TypeError"),
)
def none(site: Site) -> Iterator[Replacement]:
    """`None` has no such attribute or item: the object is tested before."""
    node = site.node
    if not _crashed(site) or not _simple(node.value):
        return
    if isinstance(node, ast.Attribute):
        if site.facts.attributes.get(node.attr) != "NoneType":
            return
    elif not site.facts.has_raised("TypeError") or not site.may_be(node.value, "NoneType"):
        return
    value = site.take(node.value)
    yield from _guards(site, compare(value, "is", Snippet("None")), compare(value, "is not", Snippet("None")))


@operator("crash.position", prior=0.8, on=[ast.Subscript], when=lambda facts: facts.has_raised("IndexError"))
def position(site: Site) -> Iterator[Replacement]:
    """A position beyond the end, or the first item of nothing: the length is tested before."""
    node, inside = site.node, site.node.slice
    if (
        not site.facts.has_raised("IndexError")
        or not _crashed(site)
        or isinstance(inside, (ast.Slice, ast.Tuple))
    ):
        return
    if not _simple(node.value):
        return
    value = site.take(node.value)
    yield from _guards(site, negated(value), value)
    if not isinstance(inside, ast.Constant) and not isinstance(inside, ast.UnaryOp):
        length = Snippet(f"len({value.text})")
        index = site.take(inside)
        yield from _guards(site, compare(index, ">=", length), compare(index, "<", length))


@operator(
    "crash.pop", prior=0.8, on=[ast.Call], when=lambda facts: facts.has_raised("IndexError", "KeyError")
)
def pop(site: Site) -> Iterator[Replacement]:
    """Something is taken out of an empty collection: it is tested before; a loop ends with it."""
    function = site.node.func
    if not isinstance(function, ast.Attribute) or function.attr not in (
        "pop",
        "popleft",
        "popitem",
        "remove",
    ):
        return
    if (
        not site.facts.has_raised("IndexError", "KeyError")
        or not _crashed(site)
        or not _simple(function.value)
    ):
        return
    value = site.take(function.value)
    yield from _guards(site, negated(value), value)
    loop = site.loop()
    if isinstance(loop, ast.While):
        if isinstance(loop.test, ast.Constant):
            yield site.replace(loop.test, value, 1.5)
        else:
            yield site.replace(loop.test, boolean("and", value, site.take(loop.test)))


@operator("crash.key", prior=1.0, on=[ast.Subscript], when=lambda facts: facts.has_raised("KeyError"))
def key(site: Site) -> Iterator[Replacement]:
    """A key that is not there yet: it is tested before, or gets an initial value."""
    node = site.node
    if not site.facts.has_raised("KeyError") or not _crashed(site) or not _simple(node.value):
        return
    if isinstance(node.slice, ast.Slice):
        return
    value, index = site.take(node.value), site.take(node.slice)
    missing = compare(index, "not in", value)
    yield from _guards(site, missing, compare(index, "in", value))
    statement = site.statement()
    if statement is not None:
        for initial, weight in (
            ("0", 1.0),
            ("[]", 1.0),
            ("set()", 0.6),
            ("{}", 0.5),
            ('""', 0.3),
            ("1", 0.2),
        ):
            made = site.insert_before(
                statement, f"if {missing.text}:", f"\t{value.text}[{index.text}] = {initial}"
            )
            if made is not None:
                yield Replacement(made.splices, weight)


@operator("crash.zero", prior=1.0, on=[ast.BinOp], when=lambda facts: facts.has_raised("ZeroDivisionError"))
def zero(site: Site) -> Iterator[Replacement]:
    """A division by zero: the divisor is tested before."""
    node = site.node
    if not isinstance(node.op, (ast.Div, ast.FloorDiv, ast.Mod)) or not site.facts.has_raised(
        "ZeroDivisionError"
    ):
        return
    if not _crashed(site):
        return
    divisor = site.take(node.right)
    if (
        isinstance(node.right, ast.Call)
        and isinstance(node.right.func, ast.Name)
        and node.right.func.id == "len"
    ):
        divisor = site.take(node.right.args[0]) if len(node.right.args) == 1 else divisor
    bad = negated(divisor) if _simple(node.right) is False else Snippet(f"{divisor.text} == 0", COMPARE)
    yield from _guards(site, bad, divisor)
    for text, weight in (("0", 1.0), ("0.0", 0.5), ("None", 0.4), ("1", 0.3)):
        yield site.replace(
            node, Snippet(f"{site.take(node).at(OR)} if {divisor.at(OR)} else {text}", TEST), weight
        )


@operator("crash.unpack", prior=0.8, on=[ast.Assign], when=lambda facts: facts.has_raised("ValueError"))
def unpack(site: Site) -> Iterator[Replacement]:
    """Too few items to unpack: nothing is left, which is tested before."""
    node = site.node
    if (
        not _crashed(site)
        or not isinstance(node.targets[0], (ast.Tuple, ast.List))
        or not _simple(node.value)
    ):
        return
    value = site.take(node.value)
    yield from _guards(site, negated(value), value)


@operator(
    "crash.recursion", prior=0.8, on=[ast.FunctionDef], when=lambda facts: facts.has_raised("RecursionError")
)
def recursion(site: Site) -> Iterator[Replacement]:
    """A recursion that does not get smaller: an argument of the inner call is passed on unchanged."""
    node = site.node
    names = {argument.arg for argument in node.args.args}
    for inner in site.context.nodes:
        if not (isinstance(inner, ast.Call) and site.text(inner.func).rpartition(".")[2] == node.name):
            continue
        for argument in inner.args:
            text = site.text(argument)
            if isinstance(argument, ast.Name) and text in names:
                for new in (f"{text} - 1", f"{text} + 1", f"{text}[1:]", f"{text}[:-1]", f"{text} // 2"):
                    if site.may_be(text, "int", "float") or "[" in new:
                        yield site.replace(argument, Snippet(new, ATOM if "[" in new else SUM))
