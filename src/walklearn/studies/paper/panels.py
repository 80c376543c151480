"""The picture of each shipped study: figures of its page, arranged in a grid.

>>> sorted(PICTURES)[:3]
['bounds', 'communication', 'fig2a']
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from walklearn.plots.axes import COLOURS
from walklearn.privacy.accounting.printing import format_upper
from walklearn.studies.claims import PREDICTIONS
from walklearn.studies.report.bands import INTERVAL, controls
from walklearn.studies.report.figures import Block, Figure, Series
from walklearn.studies.report.final_errors import scatter, tradeoff
from walklearn.studies.report.pictures import Picture
from walklearn.studies.report.spending import convergence, cost
from walklearn.studies.report.win_map import win_map
from walklearn.wording import plural

if TYPE_CHECKING:
    from walklearn.studies.report.sections import StoredResults

#: Numbers of series: a colour, plus one of these for another dash.
DASHED, DOTTED = len(COLOURS), 3 * len(COLOURS)
BLACK = len(COLOURS) - 1

# A colour for each mechanism; dashed where gradients are weighted by the true L, as printed.
_FIGURE_3 = {
    "uniform": 0,
    "weighted": BLACK,
    "gamma-released": 1,
    "gamma-printed": DASHED + 1,
    "laplace-released": 2,
    "laplace-printed": DASHED + 2,
    "laplace-unclamped": DOTTED + 2,
    "gamma-equal-released": 3,
    "gamma-equal-printed": DASHED + 3,
}
# The paper's walks in two blues, SGD with gap weights in green, SAGA and Finito in warm colours,
# gossip in black. More dashes stand for more tokens.
_METHODS = {
    "sgd-uniform": 0,
    "sgd-weighted": 5,
    "sgd-simple": DASHED + 2,
    "sgd-oldest": 2,
    "saga-uniform": 4,
    "finito-1": 1,
    "finito-4": DASHED + 1,
    "finito-16": DOTTED + 1,
    "gossip": BLACK,
    "tracking": DASHED + BLACK,
}
# A colour for each update; dashed for the smaller ε.
_MEMORY_PRIVATE = {"sgd-1": DASHED, "saga-1": DASHED + 1, "sgd-3": 0, "saga-3": 1}


def figure_3(stored: StoredResults) -> Picture:
    """A panel for each problem and step; titles have the δ of the unclamped Gamma."""
    block = _curves(stored, styles=_FIGURE_3)
    equal = stored.facts[stored.facts["method"] == "gamma-equal-released"].groupby("problem")
    bounds = equal[["bounds_low", "bounds_high", "achieved_delta"]].max()

    def with_title(figure: Figure) -> Figure:
        low, high, delta = bounds.loc[[figure.shared["problem"]]].to_numpy()[0]
        title = (
            f"{figure.title}, ρ = {high / low:,.0f}: the unclamped Gamma of Laplace's variance "
            f"has δ = {format_upper(delta, 2)} at ε = 3"
        )
        return replace(figure, title=title)

    figures = [with_title(figure) for figure in block.figures]
    return Picture([replace(block, figures=figures)], 2, (5.0, 3.3))


def slope(stored: StoredResults) -> Picture:
    """A colour for each exponent, solid uniform and dashed weighted, and the theorems' slopes."""
    study, block = stored.results.study, _curves(stored)
    _, error = block.axes
    figures, styles = [], {}
    for problem in study.problems:
        lines = []
        for number, (name, steps) in enumerate(study.step_sizes.items()):
            q = steps["exponent"]
            panel = block.panel(f"{problem} objective", problem=problem, step_size=name)
            lines += [replace(one, name=f"q = {q:g}, {one.name}") for one in panel.series]
            lines.append(_predicted(f"slope −(1 − {q:g})", panel.series[0], error, q - 1.0))
            for one, dash in zip(lines[-3:], (0, DASHED, DOTTED), strict=True):
                styles[one.name] = number + dash
        figures.append(replace(panel, series=lines))
    return Picture([replace(block, figures=figures, styles=styles)], len(figures), (5.0, 4.2))


def _predicted(name: str, line: Series, error: str, exponent: float) -> Series:
    """The last tenth of a line with the slope of the theorems."""
    k, last = line.numbers("updates"), line.numbers(error)[-1]
    late = k[k >= 0.1 * k[-1]]
    columns = {"updates": late, error: last * (late / k[-1]) ** exponent}
    return replace(line, name=name, columns=columns)


