"""How each shipped study is pictured: its figures, arranged and named as the paper does.

The figures are those of the report's page, from the same summaries; here their panels are chosen,
put side by side and given titles, and `walklearn.studies.report.pictures` draws them.

>>> sorted(PICTURES)[:3]
['bounds', 'communication', 'fig2a']
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from walklearn.plots.axes import COLOURS
from walklearn.privacy.accounting.printing import format_upper
from walklearn.studies.claims import PREDICTIONS
from walklearn.studies.report.bands import INTERVAL, centre_control, cost_control, metric_control
from walklearn.studies.report.figures import Block, Figure, Series
from walklearn.studies.report.final_errors import scatter, tradeoff
from walklearn.studies.report.pictures import Picture
from walklearn.studies.report.spending import convergence, cost
from walklearn.studies.report.win_map import win_map
from walklearn.wording import plural

if TYPE_CHECKING:
    from walklearn.studies.report.sections import Stored

#: Numbers of series: a colour, and from one of these on with another dash.
DASHED, DOTTED = len(COLOURS), 3 * len(COLOURS)
BLACK = len(COLOURS) - 1

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
    "uniform": ("uniform walk: releases nothing", 0),
    "weighted": ("weighted walk: not private", BLACK),
    "gamma-released": ("clamped Gamma (3, 0.03), released weights", 1),
    "gamma-printed": ("clamped Gamma (3, 0.03), as printed", DASHED + 1),
    "laplace-released": ("clamped Laplace (3, 0), released weights", 2),
    "laplace-printed": ("clamped Laplace (3, 0), as printed", DASHED + 2),
    "laplace-unclamped": ("unclamped Laplace (3, 0), as printed", DOTTED + 2),
    "gamma-equal-released": ("unclamped Gamma, Laplace's variance, released weights", 3),
    "gamma-equal-printed": ("unclamped Gamma, Laplace's variance, as printed", DASHED + 3),
}
# The paper's walks in two blues, gossip in greens, and warm what remembers; others are on the page.
_MEMORY = {
    "sgd-uniform": ("uniform walk, the paper's update", 0),
    "sgd-weighted": ("weighted walk, the paper's update", 5),
    "gossip": ("asynchronous gossip", 2),
    "tracking": ("gossip with gradient tracking", DASHED + 2),
    "saga-uniform": ("uniform walk with memory (SAGA)", 1),
    "saga-history": ("history-driven walk with memory (SAGA)", DASHED + 1),
}
_LEVELS = {"uniform": "uniform walk, no noise", "weighted": "weighted walk, no noise"}
_REWEIGHTINGS = {"released": "released weights R̄ / R", "printed": "printed weights L̄ / L"}


def figure_2(stored: Stored) -> Picture:
    """A column for each W, a row for each dimension and step: what the paper leaves open."""
    block = _curves(stored)
    figures = [
        block.panel(f"d = {d}, {title}, {said}", problem=f"d{d}-{domain}", step_size=step_size)
        for d in (2, 10)
        for step_size, said in _STEPS.items()
        for domain, title in _DOMAINS.items()
    ]
    return _grid(block, figures, len(_DOMAINS), (3.6, 2.5))


def figure_3(stored: Stored) -> Picture:
    """A column for each dimension, a row for each step; the δ that the equal Gamma really has."""
    study, facts = stored.results.study, stored.facts
    block = _curves(stored, {name: label for name, (label, _) in _FIGURE_3.items()})
    figures = []
    for step_size in study.step_sizes:
        for problem in study.problems:
            cell = (facts["method"] == "gamma-equal-released") & (facts["problem"] == problem)
            columns = ["bounds_low", "bounds_high", "achieved_delta"]
            low, high, delta = facts.loc[cell, columns].max()
            title = (
                f"{problem.replace('d', 'd = ')}, {_STEPS[step_size]}, ρ = {high / low:,.0f}: the "
                f"unclamped Gamma\nof Laplace's variance has δ = {format_upper(delta, 2)} at ε = 3"
            )
            figures.append(block.panel(title, problem=problem, step_size=step_size))
    return _grid(block, figures, len(study.problems), (5.0, 3.3), styles=dict(_FIGURE_3.values()))


def slope(stored: Stored) -> Picture:
    """A colour for each exponent, solid uniform and dashed weighted, with the theorems' slopes."""
    study, block = stored.results.study, _curves(stored, {})
    _, error = block.axes
    figures, styles = [], {}
    for problem in study.problems:
        lines = []
        for number, (name, steps) in enumerate(study.step_sizes.items()):
            panel = block.panel(f"{problem} objective", problem=problem, step_size=name)
            for one, dash in zip(panel.series, (0, DASHED), strict=True):
                lines.append(replace(one, name=f"q = {steps['exponent']:g}, {one.name}"))
                styles[lines[-1].name] = number + dash
            promised = f"slope −(1 − {steps['exponent']:g})"
            lines.append(_promised(promised, panel.series[0], error, steps["exponent"] - 1.0))
            styles[promised] = number + DOTTED
        figures.append(replace(panel, series=lines))
    return _grid(block, figures, len(study.problems), (5.0, 4.2), styles=styles)


