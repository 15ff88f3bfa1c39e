"""Put a model's version of a definition in the place of the old one, and change nothing else.

Everything is a span of the original text, so what lies outside stays byte-identical by construction; the result is
parsed again and compared, since a span that is right as text may still be wrong as a program. What is ambiguous is
refused with the lines that were meant to be the same: a guess that passes a weak test is worse than no candidate.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pytest_autofix.errors import PatchError
from pytest_autofix.patching._fragment import Fragment, first_line, indentation_step, same_code
from pytest_autofix.patching._imports import import_span, pinned_lines
from pytest_autofix.patching._nodes import (
    assigned,
    decorator_line,
    is_example,
    is_filler,
    is_stub,
    last_part,
    margin,
    role,
)
from pytest_autofix.patching.locate import (
    MODULE,
    Definition,
    DefinitionNode,
    Lines,
    dominant_newline,
    is_overload,
    outline,
    parse_source,
)
from pytest_autofix.patching.spans import Span, apply_spans

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

__all__ = ["splice_definition"]


def splice_definition(
    source: str,
    name: str,
    new_code: str,
    *,
    line: int | None = None,
    also: Collection[str] = (),
    drop_decorators: Collection[str] = (),
) -> tuple[str, list[Span]]:
    """The new text of the file and the spans that make it; the same text and no span if nothing would change.

    `new_code` holds the definition `name`, alone or inside its class or enclosing function, and may bring imports and
    new helpers. It may change other definitions only if their qualified names are in `also` (`<module>` for
    module-level assignments); stubs of them (`...`) are taken as "unchanged". Decorators stay unless the code has
    its own; those in `drop_decorators` (last part of the dotted name) go. `line`, any line of the definition in
    `source`, picks among several of the same name. Calls, assertions, new
    tests and a `__main__` block are left out.

    Raises `PatchError` when it is not clear what should be changed, or when more would change than was asked for.
    """
    splicer = _Splicer(
        source, name.replace(".<locals>", ""), Fragment.parse(new_code), line, also, drop_decorators
    )
    spans = splicer.spans()
    text = apply_spans(source, spans)
    _check(source, text, spans)
    return text, spans


class _Splicer:
    """Walks the statements of the new code and collects spans of the old text."""

    def __init__(
        self,
        source: str,
        name: str,
        fragment: Fragment,
        line: int | None,
        also: Collection[str],
        drop_decorators: Collection[str],
    ) -> None:
        self.source, self.name, self.fragment, self.line = source, name, fragment, line
        self.also, self.drop = also, frozenset(drop_decorators)
        self.tree, found = outline(source)
        self.lines = Lines(source)
        self.newline = dominant_newline(source)
        self.groups: dict[str, list[Definition]] = {}
        for definition in found:
            self.groups.setdefault(definition.name, []).append(definition)
        if name not in self.groups:
            raise PatchError(f"the file has no definition {name!r}")
        self.anchor = self._anchor()
        self.replaced: dict[int, Span] = {}  #: start of the old statement → its span; the last version wins
        self.helpers: list[ast.stmt] = []  #: new statements for module level
        self.members: list[tuple[str, ast.stmt]] = []  #: new statements for the class of that name
        self.imports: list[ast.Import | ast.ImportFrom] = []
        self.used: list[ast.stmt] = []  #: statements that went in: only what they use is imported
        self.seen = False
        self.overloads: dict[str, int] = {}

    def spans(self) -> list[Span]:
        for node in self.fragment.tree.body:
            self._top_level(node)
        if not self.seen and not self.replaced:
            names = [node.name for node in self.fragment.tree.body if isinstance(node, DefinitionNode)]
            has = f"it defines {', '.join(names)}" if names else "it has no definition"
            raise PatchError(f"the reply does not define {self.name!r}; {has}")
        if not self.replaced and not self.members:
            return []
        spans = [*self.replaced.values(), *self._member_spans()]
        if self.helpers:
            spans.append(self._helper_span())
        if found := import_span(self.tree, self.lines, self.imports, self.used, self.newline):
            spans.append(Span(found[0], found[0], found[1]))
        return sorted(spans)

    def _anchor(self) -> Definition:
        group = self.groups[self.name]
        covering = [d for d in group if self.line is not None and d.start_line <= self.line <= d.end_line]
        return (covering or [d for d in group if not is_overload(d.node)] or group)[0]

    def _top_level(self, node: ast.stmt) -> None:
        if isinstance(node, DefinitionNode) and self._is_test(node):
            return
        if isinstance(node, DefinitionNode):
            self._definition(node, self._qualified(node))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            self.imports.append(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            self._assignment(node, MODULE, self.tree.body)
        elif not is_example(node) and not any(same_code(node, old) for old in self.tree.body):
            raise PatchError(
                f"line {node.lineno} of the reply is neither a definition, an import nor an assignment: "
                f"{ast.unparse(node).splitlines()[0][:80]}"
            )

    def _is_test(self, node: DefinitionNode) -> bool:
        """A test that the model added for good measure: new, named like one, and used by nothing."""
        if not node.name.startswith(("test_", "Test")) or node.name in self.groups:
            return False
        if node.name in self.name.split("."):
            return False
        return not any(
            isinstance(each, ast.Name) and each.id == node.name for each in ast.walk(self.fragment.tree)
        )

    def _qualified(self, node: DefinitionNode) -> str:
        """Which definition of the file a top-level definition of the reply stands for, else its own name."""
        parts = self.name.split(".")
        if node.name == parts[-1]:
            return self.name
        if node.name in self.groups:
            return node.name
        for depth in range(len(parts) - 1, 0, -1):
            if parts[depth - 1] == node.name:
                return ".".join(parts[:depth])
        parent = ".".join(parts[:-1])
        sibling = f"{parent}.{node.name}"
        if parent and (sibling in self.groups or self._called_as_method(node.name)):
            return sibling
        return node.name

    def _called_as_method(self, name: str) -> bool:
        """Whether the reply's own code says that a new function beside a method is a method as well."""
        if self.anchor.parent_kind != "class":
            return False
        nodes = list(ast.walk(self.fragment.tree))
        bare = any(isinstance(node, ast.Name) and node.id == name for node in nodes)
        dotted = any(
            isinstance(node, ast.Attribute)
            and node.attr == name
            and isinstance(node.value, ast.Name)
            and node.value.id in ("self", "cls")
            for node in nodes
        )
        return dotted and not bare

    def _definition(self, node: DefinitionNode, name: str) -> None:
        group = self.groups.get(name)
        if group is None:
            parent = name.rpartition(".")[0]
            if parent:
                self.members.append((parent, node))
            else:
                self.helpers.append(node)
            self.used.append(node)
            return
        is_target = name == self.name
        old = self._pick(node, name, group)
        if isinstance(node, ast.ClassDef) and isinstance(old.node, ast.ClassDef) and not is_target:
            self._merge_class(node, old.name, old.node.body)
            return
        if is_target or self.name.startswith(f"{name}."):
            self.seen = True
        elif is_stub(node) and not is_stub(old.node):
            return
        if is_target and isinstance(node, ast.ClassDef):
            self._refuse_lost_members(node, old)
        if self._unchanged(node, old):
            return
        if not (self.seen and (is_target or self.name.startswith(f"{name}."))) and name not in self.also:
            raise PatchError(f"the reply also changes {name!r}, which must stay as it is")
        self._replace(node, old)

    def _pick(self, node: DefinitionNode, name: str, group: Sequence[Definition]) -> Definition:
        kind = role(node)
        same = [definition for definition in group if role(definition.node) == kind]
        if kind == "overload":
            position = self.overloads[name] = self.overloads.get(name, -1) + 1
            if position < len(same):
                return same[position]
            raise PatchError(f"the reply has more overloads of {name!r} than the file")
        if len(group) == 1:
            return group[0]
        others = [definition for definition in group if not is_overload(definition.node)]
        if len(others) == 1 and not kind:
            return others[0]
        if name == self.name and self.line is not None and not node.decorator_list:
            return self.anchor
        if len(same) == 1 and node.decorator_list:
            return same[0]
        if name == self.name and self.line is not None and self.anchor in same:
            return self.anchor
        places = ", ".join(str(definition.def_line) for definition in group)
        raise PatchError(f"{name!r} is defined in lines {places}; which one the reply means is not clear")

    def _merge_class(self, node: ast.ClassDef, name: str, body: Sequence[ast.stmt]) -> None:
        for member in node.body:
            if isinstance(member, DefinitionNode):
                self._definition(member, f"{name}.{member.name}")
            elif isinstance(member, ast.Assign | ast.AnnAssign):
                self._assignment(member, name, body)
            elif not is_filler(member) and not any(same_code(member, known) for known in body):
                raise PatchError(
                    f"line {member.lineno} of the reply changes class {name!r} outside its methods"
                )

    def _refuse_lost_members(self, node: ast.ClassDef, old: Definition) -> None:
        kept = {member.name for member in node.body if isinstance(member, DefinitionNode)}
        lost = [m.name for m in old.tree.body if isinstance(m, DefinitionNode) and m.name not in kept]
        if lost:
            raise PatchError(
                f"the reply leaves out {', '.join(dict.fromkeys(lost))} of class {old.name!r}: give the class whole"
            )

    def _assignment(self, node: ast.Assign | ast.AnnAssign, owner: str, body: Sequence[ast.stmt]) -> None:
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if not isinstance(target, ast.Name) or any(same_code(node, old) for old in body):
            return
        old = next((statement for statement in body if assigned(statement) == target.id), None)
        if old is None and self._is_bound(target.id, body):
            raise PatchError(f"the reply binds {target.id!r}, which the file binds in another way")
        if old is None:
            self.used.append(node)
            if owner == MODULE:
                self.helpers.append(node)
            else:
                self.members.append((owner, node))
            return
        if owner not in self.also:
            raise PatchError(f"the reply also changes {target.id!r}, which must stay as it is")
        start, end = self.lines.start(old.lineno), self.lines.end(old.end_lineno or old.lineno)
        alone = [s for s in body if s.lineno <= (old.end_lineno or 0) and (s.end_lineno or 0) >= old.lineno]
        if len(alone) != 1:
            raise PatchError(
                f"line {old.lineno} holds several statements; {target.id!r} cannot be replaced alone"
            )
        self._put(start, end, self.fragment.indented(node, margin(self.lines[old.lineno])), node)

    def _is_bound(self, name: str, body: Sequence[ast.stmt]) -> bool:
        return any(
            isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name
            for statement in body
            if not isinstance(statement, DefinitionNode)
            for node in ast.walk(statement)
        )

    def _unchanged(self, node: DefinitionNode, old: Definition) -> bool:
        if self.drop & {last_part(decorator) for decorator in old.tree.decorator_list}:
            return False
        if node.decorator_list and [ast.dump(d) for d in node.decorator_list] != [
            ast.dump(d) for d in old.tree.decorator_list
        ]:
            return False
        return same_code(node, old.tree)

    def _replace(self, node: DefinitionNode, old: Definition) -> None:
        dropped = [d for d in old.tree.decorator_list if last_part(d) in self.drop]
        step = indentation_step(old.tree, self.lines)
        if node.decorator_list:
            node.decorator_list = [d for d in node.decorator_list if last_part(d) not in self.drop]
            text = self.fragment.indented(node, old.indent, step=step, decorators=bool(node.decorator_list))
            self._put(old.start, old.end, text, node)
            return
        text = self.fragment.indented(node, old.indent, step=step)
        start = self.lines.start(old.def_line)
        if dropped:
            start = old.start
            text = "\n".join([*self._kept_decorators(old), text])
        self._put(start, old.end, text, node)

    def _kept_decorators(self, old: Definition) -> list[str]:
        starts = [decorator_line(d, self.lines) for d in old.tree.decorator_list]
        ends = [*starts[1:], old.def_line]
        return [
            self.source[self.lines.start(start) : self.lines.end(end - 1)]
            for decorator, start, end in zip(old.tree.decorator_list, starts, ends, strict=True)
            if last_part(decorator) not in self.drop
        ]

    def _put(self, start: int, end: int, text: str, node: ast.stmt) -> None:
        # The line ends of the definition itself: files with mixed ones exist.
        own = self.source[start : self.lines.start(self.lines.number(end) + 1)]
        newline = dominant_newline(own) if "\n" in own or "\r" in own else self.newline
        text = text.replace("\r\n", "\n").replace("\n", newline)
        if self.source[start:end] != text:
            self.replaced[start] = Span(start, end, text)
            self.used.append(node)

    def _member_spans(self) -> Iterable[Span]:
        for owner in dict.fromkeys(owner for owner, _ in self.members):
            group = self.groups.get(owner)
            if group is None or len(group) != 1 or not isinstance(group[0].node, ast.ClassDef):
                raise PatchError(f"{owner!r} is no class that new methods could go into")
            inside = self.name.rpartition(".")[0] == owner
            beside = self.anchor if inside else group[0]
            indent = self.anchor.indent if inside else margin(self.lines[first_line(group[0].node.body[0])])
            step = indentation_step(beside.tree, self.lines) if inside else indent
            nodes = [node for name, node in self.members if name == owner]
            # Attributes go before the methods that may use them as defaults, methods go behind.
            for before in (True, False):
                chosen = [node for node in nodes if isinstance(node, DefinitionNode) is not before]
                if not chosen:
                    continue
                texts = [self.fragment.indented(node, indent, step=step) for node in chosen]
                if before and not inside:
                    raise PatchError(f"the reply adds attributes to class {owner!r}, which is not asked for")
                if before:
                    text = "\n".join(texts) + "\n\n"
                    yield Span(beside.start, beside.start, text.replace("\n", self.newline))
                else:
                    end = max(d.end for d in self.groups[beside.name])
                    yield Span(end, end, "".join(f"\n\n{text}" for text in texts).replace("\n", self.newline))

    def _helper_span(self) -> Span:
        top = next(
            statement
            for statement in self.tree.body
            if first_line(statement) <= self.anchor.def_line <= (statement.end_lineno or statement.lineno)
        )
        line = first_line(top)
        while line > pinned_lines(self.lines) + 1 and self.lines[line - 1].startswith("#"):
            line -= 1
        step = indentation_step(self.anchor.tree, self.lines)
        text = ""
        for node in self.helpers:
            glue = "\n" if isinstance(node, ast.Assign | ast.AnnAssign) else "\n\n\n"
            if glue == "\n\n\n" and text and not text.endswith("\n\n\n"):
                text += "\n\n"
            text += self.fragment.indented(node, "", step=step) + glue
        text = text.rstrip("\n") + "\n\n\n"
        return Span(self.lines.start(line), self.lines.start(line), text.replace("\n", self.newline))


