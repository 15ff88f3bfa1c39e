"""The benchmark's own parts: what it shows, what it hides, how it judges."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

SOURCE = Path(__file__).parent.parent.parent / "benchmarks" / "quixbugs.py"

ROWS = {
    "id": "own/double",
    "buggy": "def double(n):\n    return n * 3\n",
    "tests": (
        "import json, pytest\nfrom pathlib import Path\nfrom solution import double\n"
        "ROWS = [json.loads(line) for line in Path(__file__).with_name('cases.jsonl').open()]\n"
        "@pytest.mark.parametrize('given, expected', ROWS)\ndef test_double(given, expected):\n"
        "    assert double(*given) == expected\n"
    ),
    "support": {"cases.jsonl": "[[1], 2]\n[[2], 4]\n[[3], 6]\n", "node.py": "X = 1\n"},
}
FUNCTIONS = {
    "id": "own/functions",
    "buggy": "def double(n):\n    return n * 3\n",
    "tests": (
        "import pytest\nfrom solution import double\n\n\ndef test_a():\n    assert double(1) == 2\n\n\n"
        "@pytest.mark.filterwarnings('error')\ndef test_b():\n    assert double(2) == 4\n\n\n"
        "def helper():\n    return 6\n\n\ndef test_c():\n    assert double(3) == helper()\n"
    ),
    "support": {},
}


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("quixbugs_benchmark", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("half", "rows"),
    [
        pytest.param("shown", ["[[1], 2]", "[[3], 6]"], id="shown"),
        pytest.param("hidden", ["[[2], 4]"], id="hidden"),
    ],
)
def test_every_second_row(bench: ModuleType, tmp_path: Path, half: str, rows: list[str]) -> None:
    bench.write_project(tmp_path / "p", ROWS, half)
    assert (tmp_path / "p" / "cases.jsonl").read_text().splitlines() == rows
    assert (tmp_path / "p" / "test_solution.py").read_text() == ROWS["tests"]
    assert sorted(path.name for path in (tmp_path / "p").iterdir()) == [
        "cases.jsonl",
        "node.py",
        "solution.py",
        "test_solution.py",
    ]


@pytest.mark.parametrize(
    ("half", "kept", "gone"),
    [
        pytest.param("shown", ["test_a", "test_c", "helper"], ["test_b", "filterwarnings"], id="shown"),
        pytest.param("hidden", ["test_b", "filterwarnings", "helper"], ["test_a", "test_c"], id="hidden"),
    ],
)
def test_every_second_function(
    bench: ModuleType, tmp_path: Path, half: str, kept: list[str], gone: list[str]
) -> None:
    bench.write_project(tmp_path / "p", FUNCTIONS, half)
    text = (tmp_path / "p" / "test_solution.py").read_text()
    compile(text, "test_solution.py", "exec")
    assert [word for word in kept if word in text] == kept
    assert [word for word in gone if word in text] == []


@pytest.mark.parametrize(
    ("solution", "right"),
    [
        pytest.param("def double(n):\n    return n * 2\n", True, id="right"),
        pytest.param("def double(n):\n    return {1: 2, 3: 6}[n]\n", False, id="only-what-was-shown"),
        pytest.param("import os\nos._exit(3)\n", False, id="ends-the-process"),
    ],
)
def test_the_hidden_half_decides(bench: ModuleType, tmp_path: Path, solution: str, right: bool) -> None:
    assert bench.check(ROWS, solution, tmp_path / "hidden") is right


def test_a_process_that_hangs_is_ended(bench: ModuleType, tmp_path: Path) -> None:
    ended = bench.execute([sys.executable, "-c", "while True: pass"], tmp_path, seconds=0.5)
    assert ended.status is None


def test_totals(bench: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    result = bench.Result("own/a", "solved", True, True, 100, 3.0, 2.0, 0.01, 0.2)
    wrong = bench.Result("own/b", "solved", True, False, 300, 3.0, 2.0, 0.02, 0.2)
    none = bench.Result("own/c", "exhausted", False, None, 0, 3.0, 4.0, None, None)
    bench.summarise([result, wrong, none])
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:] == [
        "1 of 3 right on the hidden half, 1 accepted and wrong",
        "400 candidates in 8 s of solving: 50 candidates/s",
        "CPU, median of 2: cold pytest 200 ms, warm candidate 15.0 ms (at most): 15.0 times less",
    ]


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        pytest.param({"cost": {"warm_cpu_seconds": 0.5}, "attempts": []}, 0.5, id="measured"),
        pytest.param(
            {
                "cost": {},
                "attempts": [
                    {"source": "search", "count": 3, "seconds": 1.0},
                    {"source": "search", "count": 1, "seconds": 1.0},
                    {"source": "model", "seconds": 90.0},
                ],
            },
            0.5,
            id="wall-clock-of-the-trials",
        ),
        pytest.param({"cost": {}, "attempts": []}, None, id="nothing-tried"),
    ],
)
def test_what_a_warm_candidate_costs(
    bench: ModuleType, task: dict[str, object], expected: float | None
) -> None:
    assert bench.warm_seconds(task) == expected


def test_an_unknown_program_is_one_clear_line(
    bench: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text(json.dumps(ROWS) + "\n", encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["quixbugs.py", "--data", str(data), "--only", "nothing"])
    with pytest.raises(SystemExit) as stop:
        bench.main()
    assert stop.value.code == 2
    assert "is named nothing" in capsys.readouterr().err
