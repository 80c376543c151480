"""Who wins where: the ratios of a study's verdicts over two numbers that set its problems apart."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from walklearn.studies.report.bands import METRIC_SYMBOLS
from walklearn.studies.report.figures import Block, Control, Figure, Series
from walklearn.studies.report.final_errors import Tables, axis_label

if TYPE_CHECKING:
    import pandas

#: Colours tell ratios apart up to 4, or up to 1,000 where most are beyond 4; powers of two.
_NEAR = {"¼": -2.0, "½": -1.0, "1": 0.0, "2": 1.0, "4": 2.0}
_FAR = {
    label: power * math.log2(10.0)
    for power, label in enumerate(("≤ 0.001", "0.01", "0.1", "1", "10", "100", "≥ 1,000"), -3)
}

SHOWN = ("x", "y", "ratio", "lower", "upper", "verdict", "problem", "file")


def win_map(
    problems: Tables,
    verdicts: pandas.DataFrame,
    axes: tuple[str, str],
    file_of: Callable[[str], str],
) -> Block | None:
    """Describe a map for each graph and step size, with a switch between the comparisons."""
    if verdicts.empty or not (verdicts["kind"] == "beats").any():
        return None
    file = file_of("verdicts.parquet")
    rows = verdicts.assign(
        x=[problems[str(problem)][axes[0]] for problem in verdicts["problem"]],
        y=[problems[str(problem)][axes[1]] for problem in verdicts["problem"]],
        file=[f"{file}, row {place}" for place in range(len(verdicts))],
        view=[
            f"{worse} ÷ {better}: {METRIC_SYMBOLS[metric]} at {at:,.0f} {cost}"
            for worse, better, metric, at, cost in zip(
                *(verdicts[name] for name in ("worse", "better", "metric", "at", "cost")),
                strict=True,
            )
        ],
    )
    rows = rows[rows["kind"] == "beats"].sort_values(["x", "y"], kind="stable")
    grouped = rows.groupby(["graph", "step_size"], sort=False)
    marks = _FAR if (~rows["ratio"].between(0.25, 4.0)).mean() > 0.5 else _NEAR
    figures = [
        Figure(
            f"{graph} · {step_size}" if grouped.ngroups > 1 else "",
            [
                Series(str(view), {name: part[name] for name in SHOWN}, file, {"view": str(view)})
                for view, part in panel.groupby("view", sort=False)
            ],
        )
        for (graph, step_size), panel in grouped
    ]
    return Block(
        kind="map",
        heading="Who wins where",
        caption=(
            "Each cell is a verdict of the table above: the ratio and its 95 % interval. Above 1 "
            "(warm) the method after ÷ is better, below 1 (cold) the one before it."
        ),
        controls=[Control("view", "Comparison", {view: view for view in rows["view"].unique()})],
        figures=figures,
        legend=False,
        options={
            "x_label": axis_label(axes[0]),
            "y_label": axis_label(axes[1]),
            "scale": {"title": "ratio", "reach": max(marks.values()), "marks": marks},
        },
    )


def map_axes(problems: Tables) -> tuple[str, str] | None:
    """The two numbers that problems form a full grid over, if nothing else sets them apart.

    >>> map_axes({f"{s}{n}": {"spread": s, "noise": n} for s in (0.5, 1.0) for n in (0, 1, 2)})
    ('spread', 'noise')
    """
    tables = list(problems.values())
    keys = dict.fromkeys(key for table in tables for key in table)
    values = {key: {repr(table.get(key)) for table in tables} for key in keys}
    differing = [key for key in keys if len(values[key]) > 1]
    if len(differing) != 2 or not all(
        isinstance(table.get(key), int | float) for table in tables for key in differing
    ):
        return None
    x, y = differing
    return (x, y) if len(values[x]) * len(values[y]) == len(tables) > 3 else None
