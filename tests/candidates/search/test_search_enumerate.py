"""The order, laziness and honesty of the enumeration as a whole."""

from __future__ import annotations

import ast
import itertools
import time
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_autofix.candidates.candidate import Candidate, normalised_hash
from pytest_autofix.candidates.search.enumerate import enumerate_candidates, pairs
from pytest_autofix.candidates.search.facts import Facts
from pytest_autofix.candidates.search.registry import builtin_operators
from pytest_autofix.candidates.search.source import MODULE, Source, quiet_compile
from pytest_autofix.tasks.task import Target, Task

PATH = "pkg/mod.py"


def task_for(text: str, *names: str, lines: dict[int, float] | None = None) -> Task:
    source = Source.parse(PATH, text)
    assert source is not None
    targets = []
    for definition in source.definitions:
        if definition.name in names:
            node = definition.node
            first, last = (
                (1, text.count("\n") + 1) if isinstance(node, ast.Module) else (node.lineno, node.end_lineno)
            )
            targets.append(Target(PATH, definition.name, first, last or first, 0.7))
    assert len(targets) == len(names)
    return Task("0", (), tuple(targets), (PATH,), {PATH: lines} if lines is not None else {})


def every(text: str, *names: str, limit: int = 3000, **options: object) -> list[Candidate]:
    candidates = enumerate_candidates(task_for(text, *names), {PATH: text}, **options)  # type: ignore[arg-type]
    return list(itertools.islice(candidates, limit))


def texts(text: str, *names: str, limit: int = 3000) -> list[str]:
    return [candidate.apply({PATH: text})[PATH] for candidate in every(text, *names, limit=limit)]


SEARCH = """\
def search(items, wanted):
    low, high = 0, len(items)
    while low < high:
        middle = (low + high) // 2
        if items[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low
"""


def test_best_first_and_none_twice() -> None:
    found = every(SEARCH, "search", limit=1200)
    scores = [candidate.score for candidate in found]
    assert len(found) == 1200
    assert all(left >= right for left, right in itertools.pairwise(scores))
    hashes = [normalised_hash(candidate.apply({PATH: SEARCH})) for candidate in found]
    assert len(set(hashes)) == len(hashes)
    assert normalised_hash({PATH: SEARCH}) not in hashes
    assert {candidate.origin.source for candidate in found} == {"search"}
    assert len({candidate.origin.operator for candidate in found}) > 40


def test_the_suspicious_line_comes_first() -> None:
    text = "def f(a, b):\n    x = a < b\n    y = a < b\n    return x, y\n"
    task = task_for(text, "f", lines={2: 0.2, 3: 1.0, 4: 0.2})
    first = next(enumerate_candidates(task, {PATH: text}))
    source = Source.parse(PATH, text)
    assert source is not None
    assert source.line_of(first.edits[0].start) == 3


def test_a_line_that_no_failing_test_reached_comes_last() -> None:
    text = "def f(a, b):\n    if a:\n        return a < b\n    return a > b\n"
    task = task_for(text, "f", lines={2: 0.5, 4: 1.0})
    relations = [
        one for one in enumerate_candidates(task, {PATH: text}) if one.origin.operator == "compare.relation"
    ]
    lines = [text.count("\n", 0, one.edits[0].start) + 1 for one in relations]
    assert lines == [4] * 5 + [3] * 5


def test_a_crash_raises_its_line() -> None:
    text = "def f(a, b):\n    x = a < b\n    y = a < b\n    return x, y\n"
    task = task_for(text, "f", lines={2: 0.5, 3: 0.5, 4: 0.5})
    facts = Facts(crash_lines=frozenset({(PATH, 3)}))
    first = next(enumerate_candidates(task, {PATH: text}, facts=facts))
    assert text.count("\n", 0, first.edits[0].start) + 1 == 3


def test_priors_can_be_replaced() -> None:
    names = [
        one.origin.operator for one in every(SEARCH, "search", limit=20, priors={"statement.delete": 9.0})
    ]
    assert names[:6] == ["statement.delete"] * 6


