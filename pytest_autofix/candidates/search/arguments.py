"""Edits of arguments: order, number, keywords; what a TypeError about a call probably meant.

Swapped arguments are a fault of their own in ManySStuBs4J (MSR 2020) and in DeepBugs (Pradel and Sen, OOPSLA 2018);
"parameter replacer" and "parameter adder and remover" are templates of PAR (Kim et al., ICSE 2013).
"""

from __future__ import annotations

import ast
import difflib
import itertools
from collections.abc import Iterator

from pytest_autofix.candidates.search.registry import operator
from pytest_autofix.candidates.search.scope import Signature, signature_of
from pytest_autofix.candidates.search.site import Replacement, Site
from pytest_autofix.candidates.search.snippet import LAMBDA, LEVELS, atom, call


def _signature(site: Site) -> Signature | None:
    """The signature of the function called, if the file defines it."""
    function = site.node.func
    if isinstance(function, ast.Name):
        known = site.context.module.functions.get(function.id)
        if known is None and function.id in site.context.module.classes:
            for statement in site.context.module.classes[function.id].body:
                if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
                    return signature_of(statement, method=True)
        if known is None:
            inner = site.inner_functions().get(function.id)
            return signature_of(inner, method=False) if inner is not None else None
        return known
    if not (isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)):
        return None
    return site.scope.methods.get(function.attr) if function.value.id == site.scope.owner else None


def _called(site: Site) -> str:
    function = site.node.func
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


def _append(site: Site, text: str, weight: float) -> Replacement:
    """One more argument at the end of a call, after a trailing comma if there is one."""
    node = site.node
    end = site.source.span(node)[1] - 1
    last = site.source.before(end)
    if site.source.text[last] in "(,":
        return Replacement(
            ((last + 1, last + 1, (" " if site.source.text[last] == "," else "") + text),), weight
        )
    given = [*node.args, *(keyword.value for keyword in node.keywords)]
    if len(given) == 1 and isinstance(given[0], ast.GeneratorExp):
        inner = site.source.span(given[0])
        if inner[1] == end + 1:  # the parentheses of the call are those of the generator
            return site.replace(given[0], atom(f"({site.text(given[0])}, {text})"), weight)
    return Replacement(((last + 1, last + 1, ", " + text),), weight)


@operator("argument.swap", prior=0.7, on=[ast.Call])
def swap(site: Site) -> Iterator[Replacement]:
    """Two positional arguments the wrong way round."""
    arguments = site.node.args
    signature = _signature(site)
    for first, second in itertools.combinations(range(min(len(arguments), 6)), 2):
        if ast.dump(arguments[first]) != ast.dump(arguments[second]):
            weight = 1.0 if second == first + 1 else 0.5
            weight *= _names_say(site, signature, first, second)
            yield site.swap(arguments[first], arguments[second], weight)


def _names_say(site: Site, signature: Signature | None, first: int, second: int) -> float:
    """Arguments named like their parameters are where they belong (Liu et al., "Nomen est omen", OOPSLA 2016)."""
    if signature is None or second >= len(signature.parameters):
        return 1.0
    given = [site.text(site.node.args[index]) for index in (first, second)]
    wanted = [signature.parameters[index] for index in (first, second)]
    if given[0] == wanted[1] or given[1] == wanted[0]:
        return 1.0
    return 0.3 if given[0] == wanted[0] or given[1] == wanted[1] else 0.8


@operator("argument.drop", prior=0.5, on=[ast.Call])
def drop(site: Site) -> Iterator[Replacement]:
    """An argument too many, positional or by keyword."""
    node = site.node
    items: list[ast.AST] = [*node.args, *node.keywords]
    if not items or (len(items) == 1 and isinstance(items[0], ast.GeneratorExp)):
        return
    signature = _signature(site)
    wrong = _called(site) in site.facts.wrong_counts
    for index, item in enumerate(items):
        if signature is not None and not signature.accepts(len(items) - 1):
            continue
        weight = 0.6 if isinstance(item, ast.keyword) else 0.4
        if len(items) == 1 and signature is None and not wrong:
            weight *= 0.5
        yield site.drop_item(items, index, 1.0 if wrong else weight)


