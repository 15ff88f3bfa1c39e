"""What the splicer asks about statements."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pytest_autofix.patching.locate import DefinitionNode

if TYPE_CHECKING:
    from pytest_autofix.patching.locate import Lines

__all__ = ["assigned", "decorator_line", "is_example", "is_filler", "is_stub", "last_part", "margin", "role"]


def role(node: DefinitionNode | None) -> str:
    """What tells definitions of one name apart: `setter`, `deleter`, `overload`, `register(int)`, or nothing."""
    for decorator in node.decorator_list if node else ():
        text = ast.unparse(decorator).rpartition(".")[2] if not isinstance(decorator, ast.Call) else ""
        if text in ("setter", "deleter", "getter", "overload"):
            return text
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(called, ast.Attribute) and called.attr == "register":
            return ast.unparse(decorator)
    return ""


def last_part(decorator: ast.expr) -> str:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(called).rpartition(".")[2]


def assigned(node: ast.stmt) -> str:
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id
    return ""


def margin(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t\f"))]


def is_filler(node: ast.stmt) -> bool:
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def is_stub(node: DefinitionNode | None) -> bool:
    return node is not None and all(is_filler(statement) for statement in node.body)


def is_example(node: ast.stmt) -> bool:
    """Usage examples below the code, which models like to add: calls, assertions, a `__main__` block."""
    if isinstance(node, ast.If):
        return ast.unparse(node.test).replace('"', "'") in (
            "__name__ == '__main__'",
            "'__main__' == __name__",
        )
    return isinstance(node, ast.Expr | ast.Assert | ast.Pass)


def decorator_line(expression: ast.expr, lines: Lines) -> int:
    """Line of the `@` of a decorator."""
    line = expression.lineno
    while line > 1 and not lines[line].lstrip().startswith("@"):
        line -= 1
    return line
