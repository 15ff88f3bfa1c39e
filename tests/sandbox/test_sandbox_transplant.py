"""Edited code in live functions: what changes behaviour, and what is refused as unsound."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator

import pytest

from pytest_autofix.sandbox.transplant import FunctionIndex, Unsound, transplant

FILE = "/project/shop.py"


@pytest.fixture
def load() -> Iterator[object]:
    names: list[str] = []

    def load(source: str) -> types.ModuleType:
        module = types.ModuleType(f"shop_{len(names)}")
        names.append(module.__name__)
        sys.modules[module.__name__] = module
        exec(compile(source, FILE, "exec"), module.__dict__)
        return module

    yield load
    for name in names:
        del sys.modules[name]


def edited(source: str, old: str, new: str) -> list[list[object]]:
    start = source.index(old)
    return [["shop.py", start, start + len(old), new]]


FUNCTION = "def total(a, b):\n    return a - b\n"
METHOD = "class Cart:\n    def total(self, a, b):\n        return a - b\n\ntotal = Cart().total\n"
STATIC = "class Cart:\n    @staticmethod\n    def total(a, b):\n        return a - b\n\ntotal = Cart.total\n"
NESTED = "def total(a, b):\n    def inner():\n        return a - b\n    return inner()\n"
WRAPPED = "import functools\n\n@functools.lru_cache\ndef total(a, b):\n    return a - b\n"
DECORATOR = (
    "def decorate(f):\n    def wrapper(*args):\n        return f(*args) - 1\n    return wrapper\n\n"
    "@decorate\ndef total(a, b):\n    return a + b\n"
)
GENERATOR = "def items(a, b):\n    yield a - b\n\ndef total(a, b):\n    return sum(items(a, b))\n"
LONGER = "def total(a, b):\n    return a - b\n\ndef other():\n    return 1\n"


@pytest.mark.parametrize(
    ("source", "old", "new"),
    [
        pytest.param(FUNCTION, "a - b", "a + b", id="function"),
        pytest.param(METHOD, "a - b", "a + b", id="method"),
        pytest.param(STATIC, "a - b", "a + b", id="staticmethod"),
        pytest.param(NESTED, "a - b", "a + b", id="nested"),
        pytest.param(WRAPPED, "a - b", "a + b", id="lru-cache"),
        pytest.param(DECORATOR, "f(*args) - 1", "f(*args)", id="live-inner-function"),
        pytest.param(GENERATOR, "a - b", "a + b", id="generator"),
        pytest.param(LONGER, "return a - b", "b = b\n    return a + b", id="lines-move"),
    ],
)
def test_behaviour_changes(load, source: str, old: str, new: str) -> None:
    module = load(source)
    kept = module.total  # as `from shop import total` would
    assert kept(2, 3) != 5
    transplant(FunctionIndex({FILE: "shop.py"}), {"shop.py": source}, edited(source, old, new))
    if hasattr(kept, "cache_clear"):
        kept.cache_clear()
    assert kept(2, 3) == 5


@pytest.mark.parametrize(
    ("source", "old", "new", "why"),
    [
        pytest.param("LIMIT = 1\n" + FUNCTION, "LIMIT = 1", "LIMIT = 2", "constant", id="module-constant"),
        pytest.param("LIMIT = 1\n" + FUNCTION, "LIMIT = 1", "LIMIT = True", "constant", id="constant-of-other-type"),
        pytest.param(FUNCTION, "a, b)", "a, b=1)", "body", id="default-argument"),
        pytest.param(FUNCTION, "def total", "import math\ndef total", "body", id="new-import"),
        pytest.param("class C:\n    X = 1\n" + FUNCTION, "X = 1", "X = 2", "constant", id="class-body"),
        pytest.param(
            "def outer():\n    k = 1\n    def inner():\n        return 0\n    return inner\n\ntotal = outer()\n",
            "return 0", "return k", "closes over", id="other-closure",
        ),
        pytest.param(
            "ALL = [x for x in (1, 2)]\n" + FUNCTION, "x for x", "-x for x", "live function|body", id="ran-at-import"
        ),
    ],
)  # fmt: skip
def test_unsound(load, source: str, old: str, new: str, why: str) -> None:
    load(source)
    index = FunctionIndex({FILE: "shop.py"})
    with pytest.raises(Unsound, match=why):
        transplant(index, {"shop.py": source}, edited(source, old, new))


def test_other_parameters_are_taken_over(load) -> None:
    module = load(FUNCTION)
    transplant(FunctionIndex({FILE: "shop.py"}), {"shop.py": FUNCTION}, edited(FUNCTION, "a, b", "a, b, c"))
    with pytest.raises(TypeError):
        module.total(1, 2)


def test_syntax_error_is_told(load) -> None:
    load(FUNCTION)
    with pytest.raises(SyntaxError):
        transplant(
            FunctionIndex({FILE: "shop.py"}), {"shop.py": FUNCTION}, edited(FUNCTION, "a - b", "a - (")
        )


def test_a_file_that_nobody_imported_is_unsound() -> None:
    with pytest.raises(Unsound, match="not imported"):
        transplant(FunctionIndex({"/other.py": "o.py"}), {"o.py": FUNCTION}, [["o.py", 0, 0, ""]])


def test_several_edits_of_one_file(load) -> None:
    source = "def total(a, b):\n    c = a\n    return c - b\n"
    module = load(source)
    edits = edited(source, "c = a", "c = a * 10") + edited(source, "c - b", "c + b")
    transplant(FunctionIndex({FILE: "shop.py"}), {"shop.py": source}, edits)
    assert module.total(2, 3) == 23
