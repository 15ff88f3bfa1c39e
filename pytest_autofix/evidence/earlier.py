"""Which tests failed in an earlier run: read from its junit XML or its pytest-reportlog.

The file comes from another run, often from another job, and is treated as a stranger's: bounded in size, and without
document type definitions (entity expansion and external entities need one).
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.parsers import expat  # definitions are refused below; defusedxml would do no more

from pytest_autofix.errors import ConfigurationError

__all__ = ["read_earlier"]

_LARGEST = 256 * 1024 * 1024  # bytes
_STRICT_XPASS = "[XPASS(strict)]"
_JUNIT_ESCAPE = re.compile(r"#x([0-9A-F]{2,4})")
_DOCTEST_FILE = re.compile(r".+\.(?:txt|rst|md)$")


def read_earlier(path: Path, root: Path) -> tuple[str, ...]:
    """Node ids that failed, each once, in the order of the report; a file that failed to be collected by its path.

    junit XML holds only dotted class names, so the files below `root` are consulted to tell folders, modules and
    classes apart. Raises `ConfigurationError` with one clear line for a file that is no such report.
    """
    try:
        size = path.stat().st_size
        if size > _LARGEST:
            raise ConfigurationError(
                f"{path}: {size} bytes is too large for a test report ({_LARGEST} at most)"
            )
        data = path.read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigurationError(f"{path}: cannot read the report of the earlier run: {reason}") from error
    start = data[:200].removeprefix(b"\xef\xbb\xbf").lstrip()
    if not start:
        raise ConfigurationError(f"{path}: the report of the earlier run is empty")
    if start.startswith((b"<", b"\xff\xfe", b"\xfe\xff")):
        failed = _read_junit(data, path, root)
    elif start.startswith(b"{"):
        failed = _read_reportlog(data, path)
    else:
        raise ConfigurationError(
            f"{path}: neither junit XML nor a pytest-reportlog (one JSON object per line)"
        )
    return tuple(dict.fromkeys(failed))


def _read_reportlog(data: bytes, path: Path) -> list[str]:
    failed: list[str] = []
    known = False
    lines = data.removeprefix(b"\xef\xbb\xbf").splitlines()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            if known and number == len(lines):
                break  # the run was killed while it wrote
            raise ConfigurationError(
                f"{path}: line {number} is not JSON, so this is no pytest-reportlog"
            ) from error
        if not isinstance(entry, dict):
            raise ConfigurationError(
                f"{path}: line {number} is not a JSON object, so this is no pytest-reportlog"
            )
        known = known or "$report_type" in entry or "_report_type" in entry
        if _failed(entry):
            failed.append(entry["nodeid"])
    if not known:
        raise ConfigurationError(f"{path}: no line has a $report_type, so this is no pytest-reportlog")
    return failed


def _failed(entry: dict[str, Any]) -> bool:
    reason = entry.get("longrepr")
    return (
        entry.get("outcome") == "failed"
        and isinstance(entry.get("nodeid"), str)
        and bool(entry["nodeid"])
        and not (isinstance(reason, str) and reason.startswith(_STRICT_XPASS))
    )


class _JunitReader:
    """Collects the test cases that have a `failure` or an `error`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._case: dict[str, str] | None = None
        self._depth = 0
        self.cases: list[tuple[dict[str, str], str]] = []  #: attributes of the case, message of its failure

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        tag = name.rpartition("}")[2]
        if self._depth == 1 and tag not in ("testsuites", "testsuite"):
            raise ConfigurationError(f"{self._path}: the XML begins with <{tag}>, so this is no junit report")
        if tag == "testcase":
            self._case = attributes
        elif tag in ("failure", "error") and self._case is not None:
            self.cases.append((self._case, attributes.get("message", "")))

    def end(self, name: str) -> None:
        self._depth -= 1
        if name.rpartition("}")[2] == "testcase":
            self._case = None

    def refuse(self, *_declaration: object) -> None:
        raise ConfigurationError(
            f"{self._path}: the XML has a document type definition, which no test report needs"
        )


def _read_junit(data: bytes, path: Path, root: Path) -> list[str]:
    reader = _JunitReader(path)
    parser = expat.ParserCreate(namespace_separator="}")
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.StartDoctypeDeclHandler = reader.refuse
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, ValueError, LookupError) as error:  # the latter two: an unknown encoding
        raise ConfigurationError(f"{path}: not a well-formed XML file: {error}") from error
    finally:
        # The parser and its handlers refer to each other.
        parser.StartElementHandler = parser.EndElementHandler = parser.StartDoctypeDeclHandler = None
    return [
        nodeid
        for case, message in reader.cases
        if not message.startswith(_STRICT_XPASS) and (nodeid := _nodeid(case, message, root))
    ]


def _nodeid(case: dict[str, str], message: str, root: Path) -> str:
    """The node id behind `classname="tests.test_mod.TestClass" name="test_x[1]"`."""
    name = _unescaped(case.get("name", ""))
    parts = [part for part in case.get("classname", "").split(".") if part]
    if not parts or message == "collection failure":
        dotted = [*parts, *name.split(".")]
        file, rest = _split(dotted, root)
        return file if not rest else "/".join(dotted) + ".py"
    file = case.get("file", "").replace("\\", "/")
    if file.endswith(".py") and parts[: len(Path(file).parts)] == [*Path(file).parts[:-1], Path(file).stem]:
        rest = parts[len(Path(file).parts) :]  # the xunit1 family tells the file
    else:
        file, rest = _split(parts, root)
    return "::".join([file, *rest, name])


def _split(parts: list[str], root: Path) -> tuple[str, list[str]]:
    """File and the classes inside it. A prefix (`--junit-prefix`) is dropped where that leads to a file."""
    for skip in range(min(len(parts), 4)):
        for end in range(len(parts), skip, -1):
            stem = "/".join(parts[skip:end])
            names = [f"{stem}.py", f"{stem}/__init__.py"]
            dotted = "/".join(parts[skip : end - 1])
            if end - skip > 1 and _DOCTEST_FILE.match(f"{parts[end - 2]}.{parts[end - 1]}"):
                names.append(f"{dotted}.{parts[end - 1]}")
            for name in names:
                if (root / name).is_file():
                    return name, parts[end:]
    # No such file here: by convention modules are lower case and classes are not.
    classes = next((index for index, part in enumerate(parts) if index and part[:1].isupper()), len(parts))
    return "/".join(parts[:classes]) + ".py", parts[classes:]


def _unescaped(name: str) -> str:
    """junit XML cannot hold control characters; pytest writes them as `#x1B`."""
    return _JUNIT_ESCAPE.sub(lambda found: _control(int(found[1], 16), found[0]), name)


def _control(number: int, text: str) -> str:
    return chr(number) if number < 0x20 or 0x7F <= number < 0xA0 or 0xD800 <= number < 0xE000 else text
