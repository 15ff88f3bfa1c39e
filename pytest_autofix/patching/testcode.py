"""Which modules of a project are test code, wherever they lie, and whether the tests inside a source file changed.

A test can be weakened without touching a test file: through a plugin it loads, a base class it inherits, a doctest
or a test function that lives in the source. All of it is read from the syntax tree, nothing is imported.
"""

from __future__ import annotations

import ast
import doctest
import fnmatch
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

__all__ = ["TEST_FOLDERS", "InlineTests", "Naming", "Project", "changed_inline_tests"]

TEST_FOLDERS = frozenset(("tests", "test", "testing"))

_LIFECYCLE = frozenset(
    (
        "setUp",
        "tearDown",
        "setUpClass",
        "tearDownClass",
        "asyncSetUp",
        "asyncTearDown",
        "setup_method",
        "teardown_method",
        "setup_class",
        "teardown_class",
    )
)
_NAMES_PLUGINS = re.compile(rb"pytest_plugins")
_INHERITS = re.compile(rb"^class\s+\w+[^\n]*\(", re.MULTILINE)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class Naming:
    """pytest's own patterns of what is a test."""

    files: tuple[str, ...] = ("test_*.py", "*_test.py")
    classes: tuple[str, ...] = ("Test",)
    functions: tuple[str, ...] = ("test",)

    def is_file(self, path: str) -> bool:
        """Whether the file's name says that it holds tests. A pattern that takes every module says nothing."""
        return any(
            _matches_path(path, pattern) for pattern in self.files if pattern.strip("*") not in (".py", "")
        )

    def is_class(self, name: str) -> bool:
        return _matches_name(name, self.classes)

    def is_function(self, name: str) -> bool:
        return _matches_name(name, self.functions)