@operator("argument.add", prior=0.4, on=[ast.Call])
def add(site: Site) -> Iterator[Replacement]:
    """One more argument from the scope, where the function called takes one more."""
    node = site.node
    if any(isinstance(argument, ast.Starred) for argument in node.args):
        return
    signature = _signature(site)
    count = len(node.args)
    name = _called(site)
    if signature is not None:
        given = {keyword.arg for keyword in node.keywords}
        rest = [one for one in (*signature.parameters[count:], *signature.keyword_only) if one not in given]
        for parameter in rest:
            for value, weight in site.values():
                same = 1.0 if value.rpartition(".")[2] == parameter else 0.3
                if parameter == rest[0] and not node.keywords and parameter in signature.parameters:
                    yield _append(site, value, weight * same)
                else:
                    yield _append(site, f"{parameter}={value}", weight * same * 0.5)
    elif isinstance(node.func, ast.Attribute) or name in (
        "getattr",
        "next",
        "sum",
        "max",
        "min",
        "dict",
        "pow",
        "round",
    ):
        for value, weight in site.values():
            yield _append(site, value, weight * 0.25)
        for value in ("None", "0", "1", '""', "True"):
            yield _append(site, value, 0.15)


@operator("argument.missing", prior=3.0, on=[ast.Call], when=lambda facts: facts.missing_arguments)
def missing(site: Site) -> Iterator[Replacement]:
    """The argument a TypeError says is missing: a variable of that name first, then every value in scope."""
    parameters = site.facts.missing_arguments.get(_called(site), ())
    if (
        not parameters
        and isinstance(site.node.func, ast.Name)
        and site.node.func.id in site.context.module.classes
    ):
        parameters = site.facts.missing_arguments.get("__init__", ())
    if not parameters:
        return
    wanted = parameters[0]
    for value, weight in site.values():
        same = 1.0 if value.rpartition(".")[2] == wanted else 0.3
        yield _append(site, value if not site.node.keywords else f"{wanted}={value}", weight * same)
    for value in ("None", "0", "1", '""', "[]", "True", "False"):
        yield _append(site, f"{wanted}={value}", 0.3)
    if len(parameters) > 1:
        known = {value.rpartition(".")[2]: value for value, _ in site.values()}
        if all(parameter in known for parameter in parameters):
            yield _append(site, ", ".join(known[parameter] for parameter in parameters), 1.0)


@operator(
    "argument.unexpected_keyword", prior=3.0, on=[ast.keyword], when=lambda facts: facts.unexpected_keywords
)
def unexpected_keyword(site: Site) -> Iterator[Replacement]:
    """The keyword a TypeError rejects: one much like it that the function takes, positional, or dropped."""
    keyword = site.node
    parent = site.parent()
    if keyword.arg not in site.facts.unexpected_keywords or not isinstance(parent, ast.Call):
        return
    upper = Site(site.context, parent)
    signature = _signature(upper)
    start = site.source.span(keyword)[0]
    name_end = start + len(keyword.arg)
    if signature is not None:
        known = [*signature.parameters, *signature.keyword_only]
        given = {other.arg for other in parent.keywords}
        near = difflib.get_close_matches(keyword.arg, known, n=3, cutoff=0.4)
        for name in dict.fromkeys((*near, *known)):
            if name not in given:
                yield Replacement(((start, name_end, name),), 1.0 if name in near else 0.4)
    if parent.keywords[0] is keyword:
        yield Replacement(((start, site.source.span(keyword.value)[0], ""),), 0.5)
    yield upper.drop_item(
        [*parent.args, *parent.keywords], len(parent.args) + parent.keywords.index(keyword), 0.5
    )


