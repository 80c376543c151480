"""Pictures over graphs: do constants rank them, and how do mixing and entrapment show?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from walklearn.experiments.pictures.panels import (
    ERRORS,
    Curves,
    draw_methods,
    explain,
    figure_of,
    share_labels,
)
from walklearn.plot.axes import colour, dress

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

    from walklearn.studies import Results


_MARKERS = "os^vD<>Pp"


def bounds(results: Results) -> Figure:
    """Final error against mixing time, a point per graph; the rank correlations in words."""
    curves, facts, verdicts = Curves(results), results.facts(), results.verdicts()
    study = curves.study
    columns = [(problem, step) for problem in study.problems for step in study.step_sizes]
    figure, panels = figure_of(len(study.methods), len(columns), width=3.6, height=3.1)
    for row, method in zip(panels, study.methods, strict=True):
        for axes, (problem, step_size) in zip(row, columns, strict=True):
            for number, graph in enumerate(study.graphs):
                found = curves.get(graph, problem, method, step_size)
                if found is None:
                    continue
                x = _fact(facts, graph, problem, method, step_size, "mixing_time")
                mean, *ends = (
                    found[f"{study.metric} mean{end}"][-1] for end in ("", " lower", " upper")
                )
                spread = [[mean - ends[0]], [ends[1] - mean]]
                axes.errorbar(x, mean, yerr=spread, fmt=_MARKERS[number], color=colour(number),
                              markersize=6, label=graph)  # fmt: skip
            axes.set(xscale="log", yscale="log")
            axes.margins(0.1)
            dress(axes, "mixing time, steps", ERRORS[study.metric])
            said = _correlations(verdicts, problem, step_size, method)
            axes.set_title(f"{method} walk, {problem}, {step_size}\n{said}", fontsize="small")
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    figure.supxlabel(
        f"{study.updates:,} updates, mean over {study.instances} instances with its 95 % interval; "
        "ρ: Spearman's rank correlation over the graphs", fontsize="small", color="#555555",
    )  # fmt: skip
    return figure


def _fact(
    facts: pandas.DataFrame, graph: str, problem: str, method: str, step_size: str, name: str
) -> float:
    cell: Any = (
        (facts["graph"] == graph) & (facts["problem"] == problem)
        & (facts["method"] == method) & (facts["step_size"] == step_size)
    )  # fmt: skip
    return float(facts.loc[cell, name].mean())


def _correlations(verdicts: pandas.DataFrame, problem: str, step_size: str, method: str) -> str:
    rows = verdicts[
        (verdicts["problem"] == problem) & (verdicts["step_size"] == step_size)
        & (verdicts["better"] == method)
    ]  # fmt: skip
    last = rows[rows["at"] == rows["at"].max()]
    names = {"bound": "theorem's constant", "mixing_time": "mixing time"}
    return "\n".join(
        f"ρ({names[by]}) = {ratio:.2f}"
        for by, ratio in zip(last["worse"], last["ratio"], strict=True)
    )


def topologies(results: Results) -> Figure:
    """A column for each graph, a row for each problem; mixing times in the titles."""
    curves, facts = Curves(results), results.facts()
    study = curves.study
    figure, panels = figure_of(len(study.problems), len(study.graphs), width=3.3, height=3.0)
    for row, problem in zip(panels, study.problems, strict=True):
        for axes, graph in zip(row, study.graphs, strict=True):
            draw_methods(axes, curves, (graph, problem, "tuned"))
            times = [
                _fact(facts, graph, problem, method, "tuned", "mixing_time")
                for method in ("uniform", "weighted")
            ]
            axes.set_title(
                f"{graph}, {problem}\nmixing time {times[0]:,.0f}, weighted {times[1]:,.0f}",
                fontsize="small",
            )
        lowest = min(axes.get_ylim()[0] for axes in row)
        highest = max(axes.get_ylim()[1] for axes in row)
        for axes in row:
            axes.set_ylim(lowest, highest)
    share_labels(panels)
    explain(figure, curves)
    return figure
