from __future__ import annotations

from textwrap import dedent
from typing import Any

import pytest

from pytest_autofix.budget import estimate_tokens
from pytest_autofix.candidates.model.context import context_of
from pytest_autofix.candidates.model.spec import build_spec
from pytest_autofix.candidates.model.testcode import source_of_test
from pytest_autofix.errors import PatchError
from pytest_autofix.evidence.failure import Comparison, ExceptionFact, Failure, Frame, Operand
from pytest_autofix.patching.locate import definitions, locate_definition
from pytest_autofix.tasks.task import Target, Task

SHOP = dedent('''\
    """Prices."""
    import math
    import re

    RATE = 0.19
    OTHER = 1


    class Cart:
        """A cart."""

        limit = 10

        def __init__(self, items: list[int]) -> None:
            self.items = items

        def total(self) -> int:
            # cents
            return math.floor(sum(self.items) * RATE) + self._extra(1) + self.limit

        def _extra(
            self,
            n: int,
        ) -> int:
            """Something on top.

            More.
            """
            return n

        def unrelated(self) -> None: pass


    def helper(a): return Cart(a)
    ''')

TESTS = dedent("""\
    import pytest
    from shop import Cart
    from shop import helper

    WANTED = 7

    @pytest.fixture
    def items():
        return make(3)

    def make(n):
        return [n]

    def unused():
        return 1

    class TestCart:
        size = 2

        def setup_method(self):
            self.x = self.size

        def check(self, cart):
            assert cart.total() == WANTED

        @pytest.mark.parametrize("n", [1, 2])
        def test_total(self, items, n, db):
            self.check(Cart(items))

        def test_other(self):
            assert False
    """)


def failure(**changes: Any) -> Failure:
    frame = Frame(
        "shop.py", 19, "Cart.total", "return math.floor(...)", {"self": "<Cart>", "x" * 3: "y" * 900}
    )
    values: dict[str, Any] = {
        "nodeid": "tests/test_shop.py::TestCart::test_total[1]",
        "phase": "call",
        "kind": "assertion",
        "message": "assert 12 == 7",
        "path": "tests/test_shop.py",
        "function": "TestCart::test_total",
        "exceptions": (ExceptionFact("AssertionError", "assert 12 == 7", (frame,)),),
        "comparison": Comparison("==", Operand("12", "int"), Operand("7", "int"), "12 != 7"),
        "parameters": {"n": "1"},
        "output": {"stdout": "printed ``` here"},
    }
    return Failure(**{**values, **changes})


def target(source: str, name: str, path: str = "shop.py", score: float = 1.0) -> Target:
    found = locate_definition(source, name)
    return Target(path, name, found.start_line, found.end_line, score)


def task(*failures: Failure, targets: tuple[Target, ...] | None = None) -> Task:
    targets = (target(SHOP, "Cart.total"), target(SHOP, "helper")) if targets is None else targets
    return Task("f" * 16, failures or (failure(),), targets, ("shop.py",))


ORIGINALS = {"shop.py": SHOP}
FILES = {
    "tests/test_shop.py": TESTS,
    "tests/conftest.py": "import pytest\n\n@pytest.fixture\ndef db():\n    return 'db'\n\n\ndef no():\n    pass\n",
    "conftest.py": "x = 1\n",
}


def test_a_test_comes_with_what_it_uses_and_nothing_else() -> None:
    (path, text), conftest = source_of_test(failure(), FILES)
    assert path == "tests/test_shop.py"
    assert text == dedent("""\
        import pytest
        from shop import Cart

        WANTED = 7

        @pytest.fixture
        def items():
            return make(3)

        def make(n):
            return [n]

        class TestCart:
            size = 2

            def setup_method(self):
                self.x = self.size

            def check(self, cart):
                assert cart.total() == WANTED

            @pytest.mark.parametrize("n", [1, 2])
            def test_total(self, items, n, db):
                self.check(Cart(items))""")
    assert conftest == ("tests/conftest.py", "import pytest\n\n@pytest.fixture\ndef db():\n    return 'db'")


def test_a_table_of_parameters_is_left_out_and_said_so() -> None:
    rows = "".join(f"    {n},\n" for n in range(40))
    text = f"@a\n@pytest.mark.parametrize('n', [\n{rows}])\n@b\ndef test_f(n):\n    assert n\n"
    found = source_of_test(failure(path="t.py", function="test_f"), {"t.py": text})
    assert found == [
        ("t.py", "@a\n# @pytest.mark.parametrize(...): 42 lines not shown\n@b\ndef test_f(n):\n    assert n")
    ]


