"""The solver graph: recall, generate, execute, then verify or reflect, until a verdict accepts or a bound is met."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langgraph.graph import END, START, StateGraph

from pytest_autofix.solver import nodes
from pytest_autofix.solver.state import SolveState

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph.state import CompiledStateGraph

__all__ = ["STEPS", "build_graph"]

STEPS = 4000
"""`recursion_limit`: far more than the time of a search allows, far less than for ever (the library's own is 10,007)"""


def build_graph(
    checkpointer: BaseCheckpointSaver[Any] | None = None,
) -> CompiledStateGraph[SolveState, nodes.Context, SolveState, SolveState]:
    """The compiled graph; one run of it for each task, with a `nodes.Context` of its own."""
    graph: StateGraph[SolveState, nodes.Context, SolveState, SolveState] = StateGraph(
        SolveState, context_schema=nodes.Context
    )
    for name in ("recall", "generate", "execute", "verify", "reflect", "accept", "give_up"):
        graph.add_node(name, getattr(nodes, name))
    graph.add_edge(START, "recall")
    graph.add_edge("recall", "generate")
    graph.add_conditional_edges("generate", nodes.after_generate, ["execute", "reflect", "give_up"])
    graph.add_conditional_edges("execute", nodes.after_execute, ["verify", "reflect"])
    graph.add_conditional_edges("verify", nodes.after_verify, ["accept", "verify", "reflect"])
    graph.add_conditional_edges("reflect", nodes.after_reflect, ["generate", "give_up"])
    graph.add_edge("accept", END)
    graph.add_edge("give_up", END)
    return graph.compile(checkpointer=checkpointer)
