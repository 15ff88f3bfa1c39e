"""Suspiciousness for the lines that no test is ever seen to execute, since they run at import.

A wrong default value or a wrong constant never is in a test's coverage, although the lines that read it are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from pytest_autofix.tasks.localise import Scores, module_file
from pytest_autofix.tasks.outline import outline_of

__all__ = ["HEADER_SHARE", "READ_SHARE", "spread_to_import_time"]

READ_SHARE = 0.5  #: part of a line's score that a constant read on that line gets
HEADER_SHARE = 0.75  #: part of a function's best score that its header (default values) gets


def spread_to_import_time(scores: Scores, sources: Mapping[str, str]) -> Scores:
    """The scores and, below them, those of the import-time lines that suspicious lines depend on.

    These are the headers of suspicious functions, and the assignments of module and class constants whose names are
    read on suspicious lines of the same file or of one that imports them by `from module import NAME`.
    """
    spread = {path: dict(of_path) for path, of_path in scores.items()}
    constants: dict[str, dict[str, tuple[int, ...]]] = {}
    for path, of_path in scores.items():
        outline = outline_of(sources[path]) if path in sources else None
        if outline is None or outline.tree is None:
            continue
        for span in outline.spans:
            if span.is_function:
                best = max((of_path.get(line, 0.0) for line in range(span.body, span.end + 1)), default=0.0)
                _raise(spread, path, range(span.start, span.body), best * HEADER_SHARE)
        imported = dict(_imported_names(outline.tree, path, sources))
        for name, line in _reads(sources[path]):
            if line not in of_path:
                continue
            home, original = imported.get(name, (path, name))
            if home not in constants:
                constants[home] = _constants(outline_of(sources[home]).tree)
            _raise(spread, home, constants[home].get(original, ()), of_path[line] * READ_SHARE)
    return spread


def _raise(scores: Scores, path: str, lines: Iterable[int], score: float) -> None:
    if score > 0:
        for line in lines:
            of_path = scores.setdefault(path, {})
            of_path[line] = max(of_path.get(line, 0.0), score)


@lru_cache(maxsize=256)
def _reads(source: str) -> tuple[tuple[str, int], ...]:
    """Every name and attribute name that is read, with the first line of the innermost statement around it."""
    found: list[tuple[str, int]] = []
    tree = outline_of(source).tree
    pending: list[tuple[ast.AST, int]] = [(tree, 0)] if tree else []
    while pending:
        node, line = pending.pop()
        if isinstance(node, ast.stmt):
            line = node.lineno
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.append((node.id, line))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            found.append((node.attr, line))
        pending.extend((child, line) for child in ast.iter_child_nodes(node))
    return tuple(dict.fromkeys(found))


def _constants(tree: ast.Module | None) -> dict[str, tuple[int, ...]]:
    """Names assigned at the level of the module or of a class, with all lines of their assignments."""
    found: dict[str, tuple[int, ...]] = {}
    bodies = [tree.body] if tree else []
    while bodies:
        for statement in bodies.pop():
            if isinstance(statement, ast.ClassDef):
                bodies.append(statement.body)
            if isinstance(statement, ast.Assign):
                targets = statement.targets
            elif isinstance(statement, ast.AnnAssign) and statement.value:
                targets = [statement.target]
            else:
                continue
            lines = tuple(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
            for target in targets:
                if isinstance(target, ast.Name):
                    found[target.id] = found.get(target.id, ()) + lines
    return found


def _imported_names(
    tree: ast.Module, path: str, sources: Mapping[str, str]
) -> Iterator[tuple[str, tuple[str, str]]]:
    """Local name → file and name it stands for, for `from … import` of the files at hand."""
    package = path.split("/")[:-1]
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom):
            continue
        module = node.module or ""
        if node.level:
            module = ".".join([*package[: len(package) - node.level + 1], *filter(None, [module])])
        home = module_file(module, sources) if module else ""
        if home:
            yield from ((alias.asname or alias.name, (home, alias.name)) for alias in node.names)
