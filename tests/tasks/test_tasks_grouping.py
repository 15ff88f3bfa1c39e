from __future__ import annotations

from collections.abc import Sequence

import pytest

from pytest_autofix.evidence.failure import ExceptionFact, Failure, Frame
from pytest_autofix.tasks.grouping import group
from pytest_autofix.tasks.no_target import no_target_reason
from pytest_autofix.tasks.task import Task

FUNCTIONS = 50
SOURCE = "def helper(x):\n    if x:\n        return 0\n    return x\n\n\n" + "".join(
    f"def f{number}(x):\n    y = helper(x)\n    return y + {number}\n\n\n" for number in range(FUNCTIONS)
)
SOURCES = {"m.py": SOURCE, "n.py": "import math\n\n\ndef area(r):\n    return math.pi * r\n"}
TEST = "tests/test_m.py"


def body(number: int) -> tuple[int, int]:
    start = 7 + 5 * number
    assert SOURCE.splitlines()[start - 1].startswith(f"def f{number}(")
    return start + 1, start + 2


def failing(name: str, **kwargs: object) -> Failure:
    values: dict[str, object] = {
        "nodeid": f"{TEST}::{name}",
        "phase": "call",
        "kind": "assertion",
        "message": "assert 1 == 2",
        "path": TEST,
        "function": name.partition("[")[0],
        "exceptions": (ExceptionFact("AssertionError", "assert 1 == 2", (Frame(TEST, 3, name, ""),)),),
    }
    return Failure(**(values | kwargs))  # type: ignore[arg-type]  # a table of keyword arguments


def raised(*places: tuple[str, int], kind: str = "TypeError") -> dict[str, object]:
    frames = tuple(Frame(path, line, "f", "") for path, line in places)
    return {"kind": "exception", "message": kind, "exceptions": (ExceptionFact(kind, "", frames),)}


def solve(
    failures: Sequence[Failure],
    lines: dict[str, dict[str, tuple[int, ...]]],
    passing: Sequence[str] = (),
    **kwargs: object,
) -> tuple[Task, ...]:
    lines = {f"{TEST}::{name}": of_test for name, of_test in lines.items()}
    outcomes = {f"{TEST}::{name}": "passed" for name in passing} | {
        failure.nodeid: "failed" for failure in failures
    }
    return group(failures, lines, outcomes, SOURCES, set(SOURCES), **kwargs)  # type: ignore[arg-type]  # as above


def shape(tasks: Sequence[Task]) -> list[tuple[list[str], str]]:
    return [
        (
            [nodeid.rpartition("::")[2] for nodeid in task.nodeids],
            task.targets[0].name if task.targets else "",
        )
        for task in tasks
    ]


@pytest.mark.parametrize("passes", [0, 1, 12])
def test_fifty_failures_of_one_broken_helper_are_one_task(passes: int) -> None:
    failures = [failing(f"test_{number}") for number in range(FUNCTIONS)]
    lines = {f"test_{number}": {"m.py": (2, 3, *body(number))} for number in range(FUNCTIONS)}
    good = [f"test_good_{number}" for number in range(passes)]
    lines |= {name: {"m.py": (2, 3)} for name in good}
    (task,) = solve(failures, lines, good)
    assert len(task.failures) == FUNCTIONS
    assert task.targets[0].name == "helper"


def test_a_helper_whose_result_breaks_its_many_callers_is_one_task() -> None:
    failures = [
        failing(f"test_{number}", **raised((TEST, 3), ("m.py", body(number)[1]))) for number in range(10)
    ]
    lines = {f"test_{number}": {"m.py": (2, 3, *body(number))} for number in range(10)}
    (task,) = solve(failures, lines)
    assert len(task.failures) == 10
    assert task.targets[0].name == "helper"


@pytest.mark.parametrize("shared_passes", [1, 5])
def test_two_causes_in_one_file_are_two_tasks(shared_passes: int) -> None:
    """All of them run `helper`, and so do passing tests."""
    failures = [failing(name) for name in ("test_a", "test_b", "test_c", "test_d", "test_e")]
    lines = {
        name: {"m.py": (2, 4, *body(0 if name in ("test_a", "test_c", "test_e") else 1))}
        for name in ("test_a", "test_b", "test_c", "test_d", "test_e")
    }
    good = [f"test_good_{number}" for number in range(shared_passes)]
    lines |= {name: {"m.py": (2, 4, *body(2))} for name in good}
    tasks = solve(failures, lines, good)
    assert shape(tasks) == [(["test_a", "test_c", "test_e"], "f0"), (["test_b", "test_d"], "f1")]
    assert tasks[0].fingerprint != tasks[1].fingerprint


GOOD = {"test_good": {"m.py": (2, 4, *body(2))}}


