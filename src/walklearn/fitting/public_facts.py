"""Everything about the data that no claim protects, because it is taken to be public."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from walklearn.fitting.plan import FitPlan
from walklearn.tables.encoding import Column
from walklearn.tables.target_scale import TargetScale
from walklearn.wording import plural

_COLUMNS_LISTED = 100


def public_facts(
    plan: FitPlan, classes: Sequence[Any] | None, total_rows: float | None
) -> list[str]:
    """Return what is taken to be public of a fit: the network, the task and the settings.

    classes: the labels; None for a target that is a number.
    """
    budget = plan.budget
    counts = "the node of each row, the number of rows of each node and their total weight, "
    facts = [
        f"The graph ({plural(plan.graph.node_count, 'node')}), "
        f"{'' if budget.hides_row_counts else counts}and the position of the token.",
        f"The task: {'regression' if classes is None else 'classification'}.",
    ]
    if classes is not None:
        names = ", ".join(map(str, classes))
        facts.append(f"The classes, even if they were read from the rows: {names}.")
    numbers = {
        "the typical length of a row": plan.facts.row_length,
        "the bound on the length of a row": budget.feature_bound,
        "the number of rows of all nodes": total_rows,
        "the largest number of rows of a node": budget.max_rows,
    }
    given = [f"{what}: {value:.6g}" for what, value in numbers.items() if value is not None]
    if given:
        facts.append(f"Declared numbers: {', '.join(given)}.")
    facts.append(
        "The settings: loss, penalty, walk, step size, number of updates, clip, noise, and how "
        "often a node contributes at most."
    )
    return facts


def public_columns(
    columns: Sequence[Column], target: str, scale: TargetScale | None = None
) -> list[str]:
    """Return what is taken to be public of the columns, with their declared scales.

    scale: that of a target that is a number.

    >>> print(public_columns([Column("age", centre=50.0, spread=20.0, cut_off=3.0)], "ill")[0])
    The name of the target, 'ill', and the columns: age (centre 50, spread 20).
    """
    written = [_written(column) for column in columns[:_COLUMNS_LISTED]]
    if len(columns) > _COLUMNS_LISTED:
        written.append(f"and {len(columns) - _COLUMNS_LISTED:,} more, all of them in model.json")
    of_target = "" if scale is None else f" (centre {scale.centre:g}, spread {scale.spread:g})"
    return [
        f"The name of the target, {target!r}{of_target}, and the columns: {', '.join(written)}."
    ]


def _written(column: Column) -> str:
    if column.categories is not None:
        return f"{column.name} (categories {', '.join(column.categories)})"
    if column.as_it_is:
        return column.name
    return f"{column.name} (centre {column.centre:g}, spread {column.spread:g})"
