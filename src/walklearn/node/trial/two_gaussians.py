"""Training data of `walklearn up`: the paper's two Gaussians, one or more rows per node.

The process that sets the trial up has everybody's rows, so it knows the optimum and can tell how
far the walking model is from it. In a network nobody could.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from walklearn.graphs import Graph
from walklearn.node.agreement.node_rows import NodeRows
from walklearn.node.trial.local_network import LocalNetwork
from walklearn.objectives import Problem
from walklearn.objectives.datasets import two_gaussians
from walklearn.objectives.linear.domains import Ball
from walklearn.updates.step_choice import choose_step
from walklearn.walks import WALKS, Walk
from walklearn.walks.disclosure import reveals_rows

DIMENSION, VARIANCE, PENALTY, RADIUS = 4, 2.0, 1.0, 5.0
EXPONENT = 0.75  # steps that shrink fast enough for the last iterate to settle while one watches
FEATURE_BOUND = 8.0


@dataclass(frozen=True, eq=False)
class Trial:
    """A graph, everybody's rows, and the plan about them."""

    graph: Graph
    problem: Problem
    plan: str
    updates: int

    @classmethod
    def draw(
        cls, graph: Graph, walk: str, updates: int, privacy: tuple[float, float] | None,
        seed: int | None,
    ) -> Trial:  # fmt: skip
        """Draw a row for each node. privacy: (ε, δ) of what the weighted walk releases."""
        X, y = two_gaussians(graph.node_count, DIMENSION, VARIANCE, seed=seed)
        norms = np.linalg.norm(X, axis=1, keepdims=True)
        X = X * np.minimum(1.0, FEATURE_BOUND / norms)
        problem = Problem(X, y, penalty=PENALTY, domain=Ball(RADIUS))
        chosen = WALKS.by_name(walk)()
        return cls(graph, problem, _plan(problem, graph, chosen, updates, privacy), updates)

    def rows(self) -> list[NodeRows]:
        """Return the rows of each node."""
        return [
            NodeRows(self.problem.X[i : i + 1], self.problem.y[i : i + 1])
            for i in range(self.graph.node_count)
        ]

    def error(self, model: NDArray[np.float64]) -> float:
        """The distance ‖w − w*‖ of the model from the minimiser."""
        return float(np.linalg.norm(model - self.problem.solution.model.reshape(-1)))


@dataclass(frozen=True)
class NodeGlimpse:
    """A node at one moment: its phase, what it has counted, its importance once it was up."""

    name: str
    phase: str = "starting"
    updates: int = 0
    handovers: int = 0
    final: bool = False
    importance: float = 1.0
    notes: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_up(self) -> bool:
        """True if its process runs and answers."""
        return self.phase not in ("down", "starting", "frozen")


@dataclass(frozen=True)
class Glimpse:
    """The network at one moment: how far the token has got, who has it, how each node is.

    holder: the number of the node that took part in the newest handover. messages: tokens handed
    over, by all nodes.
    """

    updates: int
    of: int
    holder: int | None
    error: float | None
    nodes: tuple[NodeGlimpse, ...]

    @property
    def finished(self) -> int:
        """The number of nodes with the final model."""
        return sum(node.final for node in self.nodes)

    @property
    def messages(self) -> int:
        """The number of handovers."""
        return sum(node.handovers for node in self.nodes)

    @property
    def ended(self) -> bool:
        """True if all nodes that were not killed have the final model."""
        there = [node for node in self.nodes if node.phase != "down"]
        return bool(there) and all(node.final for node in there)


def watch(network: LocalNetwork, trial: Trial) -> Iterator[Glimpse]:
    """Look at the network again and again until every node that runs has the final model."""
    nodes = [NodeGlimpse(directory.settings.name) for directory in network.directories]
    updates, error, holder = 0, None, None
    while True:
        looks = network.statuses()
        nodes = [_seen(*each) for each in zip(nodes, looks, strict=True)]
        there = [number for number, look in enumerate(looks) if "updates" in look]
        if there:
            newest = max(there, key=lambda number: looks[number]["updates"])
            token = network.newest(newest)
            updates = looks[newest]["updates"]
            error = None if token is None else trial.error(token.model)
            holder = max(there, key=lambda number: _how_new(looks[number]))
        glimpse = Glimpse(
            updates=updates,
            of=trial.updates,
            holder=holder if updates else None,
            error=error,
            nodes=tuple(nodes),
        )
        yield glimpse
        if glimpse.ended:
            return


def _seen(before: NodeGlimpse, look: Mapping[str, Any]) -> NodeGlimpse:
    """Return the latest status of a node; of a silent node the previous one."""
    if "updates" not in look:
        return replace(before, phase=look["phase"])
    counters = look["counters"]
    return NodeGlimpse(
        before.name, look["phase"], counters.get("updates", 0), counters.get("handovers_sent", 0),
        look["final"], look["importance"], counters.get("notes", {}),
    )  # fmt: skip


def _how_new(look: Mapping[str, Any]) -> tuple[int, int, int, bool]:
    """The newest handover a node took part in; of its two ends the one that holds the token."""
    line = look["walk"] or {"updates": -1, "counter": 0}
    return line["updates"], line["counter"], look["hop"] or 0, look["holds_token"]


def _plan(
    problem: Problem, graph: Graph, walk: Walk, updates: int, privacy: tuple[float, float] | None
) -> str:
    constant = choose_step(problem, graph, walk).constant
    features = ", ".join(f'"x{number}"' for number in range(DIMENSION))
    lines = [
        'name = "trial"',
        f"nodes = {graph.node_count}",
        f"features = [{features}]",
        'target = "y"',
        'classes = ["-1", "1"]',
        'loss = "logistic"',
        f"penalty = {PENALTY}",
        f"domain = {{ ball = {RADIUS} }}",
        f"step_size = {{ constant = {constant!r}, exponent = {EXPONENT} }}",
        f"updates = {updates}",
        f'walk = "{walk.name}"',
    ]
    if reveals_rows(walk):
        lines.append("[privacy]")
        if privacy is None:
            lines.append('mechanism = "in the clear"')
        else:
            lines += ['protect = "node"', 'model = "in the clear"',
                      'mechanism = "laplace"', f"epsilon = {privacy[0]!r}",
                      f"delta = {privacy[1]!r}", f"feature_bound = {FEATURE_BOUND}",
                      "max_rows = 1"]  # fmt: skip
    lines += ["[time_limits]", "hello_every_seconds = 1.0"]
    return "\n".join(lines) + "\n"