@pytest.mark.parametrize(
    ("failures", "lines", "expected"),
    [
        pytest.param(
            [failing("test_a[1]"), failing("test_b"), failing("test_a[2]")],
            {
                "test_a[1]": {"m.py": (2, 3, body(0)[0])},
                "test_a[2]": {"m.py": (2, 4, body(0)[0])},
                "test_b": {"m.py": body(1)},
            },
            [(["test_a[1]", "test_a[2]"], "f0"), (["test_b"], "f1")],
            id="rows-of-one-test-stay-together",
        ),
        pytest.param(
            [
                failing("test_a", **raised((TEST, 1), ("m.py", body(3)[1]))),
                failing("test_b", **raised((TEST, 2), ("m.py", body(3)[0]), kind="KeyError")),
                failing("test_c", **raised((TEST, 2), ("m.py", body(4)[1]))),
            ],
            {},
            [(["test_a", "test_b"], "f3"), (["test_c"], "f4")],
            id="exceptions-by-the-definition-without-lines",
        ),
        pytest.param(
            [failing("test_a", **raised((TEST, 1), ("m.py", body(0)[1]))), failing("test_b")],
            {"test_a": {"m.py": body(0)}, "test_b": {"m.py": body(0)}},
            [(["test_a", "test_b"], "f0")],
            id="an-exception-and-an-assertion-of-one-cause",
        ),
        pytest.param(
            [
                failing("test_a", **raised((TEST, 1), ("m.py", 3), kind="ValueError")),
                failing("test_b", **raised((TEST, 1), ("m.py", body(1)[1]), kind="KeyError")),
            ],
            {"test_a": {"m.py": (2, 3, *body(0))}, "test_b": {"m.py": (2, 4, *body(1))}},
            [(["test_a"], "helper"), (["test_b"], "f1")],
            id="exceptions-raised-in-two-definitions",
        ),
        pytest.param(
            [
                failing(
                    "test_a",
                    kind="timeout",
                    exceptions=(ExceptionFact("T", "", (Frame("m.py", 2, "", ""),)),),
                )
            ],
            {},
            [(["test_a"], "helper")],
            id="a-hanging-test-by-its-stack",
        ),
        pytest.param(
            [
                failing("test_a", exceptions=(), phase="collect", kind="import", missing=("m", "f7x")),
                failing(
                    "test_b", exceptions=(), phase="collect", kind="import", missing=("m", "nothing_like_it")
                ),
                failing("test_c", exceptions=(), phase="collect", kind="import", missing=("m", "f7x")),
            ],
            {},
            [(["test_a", "test_c"], "f7"), (["test_b"], "<module>")],
            id="missing-names-by-name-near-definition-first",
        ),
        pytest.param(
            [
                failing(
                    "test_a",
                    phase="collect",
                    kind="import",
                    missing=("mathh", ""),
                    exceptions=(
                        ExceptionFact("ModuleNotFoundError", "", (Frame("n.py", 1, "<module>", ""),)),
                    ),
                )
            ],
            {},
            [(["test_a"], "<module>")],
            id="a-missing-module-where-it-is-imported",
        ),
        pytest.param(
            [failing("test_a", kind="stub", message="f9 is to be written", exceptions=())],
            {},
            [(["test_a"], "")],
            id="a-stub-that-is-none",
        ),
        pytest.param([failing("test_a")], {}, [(["test_a"], "")], id="nothing-known"),
        pytest.param(
            [failing("test_a")], {"test_a": {"tests/x.py": (1,)}}, [(["test_a"], "")], id="only-other-files"
        ),
        pytest.param([], {}, [], id="no-failures"),
    ],
)
def test_group(failures, lines, expected) -> None:
    assert shape(solve(failures, lines | GOOD, ["test_good"])) == expected


def test_failures_of_one_broken_fixture_are_one_task_without_target() -> None:
    setup = {
        "phase": "setup",
        "kind": "fixture",
        "message": "OSError: no server",
        "exceptions": (ExceptionFact("OSError", "", (Frame("tests/conftest.py", 9, "server", ""),)),),
    }
    (task,) = solve([failing(name, **setup) for name in ("test_a", "test_b", "test_c")], {})
    assert len(task.nodeids) == 3
    assert task.targets == ()
    assert task.allowed_files == ()


def test_stub_is_found_by_its_name_although_no_frame_is_in_it() -> None:
    sources = {
        "m.py": "def other():\n    return 1\n\n\n@autosolve\ndef slug(text):\n    '''Doc.'''\n    ...\n"
    }
    failure = failing(
        "test_slug",
        kind="stub",
        message="NotImplementedError: m.slug is not solved",
        exceptions=(
            ExceptionFact("NotImplementedError", "m.slug is not solved", (Frame("m.py", 2, "other", ""),)),
        ),
    )
    (task,) = group([failure], {}, {}, sources, set(sources))
    assert "slug" in [target.name for target in task.targets[:2]]


