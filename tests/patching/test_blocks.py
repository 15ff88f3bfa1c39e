from __future__ import annotations

import pytest

from pytest_autofix.errors import PatchDoesNotApply
from pytest_autofix.patching.blocks import Block, apply_blocks
from pytest_autofix.patching.spans import apply_spans

SOURCE = "def f():\n    x = 1\n    return x\n\n\ndef g():\n    x = 1\n    return x + 1\n"


@pytest.mark.parametrize(
    ("blocks", "after"),
    [
        pytest.param(
            [Block("    return x\n", "    return -x\n")],
            SOURCE.replace("return x\n", "return -x\n"),
            id="one",
        ),
        pytest.param(
            [Block("    return x + 1", "    return x"), Block("def f():\n    x = 1", "def f():\n    x = 2")],
            SOURCE.replace("x + 1", "x").replace("f():\n    x = 1", "f():\n    x = 2"),
            id="two, in any order",
        ),
        pytest.param(
            [Block("    return x   \n", "    return 3\n")], SOURCE.replace("x\n\n", "3\n\n"), id="trailing"
        ),
        pytest.param(
            [Block("return x + 1\n", "if x:\n    return 2\n\nreturn 3\n")],
            SOURCE.replace("    return x + 1\n", "    if x:\n        return 2\n\n    return 3\n"),
            id="another indentation",
        ),
        pytest.param(
            [Block("\n\ndef g():\n    x = 1\n    return x + 1\n", "")],
            "def f():\n    x = 1\n    return x\n",
            id="deletion",
        ),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_blocks(blocks: list[Block], after: str, newline: str) -> None:
    source = SOURCE.replace("\n", newline)
    text, spans = apply_blocks(source, blocks)
    assert text == after.replace("\n", newline)
    assert apply_spans(source, spans) == text


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        pytest.param([Block("    x = 1\n", "    x = 2\n")], "fits 2 places, at lines 2, 7", id="ambiguous"),
        pytest.param(
            [Block("x = 1\n", "x = 2\n")], "fits 2 places, at lines 2, 7", id="ambiguous when moved"
        ),
        pytest.param([Block("    return x + 2\n", "")], "closest lines:\n8:     return x + 1", id="closest"),
        pytest.param([Block("\n", "x")], "searches for nothing", id="empty"),
        pytest.param(
            [Block("    return x\n", "1"), Block("    x = 1\n    return x\n", "2")],
            "two changes touch",
            id="overlap",
        ),
        pytest.param([Block("    return x\n", "    return (\n")], "does not parse", id="breaks the file"),
        pytest.param([Block("return x\n", "  return 1\nx\n")], "does not parse", id="outdented"),
    ],
)
def test_what_does_not_fit_is_refused(blocks: list[Block], message: str) -> None:
    with pytest.raises(PatchDoesNotApply) as caught:
        apply_blocks(SOURCE, blocks)
    assert message in str(caught.value)


def test_a_file_that_does_not_parse_can_be_repaired() -> None:
    text, _ = apply_blocks("def f(:\n    return 1\n", [Block("def f(:", "def f():")])
    assert text == "def f():\n    return 1\n"
