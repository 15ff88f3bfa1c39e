"""Candidates of the model-free search: lazily, best first, none twice.

The score of a candidate is `(0.25 + 0.75 × Ochiai) × prior × weight ÷ √(size of its group)`: how suspicious its
line is (Ochiai's coefficient over failing and passing tests, Abreu et al., PRDC 2006), how often that kind of edit
is the repair, how likely this edit is among those of its operator at that place. Every factor is at most what
the heap assumed before it was known, so that places, groups and edits can be opened one by one and still come
out in order, with only the heap in memory.
"""

from __future__ import annotations

import ast
import heapq
import itertools
import math
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_autofix.candidates.candidate import Candidate, Edit, Origin
from pytest_autofix.candidates.search.facts import Facts, facts_of
from pytest_autofix.candidates.search.pairs import pairs
from pytest_autofix.candidates.search.registry import Operator, builtin_operators
from pytest_autofix.candidates.search.scope import ModuleNames, Scope
from pytest_autofix.candidates.search.site import Context, Replacement, Site
from pytest_autofix.candidates.search.source import (
    Definition,
    Link,
    Source,
    Splice,
    Unit,
    code_key,
    quiet_compile,
)
from pytest_autofix.tasks.task import Target, Task

__all__ = ["enumerate_candidates", "pairs"]

_GROUP_READ = 600  #: replacements that are read of one operator at one place
_GROUP_KEPT = 120  #: the likeliest of them that are kept; the rest is noise, and memory
_UNREACHED = 0.05  #: factor of a line that no failing test reached: it matters only where coverage is blind
_CRASH_BONUS = 0.2  #: the line where an exception came up is suspicious beyond its coverage
_SPREAD = 0.3  #: score of the same edit at all similar places, relative to the single one
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SKIPPED_FIELDS = frozenset(
    {"annotation", "returns", "decorator_list", "type_params", "pattern", "format_spec"}
)
_SIGNS = (ast.expr_context, ast.operator, ast.cmpop, ast.boolop, ast.unaryop)
_F_STRINGS_HAVE_PLACES = sys.version_info >= (3, 12)


def enumerate_candidates(
    task: Task,
    originals: Mapping[str, str],
    *,
    facts: Facts | None = None,
    seed: int = 0,
    priors: Mapping[str, float] | None = None,
    operators: Sequence[Operator] | None = None,
) -> Iterator[Candidate]:
    """Single edits of the task's targets, best first; ends when nothing is left to try.

    `originals` are the texts of the editable files, decoded without translation of line ends. `seed` decides
    between equal scores only (0: in the order of the file). `priors` replaces those of operators by name,
    `operators` the operators themselves.
    """
    search = _Search(task, originals, facts if facts is not None else facts_of(task), seed)
    chosen = builtin_operators() if operators is None else operators
    return search.run(chosen, priors or {})


@dataclass(frozen=True, slots=True)
class _Group:
    """The replacements of one operator at one place; only the best one left is in the heap."""

    site: Site
    unit: Unit
    operator: Operator
    factor: float
    rest: Iterator[Replacement]  #: likeliest first


@dataclass(frozen=True, slots=True)
class _Edit:
    group: _Group
    replacement: Replacement
    spread: bool = False


