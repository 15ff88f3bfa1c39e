"""The solver graph as a whole."""

from __future__ import annotations

from pathlib import Path

from pytest_autofix.solver.graph import build_graph

DOCUMENT = Path(__file__).parents[2] / "docs" / "explanation" / "loop.md"


def test_the_drawing_in_the_documentation_is_current() -> None:
    drawn = build_graph().get_graph().draw_mermaid().strip()
    assert f"```mermaid\n{drawn}\n```" in DOCUMENT.read_text(encoding="utf-8")