def test_the_seed_decides_between_equals_only() -> None:
    plain = every(SEARCH, "search", limit=400)
    assert plain == every(SEARCH, "search", limit=400)
    other = every(SEARCH, "search", limit=400, seed=7)
    assert other == every(SEARCH, "search", limit=400, seed=7)
    assert [one.score for one in plain] == [one.score for one in other]
    assert plain != other


def test_the_first_candidates_come_at_once_and_the_rest_is_not_made() -> None:
    builtin_operators()  # importing them is paid once
    text = "\n\n".join(SEARCH.replace("search", f"search_{number}") for number in range(100))
    assert text.count("\n") > 1000
    task = task_for(text, "search_50")
    begin = time.process_time()
    iterator = enumerate_candidates(task, {PATH: text})
    assert len(list(itertools.islice(iterator, 20))) == 20
    assert time.process_time() - begin < 0.25  # 0.03 on a free core; this one is shared


def test_memory_stays_small_over_many_candidates() -> None:
    body = "\n".join(f"    v{number} = v{number - 1} + {number}" for number in range(1, 30))
    text = f"def f(v0):\n{body}\n    return v29\n"
    task = task_for(text, "f")
    tracemalloc.start()
    count = sum(1 for _ in itertools.islice(enumerate_candidates(task, {PATH: text}), 400))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 400
    assert peak < 40 * 1024 * 1024


def test_only_allowed_files_that_parse() -> None:
    text = "def f(a):\n    return a + 1\n"
    target = Target(PATH, "f", 1, 2, 1.0)
    assert not list(enumerate_candidates(Task("0", (), (target,), ("other.py",)), {PATH: text}))
    assert not list(enumerate_candidates(Task("0", (), (target,), (PATH,)), {PATH: "def f(:\n"}))
    assert not list(enumerate_candidates(Task("0", (), (target,), (PATH,)), {}))


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        pytest.param(
            "def f(a):\r\n    return a + 1  # é\r\n", "f", "def f(a):\r\n    return a - 1  # é\r\n", id="crlf"
        ),
        pytest.param("def f(a):\n\treturn a + 1\n", "f", "def f(a):\n\treturn a - 1\n", id="tabs"),
        pytest.param(
            "def f(a):\n\tif a:\n\t\ta += 1\n\treturn a",
            "f",
            "def f(a):\n\tif a:\n\t\ta += 1\n\ta -= 1\n\treturn a",
            id="tab-insert-no-last-newline",
        ),
        pytest.param(
            "def f(ä):\n    return 'ü€', ä + 1\n",
            "f",
            "def f(ä):\n    return 'ü€', ä - 1\n",
            id="utf-8-columns",
        ),
        pytest.param(
            "\ufeffdef f(a): return a + 1\n", "f", "\ufeffdef f(a): return a - 1\n", id="byte-order-mark"
        ),
        pytest.param(
            "def f(a):\n    return (a\n            + 1)\n",
            "f",
            "def f(a):\n    return (a\n            - 1)\n",
            id="several-lines",
        ),
        pytest.param("x = 1; y = 2\n", MODULE, "x = 1; y = 3\n", id="module-constant"),
        pytest.param(
            "class A:\n    size = 1\n    def f(self): pass\n",
            "A",
            "class A:\n    size = 2\n    def f(self): pass\n",
            id="class-body",
        ),
        pytest.param(
            "def f(a, b=1):\n    return a\n", "f", "def f(a, b=2):\n    return a\n", id="default-argument"
        ),
        pytest.param(
            "class A:\n    @property\n    def f(self):\n        return self.a + 1\n",
            "A.f",
            "class A:\n    @property\n    def f(self):\n        return self.a - 1\n",
            id="property",
        ),
        pytest.param(
            "def f(a):\n    def g(b):\n        nonlocal a\n        a = b + 1\n    return g\n",
            "f",
            "def f(a):\n    def g(b):\n        nonlocal a\n        a = b - 1\n    return g\n",
            id="nested",
        ),
        pytest.param(
            "def f(a):\n    def g(b):\n        return b + a\n    return g\n",
            "f.g",
            "def f(a):\n    def g(b):\n        return b - a\n    return g\n",
            id="closure",
        ),
        pytest.param(
            "async def f(a):\n    async with a as b:\n        return await b(1)\n",
            "f",
            "async def f(a):\n    async with a as b:\n        return await b(2)\n",
            id="async",
        ),
        pytest.param(
            "def f(a):\n    match a:\n        case [x, *y] if x > 1:\n            return y\n",
            "f",
            "def f(a):\n    match a:\n        case [x, *y] if x >= 1:\n            return y\n",
            id="match-guard",
        ),
        pytest.param(
            "def f(a):\n    if (n := a) > 1:\n        return [*a, n]\n",
            "f",
            "def f(a):\n    if (n := a) >= 1:\n        return [*a, n]\n",
            id="walrus-and-star",
        ),
        pytest.param(
            "def f(a):\n    return sum(x + 1 for x in a)\n",
            "f",
            "def f(a):\n    return sum(x - 1 for x in a)\n",
            id="generator-expression",
        ),
        pytest.param(
            "if 1:\n    def f(a): return a + 1\n",
            "f",
            "if 1:\n    def f(a): return a - 1\n",
            id="function-in-a-block",
        ),
    ],
)
def test_text_around_stays_as_it_is(text: str, name: str, expected: str) -> None:
    assert expected in texts(text, name)


