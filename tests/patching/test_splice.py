from __future__ import annotations

import ast
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_autofix.errors import PatchError
from pytest_autofix.patching.spans import Span, apply_spans, line_spans
from pytest_autofix.patching.splice import splice_definition


def d(text: str) -> str:
    return dedent(text).removeprefix("\n")


CASES = [
    pytest.param(
        "f",
        """
        import os

        # about f
        @cached
        def f(a):  # signature comment
            return a - 1  # wrong


        x = 1  # after
        """,
        "def f(a):\n    return a + 1\n",
        """
        import os

        # about f
        @cached
        def f(a):
            return a + 1


        x = 1  # after
        """,
        id="keeps decorators and what is around",
    ),
    pytest.param(
        "f",
        "@old\n@older\ndef f(): pass\n",
        "@new(1)\ndef f():\n    return 1\n",
        "@new(1)\ndef f():\n    return 1\n",
        id="decorators of the reply win",
    ),
    pytest.param(
        "Box.get",
        """
        class Box:
            size = 1

            def get(self):
                return 1

            def other(self):
                return 2
        """,
        "def get(self):\n    if self:\n        return 3\n",
        """
        class Box:
            size = 1

            def get(self):
                if self:
                    return 3

            def other(self):
                return 2
        """,
        id="bare method is indented",
    ),
    pytest.param(
        "Box.get",
        "class Box:\n    def get(self):\n        return 1\n",
        "    def get(self):\n        return 2",
        "class Box:\n    def get(self):\n        return 2\n",
        id="method indented as in the file",
    ),
    pytest.param(
        "Box.get",
        """
        class Box(Base):
            size = 1

            def get(self):
                return 1

            def other(self):
                return 2
        """,
        """
        class Box(Base):
            def get(self):
                return self._half() * 2

            def _half(self):
                return 1

            def other(self):
                ...
        """,
        """
        class Box(Base):
            size = 1

            def get(self):
                return self._half() * 2

            def _half(self):
                return 1

            def other(self):
                return 2
        """,
        id="class with the method and a new one, the other elided",
    ),
    pytest.param(
        "Box.get",
        "class Box:\n    def get(self):\n        return 1\n",
        "def get(self):\n    return self.half() * 2\n\ndef half(self):\n    return 1\n",
        "class Box:\n    def get(self):\n        return self.half() * 2\n\n    def half(self):\n        return 1\n",
        id="bare helper called through self is a method",
    ),
    pytest.param(
        "Box.get",
        "X = 1\n\n\n# box\nclass Box:\n    def get(self):\n        return 1\n",
        "def get(self):\n    return half() * 2\n\ndef half():\n    return 1\n",
        "X = 1\n\n\ndef half():\n    return 1\n\n\n# box\nclass Box:\n    def get(self):\n        return half() * 2\n",
        id="bare helper called by name goes before the class",
    ),
    pytest.param(
        "outer.inner",
        "def outer():\n    def inner():\n        return 1\n    return inner()\n",
        "def inner():\n    return 2\n",
        "def outer():\n    def inner():\n        return 2\n    return inner()\n",
        id="nested function",
    ),
    pytest.param(
        "outer.inner",
        "def outer():\n    def inner():\n        return 1\n    return inner()\n",
        "def outer():\n    def inner():\n        return 2\n    return inner() + 0\n",
        "def outer():\n    def inner():\n        return 2\n    return inner() + 0\n",
        id="nested function given with the enclosing one",
    ),
    pytest.param(
        "A.B.m",
        "class A:\n    class B:\n        def m(self): return 1\n",
        "class B:\n    def m(self):\n        return 2\n",
        "class A:\n    class B:\n        def m(self):\n            return 2\n",
        id="method of a nested class given with that class",
    ),
    pytest.param(
        "f",
        "async def f():\n    return 1\n",
        "async def f():\n    return await g()\n",
        "async def f():\n    return await g()\n",
        id="async",
    ),
    pytest.param(
        "f",
        """
        from typing import overload

        @overload
        def f(a: int) -> int: ...
        @overload
        def f(a: str) -> str: ...
        def f(a):
            return a
        """,
        "def f(a):\n    return a * 2\n",
        """
        from typing import overload

        @overload
        def f(a: int) -> int: ...
        @overload
        def f(a: str) -> str: ...
        def f(a):
            return a * 2
        """,
        id="overloads stay, implementation changes",
    ),
    pytest.param(
        "f",
        "@overload\ndef f(a: int) -> int: ...\n@overload\ndef f(a: str) -> str: ...\ndef f(a):\n    return a\n",
        "@overload\ndef f(a: int) -> str: ...\n@overload\ndef f(a: str) -> str: ...\ndef f(a):\n    return str(a)\n",
        "@overload\ndef f(a: int) -> str: ...\n@overload\ndef f(a: str) -> str: ...\ndef f(a):\n    return str(a)\n",
        id="overloads given are matched in order",
    ),
    pytest.param(
        "C.v",
        """
        class C:
            @property
            def v(self):
                return 1

            @v.setter
            def v(self, x):
                self.x = x
        """,
        "@v.setter\ndef v(self, x):\n    self.x = x + 1\n",
        """
        class C:
            @property
            def v(self):
                return 1

            @v.setter
            def v(self, x):
                self.x = x + 1
        """,
        id="setter is told by its decorator",
    ),
    pytest.param(
        "f",
        '"""Doc."""\nfrom __future__ import annotations\n\nimport os\n\n\ndef f():\n    return os\n',
        "from __future__ import annotations\nimport os\nimport re\nfrom math import ceil, floor\n"
        "def f():\n    return re.sub(ceil(1), os)\n",
        '"""Doc."""\nfrom __future__ import annotations\n\nimport os\nimport re\nfrom math import ceil\n\n\n'
        "def f():\n    return re.sub(ceil(1), os)\n",
        id="imports that are used and missing are merged once",
    ),
    pytest.param(
        "f",
        '"""Doc."""\ndef f():\n    return 1\n',
        "import re\ndef f():\n    return re\n",
        '"""Doc."""\nimport re\n\ndef f():\n    return re\n',
        id="import behind a docstring",
    ),
    pytest.param(
        "f",
        "#!/usr/bin/python\n# coding: utf-8\n# about f\ndef f():\n    return 1\n",
        "import re\ndef f():\n    return re\n",
        "#!/usr/bin/python\n# coding: utf-8\nimport re\n\n\n# about f\ndef f():\n    return re\n",
        id="import behind shebang and cookie",
    ),
    pytest.param(
        "f",
        "import os\nx = 1\ndef f():\n    return 1\n",
        "import re\ndef f():\n    return re\n",
        "import os\nimport re\nx = 1\ndef f():\n    return re\n",
        id="import right before a statement that stays",
    ),
    pytest.param(
        "C.f",
        "class C:\n    def f(self):\n        return 1\nx = 1\n",
        "class C:\n    a = 1\n    def f(self):\n        return self.g()\n    def g(self):\n        return self.a\n",
        "class C:\n    a = 1\n\n    def f(self):\n        return self.g()\n\n    def g(self):\n"
        "        return self.a\nx = 1\n",
        id="new attribute and method of a class",
    ),
    pytest.param(
        "f",
        "#!/usr/bin/python\n# coding: utf-8\n# about f\ndef f():\n    return 1\n",
        "def g():\n    return 1\ndef f():\n    return g()\n",
        "#!/usr/bin/python\n# coding: utf-8\ndef g():\n    return 1\n\n\n# about f\ndef f():\n    return g()\n",
        id="helper behind shebang and cookie",
    ),
    pytest.param(
        "f",
        "def f():\n    return g()\n\ndef g():\n    return 1\n",
        "from module import g\nimport os.path\ndef f():\n    return g() + os.path\n",
        "import os.path\n\n\ndef f():\n    return g() + os.path\n\ndef g():\n    return 1\n",
        id="an import of what the file defines is dropped",
    ),
    pytest.param(
        "f",
        "def f(a):\n    return 1\n",
        "LIMIT = 3\nNAMES: list[str] = []\n\ndef helper():\n    return LIMIT\n\ndef f(a):\n    return helper()\n\n"
        'if __name__ == "__main__":\n    print(f(1))\n\nprint(f(2))\nassert f(3)\ndef test_f():\n    assert f(1)\n',
        "LIMIT = 3\nNAMES: list[str] = []\n\n\ndef helper():\n    return LIMIT\n\n\ndef f(a):\n    return helper()\n",
        id="helpers and constants go before, examples are left out",
    ),
    pytest.param(
        "f",
        "def f():\n\tif 1:\n\t\treturn 1\n\treturn 2\n",
        "def f():\n    if 2:\n        return (1 +\n                2)\n    return 2\n",
        "def f():\n\tif 2:\n\t\treturn (1 +\n\t\t\t\t2)\n\treturn 2\n",
        id="tabs stay tabs",
    ),
    pytest.param(
        "C.f",
        "class C:\n  def f(self):\n    return 1\n",
        'def f(self):\n    """Doc.\n\n    More.\n    """\n    s = """\nraw\n    raw\n"""\n    return s\n',
        'class C:\n  def f(self):\n    """Doc.\n\n    More.\n    """\n    s = """\nraw\n    raw\n"""\n    return s\n',
        id="two spaces, docstring moved, string literal not",
    ),
    pytest.param(
        "C.f",
        'class C:\n    def f(self):\n        """Doc.\n        """\n        return 1\n',
        'def f(self):\n    """Doc.\n    """\n    return 2\n',
        'class C:\n    def f(self):\n        """Doc.\n        """\n        return 2\n',
        id="docstring whose last line is blank",
    ),
    pytest.param(
        "f",
        "def f(): return 1; x = 2\ny = 3\n",
        "def f(): return 2\n",
        "def f(): return 2\ny = 3\n",
        id="one line definition with several statements",
    ),
    pytest.param(
        "f", "def f():\n    return 1", "def f():\n    return 2\n", "def f():\n    return 2", id="no line end"
    ),
    pytest.param(
        "C",
        "@dataclass\nclass C:\n    a: int\n    def m(self): return 1\n",
        "class C:\n    a: str\n    def m(self): return 2\n",
        "@dataclass\nclass C:\n    a: str\n    def m(self): return 2\n",
        id="whole class",
    ),
    pytest.param(
        "f",
        "try:\n    import json\nexcept ImportError:\n    json = None\n\nif json:\n    def f():\n        return 1\n",
        "def f():\n    return json\n",
        "try:\n    import json\nexcept ImportError:\n    json = None\n\nif json:\n    def f():\n        return json\n",
        id="definition inside an if",
    ),
    pytest.param(
        "é.ß",
        "class é:\n    'ü'; x = 'ä€'\n    def ß(self): return 'ö'\nz = '€'\n",
        "def ß(self): return '€'\n",
        "class é:\n    'ü'; x = 'ä€'\n    def ß(self): return '€'\nz = '€'\n",
        id="characters of several bytes",
    ),
]


