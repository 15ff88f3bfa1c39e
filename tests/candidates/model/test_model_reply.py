from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_autofix.candidates.model.reply import parse_reply
from pytest_autofix.errors import ModelReplyUnusable

CODE = "def f(a):\n    return a + 1"
FENCED = f"```python\n{CODE}\n```"

ACCEPTED = [
    pytest.param(FENCED, [CODE], id="plain"),
    pytest.param(f"Sure! The bug is `-`.\n\n{FENCED}\n\nThis fixes it.", [CODE], id="prose around"),
    pytest.param(f"```\n{CODE}\n```", [CODE], id="no tag"),
    pytest.param(f"```javascript\n{CODE}\n```", [CODE], id="wrong tag"),
    pytest.param(f"~~~~py\n{CODE}\n~~~~", [CODE], id="tildes"),
    pytest.param(f"````python\n{CODE}\n    # ```\n````", [CODE + "\n    # ```"], id="longer fence"),
    pytest.param(
        f"1. Do:\n   ```python\n   {CODE.replace(chr(10), chr(10) + '   ')}\n   ```",
        ["   def f(a):\n       return a + 1"],
        id="indented fence",
    ),
    pytest.param(f"```python\n{CODE}", [CODE], id="fence left open"),
    pytest.param(CODE, [CODE], id="no fence"),
    pytest.param(f"Here it is:\n\n{CODE}\n\nI changed the sign.", [CODE + "\n"], id="no fence, prose around"),
    pytest.param(f"From the trace:\n{CODE}\nHope that helps!", [CODE], id="prose that begins like an import"),
    pytest.param(f"```\nE  assert 1 == 2\n```\n{FENCED}", [CODE], id="a quoted log first"),
    pytest.param(f"```bash\npip install x\n```\n{FENCED}", [CODE], id="a command first"),
    pytest.param(f"```python\nx = f(1)\n```\n{FENCED}", [CODE], id="code without a definition first"),
    pytest.param(
        f"```python\ndef f(a):\n    return a - 1\n```\nbecomes\n{FENCED}",
        ["def f(a):\n    return a - 1", CODE],
        id="two versions, in order",
    ),
    pytest.param(
        f"<think>\nMaybe\n```python\ndef f(): return 0\n```\n</think>\n{FENCED}", [CODE], id="thinking"
    ),
    pytest.param(FENCED.replace("\n", "\r\n"), [CODE], id="crlf"),
    pytest.param("```python\n>>> def f(a):\n...     return a + 1\n```", [CODE], id="session"),
    pytest.param(
        "```python\ndef f(a: int) -> int: ...\n```", ["def f(a: int) -> int: ..."], id="a stub is no elision"
    ),
    pytest.param(
        '```python\ndef f():\n    return "# rest of the code"\n```',
        ['def f():\n    return "# rest of the code"'],
        id="elision in a string",
    ),
    pytest.param(
        "```python\ndef f():\n    # the same value twice\n    return 1  # is it other than one\n```",
        ["def f():\n    # the same value twice\n    return 1  # is it other than one"],
        id="harmless comments",
    ),
]


@pytest.mark.parametrize(("text", "codes"), ACCEPTED)
def test_code_is_found(text: str, codes: list[str]) -> None:
    reply = parse_reply(text, finish_reason="stop")
    assert [code.code for code in reply.codes] == codes
    assert reply.codes[-1].names == ("f",)
    assert not reply.blocks


REFUSED = [
    pytest.param("", "stop", "the reply is empty", id="empty"),
    pytest.param("  \n\n", "stop", "the reply is empty", id="blank"),
    pytest.param("I cannot help with that.", "stop", "holds no code", id="prose"),
    pytest.param("```json\n{}\n```", "stop", "holds no code", id="json"),
    pytest.param("<think>hm", "stop", "all thinking and no code", id="thinking only"),
    pytest.param("<think>hm", "length", "and was cut off", id="thinking cut off"),
    pytest.param(f"```python\n{CODE}", "length", "cut off before its end", id="cut in the fence"),
    pytest.param(
        "```python\ndef f(a):\n    return (a +", "length", "cut off before its end", id="cut in a line"
    ),
    pytest.param(
        f"Old:\n{FENCED}\nNew:\n```python\ndef f(a", "length", "cut off", id="cut in the second fence"
    ),
    pytest.param(CODE, "length", "cut off before its end", id="cut without a fence"),
    pytest.param(
        "```python\ndef f(a)\n    return 1\n```", "stop", "does not parse: line 1: expected ':'", id="syntax"
    ),
    pytest.param("def f(a)\n    return 1", "stop", "does not parse: line 1", id="syntax without fence"),
    pytest.param("x" * 500_000, "stop", "500000 characters", id="huge"),
    *(
        pytest.param(
            f"```python\ndef f(a):\n    x = 1\n    {comment}\n    return x\n```",
            "stop",
            "leaves code out",
            id=comment,
        )
        for comment in (
            "# ...",
            "# … existing code …",
            "# ... rest of the code here",
            "# rest of the function remains the same",
            "# The remaining code stays unchanged",
            "# (unchanged)  same as before",
            "# Your code here",
            "# other methods remain unchanged",
            "# rest of your implementation",
            "# existing code here",
            "...",
        )
    ),
]


