"""What surrounds a definition and decides what its code can mean: imports, constants, signatures of what it uses."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pytest_autofix.patching.locate import DefinitionNode, Lines, outline

if TYPE_CHECKING:
    from pytest_autofix.patching.locate import Definition

__all__ = ["context_of", "signature_of"]

_CONSTANT_LINES = 8
_SIGNATURES = 20


def context_of(source: str, target: Definition) -> str:
    """Imports, module and class attributes that the definition uses, and signatures of the definitions it calls."""
    tree, found = outline(source)
    lines = Lines(source)
    used = {node.id for node in ast.walk(target.tree) if isinstance(node, ast.Name)}
    attributes = {node.attr for node in ast.walk(target.tree) if isinstance(node, ast.Attribute)}
    texts = _bindings(tree.body, used, lines)
    owner = next((each for each in found if each.name == target.parent and each.kind == "class"), None)
    if owner is not None:
        head = _header(owner, lines)
        texts += ["", head, *_bindings(owner.tree.body, attributes, lines)]
    signatures = [
        signature_of(each, lines)
        for each in found
        if each.name != target.name
        and not each.name.startswith(f"{target.name}.")
        and (
            (not each.parent and each.short_name in used)
            or (
                (
                    each.parent_kind == "class"
                    and each.short_name in attributes | ({"__init__"} if owner else set())
                )
                and (each.parent == target.parent or each.parent in used)
            )
        )
    ]
    if signatures:
        texts += ["", *signatures[:_SIGNATURES]]
    return "\n".join(texts).strip("\n")


def signature_of(definition: Definition, lines: Lines) -> str:
    """The head of a definition with the first line of its docstring, the body left out."""
    doc = (ast.get_docstring(definition.tree) or "").partition("\n")[0]
    comment = f"  # {doc}" if doc else ""
    return f"{_header(definition, lines)} ...{comment}"


def _header(definition: Definition, lines: Lines) -> str:
    body = definition.tree.body[0]
    decorators = body.decorator_list if isinstance(body, DefinitionNode) else []
    last = min([body.lineno, *(decorator.lineno for decorator in decorators)])
    if last == definition.def_line:
        text = lines.text[lines.start(last) : lines.offset(last, body.col_offset)]
        return text.rstrip()
    texts = [lines[number] for number in range(definition.def_line, last)]
    while len(texts) > 1 and (not texts[-1].strip() or texts[-1].lstrip().startswith("#")):
        texts.pop()
    return "\n".join(texts)


def _bindings(body: list[ast.stmt], used: set[str], lines: Lines) -> list[str]:
    texts = []
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            names = {
                each.id
                for each in ast.walk(node)
                if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
            }
        else:
            continue
        last = node.end_lineno or node.lineno
        if names & used:
            shown = range(node.lineno, min(last, node.lineno + _CONSTANT_LINES - 1) + 1)
            texts += [lines[number] for number in shown]
            if last > shown[-1]:
                texts.append(f"# {last - shown[-1]} more lines of this statement not shown")
    return texts