@pytest.mark.parametrize(("name", "before", "reply", "after"), CASES)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_splice(name: str, before: str, reply: str, after: str, newline: str) -> None:
    source, expected = (d(text).replace("\n", newline) for text in (before, after))
    text, spans = splice_definition(source, name, d(reply))
    assert text == expected
    assert apply_spans(source, spans) == text
    again, nothing = splice_definition(text, name, d(reply))
    assert (again, nothing) == (text, [])


PROPERTY = d("""
    class C:
        @property
        def v(self):
            return 1

        @v.setter
        def v(self, x):
            self.x = x

        def w(self):
            return 1

    LIMIT = 1

    def g():
        return 1
    """)

REFUSED = [
    pytest.param("C.v", "def v(self):\n    return 2\n", "defined in lines 3, 7", id="property or setter"),
    pytest.param(
        "C.w", "def x(self):\n    return 2\n", "does not define 'C.w'; it defines x", id="other name"
    ),
    pytest.param("C.w", "w(2)\n", "does not define 'C.w'; it has no definition", id="no definition"),
    pytest.param("C.w", "def w(self)\n    return 2\n", "does not parse: line 1", id="syntax error"),
    pytest.param("C.nope", "def nope(): pass\n", "no definition 'C.nope'", id="unknown target"),
    pytest.param(
        "C.w",
        "def w(self):\n    return 2\ndef g():\n    return 2\n",
        "also changes 'g'",
        id="another definition",
    ),
    pytest.param("C.w", "LIMIT = 2\ndef w(self):\n    return 2\n", "also changes 'LIMIT'", id="a constant"),
    pytest.param(
        "C", "class C:\n    def w(self):\n        return 2\n", "leaves out v of class 'C'", id="lost"
    ),
    pytest.param("C.w", "from os import *\ndef w(self):\n    return 2\n", "imports everything", id="star"),
    pytest.param(
        "C.w",
        "for i in 1, 2:\n    g = i\ndef w(self):\n    return 2\n",
        "line 1 of the reply is neither",
        id="loop at module level",
    ),
]


