from __future__ import annotations

import codecs
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_autofix.errors import PatchError
from pytest_autofix.patching.locate import (
    Lines,
    definition_at,
    definitions,
    locate_all,
    locate_definition,
    read_source,
)

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = dedent('''\
    """Doc."""
    import functools

    @functools.cache
    @staticmethod
    def plain(a):
        return a  # kept

    class Box:
        size = 1

        def get(self):
            def inner():
                return 1

            return inner()

        @property
        def value(self):
            return 1

        @value.setter
        def value(self, v):
            pass

        class Lid:
            async def open(self): return 2

    if True:
        def branch():
            return 1
    else:
        def branch():
            return 2
    ''')


def test_definitions_come_in_the_order_of_the_text() -> None:
    assert [(d.name, d.kind, d.start_line, d.def_line, d.end_line) for d in definitions(SOURCE)] == [
        ("plain", "function", 4, 6, 7),
        ("Box", "class", 9, 9, 27),
        ("Box.get", "function", 12, 12, 16),
        ("Box.get.inner", "function", 13, 13, 14),
        ("Box.value", "function", 18, 19, 20),
        ("Box.value", "function", 22, 23, 24),
        ("Box.Lid", "class", 26, 26, 27),
        ("Box.Lid.open", "async function", 27, 27, 27),
        ("branch", "function", 30, 30, 31),
        ("branch", "function", 33, 33, 34),
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param(
            "plain", "@functools.cache\n@staticmethod\ndef plain(a):\n    return a  # kept", id="decorators"
        ),
        pytest.param(
            "Box.get.inner", "        def inner():\n            return 1", id="nested keeps its indentation"
        ),
        pytest.param(
            "Box.get.<locals>.inner", "        def inner():\n            return 1", id="runtime qualname"
        ),
        pytest.param("Box.Lid.open", "        async def open(self): return 2", id="one line"),
    ],
)
def test_the_span_holds_the_whole_definition(name: str, text: str) -> None:
    found = locate_definition(SOURCE, name)
    assert SOURCE[found.start : found.end] == text


@pytest.mark.parametrize(
    ("source", "name", "message"),
    [
        pytest.param(SOURCE, "Box.gett", "no definition 'Box.gett'; nearest: Box.get", id="misspelt"),
        pytest.param(SOURCE, "open", "nearest: Box.Lid.open", id="unqualified"),
        pytest.param("x = 1\n", "f", "the file has no definitions", id="none at all"),
        pytest.param(SOURCE, "branch", "defined 2 times, in lines 30, 33", id="branches"),
        pytest.param(SOURCE, "Box.value", "defined 2 times, in lines 19, 23", id="property and setter"),
        pytest.param("def f(:\n  pass\n", "f", "does not parse: line 1", id="syntax error"),
        pytest.param("x = '\0'", "f", "does not parse", id="null byte"),
    ],
)
def test_what_cannot_be_located_says_why(source: str, name: str, message: str) -> None:
    with pytest.raises(PatchError) as caught:
        locate_definition(source, name)
    assert message in str(caught.value)


def test_a_line_picks_among_several() -> None:
    assert locate_definition(SOURCE, "branch", line=34).def_line == 33
    assert locate_definition(SOURCE, "Box.value", line=22).def_line == 23
    assert len(locate_all(SOURCE, "Box.value")) == 2


def test_of_overloads_the_implementation_is_meant() -> None:
    source = dedent("""\
        from typing import overload
        @overload
        def f(a: int) -> int: ...
        @overload
        def f(a: str) -> str: ...
        def f(a):
            return a
        """)
    assert locate_definition(source, "f").def_line == 6


@pytest.mark.parametrize(
    ("line", "name"),
    [(1, None), (4, "plain"), (14, "Box.get.inner"), (16, "Box.get"), (17, "Box"), (31, "branch")],
)
def test_the_innermost_definition_around_a_line(line: int, name: str | None) -> None:
    found = definition_at(definitions(SOURCE), line)
    assert (found.name if found else None) == name


def test_a_decorator_whose_parenthesis_stands_alone_belongs_to_the_definition() -> None:
    source = "import a\n@(\n    a.b\n)\ndef f():\n    pass\n"
    assert locate_definition(source, "f").start_line == 2


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_offsets_count_characters_whatever_the_line_ends(newline: str) -> None:
    source = newline.join(["s = 'äöü\x0c€'", "def f(): return '€'", "def g():", "\treturn 1", ""])
    for name in ("f", "g"):
        found = locate_definition(source, name)
        assert source[found.start : found.end].startswith(f"def {name}()")
    assert source[locate_definition(source, "g").end :] == newline


def test_deep_elif_chains_are_walked() -> None:
    source = "if a:\n    pass\n" + "elif b:\n    pass\n" * 150 + "def f():\n    pass\n"
    assert locate_definition(source, "f").name == "f"


ENCODINGS = [
    pytest.param("x = 'ä'\n".encode(), "utf-8", "\n", False, id="utf-8"),
    pytest.param(codecs.BOM_UTF8 + b"x = 1\r\ny = 2\r\n", "utf-8", "\r\n", True, id="bom and crlf"),
    pytest.param("# coding: latin-1\nx = 'ä'\n".encode("latin-1"), "iso-8859-1", "\n", False, id="cookie"),
    pytest.param(
        "#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\nx = '€'\n".encode("cp1252"),
        "cp1252",
        "\n",
        False,
        id="cookie in line two",
    ),
    pytest.param(b"x = 1\ry = 2\r", "utf-8", "\r", False, id="old mac"),
    pytest.param(b"x = 1\r\ny = 2\nz = 3\r\n", "utf-8", "\r\n", False, id="mixed"),
    pytest.param(b"", "utf-8", "\n", False, id="empty"),
]


@pytest.mark.parametrize(("data", "encoding", "newline", "bom"), ENCODINGS)
def test_files_come_back_byte_for_byte(
    data: bytes, encoding: str, newline: str, bom: bool, tmp_path: Path
) -> None:
    source = read_source(data)
    assert (source.encoding, source.newline, source.bom) == (encoding, newline, bom)
    assert not source.text.startswith("\ufeff")
    assert source.encode() == data
    (tmp_path / "a.py").write_bytes(data)
    assert read_source(tmp_path / "a.py") == source


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"\n\nx = '\xff'\n", "byte 7 (0xff) is not valid utf-8", id="undecodable"),
        pytest.param(b"# coding: klingon\n", "unknown encoding", id="unknown"),
        pytest.param(codecs.BOM_UTF8 + b"# coding: latin-1\n", "encoding problem", id="contradiction"),
    ],
)
def test_files_that_cannot_be_decoded_say_why(data: bytes, message: str) -> None:
    with pytest.raises(PatchError) as caught:
        read_source(data)
    assert message in str(caught.value)


def test_a_character_the_file_cannot_store_is_named() -> None:
    source = read_source("# coding: latin-1\nx = 'ä'\n".encode("latin-1"))
    with pytest.raises(PatchError, match=r"no '€' \(U\+20AC\)"):
        source.encode(source.text + "# €")


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="ab\n\r\x0c\u2028ä€", max_size=40))
def test_lines_tile_the_text(text: str) -> None:
    lines = Lines(text)
    again = "".join(
        text[lines.start(n) : lines.start(n + 1)] if n < len(lines) else text[lines.start(n) :]
        for n in range(1, len(lines) + 1)
    )
    assert again == text
    assert all(lines.start(lines.number(i)) <= i <= lines.end(lines.number(i)) + 1 for i in range(len(text)))
