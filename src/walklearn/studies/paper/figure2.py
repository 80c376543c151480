"""The paper's comparison, and faster methods, on an Erdős–Rényi graph, for `walklearn demo`.

The paper's setting: N = 100 nodes, p = 0.3, one row each from two Gaussians of variance v = 10
or 1, logistic loss with penalty 1. Our choices for the rest: d = 10, μ = (1, …, 1), W a ball of
radius 10. SGD and gossip have γ_k = c / k^q, with c and q tuned for each method on other seeds.
SAGA walks as Algorithm 1 does and Finito oldest first; both compute their own step sizes. The error
is that of the last iterate, f(w) − f*; for gossip the mean over nodes.

>>> results = compare(variance=10.0, steps=500, replicates=4, seed=1)
>>> [result.trace.label for result in results][:3]
['SGD, uniform walk', 'SGD, weighted walk', 'asynchronous gossip']
>>> [result.trace.label for result in results][3:]
['SGD, oldest first', 'SAGA, uniform walk', 'Finito, oldest first']
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
from walklearn.updates import Finito, Saga, Sgd, Update
from walklearn.updates.step_choice import best_step
from walklearn.updates.step_sizes import PowerStep
from walklearn.walks import OldestFirst, Uniform, Walk, Weighted

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Method:
    """A line of the picture; without an update, `Sgd` with a tuned step size."""

    algorithm: Walk | Gossip
    colour: str
    update: Update | None = None


SAGA, FINITO = "SAGA, uniform walk", "Finito, oldest first"
METHODS = {
    "SGD, uniform walk": Method(Uniform(), "#0072B2"),
    "SGD, weighted walk": Method(Weighted(), "#56B4E9"),
    "asynchronous gossip": Method(AsynchronousGossip(), "#8A8A8A"),
    "SGD, oldest first": Method(OldestFirst(), "#009E73"),
    SAGA: Method(Uniform(), "#E69F00", Saga()),
    FINITO: Method(OldestFirst(), "#D55E00", Finito()),
}
EXPONENTS = 0.51, 0.75, 0.9  # the theorems allow 0.5 < q < 1
STEP_SIZES = [
    PowerStep(float(f"{c:.2g}"), q) for q in EXPONENTS for c in np.geomspace(1e-3, 3.0, 15)
]
TUNING_REPLICATES = 8
TARGET = 1e-6  # the error of the headline
LOWEST = 1e-10  # errors below this are not drawn
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
    """Run every method, with the step size that has the least mean error on other seeds."""
    graph_seed, data_seed, tuning_seed, run_seed = np.random.SeedSequence(seed).spawn(4)
    graph = erdos_renyi(100, 0.3, seed=graph_seed, connected="retry")
    X, y = two_gaussians(100, dimension=10, variance=variance, seed=data_seed)
    problem = Problem(X, y, penalty=1.0, domain=Ball(10.0))
    results = []
    for label, method in METHODS.items():
        step_size, update = None, method.update
        if update is None:
            errors = [
                simulate(problem, graph, method.algorithm, steps=steps, step_size=candidate,
                         replicates=TUNING_REPLICATES, seed=tuning_seed, records=1,
                         progress=False).gap.mean()
                for candidate in STEP_SIZES
            ]  # fmt: skip
            step_size = best_step(STEP_SIZES, errors)
            update = Sgd(step_size)
        trace = simulate(problem, graph, method.algorithm, steps=steps, update=update,
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
    for result in results:
        summary, updates = result.trace.summary("gap"), result.trace.updates.astype(float)
        label, colour = result.trace.label, METHODS[result.trace.label].colour
        weight, width = ("bold", 3.0) if label == FINITO else ("normal", 1.8)
        axes.plot(updates, visible(summary.median), color=colour, linewidth=width)
        draw_band(axes, updates, summary.lower, summary.upper, color=colour, alpha=0.15)
        error = f"< {in_powers(LOWEST)}" if result.error < LOWEST else in_powers(result.error)
        ends.append((max(result.error, LOWEST), f"{label}  {error}", colour, weight))
    axes.set_ylim(bottom=max(LOWEST, axes.get_ylim()[0]))
    _write_ends(axes, ends)
    axes.set_title(headline(results), loc="left", pad=24, fontsize=13.5, fontweight="bold")
    interval = f" and its {100 * summary.confidence:.0f} % interval" if summary.confidence else ""
    median = f"median of {results[0].trace.replicates} runs{interval}"
    subtitle = f"f(w) − f*, 100 nodes: {median}. Blue: the paper's walks. Steps of SGD tuned."
    axes.annotate(subtitle, (0, 1.03), xycoords="axes fraction", color="#555555")
    figure.savefig(path, dpi=150)


def headline(results: list[Result]) -> str:
    """Compare the updates to `TARGET` of Finito and SAGA, which SGD and gossip do not reach."""
    updates = {result.trace.label: updates_to(result.trace, TARGET) for result in results}
    finito, saga = updates.pop(FINITO), updates.pop(SAGA)
    last = f"{results[0].trace.updates[-1]:,}"
    if finito is None or saga is None or any(updates.values()):
        return f"After {last} updates: the paper's walks, gossip, and faster methods"
    return (
        f"Error {in_powers(TARGET)}: Finito after {finito:,} updates, SAGA after {saga:,}, "
        f"SGD not in {last}"
    )


def updates_to(trace: Trace, error: float) -> int | None:
    """Return the updates at the first record whose median gap is at most an error, or None."""
    reached = np.flatnonzero(trace.summary("gap").median <= error)
    return int(trace.updates[reached[0]]) if reached.size else None


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
            "step_constant": result.step_size and result.step_size.constant,
            "step_exponent": result.step_size and result.step_size.exponent,
            "updates": int(result.trace.updates[-1]),
            "messages": float(result.trace.messages[:, -1].mean()),
            "bytes": float(result.trace.bytes[:, -1].mean()),
            "median_gap": float(summary.median[-1]),
            "interval": [float(summary.lower[-1]), float(summary.upper[-1])],
            "updates_to_target": updates_to(result.trace, TARGET),
        }
        for title, rows in results.items()
        for result in rows
        if (summary := result.trace.summary("gap"))
    ]


def table(runs: list[dict[str, Any]]) -> list[list[str]]:
    """Return heads, and a row for each run: step, cost, last error with its interval."""
    heads = ["setting", "method", "c", "q", "messages", "MB", "f(w) − f*", "interval",
             f"updates to {in_powers(TARGET)}"]  # fmt: skip
    lines = [
        [
            run["setting"],
            run["method"],
            *("own" if run[name] is None else f"{run[name]:g}"
              for name in ("step_constant", "step_exponent")),
            f"{run['messages']:,.0f}",
            f"{run['bytes'] / 1e6:.2f}",
            f"{run['median_gap']:.3g}",
            "{:.3g} to {:.3g}".format(*run["interval"]),
            "–" if run["updates_to_target"] is None else f"{run['updates_to_target']:,}",
        ]
        for run in runs
    ]  # fmt: skip
    return [heads, *lines]