@pytest.mark.parametrize(("name", "reply", "message"), REFUSED)
def test_what_is_unclear_is_refused(name: str, reply: str, message: str) -> None:
    with pytest.raises(PatchError) as caught:
        splice_definition(PROPERTY, name, reply)
    assert message in str(caught.value)


def test_a_line_tells_the_setter_from_the_getter() -> None:
    text, _ = splice_definition(PROPERTY, "C.v", "def v(self, x):\n    self.x = x + 1\n", line=7)
    assert text == PROPERTY.replace("self.x = x", "self.x = x + 1")


def test_other_definitions_change_only_when_they_may() -> None:
    reply = "LIMIT = 2\ndef g():\n    return 2\nclass C:\n    def w(self):\n        return LIMIT\n"
    text, _ = splice_definition(PROPERTY, "C.w", reply, also=("g", "<module>"))
    assert text == PROPERTY.replace(
        "def w(self):\n        return 1", "def w(self):\n        return LIMIT"
    ).replace("LIMIT = 1", "LIMIT = 2").replace("def g():\n    return 1", "def g():\n    return 2")


def test_an_import_of_something_else_under_the_same_name_is_refused() -> None:
    with pytest.raises(PatchError, match="the file 'from a import x'"):
        splice_definition(
            "from a import x\ndef f():\n    return x\n", "f", "from b import x\ndef f():\n    return x()\n"
        )


