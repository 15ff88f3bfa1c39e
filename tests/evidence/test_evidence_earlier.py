"""Reading the report of an earlier run: what pytest itself wrote, and what nobody should have written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_autofix.errors import ConfigurationError
from pytest_autofix.evidence.earlier import read_earlier

FILES = {
    "tests/sub/test_mod.py": r"""
    import pytest, unittest
    class TestA:
        class TestB:
            @pytest.mark.parametrize("x", ["1-2", "a.b", "c::d", "\x1b", "[y]"])
            def test_m(self, x): assert 0
    class testlower(unittest.TestCase):
        def test_u(self): self.fail()
    @pytest.fixture
    def broken(): raise ValueError
    def test_f(broken): pass
    def test_fine(): pass
    def test_skip(): pytest.skip("x")
    @pytest.mark.xfail
    def test_xfail(): assert 0
    @pytest.mark.xfail(strict=True)
    def test_strict(): pass
    """,
    "tests/sub/test_imp.py": "import not_there\n",
    "test_top.py": "def test_top(): assert 0\n",
    "lib/__init__.py": '"""\n>>> 1\n2\n"""\n',
    "lib/mod.py": 'def f():\n    """\n    >>> 1\n    2\n    """\n',
    "lib/text/test_doc.txt": ">>> 1\n2\n",
}
FAILED = {
    r"tests/sub/test_mod.py::TestA::TestB::test_m[\x1b]",
    "tests/sub/test_mod.py::TestA::TestB::test_m[1-2]",
    "tests/sub/test_mod.py::TestA::TestB::test_m[a.b]",
    "tests/sub/test_mod.py::TestA::TestB::test_m[c::d]",
    "tests/sub/test_mod.py::TestA::TestB::test_m[[y]]",
    "tests/sub/test_mod.py::testlower::test_u",
    "tests/sub/test_mod.py::test_f",
    "tests/sub/test_imp.py",
    "test_top.py::test_top",
    "lib/__init__.py::lib",
    "lib/mod.py::lib.mod.f",
    "lib/text/test_doc.txt::test_doc.txt",
}


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["-o", "junit_family=xunit2"], id="xunit2"),
        pytest.param(["-o", "junit_family=xunit1"], id="xunit1"),
        pytest.param(["--junit-prefix=ci.linux"], id="prefix"),
    ],
)
def test_junit_of_a_real_run(
    pytester: pytest.Pytester, write: Callable[[dict[str, str]], None], arguments: list[str]
) -> None:
    write(FILES)
    pytester.runpytest_inprocess(
        "--junit-xml=report.xml", "--doctest-modules", "--continue-on-collection-errors", *arguments
    )
    found = read_earlier(pytester.path / "report.xml", pytester.path)
    assert set(found) == FAILED
    assert len(found) == len(FAILED)


def test_reportlog_of_a_real_run(pytester: pytest.Pytester, write: Callable[[dict[str, str]], None]) -> None:
    write(
        FILES
        | {
            "conftest.py": """
            import json
            def pytest_configure(config):
                config.log = open("log.jsonl", "w")
                config.log.write('{"pytest_version": "9", "$report_type": "SessionStart"}\\n')
            def write(report, config):
                data = config.hook.pytest_report_to_serializable(config=config, report=report)
                config.log.write(json.dumps(data) + "\\n")
            class Log:
                def __init__(self, config): self.config = config
                def pytest_runtest_logreport(self, report): write(report, self.config)
                def pytest_collectreport(self, report): write(report, self.config)
            def pytest_sessionstart(session):
                session.config.pluginmanager.register(Log(session.config))
            def pytest_unconfigure(config): config.log.close()
            """
        }
    )
    pytester.runpytest_inprocess("--doctest-modules", "--continue-on-collection-errors")
    found = read_earlier(pytester.path / "log.jsonl", pytester.path)
    assert set(found) == FAILED
    assert len(found) == len(FAILED)


def line(**entry: object) -> str:
    return (
        json.dumps({"$report_type": "TestReport", "outcome": "failed", "nodeid": "t.py::a", **entry}) + "\n"
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param(line() + line(when="teardown"), ("t.py::a",), id="each-once"),
        pytest.param(line() + '{"nodeid": "t.py::b", "outc', ("t.py::a",), id="killed-while-writing"),
        pytest.param("\ufeff" + line() + "\n", ("t.py::a",), id="byte-order-mark"),
        pytest.param(line(outcome="rerun") + line(outcome="passed"), (), id="rerun"),
        pytest.param(line(nodeid=3) + line(nodeid=""), (), id="no-node-id"),
        pytest.param(line(longrepr="[XPASS(strict)] why"), (), id="strict-xpass"),
        pytest.param('<testsuites><testsuite tests="0"/></testsuites>', (), id="empty-junit"),
        pytest.param(
            '<testsuite><testcase classname="pkg.test_m.TestC" name="test_x"><error/></testcase></testsuite>',
            ("pkg/test_m.py::TestC::test_x",),
            id="file-is-gone",
        ),
        pytest.param(
            '<testsuite xmlns="urn:x"><testcase classname="test_m" name="t"><failure/></testcase></testsuite>',
            ("test_m.py::t",),
            id="namespace",
        ),
        pytest.param(
            '<testsuite><testcase classname="test_m" name="t"/><failure/><system-out/></testsuite>',
            (),
            id="failure-outside-of-a-case",
        ),
    ],
)
def test_reports(tmp_path: Path, text: str, found: tuple[str, ...]) -> None:
    path = tmp_path / "report"
    path.write_text(text, encoding="utf-8")
    assert read_earlier(path, tmp_path) == found


BOMB = '<!DOCTYPE t [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><testsuite>&b;</testsuite>'


@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param(b"", "empty", id="empty"),
        pytest.param(b"  \n", "empty", id="blank"),
        pytest.param(b"plain text", "neither junit XML nor", id="text"),
        pytest.param(b"\x00\x01\x02", "neither junit XML nor", id="binary"),
        pytest.param(b"<testsuite>", "not a well-formed XML", id="cut-xml"),
        pytest.param(b"<html></html>", "begins with <html>", id="html"),
        pytest.param(BOMB.encode(), "document type definition", id="entities"),
        pytest.param(
            ('<?xml version="1.0" encoding="utf-16"?>' + BOMB).encode("utf-16"),
            "document type",
            id="entities-utf-16",
        ),
        pytest.param(b'<?xml version="1.0" encoding="klingon"?><testsuite/>', "well-formed", id="encoding"),
        pytest.param(b'{"a": 1}\n', "no line has a $report_type", id="other-json-lines"),
        pytest.param(b'{\n  "tests": []\n}\n', "line 1 is not JSON", id="one-json-document"),
        pytest.param(line().encode() + b"oops\n" + line().encode(), "line 2 is not JSON", id="damaged"),
        pytest.param(line().encode() + b"[1]\n" + line().encode(), "line 2 is not a JSON object", id="list"),
        pytest.param(b"{" * 100_000, "line 1 is not JSON", id="deep"),
    ],
)
def test_what_is_no_report(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "report"
    path.write_bytes(data)
    with pytest.raises(ConfigurationError) as error:
        read_earlier(path, tmp_path)
    message = str(error.value)
    assert words in message
    assert message.startswith(str(path))
    assert "\n" not in message


@pytest.mark.parametrize("name", ["missing.xml", "."])
def test_unreadable(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot read the report of the earlier run"):
        read_earlier(tmp_path / name, tmp_path)


def test_too_large(tmp_path: Path) -> None:
    path = tmp_path / "report.xml"
    with path.open("wb") as file:
        file.truncate(257 * 1024 * 1024)
    with pytest.raises(ConfigurationError, match="too large"):
        read_earlier(path, tmp_path)
