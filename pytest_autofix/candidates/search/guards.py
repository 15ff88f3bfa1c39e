"""Guards: a base case or a protecting `if` that is missing.

"Null pointer, range and collection size checker" of PAR (Kim et al., ICSE 2013); if-return insertion is also the
template of "missing precondition" in the fault patterns of Pan et al. (EMSE 2009).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pytest_autofix.candidates.search.predicates import atoms, guard_atoms
from pytest_autofix.candidates.search.registry import operator
from pytest_autofix.candidates.search.site import Replacement, Site
from pytest_autofix.candidates.search.snippet import AND, OR, TEST, Snippet

_SIMPLE = [ast.Assign, ast.AugAssign, ast.Expr, ast.Return, ast.Raise]


def _results(site: Site, function: ast.AST) -> list[tuple[str, float]]:
    """What a guard of the function may return: what it returns elsewhere, then the empty values, its arguments."""
    if site.is_generator(function):
        return [("", 1.0)]
    return site.context.once(f"results {id(function)}", lambda: _find_results(site, function))


def _find_results(site: Site, function: ast.AST) -> list[tuple[str, float]]:
    found: dict[str, float] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            if isinstance(node.value, ast.Constant):
                found[site.text(node.value)] = 1.0
            elif isinstance(node.value, (ast.List, ast.Tuple, ast.Dict)):
                kind = {ast.List: "[]", ast.Tuple: "()", ast.Dict: "{}"}[type(node.value)]
                found.setdefault(kind, 0.8)
            elif isinstance(node.value, ast.Compare | ast.BoolOp):
                found.setdefault("False", 0.9)
                found.setdefault("True", 0.7)
    for name in site.scope.parameters[:6]:
        if name not in ("self", "cls"):
            found.setdefault(name, 0.4)
    for text, weight in (("None", 0.5), ("0", 0.5), ("[]", 0.5), ("False", 0.4), ("True", 0.3), ('""', 0.3), ("1", 0.3),
                         ("-1", 0.2), ("{}", 0.2), ("", 0.2)):  # fmt: skip
        found.setdefault(text, weight)
    return list(found.items())


@operator("guard.base_case", prior=0.4, on=[ast.FunctionDef, ast.AsyncFunctionDef])
def base_case(site: Site) -> Iterator[Replacement]:
    """`if not x: return …` at the start of the function: nothing to do, or the end of a recursion."""
    body = [statement for statement in site.node.body if not site.docstring(statement)]
    if not body:
        return
    results = _results(site, site.node)
    inside = Site(site.context, body[0])
    recursive = any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == site.node.name
        for node in ast.walk(site.node)
    )
    factor = 1.0 if recursive or site.facts.raised else 0.6
    for predicate, weight in guard_atoms(inside):
        for result, likely in results:
            made = site.insert_before(body[0], f"if {predicate.text}:", f"\treturn {result}".rstrip())
            if made is not None:
                yield Replacement(made.splices, weight * likely * factor)


@operator(
    "guard.raise",
    prior=0.6,
    on=[ast.FunctionDef, ast.AsyncFunctionDef],
    when=lambda facts: facts.expected_exceptions,
)
def must_raise(site: Site) -> Iterator[Replacement]:
    """`if …: raise X` at the start, where a test waits for an exception that does not come."""
    body = [statement for statement in site.node.body if not site.docstring(statement)]
    if not body or not site.facts.expected_exceptions:
        return
    inside = Site(site.context, body[0])
    for exception in site.facts.expected_exceptions[:3]:
        if exception not in site.scope.visible:
            continue
        for predicate, weight in guard_atoms(inside):
            made = site.insert_before(
                body[0], f"if {predicate.text}:", f'\traise {exception}("{predicate.text}")'
            )
            if made is not None:
                yield Replacement(made.splices, weight)


@operator("guard.loop", prior=0.2, on=[ast.For, ast.While, ast.AsyncFor])
def in_loop(site: Site) -> Iterator[Replacement]:
    """`if …: continue` or `break` at the start of a loop's body."""
    first = site.node.body[0]
    inside = Site(site.context, first)
    for predicate, weight in atoms(inside):
        for word, likely in (("continue", 1.0), ("break", 0.7)):
            made = site.insert_before(first, f"if {predicate.text}:", f"\t{word}")
            if made is not None:
                yield Replacement(made.splices, weight * likely)