@pytest.mark.parametrize(("text", "finish", "message"), REFUSED)
def test_what_cannot_be_tried_is_refused_with_a_reason(text: str, finish: str, message: str) -> None:
    with pytest.raises(ModelReplyUnusable) as caught:
        parse_reply(text, finish_reason=finish)
    assert message in str(caught.value)


def test_a_reply_cut_in_its_closing_prose_is_whole() -> None:
    assert parse_reply(f"{FENCED}\nThis works beca", finish_reason="length").codes[0].code == CODE


def test_a_comment_that_was_there_before_is_no_elision() -> None:
    text = "```python\ndef f():\n    # ... rest of the code\n    return 1\n```"
    assert parse_reply(text, known="x\n    # ... rest of the code\n").codes


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("```python pkg/a.py\n{}\n```", id="info string"),
        pytest.param('```python title="pkg/a.py"\n{}\n```', id="title"),
        pytest.param("**`pkg/a.py`**:\n\n```python\n{}\n```", id="line before"),
        pytest.param("```python\n# file: pkg/a.py\n{}\n```", id="first comment"),
    ],
)
def test_the_file_may_be_named(text: str) -> None:
    (code,) = parse_reply(text.format(CODE), paths=("a.py", "pkg/a.py", "pkg/a.pyx")).codes
    assert code.path == "pkg/a.py"


BLOCKS = """pkg/a.py
```python
<<<<<<< SEARCH
    return a - 1
=======
    return a + 1
>>>>>>> REPLACE
```
and
<<<<<<< SEARCH
x = 1
=======
>>>>>>> REPLACE
"""


def test_search_and_replace_blocks_are_found() -> None:
    reply = parse_reply(BLOCKS, paths=("pkg/a.py",))
    assert not reply.codes
    assert [(b.path, b.search, b.replace) for b in reply.blocks] == [
        ("pkg/a.py", "    return a - 1", "    return a + 1"),
        ("pkg/a.py", "x = 1", ""),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("<<<<<<< SEARCH\nx\n>>>>>>> REPLACE\n", "has no =======", id="no divider"),
        pytest.param("<<<<<<< SEARCH\nx\n=======\ny\n", "no >>>>>>> REPLACE", id="no end"),
        pytest.param(
            BLOCKS.replace("a + 1", "a + 1\n    # ... rest of the code"), "leaves code out", id="elision"
        ),
    ],
)
def test_broken_blocks_are_refused(text: str, message: str) -> None:
    with pytest.raises(ModelReplyUnusable) as caught:
        parse_reply(text)
    assert message in str(caught.value)


PIECES = [
    "```",
    "```python",
    "~~~",
    "def f():",
    "    return 1",
    "<think>",
    "</think>",
    "=======",
    "\x00",
    "é ",
    "<<<<<<< SEARCH",
    ">>>>>>> REPLACE",
    "class A:",
    "  ...",
    "# ...",
    "'''",
    "@",
    "(",
    ">>> x",
    "",
]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12), st.sampled_from(["stop", "length", ""]))
def test_any_text_is_parsed_or_refused(lines: list[str], finish: str) -> None:
    with contextlib.suppress(ModelReplyUnusable):
        reply = parse_reply("\n".join(lines), finish_reason=finish)
        assert bool(reply.codes) != bool(reply.blocks)


def test_long_replies_without_code_are_refused_quickly() -> None:
    text = "import this and that\ndef you see it\n" * 8000
    start = time.perf_counter()
    with pytest.raises(ModelReplyUnusable):
        parse_reply(text)
    assert time.perf_counter() - start < 5