REPR = "class Box:\n    def __init__(self):\n        self.x = 1\n\n    def __repr__(self):\n        return 'Box'\n"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("test_box", ["Box.__init__", "Box.__repr__"], id="called-to-explain-the-assertion"),
        pytest.param("test_repr_of_box", ["Box.__repr__", "Box.__init__"], id="tested-by-its-name"),
    ],
)
def test_a_repr_that_only_failing_tests_reach(name: str, expected: list[str]) -> None:
    lines = {f"{TEST}::{name}": {"b.py": (3, 6)}, f"{TEST}::test_good": {"b.py": (3,)}}
    outcomes = {f"{TEST}::test_good": "passed"}
    (task,) = group([failing(name)], lines, outcomes, {"b.py": REPR}, {"b.py"})
    assert [target.name for target in task.targets] == expected


def test_hints_are_the_users_word() -> None:
    failures = [failing("test_a"), failing("test_b")]
    lines = {"test_a": {"m.py": body(0)}, "test_b": {"m.py": body(0)}}
    tasks = solve(failures, lines, hints={f"{TEST}::test_b": ("n.py:area",)})
    assert shape(tasks) == [(["test_a"], "f0"), (["test_b"], "area")]


def test_a_task_says_what_it_knows() -> None:
    lines = {
        "test_a": {"m.py": (2, 3, *body(0))},
        "test_p": {"m.py": (2, 4, *body(0))},
        "test_q": {"m.py": (2, 4)},
    }
    (task,) = solve([failing("test_a")], lines, ["test_p", "test_q"])
    assert task.targets[0].name == "helper"
    assert task.suspiciousness["m.py"][3] == pytest.approx(1.0)
    assert task.allowed_files == ("m.py",)
    assert task.impacted == (f"{TEST}::test_q", f"{TEST}::test_p")


def test_a_wrong_constant_is_suspicious_although_it_runs_at_import() -> None:
    sources = {
        "shop/rates.py": "LOW = 1\nHIGH = (\n    2\n)\n",
        "shop/price.py": "from .rates import HIGH as H\n\n\ndef price(n, by=7):\n    return n * H\n",
    }
    lines = {f"{TEST}::test_a": {"shop/price.py": (5,)}}
    (task,) = group([failing("test_a")], lines, {}, sources, set(sources))
    assert task.suspiciousness == {
        "shop/price.py": {5: 1.0, 4: pytest.approx(0.75)},
        "shop/rates.py": {2: 0.5, 3: 0.5, 4: 0.5},
    }
    assert [target.path for target in task.targets] == ["shop/price.py", "shop/rates.py"]


@pytest.mark.parametrize(
    ("failure", "lines", "editable", "expected"),
    [
        pytest.param(
            failing("test_a"), {}, set(), "no file of the project may be edited", id="nothing-editable"
        ),
        pytest.param(
            failing("test_a"),
            {f"{TEST}::test_a": {"tests/tools.py": (1,)}},
            {"m.py"},
            "the test never reaches an editable file, only tests/tools.py",
            id="only-test-helpers",
        ),
        pytest.param(
            failing("test_a"),
            {f"{TEST}::test_a": {}},
            {"m.py"},
            "the test never reaches an editable file",
            id="no-line-at-all",
        ),
        pytest.param(
            failing("test_a"),
            {},
            {"m.py"},
            "no executed lines were recorded for this test, and no editable file is in its stack",
            id="not-recorded",
        ),
        pytest.param(
            failing(
                "test_a",
                phase="setup",
                kind="fixture",
                exceptions=(ExceptionFact("OSError", "", (Frame("tests/conftest.py", 9, "server", ""),)),),
            ),
            {},
            {"m.py"},
            "the setup of the test fails by itself in tests/conftest.py:9 (server), before any editable file is"
            " involved",
            id="fixture",
        ),
        pytest.param(
            failing("test_a", kind="import", missing=("yaml", ""), exceptions=()),
            {},
            {"m.py"},
            f"{TEST} imports 'yaml', which is not installed and no part of the project",
            id="third-party-module",
        ),
        pytest.param(
            failing("test_a", kind="import", missing=("shop.tax", ""), exceptions=()),
            {},
            {"src/shop/price.py"},
            f"{TEST} imports 'shop.tax', a module that does not exist in the project",
            id="module-of-the-project",
        ),
        pytest.param(
            failing("test_a", kind="syntax", phase="collect", exceptions=()),
            {},
            {"m.py"},
            f"{TEST} does not parse, and it may not be edited",
            id="syntax-error-in-the-test",
        ),
        pytest.param(
            failing("test_a", kind="crash", exceptions=()),
            {},
            {"m.py"},
            "the process died in this test and left no stack to follow",
            id="crash",
        ),
        pytest.param(
            failing("test_a", kind="collection", phase="collect"),
            {},
            {"m.py"},
            f"{TEST}:3 fails while it is imported, and no editable file is in the stack",
            id="test-module-raises-by-itself",
        ),
    ],
)
def test_no_target_reason(failure, lines, editable, expected) -> None:
    assert no_target_reason([failure], lines=lines, editable=editable) == expected