UNTOUCHED = '''\
import re


@decorated(limit=3)
def f(a: "int | None" = None, *, b: int = 1) -> "list[3]":
    """Doc of 3 things.

    >>> f(3)
    3
    """
    c: "dict[3]" = {}
    "a string that stands alone: 3"
    match a:
        case 3 | 33:
            return f"{a + 3!r} is 3"
    return c
'''


def test_what_is_left_out_on_purpose() -> None:
    kept = [
        "limit=3",
        '"int | None"',
        '"list[3]"',
        '"dict[3]"',
        "Doc of 3",
        ">>> f(3)\n    3",
        "alone: 3",
        "case 3 | 33",
        "is 3",
    ]
    for text in texts(UNTOUCHED, "f", limit=1500):
        missing = [part for part in kept if part not in text]
        # statements may go or move as a whole, with what is in them; docstrings and the head may not
        assert not {part for part in missing if part in kept[:6]} - {'"dict[3]"'}, text


def test_the_same_edit_at_all_similar_places() -> None:
    text = "def f(a, b, c):\n    x = c[a]\n    y = c[a]\n    return x + y\n"
    assert "def f(a, b, c):\n    x = c[b]\n    y = c[b]\n    return x + y\n" in texts(text, "f")


def test_pairs_do_not_overlap_and_progress_comes_first() -> None:
    text = "def f(a, b):\n    x = a + 1\n    y = b - 1\n    return x * y\n"
    singles = every(text, "f", limit=300)
    progress = [
        one for one in singles if one.apply({PATH: text})[PATH].startswith("def f(a, b):\n    x = a - 1")
    ][:1]
    assert len(progress) == 1
    found = list(itertools.islice(pairs(progress, iter(singles), {PATH: text}), 500))
    assert all(one.origin.operator.count("+") == 1 for one in found)
    assert set(progress[0].edits) <= set(found[0].edits)
    made = [one.apply({PATH: text})[PATH] for one in found]
    assert "def f(a, b):\n    x = a - 1\n    y = b + 1\n    return x * y\n" in made[:100]
    assert len(set(made)) == len(made)
    assert all(quiet_compile(one) is not None for one in made)
    without = list(itertools.islice(pairs([], iter(singles), {PATH: text}), 50))
    assert len(without) == 50
    assert [one.score for one in without] == sorted((one.score for one in without), reverse=True)


