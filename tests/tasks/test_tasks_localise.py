from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_autofix.evidence.failure import ExceptionFact, Failure, Frame
from pytest_autofix.tasks.localise import (
    impacted,
    leading_frames,
    module_file,
    ochiai,
    raise_by_frames,
    rank_targets,
    syntax_error_place,
)
from pytest_autofix.tasks.task import Target

MODULE = """\
import math

RATE = 3


def first(a, b=RATE):
    if a:
        return b
    return math.inf


class Box:
    size = 1

    @property
    def area(self):
        return self.size

    def put(self, thing):
        def inner():
            return thing
        return inner()
"""


def frame(path: str, line: int, function: str = "f") -> Frame:
    return Frame(path, line, function, "")


@pytest.mark.parametrize(
    ("failing", "passing", "lines", "expected"),
    [
        pytest.param(["f"], [], {"f": {"m.py": (1, 2)}}, {"m.py": {1: 1.0, 2: 1.0}}, id="one-failing-alone"),
        pytest.param(
            ["f"],
            ["p"],
            {"f": {"m.py": (1, 2)}, "p": {"m.py": (1, 3)}},
            {"m.py": {1: 1 / math.sqrt(2), 2: 1.0}},
            id="a-passing-test-runs-line-1-too",
        ),
        pytest.param(
            ["f", "g"],
            ["p", "q", "r"],
            {"f": {"m.py": (1,)}, "g": {"m.py": (2,)}, "p": {"m.py": (1, 2)}, "q": {"m.py": (1,)}},
            {"m.py": {1: 1 / math.sqrt(2 * 3), 2: 1 / math.sqrt(2 * 2)}},
            id="each-line-by-one-of-two",
        ),
        pytest.param(["f"], ["p"], {"p": {"m.py": (1,)}}, {}, id="nothing-recorded-for-the-failing-test"),
        pytest.param(
            ["f"], [], {"f": {"m.py": (4, 4)}}, {"m.py": {4: 1.0}}, id="a-line-recorded-twice-counts-once"
        ),
        pytest.param([], ["p"], {"p": {"m.py": (1,)}}, {}, id="nothing-fails"),
    ],
)
def test_ochiai(failing, passing, lines, expected) -> None:
    scores = ochiai(failing, passing, lines)
    assert scores.keys() == expected.keys()
    for path, of_path in expected.items():
        assert scores[path] == pytest.approx(of_path)


SPECTRA = st.dictionaries(
    st.sampled_from([f"test_{number}" for number in range(8)]),
    st.dictionaries(
        st.sampled_from(["a.py", "b.py"]), st.lists(st.integers(1, 12), max_size=8).map(tuple), max_size=2
    ),
    min_size=2,
)


@settings(max_examples=200, derandomize=True, deadline=None)
@given(lines=SPECTRA, data=st.data())
def test_ochiai_is_1_exactly_where_all_failing_and_no_passing_test_has_been(lines, data) -> None:
    nodeids = sorted(lines)
    failing = set(data.draw(st.lists(st.sampled_from(nodeids), min_size=1)))
    passing = set(nodeids) - failing
    scores = ochiai(failing, passing, lines)

    def reached_by(names, path: str, line: int) -> set[str]:
        return {name for name in names if line in lines[name].get(path, ())}

    for path in ("a.py", "b.py"):
        for line in range(1, 13):
            bad, good = reached_by(failing, path, line), reached_by(passing, path, line)
            score = scores.get(path, {}).get(line)
            assert (score is None) == (not bad)
            if score is not None:
                assert 0 < score <= 1
                assert (score == pytest.approx(1.0)) == (bad == failing and not good)


