"""Which names can be used at a place, of what type they probably are, and what functions look like."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from pytest_autofix.candidates.search.source import Definition, Source

__all__ = ["BUILTINS", "ModuleNames", "Scope", "Signature", "guess_type", "signature_of"]

BUILTINS = frozenset(name for name in dir(builtins) if not name.startswith("_"))
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_RESULT = {
    "len": "int", "int": "int", "ord": "int", "sum": "int", "abs": "int", "round": "int", "hash": "int", "id": "int",
    "float": "float", "str": "str", "repr": "str", "chr": "str", "input": "str", "hex": "str", "bin": "str",
    "list": "list", "sorted": "list", "dict": "dict", "set": "set", "frozenset": "set", "tuple": "tuple",
    "bool": "bool", "isinstance": "bool", "any": "bool", "all": "bool", "callable": "bool", "hasattr": "bool",
    "defaultdict": "dict", "OrderedDict": "dict", "Counter": "dict", "deque": "deque",
}  # fmt: skip
_METHOD_RESULT = {
    "strip": "str", "lstrip": "str", "rstrip": "str", "lower": "str", "upper": "str", "title": "str", "join": "str",
    "replace": "str", "format": "str", "capitalize": "str", "split": "list", "splitlines": "list", "find": "int",
    "index": "int", "count": "int", "startswith": "bool", "endswith": "bool", "isdigit": "bool", "isalpha": "bool",
}  # fmt: skip


@dataclass(frozen=True)
class Signature:
    """How a function of the file is called."""

    name: str
    parameters: tuple[str, ...]  #: positional ones, without `self` of a method
    defaults: int  #: how many of them, from the end, may be left out
    keyword_only: tuple[str, ...] = ()
    variadic: bool = False

    def accepts(self, count: int) -> bool:
        return self.variadic or len(self.parameters) - self.defaults <= count <= len(self.parameters)


def signature_of(node: ast.FunctionDef | ast.AsyncFunctionDef, *, method: bool) -> Signature:
    arguments = node.args
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    static = any(isinstance(item, ast.Name) and item.id == "staticmethod" for item in node.decorator_list)
    if method and not static:
        names = names[1:]
    return Signature(
        node.name,
        tuple(names),
        min(len(arguments.defaults), len(names)),
        tuple(argument.arg for argument in arguments.kwonlyargs),
        arguments.vararg is not None,
    )


@dataclass
class ModuleNames:
    """What the module level of a file defines."""

    functions: dict[str, Signature] = field(default_factory=dict)
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    constants: dict[str, ast.expr] = field(default_factory=dict)
    imports: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, source: Source) -> ModuleNames:
        names = cls()
        names._read(source.tree.body)
        return names

    def _read(self, body: list[ast.stmt]) -> None:
        for statement in body:
            if isinstance(statement, _FUNCTIONS):
                self.functions[statement.name] = signature_of(statement, method=False)
            elif isinstance(statement, ast.ClassDef):
                self.classes[statement.name] = statement
            elif isinstance(statement, (ast.Import, ast.ImportFrom)):
                self.imports.update(
                    (alias.asname or alias.name).partition(".")[0] for alias in statement.names
                )
            elif isinstance(statement, ast.Assign):
                for target in statement.targets:
                    if isinstance(target, ast.Name):
                        self.constants[target.id] = statement.value
            elif isinstance(statement, ast.AnnAssign):
                if isinstance(statement.target, ast.Name) and statement.value is not None:
                    self.constants[statement.target.id] = statement.value
            elif isinstance(statement, (ast.If, ast.Try, ast.With)):
                self._read(statement.body)
                self._read(getattr(statement, "orelse", []))
                for handler in getattr(statement, "handlers", []):
                    self._read(handler.body)

    @cached_property
    def all(self) -> frozenset[str]:
        return frozenset({*self.functions, *self.classes, *self.constants, *self.imports})


class Scope:
    """Names of one function: its own, those of the functions around it, those of its class."""

    def __init__(
        self, source: Source, definition: Definition, module: ModuleNames, types: Mapping[str, str]
    ) -> None:
        self.module = module
        self.owner: str = ""  #: first parameter of a method: `self` or `cls`
        self.parameters: list[str] = []
        self.first_line: dict[str, int] = {}  #: local variable → first line that binds it
        self.outer: list[str] = []
        self._static: dict[str, str] = {}
        self._runtime = types
        node = definition.node
        self.class_node = definition.classes[-1] if definition.classes else None
        if isinstance(node, ast.ClassDef):
            self.class_node = node
        for function in definition.functions:
            inner = _Binder()
            inner.function(function)
            self.outer += [name for name in inner.bound if name not in self.outer]
        if isinstance(node, _FUNCTIONS):
            binder = _Binder()
            binder.function(node)
            self.parameters = binder.parameters
            self.first_line = binder.bound
            self._static = binder.types
            if self.class_node is not None and not definition.functions and self.parameters:
                decorators = {item.id for item in node.decorator_list if isinstance(item, ast.Name)}
                if "staticmethod" not in decorators:
                    self.owner = self.parameters[0]
        elif isinstance(node, ast.Module):
            self.outer = []
        self.locals = [name for name in self.first_line if name not in self.parameters]

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """Data attributes of the class around, in the order of first use."""
        return tuple(name for name in self._members if name not in self.methods)

    @cached_property
    def methods(self) -> dict[str, Signature]:
        """Methods of the class around; properties are attributes."""
        if self.class_node is None:
            return {}
        found = {}
        for statement in self.class_node.body:
            if isinstance(statement, _FUNCTIONS) and not any(
                isinstance(item, ast.Name) and item.id in ("property", "cached_property")
                for item in statement.decorator_list
            ):
                found[statement.name] = signature_of(statement, method=True)
        return found

    @cached_property
    def _members(self) -> dict[str, None]:
        found: dict[str, None] = {}
        if self.class_node is None:
            return found
        for statement in self.class_node.body:
            if isinstance(statement, _FUNCTIONS):
                found[statement.name] = None
            elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                found[statement.target.id] = None
            elif isinstance(statement, ast.Assign):
                found.update((item.id, None) for item in statement.targets if isinstance(item, ast.Name))
        for node in ast.walk(self.class_node):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "self"
            ):
                found[node.attr] = None
        return found

    def type_of(self, name: str) -> str:
        """What the name held when the test failed, else what its assignments say, else nothing."""
        return self._runtime.get(name) or self._static.get(name, "")

    def variables(self, line: int, *, targets: bool = False) -> Iterator[tuple[str, float]]:
        """Names that hold values here, with how likely each is meant: own ones before those around.

        A local that is first bound below is likely unbound here; in a loop it may be bound all the same.
        """
        for name in self.parameters:
            if name != self.owner or (self.owner not in ("self", "cls") and not targets):
                yield name, 1.0
        for name in self.locals:
            yield name, 1.0 if self.first_line[name] <= line else 0.4
        if targets:
            return
        for name in self.outer:
            yield name, 0.8
        for name in self.module.constants:
            yield name, 0.5

    @cached_property
    def visible(self) -> frozenset[str]:
        return frozenset({*self.parameters, *self.locals, *self.outer, *self.module.all, *BUILTINS})


class _Binder(ast.NodeVisitor):
    """Collects what a function binds; comprehensions and nested definitions bind their own."""

    def __init__(self) -> None:
        self.parameters: list[str] = []
        self.bound: dict[str, int] = {}
        self.types: dict[str, str] = {}

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        every += [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
        for argument in every:
            self.parameters.append(argument.arg)
            self.bound[argument.arg] = argument.lineno
            if isinstance(argument.annotation, ast.Name) and argument.annotation.id in _RESULT.values():
                self.types[argument.arg] = argument.annotation.id
        for statement in node.body:
            self.visit(statement)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.bound.setdefault(node.name, node.lineno)
        self.types[node.name] = "function"

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.bound.setdefault(node.name, node.lineno)
        self.types[node.name] = "function"

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.bound.setdefault(node.name, node.lineno)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        return

    def generic_visit(self, node: ast.AST) -> None:
        if isinstance(node, _COMPREHENSIONS):
            return
        super().generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.types.setdefault(target.id, guess_type(node.value))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.target)

    def visit_For(self, node: ast.For) -> None:
        self.generic_visit(node)
        over = node.iter
        if (
            isinstance(over, ast.Call)
            and isinstance(over.func, ast.Name)
            and isinstance(node.target, ast.Name)
        ) and over.func.id == "range":
            self.types.setdefault(node.target.id, "int")

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            self.bound.setdefault(node.id, node.lineno)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        for statement in node.body:
            self.visit(statement)


def guess_type(node: ast.AST, scope: Scope | None = None) -> str:
    """Name of the builtin type that an expression has by its look, empty if it does not tell."""
    if isinstance(node, ast.Constant):
        return type(node.value).__name__
    if isinstance(node, (ast.List, ast.ListComp)):
        return "list"
    if isinstance(node, (ast.Dict, ast.DictComp)):
        return "dict"
    if isinstance(node, (ast.Set, ast.SetComp)):
        return "set"
    if isinstance(node, ast.Tuple):
        return "tuple"
    if isinstance(node, ast.JoinedStr):
        return "str"
    if isinstance(node, ast.GeneratorExp):
        return "generator"
    if isinstance(node, ast.Lambda):
        return "function"
    if isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
        return "bool"
    if isinstance(node, ast.UnaryOp):
        return guess_type(node.operand, scope)
    if isinstance(node, ast.Name) and scope is not None:
        return scope.type_of(node.id)
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name):
            return _RESULT.get(node.func.id, "")
        if isinstance(node.func, ast.Attribute):
            return _METHOD_RESULT.get(node.func.attr, "")
    if isinstance(node, ast.BinOp):
        left, right = guess_type(node.left, scope), guess_type(node.right, scope)
        if isinstance(node.op, (ast.Sub, ast.FloorDiv, ast.Div, ast.Pow, ast.LShift, ast.RShift)):
            return left or right or "int"
        return left or right
    return ""
