"""What `walklearn up` trains: the paper's two Gaussians, one or more rows on each node.

The process that sets the trial up has everybody's rows, so it knows the optimum and can tell how
far the walking model is from it. In a network nobody could.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from walklearn.graphs import Graph
from walklearn.node.agreement.node_rows import NodeRows
from walklearn.node.trial.local_network import LocalNetwork
from walklearn.problem import Problem
from walklearn.problem.datasets import two_gaussians
from walklearn.problem.domains import Ball
from walklearn.updates.step_choice import choose_step
from walklearn.walks import WALKS, Walk
from walklearn.walks.disclosure import tells

DIMENSION, VARIANCE, PENALTY, RADIUS = 4, 2.0, 1.0, 5.0
EXPONENT = 0.75  # steps that shrink fast enough for the last iterate to settle while one watches
FEATURE_BOUND = 8.0


@dataclass(frozen=True, eq=False)
class Trial:
    """A graph, everybody's rows, and the plan about them."""

    graph: Graph
    problem: Problem
    plan: str

    @classmethod
    def draw(
        cls, graph: Graph, walk: str, updates: int, privacy: tuple[float, float] | None,
        seed: int | None,
    ) -> Trial:  # fmt: skip
        """One row for each node. privacy: (ε, δ) of what the weighted walk releases."""
        X, y = two_gaussians(graph.node_count, DIMENSION, VARIANCE, seed=seed)
        norms = np.linalg.norm(X, axis=1, keepdims=True)
        X = X * np.minimum(1.0, FEATURE_BOUND / norms)
        problem = Problem(X, y, penalty=PENALTY, domain=Ball(RADIUS))
        chosen = WALKS.by_name(walk)()
        return cls(graph, problem, _plan(problem, graph, chosen, updates, privacy))

    def rows(self) -> list[NodeRows]:
        """What each node holds."""
        return [
            NodeRows(self.problem.X[i : i + 1], self.problem.y[i : i + 1])
            for i in range(self.graph.node_count)
        ]

    def error(self, model: NDArray[np.float64]) -> float:
        """‖w − w*‖."""
        return float(np.linalg.norm(model - self.problem.optimum.model.reshape(-1)))


@dataclass(frozen=True)
class Glimpse:
    """The network at one moment: how far the token has got, and who has it."""

    updates: int
    of: int
    holder: str | None
    error: float | None
    finished: int
    refused: int


def watch(network: LocalNetwork, trial: Trial) -> Iterator[Glimpse]:
    """Look at the network again and again until every node has the final model."""
    while True:
        statuses = network.statuses()
        newest = max(range(len(statuses)), key=lambda number: statuses[number]["updates"])
        token = network.newest(newest)
        glimpse = Glimpse(
            updates=statuses[newest]["updates"],
            of=statuses[newest]["of"],
            holder=next((s["name"] for s in statuses if s["holds_token"]), None),
            error=None if token is None else trial.error(token.model),
            finished=sum(status["final"] for status in statuses),
            refused=sum(sum(s["counters"].get("refusals", {}).values()) for s in statuses),
        )
        yield glimpse
        if glimpse.finished == len(statuses):
            return


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
    if tells(walk):
        lines.append("[privacy]")
        if privacy is None:
            lines.append('mechanism = "in the clear"')
        else:
            lines += ['mechanism = "laplace"', f"epsilon = {privacy[0]!r}",
                      f"delta = {privacy[1]!r}", f"feature_bound = {FEATURE_BOUND}",
                      "max_rows = 1"]  # fmt: skip
    lines += ["[time_limits]", "hello_every_seconds = 1.0"]
    return "\n".join(lines) + "\n"


def draw(
    trial: Trial, updates: list[int], law: list[float], curve: list[tuple[int, float]], path: Path
) -> None:
    """The error as it fell, and the graph with the updates that each node made.

    law: what the updates are to be proportional to in the long run.
    """
    from matplotlib.figure import Figure

    from walklearn.plot import visits as draw_visits

    figure = Figure(figsize=(11.0, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(*zip(*curve, strict=True), color="#0072B2")
    left.set(xlabel="updates", ylabel=r"distance to the optimum, $\|w - w^*\|$", yscale="log")
    left.grid(alpha=0.3)
    draw_visits(trial.graph, updates, law, ax=right)
    right.set_title("updates made by each node")
    figure.savefig(path, dpi=120)