@pytest.mark.parametrize(
    ("scores", "kwargs", "expected"),
    [
        pytest.param({"m.py": {7: 0.5, 22: 0.9}}, {}, ["Box.put", "first"], id="by-score"),
        pytest.param(
            {"m.py": {20: 0.9, 7: 0.5}}, {}, ["Box.put.inner", "first"], id="the-innermost-definition"
        ),
        pytest.param({"m.py": {15: 0.9}}, {}, ["Box.area"], id="a-decorator-belongs-to-its-function"),
        pytest.param({"m.py": {13: 0.9, 7: 0.2}}, {}, ["first", "Box"], id="class-body-behind-functions"),
        pytest.param(
            {"m.py": {3: 0.9, 7: 0.2}}, {}, ["first", "<module>"], id="module-level-behind-functions"
        ),
        pytest.param(
            {"m.py": {7: 0.5, 22: 0.9}},
            {"frames": [frame("m.py", 7)]},
            ["first", "Box.put"],
            id="frame-first",
        ),
        pytest.param(
            {},
            {"frames": [frame("m.py", 16), frame("m.py", 3)]},
            ["Box.area", "<module>"],
            id="frames-in-their-order-without-any-score",
        ),
        pytest.param(
            {"m.py": {7: 0.5}},
            {"frames": [frame("m.py", 7)], "hints": ["m.py:Box.put"]},
            ["Box.put", "first"],
            id="a-hint-before-everything",
        ),
        pytest.param({}, {"frames": [frame("test_m.py", 3)]}, [], id="frame-of-a-file-that-is-not-editable"),
        pytest.param({"other.py": {1: 1.0}}, {}, [], id="score-of-a-file-that-is-not-editable"),
        pytest.param({}, {"hints": ["m.py:nowhere"]}, [], id="hint-that-names-nothing"),
        pytest.param(
            {"m.py": {7: 1.0, 16: 1.0}},
            {"mentions": ["test_area_of_box"]},
            ["Box.area", "first"],
            id="equal-scores-the-test's-name-decides",
        ),
        pytest.param(
            {"m.py": {7: 1.0, 8: 0.1, 16: 1.0}},
            {},
            ["Box.area", "first"],
            id="equal-scores-the-higher-mean-decides",
        ),
    ],
)
def test_rank_targets(scores, kwargs, expected) -> None:
    assert [target.name for target in rank_targets(scores, {"m.py": MODULE}, **kwargs)] == expected


def test_targets_carry_span_and_score() -> None:
    assert rank_targets({"m.py": {16: 0.75}}, {"m.py": MODULE}) == (Target("m.py", "Box.area", 15, 17, 0.75),)


def test_a_file_that_does_not_parse_has_its_module_level_as_target() -> None:
    (target,) = rank_targets({}, {"m.py": "def f(:\n    pass\n"}, frames=[frame("m.py", 1)])
    assert (target.name, target.start_line) == ("<module>", 1)


def test_frames_raise_scores_the_inner_ones_more() -> None:
    stack = [frame("test_m.py", 3), frame("m.py", 7), frame("m.py", 16), frame("lib.py", 1)]
    raised = raise_by_frames({"m.py": {7: 0.6, 8: 0.1}}, [stack], {"m.py"})
    assert raised == {"m.py": {16: pytest.approx(0.5), 7: pytest.approx(0.7), 8: 0.1}}


def test_leading_frames_are_the_innermost_editable_ones_of_the_chain() -> None:
    failure = Failure(
        "t.py::t",
        "call",
        "exception",
        "m",
        "t.py",
        exceptions=(
            ExceptionFact("ValueError", "", (frame("t.py", 1), frame("m.py", 7), frame("conftest.py", 2))),
            ExceptionFact("KeyError", "", (frame("m.py", 16),)),
            ExceptionFact("OSError", "", (frame("t.py", 9),)),
        ),
    )
    assert [found.line for found in leading_frames(failure, {"m.py"})] == [7, 16]


@pytest.mark.parametrize(
    ("passing", "expected"),
    [
        pytest.param(["wide", "narrow", "other"], ("narrow", "wide"), id="narrowest-first"),
        pytest.param(["other"], (), id="none-reaches-it"),
        pytest.param([], (), id="nothing-passes"),
    ],
)
def test_impacted(passing, expected) -> None:
    lines = {
        "wide": {"m.py": (16,), "n.py": (1, 2, 3)},
        "narrow": {"m.py": (15, 16)},
        "other": {"m.py": (7,), "n.py": (1,)},
        "failing": {"m.py": (16,)},
    }
    assert impacted([Target("m.py", "Box.area", 15, 17, 1.0)], passing, lines) == expected


@pytest.mark.parametrize(
    ("module", "files", "expected"),
    [
        pytest.param("pkg.mod", ["pkg/mod.py"], "pkg/mod.py", id="flat"),
        pytest.param("pkg.mod", ["src/pkg/mod.py"], "src/pkg/mod.py", id="src-layout"),
        pytest.param("pkg", ["src/pkg/__init__.py", "src/pkg/mod.py"], "src/pkg/__init__.py", id="package"),
        pytest.param("mod", ["deep/er/mod.py", "mod.py"], "mod.py", id="nearest-to-the-root"),
        pytest.param("od", ["mod.py"], "", id="only-whole-names"),
        pytest.param("json", ["mod.py"], "", id="not-ours"),
    ],
)
def test_module_file(module, files, expected) -> None:
    assert module_file(module, files) == expected


def test_the_file_that_does_not_parse_is_found_by_the_message() -> None:
    failure = Failure(
        "tests/t.py", "collect", "syntax", "SyntaxError: '(' was never closed (mod.py, line 2)", "tests/t.py"
    )
    sources = {"src/mod.py": "x = 1\ny = (\n", "src/other.py": "def broken(:\n", "src/good.py": "z = 1\n"}
    assert syntax_error_place(failure, sources) == ("src/mod.py", 2)