def _promised(name: str, line: Series, error: str, exponent: float) -> Series:
    """The last tenth of a line as it would be if it fell as fast as the theorems say."""
    k, last = line.numbers("updates"), line.numbers(error)[-1]
    late = k[k >= 0.1 * k[-1]]
    return replace(
        line, name=name, columns={"updates": late, error: last * (late / k[-1]) ** exponent}
    )


def heterogeneous(stored: Stored) -> Picture:
    """A row for targets with and without noise, a column for the horizon of the tuning."""
    study, block = stored.results.study, _curves(stored)
    _, error = block.axes
    figures = []
    for problem in study.problems:
        for name, steps in study.step_sizes.items():
            horizon = min(steps["tuning_updates"], study.updates)
            title = f"{problem} targets, tuned for {horizon:,} updates"
            panel = block.panel(title, problem=problem, step_size=name)
            heights = np.concatenate([one.numbers(error) for one in panel.series])
            columns = {"updates": [horizon] * 2, error: [np.nanmin(heights), np.nanmax(heights)]}
            mark = Series("what steps are tuned for", columns, panel.series[0].source)
            figures.append(replace(panel, series=[*panel.series, mark]))
    styles = {mark.name: DOTTED + BLACK}
    return _grid(block, figures, len(study.step_sizes), (4.0, 3.2), styles=styles)


def real_data(stored: Stored) -> Picture:
    """A column for each data set; above against updates, below against messages."""
    blocks = [_curves(stored, cost=cost) for cost in ("updates", "messages")]
    return Picture(blocks, len(blocks[0].figures), (3.8, 3.0))


def bounds(stored: Stored) -> Picture:
    """A row per prediction and walk, a column per problem and step, a colour per graph."""
    study = stored.results.study
    caption = (
        f"{_size(stored)} A point per graph. Across: mean over the instances, from the facts of "
        f"the same cell. Up: the last record. Bar: {INTERVAL}. ρ: Spearman's rank correlation."
    )
    blocks, styles = [], {graph: number for number, graph in enumerate(study.graphs)}
    for fact in PREDICTIONS:
        block = scatter(stored.cells, stored.facts, study.metric, fact)
        if block is None:
            continue
        figures = [
            replace(figure, title=_ranked(stored, fact, one.name, figure.of), series=_points(one))
            for method in study.methods
            for figure in block.figures
            for one in figure.series
            if one.name == method
        ]
        options = {**block.options, "mode": "markers"}  # labels of equal constants would overlap
        blocks.append(
            replace(block, figures=figures, caption=caption, options=options, styles=styles)
        )
    return Picture(blocks, len(study.problems) * len(study.step_sizes), (3.2, 2.6))


def _points(line: Series) -> list[Series]:
    """Return a series for each point, named by its label."""
    return [
        replace(line, name=str(label), columns={name: list(values)[place : place + 1]
                                                for name, values in line.columns.items()})
        for place, label in enumerate(line.columns["label"])
    ]  # fmt: skip


def _ranked(stored: Stored, fact: str, method: str, of: Mapping[str, str]) -> str:
    """Return the title of a panel, with the rank correlation of prediction and error if judged."""
    title = f"{method} walk, {of['problem']}, {of['step_size']}"
    rows = stored.verdicts
    for name, value in {**of, "better": method, "worse": fact}.items():
        rows = rows[rows[name] == value] if name in rows else rows
    return title if rows.empty else f"{title}\nρ = {rows.sort_values('at')['ratio'].iloc[-1]:.2f}"


def topologies(stored: Stored) -> Picture:
    """A column for each graph, a row for each problem; mixing times in the titles."""
    study, block = stored.results.study, _curves(stored, {})
    times = stored.facts.groupby(["graph", "problem", "method"])["mixing_time"].mean()
    figures = [
        block.panel(
            f"{graph}, {problem}\nmixing time {times[graph, problem, 'uniform']:,.0f}, "
            f"weighted {times[graph, problem, 'weighted']:,.0f}",
            graph=graph,
            problem=problem,
        )
        for problem in study.problems
        for graph in study.graphs
    ]
    return _grid(block, figures, len(study.graphs), (3.3, 3.0), share_y="row")