def _check(source: str, text: str, spans: Sequence[Span]) -> None:
    """Parse the result and compare all statements that were not meant to change."""
    new_spans: list[Span] = []
    shift = 0
    for span in spans:
        start = span.start + shift
        new_spans.append(Span(start, start + len(span.text), ""))
        shift += len(span.text) - (span.end - span.start)
    try:
        after = parse_source(text)
    except PatchError as error:
        raise PatchError(f"the spliced file does not parse any more: {error}") from error
    if _rest(parse_source(source), source, spans) != _rest(after, text, new_spans):
        raise PatchError("the splice would change code outside the definitions it is for")


def _rest(tree: ast.Module, source: str, spans: Sequence[Span]) -> list[str]:
    """What each top-level statement says but for the spans. Those that touch none are compared as text: it is quicker,
    and the same text as a whole statement at module level has the same tree."""
    lines = Lines(source)

    def touches(start: int, end: int) -> bool:
        return any(span.start < end and start < span.end for span in spans)

    def inside(node: ast.AST) -> bool:
        if not isinstance(node, ast.stmt):
            return False
        offset = lines.offset(node.lineno, node.col_offset)
        return any(span.start <= offset < span.end for span in spans)

    rest: list[str] = []
    for statement in tree.body:
        if inside(statement):
            continue
        start, end = lines.start(first_line(statement)), lines.end(statement.end_lineno or statement.lineno)
        # An insertion has no length in the old text, so a class may only be seen to be touched in the new one.
        if not touches(start, end) and not any(start < span.start <= end for span in spans):
            rest.append(source[lines.offset(statement.lineno, statement.col_offset) : end])
            continue
        for node in ast.walk(statement):
            for name in ("body", "orelse", "finalbody"):
                block = getattr(node, name, None)
                if isinstance(block, list):
                    setattr(node, name, [child for child in block if not inside(child)])
            if isinstance(node, DefinitionNode) and any(
                span.start <= lines.start(decorator.lineno) < span.end
                for span in spans
                for decorator in node.decorator_list
            ):
                node.decorator_list = []
        rest.append(ast.dump(statement))
    return rest
