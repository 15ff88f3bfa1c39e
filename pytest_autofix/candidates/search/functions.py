"""Faults of functions as such: shared defaults, late binding, decorators, the parent's constructor, async blocks.

These are the classic traps of the language (its own FAQ lists the first two) rather than slips of the pen.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pytest_autofix.candidates.search.registry import operator
from pytest_autofix.candidates.search.site import Replacement, Site

_FUNCTIONS = [ast.FunctionDef, ast.AsyncFunctionDef]
_SHARED = (ast.List, ast.Dict, ast.Set)
_MAKERS = ("list", "dict", "set", "defaultdict", "deque", "Counter")


@operator("function.mutable_default", prior=0.9, on=_FUNCTIONS)
def mutable_default(site: Site) -> Iterator[Replacement]:
    """A default list that all calls share: `None` as the default, the list made at the start of the body."""
    node = site.node
    body = [statement for statement in node.body if not site.docstring(statement)]
    arguments = [*node.args.posonlyargs, *node.args.args]
    pairs = list(zip(arguments[len(arguments) - len(node.args.defaults) :], node.args.defaults, strict=True))
    pairs += [
        (argument, default)
        for argument, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        if default is not None
    ]
    for argument, default in pairs:
        made = (
            isinstance(default, ast.Call)
            and isinstance(default.func, ast.Name)
            and default.func.id in _MAKERS
        )
        if not body or not (made or isinstance(default, _SHARED)):
            continue
        fresh = site.insert_before(
            body[0], f"if {argument.arg} is None:", f"\t{argument.arg} = {site.text(default)}"
        )
        if fresh is not None:
            yield Replacement(((*site.source.span(default), "None"), *fresh.splices))


@operator("function.late_binding", prior=0.6, on=[ast.Lambda])
def late_binding(site: Site) -> Iterator[Replacement]:
    """A lambda that is made in a loop sees the last value of its variable: a default keeps the present one."""
    node = site.node
    own = {argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)}
    used = {inner.id for inner in ast.walk(node.body) if isinstance(inner, ast.Name)} - own
    bound: list[str] = []
    for above in site.ancestors():
        targets: list[ast.AST] = []
        if isinstance(above, (ast.For, ast.AsyncFor)):
            targets = [above.target]
        elif isinstance(above, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            targets = [generator.target for generator in above.generators]
        bound += [one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]
    kept = [f"{name}={name}" for name in bound if name in used]
    if not kept or node.args.vararg or node.args.kwarg:
        return
    start = site.source.span(node)[0]
    colon = site.source.text.rfind(":", start, site.source.outer_span(node.body)[0])
    if colon < 0:
        return
    head = ", ".join([*([site.source.text[start + len("lambda") : colon].strip()] if own else []), *kept])
    yield Replacement(((start, colon, f"lambda {head}"),))


@operator("function.parent_constructor", prior=0.5, on=[ast.FunctionDef])
def parent_constructor(site: Site) -> Iterator[Replacement]:
    """`__init__` of a class with a base does not call that of the base."""
    node, owner = site.node, site.scope.class_node
    if node.name != "__init__" or owner is None or not owner.bases or not site.is_definition():
        return
    if any(isinstance(inner, ast.Name) and inner.id == "super" for inner in site.context.nodes):
        return
    body = [statement for statement in node.body if not site.docstring(statement)]
    names = [argument.arg for argument in node.args.args[1:]]
    for given, weight in (("", 1.0), (", ".join(names), 0.8), *((name, 0.5) for name in names)):
        made = site.insert_before(body[0], f"super().__init__({given})") if body else None
        if made is not None:
            yield Replacement(made.splices, weight)


@operator("function.decorator", prior=0.8, on=_FUNCTIONS)
def decorator(site: Site) -> Iterator[Replacement]:
    """A method that is read like a value, or a value that is called: `@property` added or taken away."""
    node = site.node
    if site.scope.class_node is None or not site.is_definition() or site.context.definition.functions:
        return
    source = site.source
    decorators = [item for item in node.decorator_list if isinstance(item, ast.Name)]
    first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
    start = source.line_start(first)
    count = len(node.args.args)
    if (
        site.facts.functions_compared
        and count == 1
        and not node.decorator_list
        and not node.name.startswith("__")
    ):
        yield Replacement(((start, start, f"{source.indent_of(first)}@property{source.newline}"),))
    if not site.facts.has_raised("TypeError") and not site.facts.not_callable:
        return
    for item in decorators:
        if item.id in ("property", "cached_property", "staticmethod", "classmethod"):
            place = source.line_start(item.lineno), source.line_start(item.lineno + 1)
            yield Replacement(((*place, ""),))
            if item.id in ("staticmethod", "classmethod"):
                other = "classmethod" if item.id == "staticmethod" else "staticmethod"
                yield Replacement(((*source.span(item), other),), 0.5)
    if not node.decorator_list and count and node.args.args[0].arg != "self":
        yield Replacement(((start, start, f"{source.indent_of(first)}@staticmethod{source.newline}"),))
        if node.args.args[0].arg == "cls":
            yield Replacement(((start, start, f"{source.indent_of(first)}@classmethod{source.newline}"),))


@operator("function.async_block", prior=0.8, on=[ast.For, ast.With])
def async_block(site: Site) -> Iterator[Replacement]:
    """`for` and `with` over what is asynchronous."""
    if isinstance(site.function(), ast.AsyncFunctionDef):
        start = site.source.span(site.node)[0]
        factor = 1.0 if site.facts.has_raised("TypeError", "AttributeError") else 0.2
        yield Replacement(((start, start, "async "),), factor)
