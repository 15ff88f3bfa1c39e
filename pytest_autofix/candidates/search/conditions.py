"""Conditions weakened or strengthened by a synthesised atom: the last resort for a condition that is nearly right.

"Condition expression adder and remover" of PAR (Kim et al., ICSE 2013); the atoms are those of `predicates`.
Of such patches many are plausible and few are right, so they come late.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pytest_autofix.candidates.search.predicates import atoms
from pytest_autofix.candidates.search.registry import operator
from pytest_autofix.candidates.search.site import Replacement, Site
from pytest_autofix.candidates.search.snippet import boolean

_CONDITIONS = [ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Name, ast.Attribute, ast.Call, ast.Subscript]


def _is_whole(site: Site) -> bool:
    parent = site.parent()
    if isinstance(parent, (ast.If, ast.While, ast.IfExp)):
        return site.field() == "test"
    if isinstance(parent, ast.comprehension):
        return site.field() == "ifs"
    return isinstance(parent, ast.Return) and isinstance(site.node, (ast.Compare, ast.BoolOp))


@operator("condition.strengthen", prior=0.3, on=_CONDITIONS)
def strengthen(site: Site) -> Iterator[Replacement]:
    """`c` becomes `c and p`: the branch is taken too often; the protecting test comes first as well."""
    if not _is_whole(site):
        return
    node = site.node
    value, text = site.take(node), site.text(node)
    for predicate, weight in atoms(site):
        if predicate.text not in text:
            yield site.replace(node, boolean("and", value, predicate), weight)
            if predicate.text.isidentifier() or "len(" in predicate.text or " is not None" in predicate.text:
                yield site.replace(node, boolean("and", predicate, value), weight * 0.7)


@operator("condition.weaken", prior=0.22, on=_CONDITIONS)
def weaken(site: Site) -> Iterator[Replacement]:
    """`c` becomes `c or p`: the branch is not taken often enough."""
    if not _is_whole(site):
        return
    node = site.node
    value, text = site.take(node), site.text(node)
    for predicate, weight in atoms(site):
        if predicate.text not in text:
            yield site.replace(node, boolean("or", value, predicate), weight)
            if predicate.text.startswith("not ") or predicate.text.endswith("is None"):
                yield site.replace(node, boolean("or", predicate, value), weight * 0.6)


@operator("condition.filter", prior=0.2, on=[ast.comprehension])
def filtered(site: Site) -> Iterator[Replacement]:
    """A comprehension that takes too much gets a condition, or loses the one it has."""
    node = site.node
    for condition in node.ifs:
        end = site.source.span(condition)[0]
        start = site.source.text.rfind("if", max(0, end - 200), end)
        if start >= 0:
            begin = site.source.before(start) + 1
            yield Replacement(((begin, site.source.outer_span(condition)[1], ""),))
    if node.ifs:
        return
    end = site.source.outer_span(node.iter)[1]
    inner = Site(site.context, node.iter)
    bound = [one.id for one in ast.walk(node.target) if isinstance(one, ast.Name)]
    for name in bound:
        for text, weight in (
            (name, 1.0),
            (f"{name} is not None", 0.5),
            (f"not {name}", 0.2),
            (f"{name} > 0", 0.5),
        ):
            yield Replacement(((end, end, f" if {text}"),), weight)
        for other, weight in inner.variables():
            if other in bound:
                continue
            for sign in ("!=", "not in", "in", "<", ">", "=="):
                if ("in" in sign) != (site.type_of(other) in ("list", "set", "dict", "tuple")):
                    continue
                yield Replacement(((end, end, f" if {name} {sign} {other}"),), weight * 0.4)