@pytest.mark.parametrize(
    ("text", "function", "shown"),
    [
        pytest.param("def test_f(:\n", "test_f", True, id="does not parse"),
        pytest.param("x = 1\n", "", True, id="collection error"),
        pytest.param("x = 1\n" * 500, "test_g", False, id="large, test not found"),
    ],
)
def test_a_test_that_cannot_be_found_is_shown_with_its_whole_file_if_small(
    text: str, function: str, shown: bool
) -> None:
    found = source_of_test(failure(path="t.py", function=function), {"t.py": text})
    assert found == ([("t.py", text)] if shown else [])
    assert source_of_test(failure(path="other.py"), {"t.py": text}) == []


def test_the_context_of_a_method() -> None:
    assert context_of(SHOP, locate_definition(SHOP, "Cart.total")) == dedent('''\
        import math
        RATE = 0.19

        class Cart:
            """A cart."""
            limit = 10

            def __init__(self, items: list[int]) -> None: ...
            def _extra(
                self,
                n: int,
            ) -> int: ...  # Something on top.''').replace('    """A cart."""\n', "")


def test_every_definition_of_a_real_module_has_a_context() -> None:
    with open(dedent.__code__.co_filename, encoding="utf-8") as file:  # noqa: PTH123 - co_filename is a str
        source = file.read()
    for definition in definitions(source):
        assert isinstance(context_of(source, definition), str)


def test_a_spec_shows_facts_test_and_code() -> None:
    spec = build_spec(task(), ORIGINALS, FILES, hint="look at `limit`")
    assert spec.format == "definition"
    assert [t.name for t in spec.targets] == ["Cart.total", "helper"]
    assert spec.cuts == ()
    for part in (
        "look at `limit`",
        "comparison that failed: left == right\nleft: 12  (int)\nright: 7  (int)",
        "parameters: n = 1",
        "at shop.py:19 in Cart.total: return math.floor(...)",
        "characters not shown",
        "self.check(Cart(items))",
        "    def total(self) -> int:\n        # cents\n",
        "## Also suspicious: `helper` in shop.py",
        "RATE = 0.19",
        "````\n[stdout]\nprinted ``` here\n````",
    ):
        assert part in spec.text
    order = ["A hint", "The failure", "The test, in", "The definition to correct", "Around `Cart.total`"]
    assert sorted(order, key=spec.text.index) == order


def test_what_does_not_fit_goes_whole_and_is_named() -> None:
    whole = build_spec(task(), ORIGINALS, FILES)
    size = estimate_tokens(whole.text)
    previous: set[str] = set()
    for tokens in range(size, 0, -40):
        spec = build_spec(task(), ORIGINALS, FILES, max_tokens=tokens)
        if spec.format == "definition":
            assert "return math.floor(sum(self.items) * RATE)" in spec.text
        assert (not spec.cuts) or "Not shown for lack of room: " in spec.text
        assert all(cut in spec.text for cut in spec.cuts)
        previous |= {cut.partition(" (")[0] for cut in spec.cuts}
        assert all(t.name in spec.text for t in spec.targets)
    assert "Captured output" in previous
    first_cut = build_spec(task(), ORIGINALS, FILES, max_tokens=size - 20).cuts
    names = {cut.partition(" (")[0] for cut in first_cut}
    assert names <= {"Captured output", "Around `helper` in shop.py, bodies left out"}


@pytest.mark.parametrize(
    ("source", "targets", "shown"),
    [
        pytest.param(
            "LIMIT = 3\n", (Target("shop.py", "<module>", 1, 1, 1.0),), "LIMIT = 3", id="module level"
        ),
        pytest.param("def f(:\n", (Target("shop.py", "f", 1, 1, 1.0),), "def f(:", id="does not parse"),
        pytest.param(
            "x = 1\n" * 400 + "def f():\n" + "    y = 2\n" * 3000,
            (Target("shop.py", "f", 401, 3401, 1.0),),
            "[lines ",
            id="definition too large",
        ),
    ],
)
def test_what_is_no_definition_or_too_large_is_edited_by_blocks(
    source: str, targets: tuple[Target, ...], shown: str
) -> None:
    blocks = Task("f" * 16, (failure(),), targets, ("shop.py",), {"shop.py": {450: 1.0, 3000: 0.5}})
    spec = build_spec(blocks, {"shop.py": source}, FILES)
    assert spec.format == "blocks"
    assert shown in spec.text
    assert estimate_tokens(spec.text) < 6500


def test_many_failures_are_summed_up() -> None:
    failures = [failure(nodeid=f"t.py::test_{n}", function=f"test_{n}", path="t.py") for n in range(30)]
    spec = build_spec(task(failure(), *failures), ORIGINALS, FILES)
    assert "t.py::test_11 (n=1): assert 12 == 7\nand 18 more" in spec.text


def test_a_task_without_a_known_target_has_no_spec() -> None:
    with pytest.raises(PatchError, match="no target"):
        build_spec(task(targets=()), ORIGINALS, FILES)