@dataclass(frozen=True, slots=True)
class Project:
    """Finds modules by name: `files` of the tree, and the folders from which it imports."""

    files: frozenset[str]
    roots: tuple[str, ...]  #: folders relative to the project, `""` for its root
    read: Callable[[str], bytes]

    def module_file(self, name: str, base: str = "") -> str:
        """The file of the module `name`, empty if it is none of the project.

        Python also puts the folder of a test file (`base`) on its path.
        """
        if not re.fullmatch(r"\w+(\.\w+)*", name):
            return ""
        tail = name.replace(".", "/")
        for root in (*((base,) if base else ()), *self.roots):
            place = f"{root}/{tail}" if root else tail
            for path in (f"{place}.py", f"{place}/__init__.py"):
                if path in self.files:
                    return path
        return ""

    def tree(self, path: str, *, holding: re.Pattern[bytes] | None = None) -> ast.Module | None:
        """The file's syntax tree, None if it cannot be read, does not parse or holds no match of `holding`.

        Parsing takes 2 to 10 ms a file: that is seconds for a large suite, of which few files matter here.
        """
        try:
            source = self.read(path)
            return ast.parse(source) if holding is None or holding.search(source) else None
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            return None

    def plugins(self, tests: Iterable[str], named: Iterable[str]) -> dict[str, str]:
        """Files that pytest loads as plugins → where that is said.

        `tests`: test files and conftests with their `pytest_plugins`; `named`: modules given by `-p`.
        """
        found = {self.module_file(name): f"-p {name}" for name in named}
        for name in self._entry_points():
            found.setdefault(self.module_file(name), "its pytest11 entry point")
        waiting = list(tests)
        while waiting:
            test = waiting.pop()
            for name in _plugin_names(self.tree(test, holding=_NAMES_PLUGINS)):
                path = self.module_file(name)
                if path and path not in found:
                    found[path] = f"pytest_plugins in {test}"
                    waiting.append(path)
        found.pop("", None)
        return found

    def bases(self, tests: Collection[str], naming: Naming) -> dict[str, str]:
        """Files outside the tests whose classes lend tests, set-up or assertions to test classes → which test."""
        found: dict[str, str] = {}
        for test in tests:
            tree = self.tree(test, holding=_INHERITS)
            if tree is None:
                continue
            classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
            for node in classes.values():
                if _holds_tests(node, naming):
                    self._follow_bases(node, tree, test, naming, f"{test}::{node.name}", found, set())
        return {path: user for path, user in found.items() if path not in set(tests)}

    def _follow_bases(
        self,
        heir: ast.ClassDef,
        tree: ast.Module,
        path: str,
        naming: Naming,
        user: str,
        found: dict[str, str],
        seen: set[tuple[str, str]],
    ) -> None:
        if (path, heir.name) in seen:
            return
        seen.add((path, heir.name))
        imported = dict(self._imported_names(tree, path))
        for base in heir.bases:
            head, _, rest = _dotted(base).partition(".")
            place, inner = imported.get(head, (path, head))
            wanted = inner or rest.rpartition(".")[2]
            other = tree if place == path else self.tree(place)
            for node in other.body if other else ():
                if isinstance(node, ast.ClassDef) and node.name == wanted and other is not None:
                    if place != path and _lends_tests(node, naming):
                        found.setdefault(place, user)
                    self._follow_bases(node, other, place, naming, user, found, seen)

    def _imported_names(self, tree: ast.Module, path: str) -> Iterator[tuple[str, tuple[str, str]]]:
        """Local name → (file, name in it or "" for the module itself) for modules of the project."""
        folder = str(PurePosixPath(path).parent)
        folder = "" if folder == "." else folder
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if file := self.module_file(alias.name, folder):
                        # `import a.b` binds `a`; the class is then reached as `a.b.Class`.
                        yield alias.asname or alias.name.partition(".")[0], (file, "")
            elif isinstance(node, ast.ImportFrom):
                module, base = node.module or "", folder
                if node.level:
                    parts = path.split("/")[: -node.level]
                    absolute = "/".join([*parts, *module.split(".")] if module else parts)
                    file = next(
                        (
                            name
                            for name in (f"{absolute}.py", f"{absolute}/__init__.py")
                            if name in self.files
                        ),
                        "",
                    )
                else:
                    file = self.module_file(module, base)
                for alias in node.names:
                    submodule = "" if node.level else self.module_file(f"{module}.{alias.name}", base)
                    if submodule:
                        yield alias.asname or alias.name, (submodule, "")
                    elif file:
                        yield alias.asname or alias.name, (file, alias.name)

    def _entry_points(self) -> list[str]:
        names: list[str] = []
        if "pyproject.toml" in self.files:
            try:
                data = tomllib.loads(self.read("pyproject.toml").decode())
                points = data.get("project", {}).get("entry-points", {}).get("pytest11", {})
                names += [str(value).partition(":")[0].strip() for value in points.values()]
            except (OSError, ValueError, AttributeError):
                pass  # a broken pyproject.toml is pytest's to report
        return names


def _matches_path(path: str, pattern: str) -> bool:
    # As in pytest: a pattern without a slash is for the name, one with a slash for the end of the path.
    if "/" not in pattern:
        return fnmatch.fnmatchcase(path.rpartition("/")[2], pattern)
    return fnmatch.fnmatchcase(f"/{path}", f"*/{pattern.lstrip('/')}")


def _matches_name(name: str, patterns: Sequence[str]) -> bool:
    return any(
        name.startswith(pattern)
        or (any(sign in pattern for sign in "*?[") and fnmatch.fnmatch(name, pattern))
        for pattern in patterns
    )


def _plugin_names(tree: ast.Module | None) -> Iterator[str]:
    for node in tree.body if tree else ():
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, (ast.AnnAssign, ast.AugAssign)):
            targets = [node.target]
        if any(isinstance(target, ast.Name) and target.id == "pytest_plugins" for target in targets):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                    yield from (name.strip() for name in inner.value.split(","))


def _dotted(node: ast.expr) -> str:
    """`a.b.C` of a base class expression, also of `C[int]` and `C()`; empty for anything else."""
    if isinstance(node, ast.Subscript):
        return _dotted(node.value)
    if isinstance(node, ast.Attribute):
        inner = _dotted(node.value)
        return f"{inner}.{node.attr}" if inner else ""
    return node.id if isinstance(node, ast.Name) else ""


def _is_test_case(node: ast.ClassDef) -> bool:
    return any(_dotted(base).endswith("TestCase") for base in node.bases)