def bounds(stored: StoredResults) -> Picture:
    """A row per prediction and walk, a column per problem and step, a colour per graph."""
    study = stored.results.study
    caption = (
        f"{_size(stored)} A point per graph. Across: mean over the instances, from the facts of "
        f"the same cell. Up: the last record. Bar: {INTERVAL}. ρ: Spearman's rank correlation."
    )
    blocks, styles = [], {graph: number for number, graph in enumerate(study.graphs)}
    for fact in PREDICTIONS:
        block = scatter(stored.cells, study.metric, fact)
        if block is None:
            continue
        figures = [
            replace(
                figure, title=_ranked(stored, fact, one.name, figure.shared), series=_points(one)
            )
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


def _ranked(stored: StoredResults, fact: str, method: str, of: Mapping[str, str]) -> str:
    """Return the title of a panel, with the rank correlation of prediction and error if judged."""
    title = f"{method} walk, {of['problem']}, {of['step_size']}"
    rows = stored.verdicts
    for name, value in {**of, "better": method, "worse": fact}.items():
        rows = rows[rows[name] == value] if name in rows else rows
    return title if rows.empty else f"{title}: ρ = {rows.sort_values('at')['ratio'].iloc[-1]:.2f}"


def price(stored: StoredResults) -> Picture:
    """A panel for each reweighting: a colour per mechanism, a level per walk without noise."""
    study = stored.results.study
    block = tradeoff(stored.cells, study.methods, study.metric, "epsilon")
    (figure,) = block.figures
    titles = {"-printed": "released weights R̄ / R", "-released": "printed weights L̄ / L"}
    kinds = {name: name.removesuffix("-printed").removesuffix("-released") for name in block.names}
    colours = list(dict.fromkeys(kinds.values()))
    return Picture(
        [
            replace(
                block,
                caption=f"{_size(stored)} {block.caption}",
                figures=[
                    replace(figure, title=title,
                            series=[one for one in figure.series if other not in one.name])
                    for other, title in titles.items()
                ],
                styles={name: colours.index(kind) for name, kind in kinds.items()},
            )
        ],
        2,
        (4.8, 4.0),
    )  # fmt: skip


def communication(stored: StoredResults) -> Picture:
    """A panel for each graph and problem: the median cost of each target, by method."""
    block = cost(stored.cells, stored.results.study.claims)
    assert block is not None, "the study names targets"
    caption = f"{_size(stored)} Steps tuned. {block.caption}"
    return Picture([stored.with_titles(replace(block, caption=caption))], 2, (5.0, 3.6))


def methods(stored: StoredResults) -> Picture:
    """A column for each problem, a row for each graph; medians against time."""
    block = _curves(stored, cost="time", centre="median", styles=_METHODS)
    graphs = stored.words["graph"]
    figures = [
        replace(figure, title=f"{graphs[figure.shared['graph']]} · {figure.shared['problem']}")
        for figure in block.figures
    ]
    block = replace(block, figures=figures)
    return Picture([block], len(stored.results.study.problems), (3.7, 3.0))


def real_data(stored: StoredResults) -> Picture:
    """A column for each data set; above against updates, below against messages."""
    blocks = [_curves(stored, cost=name) for name in ("updates", "messages")]
    return Picture(blocks, len(blocks[0].figures), (3.8, 3.0))


def ratios(stored: StoredResults) -> Picture:
    """A panel for each comparison; colour and number are the ratio, the mark is the verdict."""
    block = win_map(
        stored.results.study.problems, stored.verdicts, ("spread", "noise"), stored.file_of
    )
    assert block is not None, "the study compares walks"
    (figure,) = block.figures
    figures = [Figure(one.name, [replace(one, keys={})]) for one in figure.series]
    caption = (
        f"{_size(stored)} Ratio of means over its 95 % interval; ✓ the second wins (above 1, "
        "warm), ✗ the first does, ? undecided."
    )
    changed = replace(block, figures=figures, controls=[], caption=caption)
    return Picture([changed], len(figures), (5.2, 4.0))


def _curves(
    stored: StoredResults, *, cost: str = "updates", centre: str = "mean", **changes: Any
) -> Block:
    """Return the convergence curves of a study, with titles in words."""
    metric = stored.results.study.metric
    block = convergence(stored.cells, metric)
    return stored.with_titles(replace(block, controls=controls(metric, cost, centre), **changes))


def _grid(
    stored: StoredResults, columns: int, panel: tuple[float, float], **changes: Any
) -> Picture:
    """Return the convergence curves in a grid."""
    return Picture([_curves(stored, **changes)], columns, panel)


def _size(stored: StoredResults) -> str:
    study = stored.results.study
    return f"{plural(study.instances, 'instance')} of {plural(study.updates, 'update')}."


#: Panels of curves are in the order of graphs, problems and step sizes.
PICTURES: dict[str, Callable[[StoredResults], Picture]] = {
    "fig2a": partial(_grid, columns=3, panel=(3.8, 2.5)),
    "fig2b": partial(_grid, columns=3, panel=(3.8, 2.5)),
    "fig3": figure_3,
    "slope": slope,
    "bounds": bounds,
    "heterogeneous": partial(_grid, columns=3, panel=(4.0, 3.2)),
    "map": ratios,
    "topologies": partial(_grid, columns=2, panel=(5.0, 2.6)),
    "price": price,
    "communication": communication,
    "methods": methods,
    "memory-private": partial(_grid, columns=2, panel=(4.6, 3.6), styles=_MEMORY_PRIVATE),
    "real-data": real_data,
}
