"""Nothing that others wrote may move the cursor, turn the reading direction or talk to a CI runner."""

from __future__ import annotations

import pytest

from pytest_autofix.report.text import counted, cut, cut_left, pad, visible, width_of, wrapped


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("plain [a-b] é 日本", "plain [a-b] é 日本", id="left-alone"),
        pytest.param("a\tb", "a   b", id="tab"),
        pytest.param("\x1b[31mred\x1b]0;title\x07", "\\x1b[31mred\\x1b]0;title\\x07", id="escape-sequences"),
        pytest.param("a\r\nb\x00\x7f\x9b", "a\\r\\nb\\x00\\x7f\\x9b", id="controls"),
        pytest.param(
            "\u202eabc\u2066\u200b\ufeff", "\\u202eabc\\u2066\\u200b\\ufeff", id="bidi-and-invisible"
        ),
        pytest.param("\U000e0041x\u2028", "\\U000e0041x\\u2028", id="tags-and-line-separators"),
        pytest.param("\udce9", "\\xe9", id="byte"),
        pytest.param("\ud800", "\\ud800", id="lone-surrogate"),
        pytest.param("::set-output name=a::b", "\\x3a:set-output name=a::b", id="workflow-command"),
        pytest.param("  ::error::x", "  \\x3a:error::x", id="indented-command"),
        pytest.param("tests/a.py::test_b", "tests/a.py::test_b", id="node-id"),
        pytest.param("x ##[error]y", "x \\x23#[error]y", id="old-command"),
    ],
)
def test_visible(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert visible(shown) == shown


@pytest.mark.parametrize(
    ("text", "width", "end_cut", "start_cut"),
    [
        ("abcdef", 6, "abcdef", "abcdef"),
        ("abcdefg", 6, "abc...", "...efg"),
        ("日本語日本語", 9, "日本語...", "...日本語"),
        ("日本語日本語", 8, "日本...", "...本語"),
        ("e\u0301" * 5, 5, "e\u0301" * 5, "e\u0301" * 5),
        ("abcdef", 2, "..", ".."),
    ],
)
def test_cut(text: str, width: int, end_cut: str, start_cut: str) -> None:
    assert (cut(text, width), cut_left(text, width)) == (end_cut, start_cut)
    assert width_of(pad(end_cut, width)) == width


def test_wrapped_keeps_the_width_and_ends() -> None:
    lines = wrapped("one two three 日本語 " * 40, 30, first="reason: ", rest="        ", lines=3)
    assert len(lines) == 3
    assert lines[0].startswith("reason: one two")
    assert lines[-1].endswith("...")
    assert all(width_of(line) <= 30 for line in lines)
    assert wrapped("", 30, first="reason: ") == ["reason:"]
    assert wrapped("x" * 99, 20) == ["x" * 17 + "..."]
    assert wrapped("a\n\x1bb", 20) == ["a \\x1bb"]
    assert wrapped("a " * 9 + "::error::x", 20)[-1] == "\\x3a:error::x"


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [(1, "test", "1 test"), (0, "test", "0 tests"), (1200, "patch", "1,200 patches")],
)
def test_counted(number: int, noun: str, text: str) -> None:
    assert counted(number, noun) == text
