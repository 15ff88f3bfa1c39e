"""Which imports of a reply the file still needs, and where they go."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_autofix.errors import PatchError
from pytest_autofix.patching.locate import DefinitionNode, Lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["import_span", "pinned_lines"]

_COOKIE = re.compile(r"^[ \t\f]*#.*?coding[:=][ \t]*[-\w.]+")


@dataclass(frozen=True, slots=True)
class _Import:
    """One name that an import statement binds."""

    binding: str
    module: str  #: with leading dots; for `import a.b` the module itself
    name: str  #: imported name, empty for `import a.b`
    statement: str

    def same_as(self, other: _Import) -> bool:
        if self.statement == other.statement or (self.module, self.name) == (other.module, other.name):
            return True
        # `from .x import y` and `from pkg.x import y` name one thing in two ways.
        tails = {each.module.rpartition(".")[2] for each in (self, other)}
        return (
            bool(self.name)
            and self.name == other.name
            and len(tails) == 1
            and "." in self.module + other.module
        )


def import_span(
    tree: ast.Module,
    lines: Lines,
    wanted: Sequence[ast.Import | ast.ImportFrom],
    used_by: Iterable[ast.stmt],
    newline: str,
) -> tuple[int, str] | None:
    """Offset and text of the imports to insert, None if the file has all that `used_by` uses.

    Imports that the new code does not use are left out, and so are those of names that the file defines itself.
    Raises `PatchError` when the file imports something else under that name.
    """
    used = {node.id for statement in used_by for node in ast.walk(statement) if isinstance(node, ast.Name)}
    known = {found.binding: found for found in _module_imports(tree.body)}
    defined = _bound_names(tree)
    missing: dict[str, None] = {}
    for found in (each for statement in wanted for each in _bindings(statement)):
        if found.binding == "*":
            raise PatchError(
                f"the reply imports everything: {found.statement}; import the names that are needed"
            )
        if found.module == "__future__" or found.binding not in used:
            continue
        old = known.get(found.binding)
        if old is None:
            if found.binding not in defined:
                missing[found.statement] = None
        elif not found.same_as(old):
            if not found.name and not old.name and "." in found.module + old.module:
                missing[found.statement] = None  # `import os.path` beside `import os` binds the same `os`
            else:
                raise PatchError(f"the reply says {found.statement!r}, the file {old.statement!r}")
    if not missing:
        return None
    offset, spaced = _place(tree, lines)
    text = "".join(statement + newline for statement in missing)
    if offset and lines.text[offset - 1] not in "\r\n":
        text = newline + text
    return offset, text + newline * spaced


def _place(tree: ast.Module, lines: Lines) -> tuple[int, int]:
    """Behind the leading imports, else behind docstring and head comments; and how many blank lines follow."""
    last: ast.stmt | None = None
    for index, node in enumerate(tree.body):
        is_docstring = index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not is_docstring and not isinstance(node, ast.Import | ast.ImportFrom):
            break
        last = node
    if last is not None:
        line = last.end_lineno or last.lineno
        following = next((node for node in tree.body if node.lineno > line), None)
        if following is None or following.lineno > line + 1 or isinstance(last, ast.Import | ast.ImportFrom):
            return lines.start(line + 1), 0
        return lines.start(line + 1), 1
    head = 0
    while head < len(lines) and lines[head + 1].startswith("#"):
        head += 1
    pinned = pinned_lines(lines)
    if head < len(lines) and not lines[head + 1].strip():
        return lines.start(head + 1), 0  # a licence or the like, with a blank line behind
    return lines.start(pinned + 1), 2


def pinned_lines(lines: Lines) -> int:
    """How many lines must stay first: a `#!` line and the one that declares the encoding (PEP 263)."""
    shebang = 1 if lines[1].startswith("#!") else 0
    return max([shebang, *(n for n in (1, 2) if n <= len(lines) and _COOKIE.match(lines[n]))])


def _module_imports(body: Sequence[ast.stmt]) -> Iterator[_Import]:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from _bindings(node)
        elif isinstance(node, ast.If | ast.Try):
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                continue  # not there at run time
            handlers = (
                [s for handler in node.handlers for s in handler.body] if isinstance(node, ast.Try) else []
            )
            yield from _module_imports([*node.body, *node.orelse, *handlers])


def _bindings(node: ast.Import | ast.ImportFrom) -> Iterator[_Import]:
    for alias in node.names:
        tail = f" as {alias.asname}" if alias.asname else ""
        if isinstance(node, ast.Import):
            binding = alias.asname or alias.name.partition(".")[0]
            yield _Import(binding, alias.name, "", f"import {alias.name}{tail}")
        else:
            module = "." * node.level + (node.module or "")
            yield _Import(
                alias.asname or alias.name, module, alias.name, f"from {module} import {alias.name}{tail}"
            )


def _bound_names(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for statement in tree.body:
        if isinstance(statement, DefinitionNode):
            names.add(statement.name)
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
            elif isinstance(node, DefinitionNode):
                names.add(node.name)
    return names
