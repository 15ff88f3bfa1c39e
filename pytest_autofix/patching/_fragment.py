"""Code that a model wrote, made ready to stand at another indentation than it was written at.

Lines inside string literals are never shifted, since that would change the program; docstrings are, since
`inspect.cleandoc` takes their indentation away again.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import tokenize
from dataclasses import dataclass

from pytest_autofix.errors import PatchError
from pytest_autofix.patching.locate import DefinitionNode, Lines, parse_source

__all__ = ["Fragment", "first_line", "indentation_step", "same_code"]

_SCOPES = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, slots=True)
class Fragment:
    """Parsed code of a reply at column 0, with `\\n` as line end."""

    text: str
    tree: ast.Module
    lines: Lines

    @classmethod
    def parse(cls, code: str) -> Fragment:
        """Parse code that may be indented as a whole; raises `PatchError` with line and reason."""
        text = re.sub(r"\r\n?", "\n", code).removeprefix("\ufeff").strip("\n").rstrip() + "\n"
        first = next(
            (line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")), ""
        )
        margin = first[: len(first) - len(first.lstrip(" \t"))]
        if margin:
            # Wrapped, the indented code parses, which tells the lines inside strings from the others.
            wrapped = f"if True:\n{text}"
            kinds = _string_lines(wrapped, parse_source(wrapped, "the code in the reply"))
            pieces = [
                line if kinds.get(number) == "string" else line.removeprefix(margin)
                for number, line in enumerate(wrapped.split("\n"), 1)
            ]
            text = "\n".join(pieces[1:])
        return cls(text, parse_source(text, "the code in the reply"), Lines(text))

    def source(self, node: ast.stmt) -> str:
        """The whole lines of a statement, decorators included."""
        return self.text[self.lines.start(first_line(node)) : self.lines.end(node.end_lineno or node.lineno)]

    def indented(self, node: ast.stmt, indent: str, *, step: str = "", decorators: bool = True) -> str:
        """The lines of a statement at `indent`, indented further by `step` for each level where that is possible.

        Raises `PatchError` when the moved code does not mean the same any more.
        """
        first = first_line(node) if decorators else node.lineno
        ours = indentation_step(node, self.lines)
        for old, new in ((ours, step), ("", "")):
            text = self._moved(first, node, indent, old, new)
            if self._means_the_same(text, node):
                return text
        raise PatchError(
            f"the code in line {node.lineno} of the reply cannot be moved to another indentation"
        )

    def _moved(self, first: int, node: ast.stmt, indent: str, old: str, new: str) -> str:
        kinds = _string_lines(self.text, self.tree)
        base = _space(self.lines[node.lineno])
        moved: list[str] = []
        doc = ("", "")
        for number in range(first, (node.end_lineno or node.lineno) + 1):
            line = self.lines[number]
            kind = kinds.get(number, "")
            if kind == "string":
                moved.append(line)
            elif not line.strip():
                moved.append("")
            elif kind == "docstring":
                before, after = doc
                moved.append(after + line.removeprefix(before) if line.startswith(before) else line)
            else:
                before = _space(line)
                inner = before.removeprefix(base)
                after = indent + (_steps(inner, old, new) if old and new else inner)
                doc = (before, after)
                moved.append(after + line[len(before) :])
        return "\n".join(moved)

    def _means_the_same(self, text: str, node: ast.stmt) -> bool:
        try:
            tree = ast.parse(f"if True:\n{text}\n" if text[:1].isspace() else text)
        except SyntaxError:
            return False
        body = tree.body[0].body if isinstance(tree.body[0], ast.If) and text[:1].isspace() else tree.body
        return len(body) == 1 and same_code(body[0], node)


def first_line(node: ast.stmt) -> int:
    """1-based first line of a statement, its decorators included."""
    decorators = node.decorator_list if isinstance(node, DefinitionNode) else []
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def same_code(one: ast.AST, other: ast.AST) -> bool:
    """Equal syntax trees; decorators of the outermost definition and indentation of docstrings do not count."""
    return _form(one) == _form(other)


def _form(node: ast.AST) -> str:
    text = ast.unparse(node)
    tree = ast.parse(text)
    outer = tree.body[0]
    if isinstance(outer, DefinitionNode):
        outer.decorator_list = []
    for scope in ast.walk(tree):
        doc = _docstring(scope)
        if doc is not None and isinstance(doc.value, ast.Constant):
            doc.value.value = inspect.cleandoc(str(doc.value.value)).rstrip()
    return ast.dump(tree)


def _docstring(node: ast.AST) -> ast.Expr | None:
    if not isinstance(node, _SCOPES) or not node.body:
        return None
    first = node.body[0]
    if (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    ):
        return first
    return None


def _string_lines(text: str, tree: ast.Module) -> dict[int, str]:
    """Line → `string` or `docstring` for lines that begin inside a literal."""
    kinds: dict[int, str] = {}
    opened: list[int] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kind = tokenize.tok_name[token.type]
        if kind in ("FSTRING_START", "TSTRING_START"):  # Python 3.12 and newer
            opened.append(token.start[0])
        elif kind in ("FSTRING_END", "TSTRING_END"):
            kinds.update(dict.fromkeys(range(opened.pop() + 1, token.end[0] + 1), "string"))
        elif kind == "STRING":
            kinds.update(dict.fromkeys(range(token.start[0] + 1, token.end[0] + 1), "string"))
    for node in ast.walk(tree):
        if doc := _docstring(node):
            kinds.update(
                dict.fromkeys(range(doc.lineno + 1, (doc.end_lineno or doc.lineno) + 1), "docstring")
            )
    return kinds


def indentation_step(node: ast.stmt, lines: Lines) -> str:
    """White space by which the body of a definition is indented against it, empty if that cannot be told."""
    if not isinstance(node, DefinitionNode) or node.body[0].lineno == node.lineno:
        return ""
    outer, inner = _space(lines[node.lineno]), _space(lines[first_line(node.body[0])])
    return inner.removeprefix(outer) if inner.startswith(outer) else ""


def _space(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t\f"))]


def _steps(space: str, old: str, new: str) -> str:
    count = 0
    while space.startswith(old):
        space = space[len(old) :]
        count += 1
    return new * count + space
