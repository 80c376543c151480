"""The paper's comparison: uniform walk, weighted walk and gossip on an Erdős–Rényi graph.

The paper's setting: N = 100 nodes, p = 0.3, one row each from two Gaussians of variance v = 10
or 1, logistic loss with penalty 1. What it leaves open is a stated choice here: d = 10,
μ = (1, …, 1), W a ball of radius 10, γ_k = c / k^0.75 with c tuned for each method on seeds of
its own. The error is that of the last iterate, ‖w − w*‖; for gossip the mean over nodes.

>>> results = compare(variance=10.0, steps=500, replicates=4, seed=1)
>>> [result.trace.label for result in results]
['uniform walk', 'weighted walk', 'asynchronous gossip']
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from walklearn import plot
from walklearn.graphs import Graph, erdos_renyi
from walklearn.problem import Problem
from walklearn.problem.datasets import two_gaussians
from walklearn.problem.domains import Ball
from walklearn.simulation import simulate
from walklearn.simulation.trace import Trace
from walklearn.updates.gossip_sgd import AsynchronousGossip, Gossip
from walklearn.updates.step_choice import best_step
from walklearn.updates.step_sizes import PowerStep
from walklearn.walks import Uniform, Walk, Weighted

METHODS: dict[str, Walk | Gossip] = {
    "uniform walk": Uniform(),
    "weighted walk": Weighted(),
    "asynchronous gossip": AsynchronousGossip(),
}
CONSTANTS = tuple(float(f"{c:.2g}") for c in np.geomspace(1e-4, 1.0, 13))
EXPONENT = 0.75


@dataclass(frozen=True, eq=False)
class Result:
    """A method's tuned step size and what came of it."""

    step_size: PowerStep
    trace: Trace


def compare(variance: float, steps: int, replicates: int, seed: int) -> list[Result]:
    """Run every method with the step constant that suited it best on other seeds."""
    graph_seed, data_seed, tuning_seed, run_seed = np.random.SeedSequence(seed).spawn(4)
    graph = erdos_renyi(100, 0.3, seed=graph_seed, connected="retry")
    X, y = two_gaussians(100, dimension=10, variance=variance, seed=data_seed)
    problem = Problem(X, y, penalty=1.0, domain=Ball(10.0))
    results = []
    for label, method in METHODS.items():
        step_size = tune(problem, graph, method, steps, tuning_seed)
        trace = simulate(problem, graph, method, steps=steps, step_size=step_size,
                         replicates=replicates, seed=run_seed)  # fmt: skip
        results.append(Result(step_size, replace(trace, label=label)))
    return results


def tune(
    problem: Problem,
    graph: Graph,
    method: Walk | Gossip,
    steps: int,
    seed: np.random.SeedSequence,
    replicates: int = 8,
) -> PowerStep:
    """The step constant of `CONSTANTS` with the least mean final ‖w − w*‖."""
    candidates = [PowerStep(constant, EXPONENT) for constant in CONSTANTS]
    errors = [
        simulate(
            problem, graph, method, steps=steps, step_size=step_size, replicates=replicates,
            seed=seed, records=1, progress=False,
        ).distance.mean()
        for step_size in candidates
    ]  # fmt: skip
    return best_step(candidates, errors)


def draw(results: dict[str, list[Result]], path: Path) -> None:
    """A column per setting: error against updates, and against messages."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.4 * len(results), 8.0), layout="constrained")
    panels = figure.subplots(2, len(results), sharey=True, squeeze=False)
    for column, (title, lines) in zip(panels.T, results.items(), strict=True):
        for panel, cost in zip(column, ("updates", "messages"), strict=True):
            plot.convergence([line.trace for line in lines], x=cost, ax=panel)
        column[0].set_title(title)
    figure.savefig(path, dpi=120)


def table(results: dict[str, list[Result]]) -> list[list[str]]:
    """A line for each setting and method: step constant, cost, final error with its interval."""
    lines = [["setting", "method", "c", "updates", "messages", "MB", "‖w − w*‖", "interval"]]
    for title, rows in results.items():
        for result in rows:
            trace, summary = result.trace, result.trace.summary("distance")
            lines.append(
                [
                    title,
                    trace.label,
                    f"{result.step_size.constant:g}",
                    f"{trace.updates[-1]:,}",
                    f"{trace.messages[:, -1].mean():,.0f}",
                    f"{trace.bytes[:, -1].mean() / 1e6:.2f}",
                    f"{summary.median[-1]:.3g}",
                    f"{summary.lower[-1]:.3g} to {summary.upper[-1]:.3g}",
                ]
            )
    return lines