def test_the_same_thing_imported_in_another_way_is_left_alone() -> None:
    before = "from .a import x\ndef f():\n    return x\n"
    text, _ = splice_definition(before, "f", "from pkg.a import x\ndef f():\n    return x()\n")
    assert text == before.replace("return x", "return x()")


def test_the_decorator_of_a_stub_goes_and_the_others_stay() -> None:
    before = "import m\n@m.cached\n@m.autosolve(hint='x')\n# why\ndef f(a):\n    ...\n"
    text, _ = splice_definition(before, "f", "def f(a):\n    return a\n", drop_decorators=("autosolve",))
    assert text == "import m\n@m.cached\ndef f(a):\n    return a\n"
    text, _ = splice_definition(
        before, "f", "@m.autosolve(hint='x')\ndef f(a):\n    return a\n", drop_decorators=("autosolve",)
    )
    assert text == "import m\ndef f(a):\n    return a\n"


def test_what_is_outside_stays_byte_identical() -> None:
    before = "\x0c\nx = 1   \r\n\n\n\ty = 2\n".replace("\ty", "y") + "def f():\r\n  return 1\r\n\r\n#end\x0c"
    text, spans = splice_definition(before, "f", "def f():\n    return 2\n")
    (span,) = spans
    assert text.startswith(before[: span.start])
    assert text.endswith(before[span.end :])
    assert text[span.start :].startswith("def f():\r\n  return 2\r\n")


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from(["a\n", "b\r\n", "c\n", "\n", "d"]), max_size=12), st.integers(0, 2**16))
def test_line_spans_make_one_text_from_the_other(lines: list[str], seed: int) -> None:
    before = "".join(lines)
    after = "".join(line for n, line in enumerate(lines) if seed >> n & 1) + "e\n" * (seed % 3)
    assert apply_spans(before, line_spans(before, after)) == after


def test_line_spans_are_small() -> None:
    assert line_spans("a\nb\nc\n", "a\nX\nc\n") == [Span(2, 4, "X\n")]


def test_a_splice_of_every_function_of_a_real_module_changes_nothing_else() -> None:
    with open(dedent.__code__.co_filename, encoding="utf-8") as file:  # noqa: PTH123 - co_filename is a str
        source = file.read()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            text, _ = splice_definition(source, node.name, f"def {node.name}():\n    return {{}}\n")
            kept = [n for n in ast.parse(text).body if getattr(n, "name", "") != node.name]
            original = [n for n in ast.parse(source).body if getattr(n, "name", "") != node.name]
            assert [ast.dump(n) for n in kept] == [ast.dump(n) for n in original]