class _Search:
    """One enumeration: its heap and what has been seen."""

    def __init__(self, task: Task, originals: Mapping[str, str], facts: Facts, seed: int) -> None:
        self.task = task
        self.originals = dict(originals)
        self.facts = facts
        # A place, a group or an edit, by the best score that can come out of it, negated; numbers keep the order.
        self.heap: list[tuple[float, float, int, Any]] = []
        self.seen: set[int] = set()
        self.sources: dict[str, Source | None] = {}
        self.modules: dict[str, ModuleNames] = {}
        self.units: dict[ast.AST, Unit | None] = {}
        self.counter = itertools.count()
        chance = random.Random(seed)  # noqa: S311 - an order, not a secret
        self.tie: Callable[[], float] = chance.random if seed else float

    def run(self, operators: Sequence[Operator], priors: Mapping[str, float]) -> Iterator[Candidate]:
        by_node: dict[type[ast.AST], list[tuple[float, Operator]]] = {}
        for operator in operators:
            if not operator.applies(self.facts):
                continue
            prior = priors.get(operator.name, operator.prior)
            for kind in operator.nodes:
                by_node.setdefault(kind, []).append((prior, operator))
        best = {kind: max(prior for prior, _ in found) for kind, found in by_node.items()}
        for target in self.task.targets:
            self._open_target(target, best)
        while self.heap:
            key, _, _, content = heapq.heappop(self.heap)
            if isinstance(content, _Edit):
                candidate = self._candidate(content, -key)
                if candidate is not None:
                    yield candidate
                    if content.group.operator.spread and not content.spread:
                        self._spread(content, -key)
                if not content.spread:
                    self._push_next(content.group)
            elif len(content) == 3:
                site, suspicion, unit = content
                for prior, operator in by_node[type(site.node)]:
                    self._push(suspicion * prior, (site, suspicion, unit, prior, operator))
            else:
                self._open_group(*content)

    def _push(self, score: float, content: object) -> None:
        heapq.heappush(self.heap, (-score, self.tie(), next(self.counter), content))

    # --- places

    def source(self, path: str) -> Source | None:
        if path not in self.sources:
            text = self.originals.get(path)
            self.sources[path] = None if text is None else Source.parse(path, text)
        return self.sources[path]

    def _open_target(self, target: Target, best: Mapping[type[ast.AST], float]) -> None:
        if self.task.allowed_files and target.path not in self.task.allowed_files:
            return
        source = self.source(target.path)
        definition = source and source.find(target.name, target.start_line, target.end_line)
        if not source or not definition:
            return
        if source.path not in self.modules:
            self.modules[source.path] = ModuleNames.of(source)
        module = self.modules[source.path]
        types = self.facts.types.get((source.path, definition.name), {})
        scope = Scope(source, definition, module, types)
        context = Context(source, definition, scope, module, self.facts, self.originals)
        lines = self.task.suspiciousness.get(target.path)
        for node, suspicion in self._walk(source, definition, target, lines):
            if type(node) in best:
                unit = self._unit(source, definition, node)
                if unit is not None:
                    self._push(suspicion * best[type(node)], (Site(context, node), suspicion, unit))

    def _unit(self, source: Source, definition: Definition, node: ast.AST) -> Unit | None:
        owner: ast.AST = definition.node
        if not definition.is_function:
            while (link := source.links.get(node)) is not None and not isinstance(node, ast.stmt):
                node = link.parent
            owner = node
        if owner not in self.units:
            unit = source.unit(definition, owner)
            self.units[owner] = unit
            if unit is not None:
                self._remember(source, unit, *unit.edited(source.text, ()))  # the original counts as seen
        return self.units[owner]

    def _walk(
        self, source: Source, definition: Definition, target: Target, lines: Mapping[int, float] | None
    ) -> Iterator[tuple[ast.AST, float]]:
        """Nodes that may be edited, each with its factor of suspicion; sets the links on the way.

        Left out on purpose: docstrings, annotations, decorators, patterns of `case` (their guards and blocks
        are in), the literal text of f-strings, and, before Python 3.12, what stands in their fields, as `ast`
        gives wrong places for it there.
        """
        path = source.path
        top = definition.node

        def factor(first: int, last: int, default: float) -> float:
            if lines is None:
                known = [target.score]
            else:
                known = [lines[line] for line in range(first, last + 1) if line in lines]
                if not known:
                    return default
            value = max(known)
            if any((path, line) in self.facts.crash_lines for line in range(first, last + 1)):
                value = min(1.0, value + _CRASH_BONUS)
            return 0.25 + 0.75 * value

        inside = factor(target.start_line, target.end_line, _UNREACHED)
        stack: list[tuple[ast.AST, float]] = [(top, inside)]
        while stack:
            node, suspicion = stack.pop()
            if node is not top or isinstance(top, _FUNCTIONS):
                yield node, suspicion
            children: list[tuple[ast.AST, float]] = []
            for name, index, child in _children(node):
                if isinstance(child, _SIGNS):
                    continue
                source.links[child] = Link(node, name, index)
                if name in _SKIPPED_FIELDS or _is_lone_string(child):
                    continue
                if not isinstance(top, _FUNCTIONS) and isinstance(child, (*_FUNCTIONS, ast.ClassDef)):
                    continue  # has a target of its own where it matters
                if isinstance(child, ast.JoinedStr) and not _F_STRINGS_HAVE_PLACES:
                    continue
                if isinstance(node, ast.JoinedStr) and isinstance(child, ast.Constant):
                    continue
                children.append((child, self._own(child, suspicion, factor)))
            stack.extend(reversed(children))

    def _own(self, child: ast.AST, above: float, factor: Callable[[int, int, float], float]) -> float:
        """The factor of a node: that of its own lines; for a statement with a block, that of its head."""
        if not isinstance(child, (ast.stmt, ast.expr, ast.ExceptHandler, ast.match_case)):
            return above
        place: Any = child
        if isinstance(child, ast.expr):
            return factor(place.lineno, place.end_lineno, above)
        body = getattr(child, "body", None) or getattr(child, "cases", None)
        if isinstance(child, ast.match_case):
            return above
        first_inside: Any = body[0] if isinstance(body, list) and body else None
        if first_inside is not None and hasattr(first_inside, "lineno"):
            last = max(place.lineno, first_inside.lineno - 1)
        elif first_inside is not None:
            last = place.lineno
        else:
            last = place.end_lineno
        return factor(place.lineno, last, _UNREACHED)

    # --- groups and edits

    def _open_group(self, site: Site, suspicion: float, unit: Unit, prior: float, operator: Operator) -> None:
        group = list(itertools.islice(operator.function(site), _GROUP_READ))
        if not group:
            return
        # The weights share out the group: what is unlikely counts little towards its size.
        size = max(1.0, math.fsum(min(1.0, replacement.weight) for replacement in group))
        group.sort(key=lambda replacement: -replacement.weight)
        factor = suspicion * prior / math.sqrt(size)
        self._push_next(_Group(site, unit, operator, factor, iter(group[:_GROUP_KEPT])))

    def _push_next(self, group: _Group) -> None:
        replacement = next(group.rest, None)
        if replacement is not None:
            self._push(group.factor * min(1.0, replacement.weight), _Edit(group, replacement))

    def _candidate(self, edit: _Edit, score: float) -> Candidate | None:
        source, splices = edit.group.site.source, edit.replacement.splices
        program, outside = edit.group.unit.edited(source.text, splices)
        if not self._remember(source, edit.group.unit, program, outside):
            return None
        edits = tuple(sorted(Edit(source.path, *splice) for splice in splices))
        return Candidate(edits, Origin("search", operator=edit.group.operator.name), score)

    def _remember(self, source: Source, unit: Unit, program: str, outside: tuple[Splice, ...]) -> bool:
        """Whether the edited unit compiles and was not seen before."""
        code = quiet_compile(program)
        if code is None or not all(text.lstrip().startswith(("import ", "from ")) for _, _, text in outside):
            return False
        key = hash((source.path, unit.start, code_key(code), outside))
        if key in self.seen:
            return False
        self.seen.add(key)
        return True

    def _spread(self, edit: _Edit, score: float) -> None:
        """The same exchange at every place of the definition that reads the same."""
        if len(edit.replacement.splices) != 1:
            return
        site = edit.group.site
        source = site.source
        start, end, new = edit.replacement.splices[0]
        old = source.text[start:end]
        if not old.strip():
            return
        origin = source.span(site.node)[0]
        same = site.context.alike.get((type(site.node), source.slice(site.node)), ())
        shifts = [source.span(node)[0] - origin for node in same]
        splices = sorted({(start + shift, end + shift, new) for shift in shifts})
        if 1 < len(splices) <= 20 and all(a[1] <= b[0] for a, b in itertools.pairwise(splices)):
            spread = Replacement(tuple(splices), edit.replacement.weight)
            self._push(score * _SPREAD, _Edit(edit.group, spread, spread=True))


def _children(node: ast.AST) -> Iterator[tuple[str, int, ast.AST]]:
    for name, value in ast.iter_fields(node):
        if isinstance(value, list):
            for index, child in enumerate(value):
                if isinstance(child, ast.AST):
                    yield name, index, child
        elif isinstance(value, ast.AST):
            yield name, -1, value


def _is_lone_string(node: ast.AST) -> bool:
    """Docstrings, and strings used as comments: never edited (they may hold doctests)."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, (str, bytes))
    )
