"""Pictures of error against cost: Figures 2 and 3, heterogeneous nodes, real data, slopes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from walklearn.experiments.pictures.panels import (
    ERRORS,
    Curves,
    draw_line,
    draw_methods,
    explain,
    figure_of,
    share_labels,
)
from walklearn.plot.axes import colour, dress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from walklearn.studies import Results

_DOMAINS = {"r2": "W of radius 2‖w*‖", "r4": "W of radius 4‖w*‖", "wide": "W of radius 10"}
_STEPS = {"printed": "γ = 1 / k^0.51", "tuned": "γ tuned"}
_WALKS = {
    "uniform": "uniform walk",
    "weighted": "weighted walk",
    "gossip": "asynchronous gossip",
    "normalised": "uniform walk, ĝ = (L̄ / L) ∇f",
    "private": "weighted walk, clamped Gamma (3, 0.03)",
}
# A colour for each mechanism; dashed where gradients are weighted by the true L, as printed.
_FIGURE_3 = {
    "uniform": ("uniform walk: releases nothing", 0, "-"),
    "weighted": ("weighted walk: not private", 6, "-"),
    "gamma-released": ("clamped Gamma (3, 0.03), released weights", 1, "-"),
    "gamma-printed": ("clamped Gamma (3, 0.03), as printed", 1, "--"),
    "laplace-released": ("clamped Laplace (3, 0), released weights", 2, "-"),
    "laplace-printed": ("clamped Laplace (3, 0), as printed", 2, "--"),
    "laplace-unclamped": ("unclamped Laplace (3, 0), as printed", 2, ":"),
    "gamma-equal-released": ("unclamped Gamma, Laplace's variance, released weights", 3, "-"),
    "gamma-equal-printed": ("unclamped Gamma, Laplace's variance, as printed", 3, "--"),
}


def figure_2(results: Results) -> Figure:
    """A column for each W, a row for each dimension and step: what the paper leaves open."""
    curves = Curves(results)
    rows = [(d, step_size) for d in (2, 10) for step_size in _STEPS]
    figure, panels = figure_of(len(rows), len(_DOMAINS), width=3.6, height=2.5)
    for row, (d, step_size) in zip(panels, rows, strict=True):
        for axes, (domain, title) in zip(row, _DOMAINS.items(), strict=True):
            draw_methods(axes, curves, ("er", f"d{d}-{domain}", step_size))
            axes.set_title(f"d = {d}, {title}, {_STEPS[step_size]}", fontsize="small")
    share_labels(panels)
    explain(figure, curves, _WALKS)
    return figure


def figure_3(results: Results) -> Figure:
    """A column for each dimension, a row for each step; the δ that the equal Gamma really has."""
    curves = Curves(results)
    study, facts = curves.study, results.facts()
    figure, panels = figure_of(len(study.step_sizes), len(study.problems), width=5.0, height=3.3)
    for row, step_size in zip(panels, study.step_sizes, strict=True):
        for axes, problem in zip(row, study.problems, strict=True):
            for method, (label, number, line) in _FIGURE_3.items():
                columns = curves.get("er", problem, method, step_size)
                if columns is not None:
                    draw_line(axes, columns, "updates", study.metric, number, label=label,
                              linestyle=line, band=0.07)  # fmt: skip
            axes.set(xscale="log", yscale="log")
            dress(axes, "updates", ERRORS[study.metric])
            cell = (facts["method"] == "gamma-equal-released") & (facts["problem"] == problem)
            low, high, delta = facts.loc[
                cell, ["bounds_low", "bounds_high", "achieved_delta"]
            ].max()
            axes.set_title(
                f"{problem.replace('d', 'd = ')}, {_STEPS[step_size]}, ρ = {high / low:,.0f}: the "
                f"unclamped Gamma\nof Laplace's variance has δ = {delta:.2f} at ε = 3",
                fontsize="small",
            )
    share_labels(panels)
    explain(figure, curves, columns=2)
    return figure


def heterogeneous(results: Results) -> Figure:
    """A row for targets with and without noise, a column for the horizon of the tuning."""
    curves = Curves(results)
    study = curves.study
    figure, panels = figure_of(len(study.problems), len(study.step_sizes), width=4.0, height=3.2)
    for row, problem in zip(panels, study.problems, strict=True):
        for axes, (name, steps) in zip(row, study.step_sizes.items(), strict=True):
            draw_methods(axes, curves, ("er", problem, name))
            horizon = min(steps["tuning_updates"], study.updates)
            axes.axvline(horizon, color="grey", linestyle=":", linewidth=1)
            axes.set_title(f"{problem} targets, tuned for {horizon:,} updates", fontsize="medium")
    share_labels(panels)
    explain(figure, curves, _WALKS)
    return figure


def real_data(results: Results) -> Figure:
    """A column for each data set; above against updates, below against messages."""
    curves = Curves(results)
    figure, panels = figure_of(2, len(curves.study.problems), width=3.8, height=3.0)
    for row, cost in zip(panels, ("updates", "messages"), strict=True):
        for axes, problem in zip(row, curves.study.problems, strict=True):
            draw_methods(axes, curves, ("er", problem, "tuned"), x=cost)
            axes.set_title(problem)
    explain(figure, curves, _WALKS)
    return figure


def slope(results: Results) -> Figure:
    """A colour for each exponent, solid uniform and dashed weighted, with the theorems' slopes."""
    curves = Curves(results)
    study = curves.study
    figure, panels = figure_of(1, len(study.problems), width=5.0, height=4.2)
    for axes, problem in zip(panels[0], study.problems, strict=True):
        for number, (name, steps) in enumerate(study.step_sizes.items()):
            for method, line in zip(study.methods, ("-", "--"), strict=True):
                columns = curves.get("er", problem, method, name)
                if columns is not None:
                    label = f"q = {steps['exponent']:g}, {method}"
                    draw_line(axes, columns, "updates", study.metric, number, linestyle=line,
                              label=label)  # fmt: skip
            promised = curves.get("er", problem, "uniform", name)
            if promised is not None:
                k, last = promised["updates"], promised[f"{study.metric} mean"][-1]
                late = k >= 0.1 * k[-1]
                guide = last * (k[late] / k[-1]) ** (steps["exponent"] - 1.0)
                axes.plot(k[late], guide, color=colour(number), linestyle=":", linewidth=2.5)
        axes.set(xscale="log", yscale="log", title=f"{problem} objective")
        dress(axes, "updates", r"$f(\bar{w}) - f^*$")
        axes.plot([], [], color="grey", linestyle=":", linewidth=2.5, label=r"slope $-(1-q)$")
    explain(figure, curves)
    return figure
