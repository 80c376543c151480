"""The paper's comparison, and a walk with memory, on an Erdős–Rényi graph, for `walklearn demo`.

The paper's setting: N = 100 nodes, p = 0.3, one row each from two Gaussians of variance v = 10
or 1, logistic loss with penalty 1. Our choices for the rest: d = 10, μ = (1, …, 1), W a ball of
radius 10, γ_k = c / k^0.75 with c tuned for each method on other seeds. The walk with memory is the
uniform one with `updates.Saga`, which computes its own step size. The error is that of the last
iterate, f(w) − f*; for gossip the mean over nodes.

>>> results = compare(variance=10.0, steps=500, replicates=4, seed=1)
>>> [result.trace.label for result in results]
['uniform walk', 'weighted walk', 'asynchronous gossip', 'walk with memory']
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from walklearn.graphs import erdos_renyi
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

MEMORY = "walk with memory"
METHODS: dict[str, Walk | Gossip] = {
    "uniform walk": Uniform(),
    "weighted walk": Weighted(),
    "asynchronous gossip": AsynchronousGossip(),
    MEMORY: Uniform(),
}
STEP_SIZES = [PowerStep(float(f"{c:.2g}"), 0.75) for c in np.geomspace(1e-4, 1.0, 13)]
TUNING_REPLICATES = 8
# The paper's two walks in blue, gossip in grey, memory in another colour.
COLOURS = ("#0072B2", "#56B4E9", "#8A8A8A", "#D55E00")
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True, eq=False)
class Result:
    """The runs of a method; its tuned step size is None if it computes its own."""

    step_size: PowerStep | None
    trace: Trace

    @property
    def error(self) -> float:
        """The median of f(w) − f* after the last update."""
        return float(self.trace.summary("gap").median[-1])


def compare(variance: float, steps: int, replicates: int, seed: int) -> list[Result]:
    """Run every method with the step constant of the least mean error on other seeds."""
    graph_seed, data_seed, tuning_seed, run_seed = np.random.SeedSequence(seed).spawn(4)
    graph = erdos_renyi(100, 0.3, seed=graph_seed, connected="retry")
    X, y = two_gaussians(100, dimension=10, variance=variance, seed=data_seed)
    problem = Problem(X, y, penalty=1.0, domain=Ball(10.0))
    results = []
    for label, method in METHODS.items():
        step_size = None
        if label != MEMORY:
            errors = [
                simulate(problem, graph, method, steps=steps, step_size=candidate,
                         replicates=TUNING_REPLICATES, seed=tuning_seed, records=1,
                         progress=False).gap.mean()
                for candidate in STEP_SIZES
            ]  # fmt: skip
            step_size = best_step(STEP_SIZES, errors)
        update = Saga() if step_size is None else Sgd(step_size)
        trace = simulate(problem, graph, method, steps=steps, update=update,
                         replicates=replicates, seed=run_seed)  # fmt: skip
        results.append(Result(step_size, replace(trace, label=label)))
    return results


def draw(results: list[Result], path: Path) -> None:
    """Draw error against updates; every line has its name and last error at its end."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 4.8), layout="constrained")
    axes = figure.subplots()
    style_axes(axes, "updates (visits of the token; for gossip, of all nodes together)", "")
    axes.set(yscale="log", xlim=(0, results[0].trace.updates[-1]))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    ends = []
    for result, colour in zip(results, COLOURS, strict=True):
        summary, updates = result.trace.summary("gap"), result.trace.updates.astype(float)
        weight, width = ("bold", 3.0) if result.trace.label == MEMORY else ("normal", 1.8)
        axes.plot(updates, visible(summary.median), color=colour, linewidth=width)
        draw_band(axes, updates, summary.lower, summary.upper, color=colour, alpha=0.15)
        text = f"{result.trace.label}  {in_powers(result.error)}"
        ends.append((result.error, text, colour, weight))
    _write_ends(axes, ends)
    axes.set_title(headline(results), loc="left", pad=24, fontsize=13.5, fontweight="bold")
    interval = f" and its {100 * summary.confidence:.0f} % interval" if summary.confidence else ""
    median = f"median of {results[0].trace.replicates} runs{interval}"
    subtitle = f"f(w) − f*, 100 nodes: {median}. Blue: the paper's walks, steps tuned."
    axes.annotate(subtitle, (0, 1.03), xycoords="axes fraction", color="#555555")
    figure.savefig(path, dpi=150)


def headline(results: list[Result]) -> str:
    """Compare the errors of the walk with memory and of the best other method."""
    *others, memory = (result.error for result in results)
    after = f"After {results[0].trace.updates[-1]:,} updates"
    if not 0 < memory < min(others):
        return f"{after}: the paper's walks, gossip, and a walk with memory"
    times = np.floor(np.log10(min(others) / memory))
    over = f" more than {in_powers(10.0**times)} times" if times >= 1 else ""
    return f"{after} a walk with memory is{over} closer to f*"


def in_powers(number: float) -> str:
    """Format a number with two digits, and large and small ones as powers of ten.

    >>> in_powers(0.3183), in_powers(9.54e-10), in_powers(1e8)
    ('0.32', '9.5·10⁻¹⁰', '10⁸')
    """
    digits, _, power = f"{number:.2g}".partition("e")
    if not power:
        return digits
    times = "" if digits == "1" else f"{digits}·"
    return f"{times}10{str(int(power)).translate(SUPERSCRIPTS)}"


def _write_ends(axes: Axes, ends: list[tuple[float, str, str, str]], gap: float = 0.06) -> None:
    """Write texts beside the right ends of lines, moved up where they would overlap."""
    low, high = np.log(axes.get_ylim())
    below = -np.inf
    for error, text, colour, weight in sorted(ends):
        height = (np.log(error) - low) / (high - low) if error > 0 else 0.0
        below = max(height, below + gap)
        axes.annotate(text, (1.015, below), xycoords="axes fraction", va="center", fontsize=11.5,
                      color=colour, weight=weight)  # fmt: skip


def facts(results: dict[str, list[Result]]) -> list[dict[str, Any]]:
    """The numbers of the table."""
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
    """Return heads, and a row for each run: step constant, cost, last error with its interval."""
    heads = ["setting", "method", "c", "updates", "messages", "MB", "f(w) − f*", "interval"]
    lines = [
        [
            run["setting"],
            run["method"],
            "own" if run["step_constant"] is None else f"{run['step_constant']:g}",
            f"{run['updates']:,}",
            f"{run['messages']:,.0f}",
            f"{run['bytes'] / 1e6:.2f}",
            f"{run['median_gap']:.3g}",
            "{:.3g} to {:.3g}".format(*run["interval"]),
        ]
        for run in runs
    ]
    return [heads, *lines]