def _holds_tests(node: ast.ClassDef, naming: Naming) -> bool:
    """Whether pytest may collect this class: by its name, or because a base may be a `TestCase`."""
    return naming.is_class(node.name) or any(
        isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)) and inner.name.startswith("test")
        for inner in node.body
    )


def _lends_tests(node: ast.ClassDef, naming: Naming) -> bool:
    """Whether a class outside the tests gives its heirs tests, set-up or assertions; a product class does not."""
    if _is_test_case(node):
        return True
    for method in node.body:
        if not isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if method.name in _LIFECYCLE or naming.is_function(method.name):
            return True
        if method.name.startswith(("assert", "check", "verify")) and any(
            isinstance(inner, ast.Assert) or _is_assertion_call(inner) for inner in ast.walk(method)
        ):
            return True
    return False


def _is_assertion_call(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr.startswith(("assert", "fail"))
    )


@dataclass(frozen=True, slots=True)
class InlineTests:
    """The tests that live in one source file: owner's qualified name → what must stay the same."""

    doctests: Mapping[str, tuple[tuple[object, ...], ...] | str]
    functions: Mapping[str, str]

    @classmethod
    def of(cls, source: bytes, naming: Naming) -> InlineTests | None:
        """None if the text does not parse."""
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        doctests: dict[str, tuple[tuple[object, ...], ...] | str] = {}
        for name, node in _definitions(tree):
            text = ast.get_docstring(node, clean=False)
            if text is not None and ">>>" in text:
                doctests[name] = _examples(text)
        for statement in tree.body:
            # doctest also takes the strings of a dictionary of this name.
            targets = statement.targets if isinstance(statement, ast.Assign) else []
            if any(isinstance(target, ast.Name) and target.id == "__test__" for target in targets):
                doctests["__test__"] = ast.dump(statement)
        functions = {
            statement.name: ast.dump(statement)
            for statement in tree.body
            if isinstance(statement, _DEFINITIONS) and _is_collected(statement, naming)
        }
        return cls(doctests, functions)


def changed_inline_tests(before: bytes, after: bytes, naming: Naming) -> str:
    """Which doctest or test function of a source file differs, empty if none does.

    A text that does not parse has no tests to lose before, and no way to pass after.
    """
    old, new = InlineTests.of(before, naming), InlineTests.of(after, naming)
    if old is None or new is None:
        return ""
    if name := _first_difference(old.doctests, new.doctests):
        return f"the doctest in `{name}`"
    if name := _first_difference(old.functions, new.functions):
        return f"the test `{name}`"
    return ""


def _first_difference(old: Mapping[str, object], new: Mapping[str, object]) -> str:
    return next((name for name in {**old, **new} if old.get(name) != new.get(name)), "")


def _definitions(
    tree: ast.Module,
) -> Iterator[tuple[str, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]]:
    """Module, classes and functions with their names; definitions of one name are numbered in their order."""
    seen: dict[str, int] = {}
    waiting: list[tuple[str, ast.AST]] = [("<module>", tree)]
    while waiting:
        name, node = waiting.pop(0)
        if isinstance(node, (ast.Module, *_DEFINITIONS)):
            yield name, node
        inside = "" if name == "<module>" else f"{name}."
        for child in ast.iter_child_nodes(node):
            if isinstance(child, _DEFINITIONS):
                full = inside + child.name
                seen[full] = seen.get(full, 0) + 1
                waiting.append((full if seen[full] == 1 else f"{full}#{seen[full]}", child))
            elif isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case)):
                waiting.append((name, child))


def _examples(text: str) -> tuple[tuple[object, ...], ...] | str:
    try:
        examples = doctest.DocTestParser().get_examples(text)
    except ValueError:
        return text
    return tuple(
        (example.source, example.want, example.exc_msg, tuple(sorted(example.options.items())))
        for example in examples
    )


def _is_collected(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, naming: Naming) -> bool:
    if not isinstance(node, ast.ClassDef):
        return naming.is_function(node.name)
    if _is_test_case(node):
        return True
    methods = [
        inner.name for inner in node.body if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    return naming.is_class(node.name) and any(naming.is_function(name) for name in methods)
