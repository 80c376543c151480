"""Communication to a target error: how many instances got there for how many messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from walklearn.experiments.pictures.panels import Curves, figure_of, share_labels
from walklearn.plot.axes import colour, dress
from walklearn.studies.curves import cost_of, runs_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from walklearn.studies import Results


def communication(results: Results) -> Figure:
    """A row for each target, a column for each graph and problem: share of instances there."""
    curves, facts = Curves(results), results.facts()
    study = curves.study
    targets = sorted({claim.target for claim in study.claims}, reverse=True)
    columns = [(graph, problem) for graph in study.graphs for problem in study.problems]
    figure, panels = figure_of(len(targets), len(columns), width=3.5, height=2.9)
    for axes in panels.flat:
        axes.sharex(panels[0][0])
    norms = facts.groupby(["graph", "problem", "instance"])["optimum_norm"].first()
    for row, target in zip(panels, targets, strict=True):
        for axes, (graph, problem) in zip(row, columns, strict=True):
            for number, method in enumerate(study.methods):
                runs = runs_of(
                    curves.records(graph, problem, method, "tuned"), "messages", "distance"
                )
                norm = norms.loc[graph, problem].reindex(runs.instances.tolist()).to_numpy()
                spent = np.sort(cost_of(runs.costs, runs.errors, target * norm))
                share = np.arange(1, len(spent) + 1) / len(spent)
                there = np.isfinite(spent)
                end = runs.costs[:, -1].mean()
                axes.step(
                    np.append(spent[there], end), np.append(share[there], there.mean()),
                    where="post", color=colour(number), linewidth=1.8, label=method,
                )  # fmt: skip
            axes.set(xscale="log", ylim=(-0.02, 1.02),
                     title=f"{graph}, {problem}, to {target:g} ‖w*‖")  # fmt: skip
            dress(axes, "messages", "share of instances there")
    share_labels(panels)
    lines, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    figure.supxlabel(
        f"{study.instances} instances, up to {study.updates:,} updates each; steps tuned",
        fontsize="small", color="#555555",
    )  # fmt: skip
    return figure
