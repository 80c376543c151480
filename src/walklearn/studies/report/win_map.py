"""The ratios of a study's verdicts as a map over two numbers of its problems."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from walklearn.checks import is_number
from walklearn.studies.report.bands import METRIC_SYMBOLS
from walklearn.studies.report.figures import Block, Control, Figure, Series
from walklearn.studies.report.final_errors import Tables, axis_label

if TYPE_CHECKING:
    import pandas

#: The colour scale ends at 4, or at 1,000 if most ratios are beyond 4; values are powers of two.
_NEAR = {"¼": -2.0, "½": -1.0, "1": 0.0, "2": 1.0, "4": 2.0}
_FAR = {
    label: power * math.log2(10.0)
    for power, label in enumerate(("≤ 0.001", "0.01", "0.1", "1", "10", "100", "≥ 1,000"), -3)
}

COLUMNS = ["x", "y", "ratio", "lower", "upper", "verdict", "problem", "file"]


def win_map(
    problems: Tables,
    verdicts: pandas.DataFrame,
    axes: tuple[str, str],
    file_of: Callable[[str], str],
) -> Block | None:
    """Describe a map for each graph and step size, with a control that selects the comparison."""
    if verdicts.empty or not (verdicts["kind"] == "beats").any():
        return None
    file = file_of("verdicts.parquet")
    rows = verdicts[verdicts["kind"] == "beats"]
    rows = rows.assign(
        **{name: rows["problem"].map(lambda each, key=key: problems[str(each)][key])
           for name, key in zip("xy", axes, strict=True)},
        file=[f"{file}, row {place}" for place in rows.index],
        view=[
            f"{row['worse']} ÷ {row['better']}: {METRIC_SYMBOLS[row['metric']]} at "
            f"{row['at']:,.0f} {row['cost']}"
            for row in rows.to_dict("records")
        ],
    ).sort_values(["x", "y"], kind="stable")  # fmt: skip
    groups = rows.groupby(["graph", "step_size"], sort=False)
    marks = _FAR if (~rows["ratio"].between(0.25, 4.0)).mean() > 0.5 else _NEAR
    return Block(
        kind="map",
        heading="Ratio of errors by problem",
        caption=(
            "Each cell is a verdict of the table above: the ratio and its 95 % interval. Above 1 "
            "(warm) the method after ÷ is better, below 1 (cold) the one before it."
        ),
        controls=[Control("view", "Comparison", {view: view for view in rows["view"].unique()})],
        figures=[
            Figure(
                f"{graph} · {step_size}" if groups.ngroups > 1 else "",
                [
                    Series(
                        str(view), {name: part[name] for name in COLUMNS}, file, {"view": str(view)}
                    )
                    for view, part in panel.groupby("view", sort=False)
                ],
            )
            for (graph, step_size), panel in groups
        ],
        legend=False,
        options={
            "x_label": axis_label(axes[0]),
            "y_label": axis_label(axes[1]),
            "scale": {"title": "ratio", "reach": max(marks.values()), "marks": marks},
        },
    )


def map_axes(problems: Tables) -> tuple[str, str] | None:
    """The two numbers in which problems differ, if they form a full grid over them.

    >>> map_axes({f"{s}{n}": {"spread": s, "noise": n} for s in (0.5, 1.0) for n in (0, 1, 2)})
    ('spread', 'noise')
    """
    values: dict[str, set[str]] = {
        key: {repr(table.get(key)) for table in problems.values()}
        for table in problems.values()
        for key in table
    }
    differing = [key for key in values if len(values[key]) > 1]
    if len(differing) != 2:
        return None
    x, y = differing
    are_numbers = all(is_number(table.get(key)) for table in problems.values() for key in (x, y))
    is_grid = len(values[x]) * len(values[y]) == len(problems) > 3
    return (x, y) if are_numbers and is_grid else None
