"""The paper's comparison, and a walk that remembers: on an Erdős–Rényi graph, beside gossip.

The paper's setting: N = 100 nodes, p = 0.3, one row each from two Gaussians of variance v = 10
or 1, logistic loss with penalty 1. What it leaves open is a stated choice here: d = 10,
μ = (1, …, 1), W a ball of radius 10, γ_k = c / k^0.75 with c tuned for each method on seeds of
its own. The walk with memory is the uniform one with `updates.Saga`, which finds its step itself.
The error is that of the last iterate, f(w) − f*; for gossip the mean over nodes.

>>> results = compare(variance=10.0, steps=500, replicates=4, seed=1)
>>> [result.trace.label for result in results]
['uniform walk', 'weighted walk', 'asynchronous gossip', 'walk with memory']
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from walklearn.graphs import Graph, erdos_renyi
from walklearn.objectives import Problem
from walklearn.objectives.datasets import two_gaussians
from walklearn.objectives.linear.domains import Ball
from walklearn.plots.axes import draw_band, style_axes, visible
from walklearn.simulation.averaging import AsynchronousGossip, Gossip
from walklearn.simulation.simulate import simulate
from walklearn.simulation.trace import Trace
from walklearn.updates.saga import Saga
from walklearn.updates.sgd import Sgd
from walklearn.updates.step_choice import best_step
from walklearn.updates.step_sizes import PowerStep
from walklearn.walks import Uniform, Walk, Weighted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METHODS: dict[str, Walk | Gossip] = {
    "uniform walk": Uniform(),
    "weighted walk": Weighted(),
    "asynchronous gossip": AsynchronousGossip(),
}
MEMORY = "walk with memory"
CONSTANTS = tuple(float(f"{c:.2g}") for c in np.geomspace(1e-4, 1.0, 13))
EXPONENT = 0.75
# The paper's two walks in blue, gossip in grey, and what is new in a colour of its own.
LINES = ("#0072B2", "#56B4E9", "#8A8A8A", "#D55E00")
LINE_WIDTHS = {"normal": 1.8, "bold": 3.0}
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True, eq=False)
class Result:
    """A method's tuned step size, None where it finds its own, and what came of it."""

    step_size: PowerStep | None
    trace: Trace

    @property
    def error(self) -> float:
        """The median of f(w) − f* after the last update."""
        return float(self.trace.summary("gap").median[-1])


