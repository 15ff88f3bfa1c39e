"""Arrows between the parts of the package point one way, and each foreign library stays in its room."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "pytest_autofix"

LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"plugin"}),
    frozenset({"controller"}),
    frozenset({"run"}),
    frozenset({"solver"}),
    frozenset({"workbench"}),
    frozenset({"tasks", "verdict", "report"}),
    frozenset({"candidates"}),
    frozenset({"sandbox", "patching"}),
    frozenset({"evidence", "options", "invocation", "hookspec"}),
    frozenset({"settings", "budget", "redact"}),
    frozenset({"errors", "__init__"}),
)
"""From the top down: a part imports its own layer and those below. A part that is not named here belongs to `run`."""

VALUES = frozenset(
    {"candidates.candidate", "evidence.failure", "tasks.task", "verdict.verdict", "sandbox.protocol"}
)
"""Modules of plain values: any part may import them, and they import nothing but each other and `errors`."""

PYTEST = (
    "plugin",
    "controller",
    "options",
    "hookspec",
    "invocation",
    "evidence",
    "sandbox.session",
    "sandbox.runner",
    "sandbox.zygote",
)
ROOMS = {
    "pytest": PYTEST,
    "_pytest": PYTEST,
    "pluggy": PYTEST,
    "langgraph": ("solver",),
    "langchain_core": ("candidates.model",),
    "langchain_openai": ("candidates.model",),
    "langchain": (),
    "langsmith": ("candidates.model",),
    "openai": ("candidates.model",),
    "tenacity": ("candidates.model",),
    "e2b": ("sandbox.e2b",),
    "e2b_code_interpreter": ("sandbox.e2b",),
    "github": (),
    "requests": (),
}
"""Foreign package → the parts that may import it."""


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        if name != "__init__":
            name = name.removesuffix(".__init__")
        yield name, ast.parse(path.read_text(encoding="utf-8"))


def imports(name: str, tree: ast.Module, *, typing: bool = False) -> Iterator[tuple[str, int]]:
    """Dotted names that a module imports when it runs; with `typing` also what only type checkers see.

    Relative imports are those of modules that run inside the sandbox, where the package has another name.
    """
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test) and not typing:
            pending.extend(node.orelse)
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level <= 1, f"{name}:{node.lineno}: import absolutely"
            prefix = f"pytest_autofix.{name.rpartition('.')[0]}." if node.level else ""
            base = (prefix + (node.module or "")).removesuffix(".")
            yield from ((f"{base}.{alias.name}", node.lineno) for alias in node.names)
        pending.extend(ast.iter_child_nodes(node))


def within(module: str, parts: tuple[str, ...] | frozenset[str]) -> bool:
    return any(module == part or module.startswith(part + ".") for part in parts)


def layer(module: str) -> int:
    part = module.partition(".")[0]
    return next((number for number, layer in enumerate(LAYERS) if part in layer), 2)


MODULES = dict(modules())
PARAMETERS = [pytest.param(name, id=name) for name in MODULES]


def own(target: str) -> str:
    """`pytest_autofix.a.b.NAME` → the module `a.b`."""
    dotted = target.removeprefix("pytest_autofix").lstrip(".")
    while dotted and dotted not in MODULES:
        dotted = dotted.rpartition(".")[0]
    return dotted or "__init__"


@pytest.mark.parametrize("name", PARAMETERS)
def test_no_arrow_points_back(name: str) -> None:
    wrong = []
    for target, line in imports(name, MODULES[name]):
        if target.split(".")[0] != "pytest_autofix":
            continue
        module = own(target)
        if module in VALUES or name == "__init__":
            continue
        if layer(module) < layer(name):
            wrong.append(f"{name}:{line} imports {target}")
    assert not wrong


@pytest.mark.parametrize("name", sorted(VALUES))
def test_values_import_values_only(name: str) -> None:
    targets = {
        own(target) for target, _ in imports(name, MODULES[name]) if target.startswith("pytest_autofix.")
    }
    assert targets <= VALUES | {"errors"}


@pytest.mark.parametrize("name", PARAMETERS)
def test_foreign_packages_stay_in_their_rooms(name: str) -> None:
    wrong = []
    for target, line in imports(name, MODULES[name]):
        rooms = ROOMS.get(target.partition(".")[0])
        if rooms is not None and not within(name, rooms):
            wrong.append(f"{name}:{line} imports {target}")
    assert not wrong


def inside() -> list[str]:
    """The modules that run inside the sandbox: what the runner loads, and what that imports beside itself."""
    found = ["sandbox.runner", "sandbox.session", "sandbox.observe"]
    for name in found:
        found += [
            module
            for target, _ in imports(name, MODULES[name], typing=True)
            if target.startswith("pytest_autofix.") and (module := own(target)) not in found
        ]
    return found


@pytest.mark.parametrize("name", [*inside(), "sandbox.launcher"])
def test_what_runs_inside_the_sandbox_needs_nothing_installed_but_pytest(name: str) -> None:
    allowed = {*sys.stdlib_module_names, "pytest", "_pytest", "pluggy"}
    wrong = [
        f"{name}:{line} imports {target}"
        for target, line in imports(name, MODULES[name])
        if target.partition(".")[0] not in allowed and own(target) not in inside()
    ]
    assert not wrong


@pytest.mark.parametrize("name", inside())
def test_what_runs_inside_the_sandbox_knows_our_package_by_its_folder_only(name: str) -> None:
    absolute = [
        node.lineno
        for node in ast.walk(MODULES[name])
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pytest_autofix")
    ]
    assert not absolute


@pytest.mark.parametrize("name", ["__init__", "plugin", "options", "settings", "errors"])
def test_what_every_pytest_run_imports_is_light(name: str) -> None:
    tree = MODULES[name]
    top_level = ast.Module(
        [
            statement
            for statement in tree.body
            if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        ],
        [],
    )
    light = {*sys.stdlib_module_names, "pytest", "pluggy"}
    wrong = []
    for target, line in imports(name, top_level):
        top = target.partition(".")[0]
        if top == "pytest_autofix":
            if own(target) not in ("__init__", "plugin", "options", "settings", "errors", "hookspec"):
                wrong.append(f"{name}:{line} imports {target}")
        elif top not in light:
            wrong.append(f"{name}:{line} imports {target}")
    assert not wrong


def test_the_rules_would_notice() -> None:
    tree = ast.parse("import langgraph.graph\nfrom pytest_autofix.run import solve\n")
    found = {target for target, _ in imports("errors", tree)}
    assert found == {"langgraph.graph", "pytest_autofix.run.solve"}
    assert layer("run") < layer("errors")
    assert not within("errors", ROOMS["langgraph"])
    assert within("candidates.model.client", ROOMS["langchain_openai"])