def test_pairs_over_two_files() -> None:
    originals = {"a.py": "def f(x):\n    return x + 1\n", "b.py": "def g(x):\n    return x - 1\n"}
    task = Task("0", (), (Target("a.py", "f", 1, 2, 1.0), Target("b.py", "g", 1, 2, 1.0)), ())
    singles = list(enumerate_candidates(task, originals))
    found = itertools.islice(pairs([], singles, originals), 3000)
    assert any(
        one.apply(originals)
        == {"a.py": "def f(x):\n    return x - 1\n", "b.py": "def g(x):\n    return x + 1\n"}
        for one in found
    )


NAMES = st.sampled_from(["a", "b", "items", "ß"])
LEAVES = st.one_of(
    NAMES, st.integers(-3, 9).map(str), st.sampled_from(["'x'", "[]", "None", "a.x", "items[0]", "(a, b)"])
)
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(
            inner, st.sampled_from(["+", "-", "*", "//", "**", "<", "==", "in", "and", "or", "is"]), inner
        ).map(lambda parts: f"({parts[0]}) {parts[1]} ({parts[2]})"),
        inner.map(lambda one: f"not ({one})"),
        inner.map(lambda one: f"-({one})"),
        inner.map(lambda one: f"len({one})"),
        st.tuples(inner, inner).map(lambda parts: f"f({parts[0]}, key={parts[1]})"),
        st.tuples(inner, inner).map(lambda parts: f"items[({parts[0]}):({parts[1]})]"),
        st.tuples(inner, inner, inner).map(lambda parts: f"({parts[0]}) if ({parts[1]}) else ({parts[2]})"),
        inner.map(lambda one: f"[ß for ß in ({one}) if ß]"),
        inner.map(lambda one: f"sum(x for x in ({one}))"),
        inner.map(lambda one: f"(lambda q: ({one}))(1)"),
    ),
    max_leaves=6,
)


@st.composite
def blocks(draw: st.DrawFn, depth: int = 0) -> list[str]:
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(
            st.sampled_from(["assign", "add", "call", "return", "if", "for", "while", "try", "comment"])
        )
        value = draw(EXPRESSIONS)
        if kind in ("if", "for", "while", "try") and depth < 2:
            head = {
                "if": f"if {value}:",
                "for": f"for a in {value}:",
                "while": f"while {value}:",
                "try": "try:",
            }[kind]
            lines += [head, *(f"\t{line}" for line in draw(blocks(depth=depth + 1)))]
            if kind == "try":
                lines += ["except (ValueError, KeyError):", "\tpass"]
            elif kind == "if" and draw(st.booleans()):
                lines += ["else:", *(f"\t{line}" for line in draw(blocks(depth=depth + 1)))]
        elif kind == "add":
            lines.append(f"b += {value}  # ± 1")
        elif kind == "call":
            lines.append(f"items.append({value})")
        elif kind == "return":
            lines.append(f"return {value}")
        else:
            lines.append(f"{draw(NAMES)} = {value}")
    return lines


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(blocks(), st.sampled_from(["\n", "\r\n"]), st.sampled_from(["\t", "  "]))
def test_every_candidate_parses_and_stays_inside(lines: list[str], newline: str, indent: str) -> None:
    body = "".join(f"{indent}{line.replace(chr(9), indent)}{newline}" for line in lines)
    head, tail = (
        f"import os{newline}{newline}",
        f"{newline}{newline}def g():{newline}{indent}return 1{newline}",
    )
    text = f"{head}def f(a, b, items, ß):{newline}{body}{tail}"
    if quiet_compile(text) is None:
        return
    facts = Facts(undefined=frozenset({"a", "math"}), raised=frozenset({"IndexError", "TypeError"}))
    found = list(itertools.islice(enumerate_candidates(task_for(text, "f"), {PATH: text}, facts=facts), 200))
    assert found
    for candidate in found:
        new = candidate.apply({PATH: text})[PATH]
        assert quiet_compile(new) is not None, (text, new)
        assert new.startswith("import os")
        assert new.endswith(tail)
        for edit in candidate.edits:
            inside = len(head) <= edit.start <= edit.end <= len(text) - len(tail) + len(newline)
            assert inside or edit.text.startswith(("import ", "from ")), edit
        if newline == "\r\n":
            assert "\n" not in new.replace("\r\n", "")
