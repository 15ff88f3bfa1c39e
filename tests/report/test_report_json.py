"""The JSON report: the keys that others rely on, its schema, no secrets, whole or not at all."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
from pathlib import Path

import jsonschema
import pytest

from pytest_autofix.errors import ConfigurationError
from pytest_autofix.patching.changes import FileChange
from pytest_autofix.report.json_report import (
    check_report_path,
    make_schema,
    report_json,
    schema,
    write_report,
)
from pytest_autofix.report.model import (
    CostReport,
    RunReport,
    TaskReport,
    search_attempts,
    solution_of,
    totals_of,
)


def test_shipped_schema_is_the_one_of_the_types() -> None:
    assert schema() == make_schema(), "write it again: python -m pytest_autofix.report.json_report"


def test_report_keeps_its_schema(report: RunReport) -> None:
    data = report_json(report)
    jsonschema.Draft202012Validator.check_schema(schema())
    jsonschema.validate(data, schema())
    for damage in ({"extra": 1}, {"exit_status": None}, {"schema": 2}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**data, **damage}, schema())


def test_keys_that_other_programs_rely_on(report: RunReport) -> None:
    data = json.loads(json.dumps(report_json(report)))
    assert list(data) == ["schema", "versions", "settings", "sandbox", "tasks", "totals", "exit_status"]
    task = data["tasks"][0]
    assert set(task) == {
        "fingerprint", "failures", "targets", "outcome", "reason", "attempts", "verdict", "solution", "cost",
    }  # fmt: skip
    assert task["failures"][0] == {"nodeid": "tests/test_cart.py::test_total", "kind": "assertion"}
    assert set(task["verdict"]) == {"accepted", "grade", "checks"}
    assert set(task["verdict"]["checks"][0]) == {"name", "status", "detail", "seconds"}
    assert set(task["solution"]) == {"patch", "files"}
    assert set(task["solution"]["files"][0]) == {"path", "sha256_before", "sha256_after"}
    assert task["cost"] == {
        "seconds": 3.21,
        "candidates_tried": 314,
        "model_calls": 1,
        "input_tokens": 100,
        "output_tokens": 20,
        "usd": None,
        "warm_cpu_seconds": None,
    }
    assert data["settings"]["max_seconds"] is None
    assert data["totals"]["outcomes"] == {"solved": 1, "environment": 1, "rejected": 1}
    assert (data["tasks"][1]["verdict"], data["tasks"][1]["solution"]) == (None, None)


def test_attempts_of_the_search_are_summed_by_operator(report: RunReport) -> None:
    search, other, model = report_json(report)["tasks"][0]["attempts"]
    assert search == {
        "source": "search",
        "result": "passed",
        "hash": "",
        "seconds": 2.0,
        "tokens": 0,
        "operator": "arithmetic.sign",
        "count": 302,
        "results": {"passed": 1, "failed": 300, "crashed": 1},
    }
    assert other["result"] == "failed"
    assert (model["model"], model["prompt"], "operator" in model) == ("scripted", "repair@1", False)
    assert search_attempts({}) == ()


def test_totals() -> None:
    task = TaskReport("f", (), (), "exhausted", cost=CostReport(1.0, 5, 1, 10, 2, 0.5))
    totals = totals_of([task, task], seconds=1.5)
    assert (totals.seconds, totals.candidates_tried, totals.input_tokens, totals.usd) == (1.5, 10, 20, 1.0)
    unknown = dataclasses.replace(task, cost=CostReport(usd=None))
    assert totals_of([task, unknown], seconds=1.0).usd is None
    assert totals_of([], seconds=0.0).usd == 0


def test_secrets_are_taken_out_but_the_patch_stays_whole(
    report: RunReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-" + "a1b2c3d4" * 5
    monkeypatch.setenv("OPENAI_API_KEY", "correct-horse-battery")
    change = FileChange("a.py", f"KEY = '{secret}'\n".encode(), b"KEY = ''\n")
    task = dataclasses.replace(
        report.tasks[0], reason=f"Bearer {secret}", solution=solution_of([change]), outcome="model"
    )
    settings = {"models": [f"name {secret}"], "base_url": "https://correct-horse-battery@host/"}
    data = report_json(dataclasses.replace(report, tasks=(task,), settings=settings))
    patch = data["tasks"][0]["solution"].pop("patch")
    assert secret in patch
    text = json.dumps(data)
    assert secret not in text
    assert "correct-horse-battery" not in text


def test_patch_of_a_file_that_is_not_utf_8_survives(tmp_path: Path, report: RunReport) -> None:
    change = FileChange("a.py", b"# coding: latin-1\ns = '\xe9'\n", b"# coding: latin-1\ns = '\xe8'\n")
    task = dataclasses.replace(report.tasks[0], solution=solution_of([change]))
    write_report(tmp_path / "r.json", dataclasses.replace(report, tasks=(task,)))
    patch = json.loads((tmp_path / "r.json").read_text())["tasks"][0]["solution"]["patch"]
    (tmp_path / "a.py").write_bytes(change.before or b"")
    subprocess.run(
        ["git", "apply", "-"], cwd=tmp_path, input=patch.encode("utf-8", "surrogateescape"), check=True
    )
    assert (tmp_path / "a.py").read_bytes() == change.after


def test_written_whole(tmp_path: Path, report: RunReport) -> None:
    path = tmp_path / "deep" / "er" / "report.json"
    check_report_path(path)
    assert not path.exists()
    write_report(path, report)
    jsonschema.validate(json.loads(path.read_text()), schema())
    (tmp_path / "link.json").symlink_to(path)
    write_report(tmp_path / "link.json", dataclasses.replace(report, exit_status=0))
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads(path.read_text())["exit_status"] == 0
    assert [entry.name for entry in path.parent.iterdir()] == ["report.json"]
    check_report_path(path)
    assert path.stat().st_size > 0


def test_written_to_a_pipe(tmp_path: Path, report: RunReport) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE)
    write_report(pipe, report)
    out, _ = reader.communicate(timeout=20)
    assert json.loads(out)["schema"] == 1


@pytest.mark.parametrize("act", [check_report_path, lambda path: write_report(path, None)])
@pytest.mark.parametrize("name", ["", "file/below.json", "x" * 300])
def test_unwritable_places_are_one_clear_line(
    tmp_path: Path, name: str, act: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_autofix.report.json_report.report_json", lambda report: {})
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match=r"--autosolve-report: .* cannot be written: ") as error:
        act(tmp_path / name)  # type: ignore[operator]
    assert "\n" not in str(error.value)
    assert "None" not in str(error.value)