def price(stored: Stored) -> Picture:
    """A panel for each reweighting: a line per mechanism, a level per walk that is not private."""
    study = stored.results.study
    block = tradeoff(stored.cells, study.methods, study.metric, "epsilon")
    (figure,) = block.figures
    levels = [replace(one, name=_LEVELS[one.name]) for one in figure.series if one.name in _LEVELS]
    figures = []
    for reweighting, title in _REWEIGHTINGS.items():
        private = [
            replace(one, name=kind)
            for one in figure.series
            for kind, found, _ in [one.name.partition(f"-{reweighting}")]
            if found
        ]
        figures.append(replace(figure, title=title, series=[*private, *levels]))
    black = dict(zip(_LEVELS.values(), (DASHED + BLACK, DOTTED + BLACK), strict=True))
    caption = f"{_size(stored)} {block.caption}"
    return _grid(block, figures, 2, (4.8, 4.0), styles=black, caption=caption)


def communication(stored: Stored) -> Picture:
    """A panel for each graph and problem: the median cost of each target, by method."""
    block = cost(stored.cells, stored.facts, stored.results.study.claims)
    assert block is not None, "the study names targets"
    caption = f"{_size(stored)} Steps tuned. {block.caption}"
    return _grid(block, _titled(block, "{graph}, {problem}"), 2, (5.0, 3.6), caption=caption)


def memory(stored: Stored) -> Picture:
    """A column for each problem, a row for each graph; medians of a few methods of the many."""
    names, styles = {name: label for name, (label, _) in _MEMORY.items()}, dict(_MEMORY.values())
    block = _curves(stored, names, centre="median")
    figures = [
        replace(figure, series=[one for one in figure.series if one.name in styles])
        for figure in _titled(block, "{graph}, {problem}")
    ]
    columns = len(stored.results.study.problems)
    return _grid(block, figures, columns, (3.7, 3.0), styles=styles)


def memory_private(stored: Stored) -> Picture:
    """A panel for each kind of steps: a colour for each update, solid ε = 3 and dashed ε = 1."""
    updates = {"sgd": "the paper's update", "saga": "SAGA"}
    names, styles = {}, {}
    for number, (update, said) in enumerate(updates.items()):
        for epsilon, dash in ((3, 0), (1, DASHED)):
            label = f"{said}, ε = {epsilon}"
            names[f"{update}-{epsilon}"], styles[label] = label, number + dash
    block = _curves(stored, names)
    figures = _titled(block, "{step_size} steps, tuned")
    return _grid(block, figures, len(figures), (4.6, 3.6), styles=styles, share_y="row")


def who_wins(stored: Stored) -> Picture:
    """A panel for each comparison; colour and number are the ratio, the mark is the verdict."""
    study = stored.results.study
    block = win_map(study.problems, stored.verdicts, ("spread", "noise"), stored.file_of)
    assert block is not None, "the study compares walks"
    (figure,) = block.figures
    figures = [replace(figure, title=one.name, series=[replace(one, keys={})])
               for one in figure.series]  # fmt: skip
    caption = (
        f"{_size(stored)} Ratio of means over its 95 % interval; ✓ the second wins (above 1, "
        "warm), ✗ the first does, ? undecided."
    )
    labels = {"x_label": "spread of ln ‖x‖", "y_label": "noise of the targets"}
    options = {**block.options, **labels}
    return _grid(
        block, figures, len(figures), (5.2, 4.0), controls=[], caption=caption, options=options
    )


def _curves(
    stored: Stored,
    names: Mapping[str, str] = _WALKS,
    *,
    cost: str = "updates",
    centre: str = "mean",
) -> Block:
    """Return the convergence curves of a study with its methods renamed."""
    metric = stored.results.study.metric
    block = convergence(stored.cells, metric)
    figures = [
        replace(figure, series=[replace(one, name=names.get(one.name, one.name))
                                for one in figure.series])
        for figure in block.figures
    ]  # fmt: skip
    controls = [metric_control(metric), cost_control(cost), centre_control(centre)]
    return replace(block, figures=figures, controls=controls)


def _titled(block: Block, title: str) -> list[Figure]:
    """Return the panels with titles made from their keys, such as "{graph}, {problem}"."""
    return [replace(figure, title=title.format(**figure.of)) for figure in block.figures]


def _grid(
    block: Block,
    figures: Sequence[Figure],
    columns: int,
    panel: tuple[float, float],
    *,
    share_y: Literal["none", "row"] = "none",
    **changes: Any,
) -> Picture:
    """The picture of a block with these panels and other changes."""
    return Picture([replace(block, figures=figures, **changes)], columns, panel, share_y)


def _size(stored: Stored) -> str:
    study = stored.results.study
    return f"{plural(study.instances, 'instance')} of {plural(study.updates, 'update')}."


PICTURES: dict[str, Callable[[Stored], Picture]] = {
    "fig2a": figure_2,
    "fig2b": figure_2,
    "fig3": figure_3,
    "slope": slope,
    "bounds": bounds,
    "heterogeneous": heterogeneous,
    "map": who_wins,
    "topologies": topologies,
    "price": price,
    "communication": communication,
    "memory": memory,
    "memory-private": memory_private,
    "real-data": real_data,
}