def compare(variance: float, steps: int, replicates: int, seed: int) -> list[Result]:
    """Run every method with the step constant that suited it best on other seeds."""
    graph_seed, data_seed, tuning_seed, run_seed = np.random.SeedSequence(seed).spawn(4)
    graph = erdos_renyi(100, 0.3, seed=graph_seed, connected="retry")
    X, y = two_gaussians(100, dimension=10, variance=variance, seed=data_seed)
    problem = Problem(X, y, penalty=1.0, domain=Ball(10.0))
    results = []
    for label, method in {**METHODS, MEMORY: Uniform()}.items():
        remembers = label == MEMORY
        step_size = None if remembers else tune(problem, graph, method, steps, tuning_seed)
        update = Saga() if step_size is None else Sgd(step_size)
        trace = simulate(problem, graph, method, steps=steps, update=update,
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
    """The step constant of `CONSTANTS` with the least mean final f(w) − f*."""
    candidates = [PowerStep(constant, EXPONENT) for constant in CONSTANTS]
    errors = [
        simulate(
            problem, graph, method, steps=steps, step_size=step_size, replicates=replicates,
            seed=seed, records=1, progress=False,
        ).gap.mean()
        for step_size in candidates
    ]  # fmt: skip
    return best_step(candidates, errors)


def draw(results: list[Result], path: Path) -> None:
    """Error against updates; every line with its name and where it ends, and what that says."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 4.8), layout="constrained")
    axes = figure.subplots()
    style_axes(axes, "updates (visits of the token; for gossip, of all nodes together)", "")
    axes.set(yscale="log", xlim=(0, results[0].trace.updates[-1]))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    ends = []
    for result, colour in zip(results, LINES, strict=True):
        summary, updates = result.trace.summary("gap"), result.trace.updates.astype(float)
        weight = "bold" if result.trace.label == MEMORY else "normal"
        axes.plot(updates, visible(summary.median), color=colour, linewidth=LINE_WIDTHS[weight])
        draw_band(axes, updates, summary.lower, summary.upper, color=colour, alpha=0.15)
        text = f"{result.trace.label}  {in_powers(result.error)}"
        ends.append((result.error, text, {"color": colour, "weight": weight}))
    _write_ends(axes, ends)
    axes.set_title(headline(results), loc="left", pad=24, fontsize=13.5, fontweight="bold")
    runs = results[0].trace.replicates
    sure = summary.confidence
    median = f"median of {runs} runs" + (f" and its {100 * sure:.0f} % interval" if sure else "")
    subtitle = f"f(w) − f*, 100 nodes: {median}. Blue: the paper's walks, steps tuned."
    axes.annotate(subtitle, (0, 1.03), xycoords="axes fraction", color="#555555")
    figure.savefig(path, dpi=150)


def headline(results: list[Result]) -> str:
    """How much closer to f* the walk with memory is than the best of the others, whatever came."""
    *others, memory = (result.error for result in results)
    after = f"After {results[0].trace.updates[-1]:,} updates"
    if not 0 < memory < min(others):
        return f"{after}: the paper's walks, gossip, and a walk with memory"
    times = np.floor(np.log10(min(others) / memory))
    over = f" more than {in_powers(10.0**times)} times" if times >= 1 else ""
    return f"{after} a walk with memory is{over} closer to f*"


def in_powers(number: float) -> str:
    """A number with two digits, where very large and small ones are written as people do.

    >>> in_powers(0.3183), in_powers(9.54e-10), in_powers(1e8)
    ('0.32', '9.5·10⁻¹⁰', '10⁸')
    """
    digits, _, power = f"{number:.2g}".partition("e")
    if not power:
        return digits
    times = "" if digits == "1" else f"{digits}·"
    return f"{times}10{str(int(power)).translate(SUPERSCRIPTS)}"


def _write_ends(
    axes: Axes, ends: list[tuple[float, str, dict[str, Any]]], apart: float = 0.06
) -> None:
    """Beside the right end of each line its text, pushed up where two would touch."""
    low, high = np.log(axes.get_ylim())
    below = -np.inf
    for error, text, look in sorted(ends, key=lambda end: end[0]):
        height = (np.log(error) - low) / (high - low) if error > 0 else 0.0
        below = max(height, below + apart)
        axes.annotate(
            text, (1.015, below), xycoords="axes fraction", va="center", fontsize=11.5, **look
        )


def facts(results: dict[str, list[Result]]) -> list[dict[str, Any]]:
    """What the table says, as plain numbers."""
    return [
        {
            "setting": title,
            "method": result.trace.label,
            "step_constant": None if result.step_size is None else result.step_size.constant,
            "updates": int(result.trace.updates[-1]),
            "messages": float(result.trace.messages[:, -1].mean()),
            "bytes": float(result.trace.bytes[:, -1].mean()),
            "median_gap": float(summary.median[-1]),
            "interval": [float(summary.lower[-1]), float(summary.upper[-1])],
        }
        for title, rows in results.items()
        for result in rows
        if (summary := result.trace.summary("gap"))
    ]


def table(runs: list[dict[str, Any]]) -> list[list[str]]:
    """Return a table row for each run: step constant, cost, final error with its interval."""
    heads = ["setting", "method", "c", "updates", "messages", "MB", "f(w) − f*", "interval"]
    lines = [
        [
            run["setting"],
            run["method"],
            "found" if run["step_constant"] is None else f"{run['step_constant']:g}",
            f"{run['updates']:,}",
            f"{run['messages']:,.0f}",
            f"{run['bytes'] / 1e6:.2f}",
            f"{run['median_gap']:.3g}",
            f"{run['interval'][0]:.3g} to {run['interval'][1]:.3g}",
        ]
        for run in runs
    ]
    return [heads, *lines]