@operator("argument.to_keyword", prior=0.3, on=[ast.Call])
def to_keyword(site: Site) -> Iterator[Replacement]:
    """A positional argument that lands on the wrong parameter and must be given by keyword."""
    node, signature = site.node, _signature(site)
    if not node.args or isinstance(node.args[-1], (ast.Starred, ast.GeneratorExp)):
        return
    given = {keyword.arg for keyword in node.keywords}
    names: tuple[str, ...] = ()
    if signature is not None:
        names = (*signature.parameters[len(node.args) :], *signature.keyword_only)
    elif _called(site) in ("sorted", "sort", "min", "max"):
        names = ("key", "reverse") if "sort" in _called(site) else ("key", "default")
    elif _called(site) in ("print", "join"):
        return
    factor = 3.0 if _called(site) in site.facts.wrong_counts else 1.0
    start = site.source.span(node.args[-1])[0]
    for name in names:
        if name not in given:
            yield Replacement(((start, start, f"{name}="),), factor)


@operator("argument.flag", prior=0.3, on=[ast.Call])
def flag(site: Site) -> Iterator[Replacement]:
    """A keyword that turns a well-known function round: `reverse=True`, `start=1`, `strict=True`, `default=`."""
    name = _called(site)
    given = {keyword.arg for keyword in site.node.keywords}
    more: tuple[str, ...] = ()
    if name in ("sorted", "sort"):
        more = ("reverse=True", "key=len", "key=abs", "key=str", "key=str.lower", "key=lambda item: item[1]",
                "key=lambda item: item[0]", "key=lambda item: -item[1]")  # fmt: skip
    elif name in ("max", "min") and len(site.node.args) == 1:
        more = ("default=0", "default=None", "key=len", "key=abs", "key=lambda item: item[1]")
    elif name == "enumerate":
        more = ("start=1",)
    elif name == "split":
        more = ("maxsplit=1",)
    for text in more:
        if text.partition("=")[0] not in given:
            yield _append(site, text, 1.0 if text == more[0] else 0.5)


@operator("argument.range", prior=0.6, on=[ast.Call])
def bounds_of_range(site: Site) -> Iterator[Replacement]:
    """The bounds of a `range`: starts at 1, ends one later, backwards, with a step, over a length."""
    node = site.node
    if _called(site) != "range" or node.keywords or any(isinstance(one, ast.Starred) for one in node.args):
        return
    taken = [site.take(argument) for argument in node.args]
    new: list[tuple[tuple[str, ...], float]] = []
    if len(taken) == 1:
        end, term = taken[0].at(LAMBDA), taken[0].at(LEVELS["-"])
        new = [
            (("1", end), 1.0),
            (("1", f"{term} + 1"), 1.0),
            ((f"{term} - 1", "-1", "-1"), 0.5),
            ((end, "0", "-1"), 0.3),
            (("0", end, "2"), 0.2),
            (("2", end), 0.3),
            (("2", f"{term} + 1"), 0.3),
        ]
        if site.may_be(node.args[0], "list", "str", "tuple"):
            new.append(((f"len({end})",), 0.5))
        for name, weight in site.variables():
            if site.may_be(name, "int") and name != end:
                new += [
                    ((name, end), weight * 0.6),
                    ((f"{name} + 1", end), weight * 0.6),
                    ((end, name), weight * 0.2),
                ]
    elif len(taken) == 2:
        start, end = (one.at(LAMBDA) for one in taken)
        lower, upper = taken[0].at(LEVELS["-"]), taken[1].at(LEVELS["-"])
        new = [
            ((end,), 0.6),
            ((start, end, "-1"), 0.4),
            ((end, start, "-1"), 0.3),
            ((start, end, "2"), 0.2),
            ((f"{upper} - 1", f"{lower} - 1", "-1"), 0.4),
        ]
        for name, weight in site.variables():
            if site.may_be(name, "int") and name not in (start, end):
                new.append(((start, end, name), weight * 0.3))
    elif len(taken) == 3:
        start, end = (one.at(LAMBDA) for one in taken[:2])
        new = [((start, end), 0.6)]
    for arguments, weight in new:
        yield site.replace(node, call(site.text(node.func), *map(atom, arguments)), weight)