@operator("guard.wrap", prior=0.22, on=_SIMPLE)
def wrapped(site: Site) -> Iterator[Replacement]:
    """The statement should only be done under a condition, or only while the condition holds."""
    node = site.node
    place = site.lines(node)
    if (
        place is None
        or isinstance(node, ast.Return)
        or site.docstring(node)
        or node.lineno != node.end_lineno
    ):
        return
    indent, unit, newline = site.indent(node), site.indent_unit(), site.source.newline
    text = site.source.text[place[0] : place[1]]
    for predicate, weight in atoms(site):
        head = f"{indent}if {predicate.text}:{newline}"
        yield Replacement(((place[0], place[1], head + unit + text),), weight)


@operator("guard.before", prior=0.15, on=[ast.Return, ast.Assign, ast.Expr, ast.For, ast.While, ast.If])
def early_return(site: Site) -> Iterator[Replacement]:
    """`if …: return …` in front of a statement further down."""
    node, function = site.node, site.function()
    if function is None or site.docstring(node) or (function.body and node is function.body[0]):
        return
    results = sorted(_results(site, function), key=lambda item: -item[1])[:5]
    results += [(name, weight * 0.4) for name, weight in site.values()[:6]]
    for predicate, weight in atoms(site):
        if weight < 0.4 and not predicate.text.endswith("is None"):
            continue
        for result, likely in results:
            made = site.insert_before(node, f"if {predicate.text}:", f"\treturn {result}".rstrip())
            if made is not None:
                yield Replacement(made.splices, weight * likely * 0.6)


@operator("guard.default", prior=0.25, on=[ast.Return, ast.Assign, ast.AugAssign])
def default(site: Site) -> Iterator[Replacement]:
    """A value that may be absent or empty gets a default: `x or []`, `x if x else 0`, `x / n if n else 0`."""
    node = site.node
    value = node.value
    if value is None or isinstance(value, (ast.Constant, ast.Compare, ast.BoolOp, ast.IfExp)):
        return
    taken = site.take(value)
    if isinstance(value, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)):
        for text, weight in (("[]", 0.6), ('""', 0.5), ("0", 0.6), ("{}", 0.4), ("None", 0.4), ("1", 0.2)):
            yield site.replace(value, Snippet(f"{taken.at(AND)} or {text}", OR), weight)
    inside = {one.id: one for one in ast.walk(value) if isinstance(one, ast.Name)}
    risky = (
        1.0 if site.facts.has_raised("ZeroDivisionError", "IndexError", "TypeError", "ValueError") else 0.4
    )
    for name in inside:
        if site.type_of(name) in ("function",) or name in site.context.module.imports:
            continue
        for text, weight in (("0", 1.0), ("None", 0.6), ("[]", 0.4), ('""', 0.3), ("False", 0.3), ("1", 0.3)):
            yield site.replace(value, Snippet(f"{taken.at(OR)} if {name} else {text}", TEST), weight * risky)


@operator(
    "guard.try",
    prior=0.12,
    on=[ast.Return, ast.Assign, ast.Expr, ast.AugAssign],
    when=lambda facts: facts.crash_lines,
)
def tried(site: Site) -> Iterator[Replacement]:
    """An exception that the caller must not see: `try … except` around the statement that raises it."""
    node = site.node
    place = site.lines(node)
    crash = any(
        (site.source.path, line) in site.facts.crash_lines for line in range(node.lineno, node.end_lineno + 1)
    )
    if place is None or not crash or node.lineno != node.end_lineno or site.docstring(node):
        return
    indent, unit, newline = site.indent(node), site.indent_unit(), site.source.newline
    text = site.source.text[place[0] : place[1]]
    if not text.endswith(("\n", "\r")):
        text += newline
    outcomes = ["return None", "return False", "return 0", "pass", "return []", 'return ""']
    if site.loop() is not None:
        outcomes[:0] = ["continue", "break"]
    for exception in sorted(site.facts.raised):
        if exception in site.scope.visible:
            for outcome in outcomes:
                block = (f"{indent}try:{newline}{unit}{text}{indent}except {exception}:{newline}"
                         f"{indent}{unit}{outcome}{newline}")  # fmt: skip
                yield Replacement(((*place, block),))
