"""The source of a failing test with the fixtures, helpers and constants that it uses, and nothing else."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pytest_autofix.errors import PatchError
from pytest_autofix.patching.locate import DefinitionNode, Lines, outline

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_autofix.evidence.failure import Failure
    from pytest_autofix.patching.locate import Definition

__all__ = ["source_of_test"]

_DECORATOR_LINES = 12  #: longer ones are tables of parameters; the failing rows stand in the facts
_WHOLE_FILE = 120  #: lines up to which a test file is shown when the test cannot be found in it
_XUNIT = frozenset(
    ("setUp", "tearDown", "setUpClass", "tearDownClass", "setup_method", "teardown_method", "setup_class")
)


def source_of_test(failure: Failure, tests: Mapping[str, str]) -> list[tuple[str, str]]:
    """`(path, source)` of the test and what it uses: from its own file, then fixtures of `conftest.py` files above it.

    Empty when the file is unknown, or too large to be shown whole where the test cannot be found in it.
    """
    text = tests.get(failure.path)
    if text is None:
        return []
    try:
        tree, outlined = outline(text)
        found = {definition.name: definition for definition in outlined}
    except PatchError:
        return _whole(failure.path, text)
    test = found.get(failure.function.replace("::", "."))
    if test is None:
        return _whole(failure.path, text)
    lines = Lines(text)
    wanted = _used(test.tree, set())
    ranges = [_range(test, lines)]
    ranges += _class_context(test, found, lines, wanted)
    ranges += _module_context(tree, lines, wanted, skip=test.name.partition(".")[0])
    pieces = [(failure.path, _join(ranges, lines))]
    contexts = ((path, _fixtures(tests[path], wanted)) for path in _conftests(failure.path, tests))
    pieces.extend((path, context) for path, context in contexts if context)
    return pieces


def _whole(path: str, text: str) -> list[tuple[str, str]]:
    return [(path, text)] if len(Lines(text)) <= _WHOLE_FILE else []


def _used(node: ast.AST, known: set[str]) -> set[str]:
    """Names that are read, and parameters, which are names of fixtures."""
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            known.add(each.id)
        elif isinstance(each, ast.arg):
            known.add(each.arg)
        elif isinstance(each, ast.Constant) and isinstance(each.value, str) and each.value.isidentifier():
            known.add(each.value)  # `usefixtures("db")`, `getfixturevalue("db")`
    return known


def _range(definition: Definition, lines: Lines) -> list[tuple[int, int, str]]:
    """First line, last line and replacement (empty: as it is) of the pieces of a definition."""
    pieces: list[tuple[int, int, str]] = []
    at = definition.start_line
    for decorator in definition.tree.decorator_list:
        last = decorator.end_lineno or decorator.lineno
        if last - decorator.lineno + 1 > _DECORATOR_LINES:
            name = ast.unparse(decorator.func) if isinstance(decorator, ast.Call) else ast.unparse(decorator)
            note = f"{definition.indent}# @{name}(...): {last - decorator.lineno + 1} lines not shown"
            if at < decorator.lineno:
                pieces.append((at, decorator.lineno - 1, ""))
            pieces.append((decorator.lineno, last, note))
            at = last + 1
    pieces.append((at, definition.end_line, ""))
    return pieces


def _class_context(
    test: Definition, found: Mapping[str, Definition], lines: Lines, wanted: set[str]
) -> list[list[tuple[int, int, str]]]:
    """The head of the test's class, its set-up, and the methods and attributes that the test reads through `self`."""
    owner = found.get(test.parent)
    if owner is None or not isinstance(owner.tree, ast.ClassDef):
        return []
    first = owner.tree.body[0]
    head_end = max(owner.def_line, min(first.lineno, _first(first)) - 1)
    ranges = [[(owner.start_line, head_end, "")]]
    read = _attributes(test.tree) | wanted | _XUNIT
    chosen = {test.def_line}
    grown = True
    while grown:  # methods use methods
        grown = False
        for member in owner.tree.body:
            names = {member.name} if isinstance(member, DefinitionNode) else _stored(member)
            if member.lineno in chosen or not names & read:
                continue
            if isinstance(member, DefinitionNode):
                ranges.append(_range(found[f"{owner.name}.{member.name}"], lines))
            else:
                ranges.append([(member.lineno, member.end_lineno or member.lineno, "")])
            chosen.add(member.lineno)
            read |= _attributes(member)
            _used(member, wanted)
            grown = True
    return ranges


def _attributes(node: ast.AST) -> set[str]:
    return {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}


def _module_context(
    tree: ast.Module, lines: Lines, wanted: set[str], *, skip: str
) -> list[list[tuple[int, int, str]]]:
    chosen: dict[int, list[tuple[int, int, str]]] = {}
    grown = True
    while grown:  # helpers use helpers
        grown = False
        for node in tree.body:
            names = _stored(node)
            if node.lineno in chosen or skip in names or not names & wanted:
                continue
            if isinstance(node, DefinitionNode) and node.name.startswith(("test", "Test")):
                continue
            chosen[node.lineno] = [(_first(node), node.end_lineno or node.lineno, "")]
            _used(node, wanted)
            grown = True
    return list(chosen.values())


def _fixtures(text: str, wanted: set[str]) -> str:
    try:
        tree, _ = outline(text)
    except PatchError:
        return ""
    lines = Lines(text)
    return _join(_module_context(tree, lines, wanted, skip=""), lines)


def _conftests(path: str, tests: Mapping[str, str]) -> Iterator[str]:
    folder = path.rpartition("/")[0]
    while True:
        candidate = f"{folder}/conftest.py" if folder else "conftest.py"
        if candidate in tests:
            yield candidate
        if not folder:
            return
        folder = folder.rpartition("/")[0]


def _stored(node: ast.stmt) -> set[str]:
    if isinstance(node, DefinitionNode):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return {
        each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }


def _first(node: ast.stmt) -> int:
    decorators = node.decorator_list if isinstance(node, DefinitionNode) else []
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _join(ranges: list[list[tuple[int, int, str]]], lines: Lines) -> str:
    """The pieces in the order of the file, a blank line where something lies between them."""
    texts: list[str] = []
    end = 0
    for first, last, note in sorted({piece for pieces in ranges for piece in pieces}):
        if last <= end:
            continue
        if texts and first > end + 1:
            texts.append("")
        texts += [note] if note else [lines[number] for number in range(max(first, end + 1), last + 1)]
        end = last
    return "\n".join(texts)
