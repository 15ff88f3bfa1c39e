"""`--autosolve-report FILE`: the run as JSON, with a schema of its own in `report.schema.json`.

The schema is made from the types in `model`; after a change of them write it again with
`python -m pytest_autofix.report.json_report`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

from pytest_autofix.errors import ConfigurationError
from pytest_autofix.redact import redact
from pytest_autofix.report.model import AttemptReport, RunReport

__all__ = ["check_report_path", "make_schema", "report_json", "schema", "write_report"]

SCHEMA_FILE = "report.schema.json"
_VERBATIM = frozenset(("patch", "fingerprint", "hash", "sha256_before", "sha256_after"))
"""Keys whose values are not redacted: a patch with a changed byte no longer applies, a hash is no secret."""

_OPTIONAL = {"AttemptReport": frozenset(("operator", "model", "prompt"))}


def report_json(report: RunReport) -> dict[str, Any]:
    """Plain JSON values: secrets taken out, seconds to the millisecond, no empty `operator` or `model`."""
    return {"schema": report.schema, **_plain(report)}


def _plain(value: Any, key: str = "") -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        items = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        if isinstance(value, AttemptReport):
            items = {
                name: item for name, item in items.items() if item or name not in _OPTIONAL["AttemptReport"]
            }
        return {name: _plain(item, name) for name, item in items.items()}
    if isinstance(value, dict):
        return {redact(str(name)): _plain(item, str(name)) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, key) for item in value]
    if isinstance(value, bool) or value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        # JSON has no infinity: a limit that is none is null, as everywhere in the report.
        return round(value, 6 if key == "usd" else 3) if math.isfinite(value) else None
    text = str(value)
    return text if key in _VERBATIM else redact(text)


def write_report(path: Path, report: RunReport) -> None:
    """Write the report whole or not at all; a pipe or a device is written to directly.

    Raises `ConfigurationError` with one line for the user.
    """
    text = json.dumps(report_json(report), indent=2, ensure_ascii=True, allow_nan=False) + "\n"
    with _readable_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="ascii")
            return
        target = path.resolve()  # a link stays a link
        temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            with temporary.open("x", encoding="ascii") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)


def check_report_path(path: Path) -> None:
    """Raises `ConfigurationError` before an hour of work if the report could not be written at its end."""
    with _readable_errors(path):
        if path.is_dir():
            raise IsADirectoryError(None, "is a folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        probe = path.resolve() if path.exists() else path.with_name(f".{path.name}.{os.getpid()}.tmp")
        existed = probe.exists()
        with probe.open("ab"):
            pass
        if not existed:
            probe.unlink()


@contextlib.contextmanager
def _readable_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigurationError(
            f"--autosolve-report: {path} cannot be written: {error.strerror}; give another file"
        ) from error


def schema() -> dict[str, Any]:
    """The JSON Schema that ships with the package."""
    text = resources.files("pytest_autofix.report").joinpath(SCHEMA_FILE).read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def make_schema() -> dict[str, Any]:
    """The JSON Schema of the types in `model`: every key that the writer writes is required, no other is known."""
    from pydantic import TypeAdapter

    made = TypeAdapter(RunReport).json_schema(mode="serialization")
    for name, definition in {"RunReport": made, **made["$defs"]}.items():
        properties = definition.get("properties")
        if properties is None:
            continue
        optional = _OPTIONAL.get(name, frozenset())
        definition["required"] = [key for key in properties if key not in optional]
        definition["additionalProperties"] = False
        for part in properties.values():
            part.pop("default", None)
            part.pop("title", None)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Report of pytest --autosolve",
        **{key: value for key, value in made.items() if key != "title"},
    }


def schema_text() -> str:
    return json.dumps(make_schema(), indent=2) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name(SCHEMA_FILE).write_text(schema_text(), encoding="utf-8")
