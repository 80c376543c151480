"""Figures of the error against the cost, and of the cost of a target error.

convergence   a panel per graph, problem and step size, a line per method
cost          bars per method, for the targets of a study's claims
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from walklearn.plots import COSTS
from walklearn.studies.report.bands import (
    INTERVAL,
    METRIC_SYMBOLS,
    centre_control,
    controls,
    panels,
    summary,
)
from walklearn.studies.report.figures import Block, Control, Series
from walklearn.studies.verdicts import MIN_INSTANCES

if TYPE_CHECKING:
    from walklearn.studies.claims import Claim
    from walklearn.studies.report.bands import CellBands

FEW_PANELS, MANY_PANELS = 6, 12
MANY_LINES = 12


def convergence(cells: Sequence[CellBands], metric: str, *, is_first: bool = True) -> Block:
    """Describe the convergence curves of a study, folded if they are many and not the first."""
    figures = panels(
        cells, lambda members: [Series(cell.method, cell.columns, cell.file) for cell in members]
    )
    counts = sorted({len(cell.instances) for cell in cells})
    block = Block(
        kind="lines",
        heading="Convergence",
        caption=(
            f"{' to '.join(f'{count:,}' for count in dict.fromkeys((counts[0], counts[-1])))} "
            f"instances. Band: {INTERVAL}; each record on its own. No band below "
            f"{MIN_INSTANCES} instances. An instance that diverged has an infinite error: the "
            "mean has a gap there."
        ),
        controls=controls(metric, "updates"),
        figures=figures,
        shown=FEW_PANELS if len(figures) > MANY_PANELS else None,
        options={"band": True},
    )
    are_many = len(figures) > FEW_PANELS or len(block.names) > MANY_LINES
    return replace(block, shown=0) if are_many and not is_first else block


def cost(cells: Iterable[CellBands], claims: Iterable[Claim]) -> Block | None:
    """Describe the cost of each target, and the share of instances that reached it."""
    targets = list(dict.fromkeys(
        (metric, claim.target, claim.relative)
        for claim in claims
        if claim.kind == "cost-to-target"
        for metric in claim.metrics
    ))  # fmt: skip
    if not targets:
        return None
    return Block(
        kind="bars",
        heading="Cost of reaching a target",
        caption=(
            f"Cost until the error first was at or below the target, without set-up. Bar: "
            f"{INTERVAL}. An instance that never reached it has an infinite cost: there is no bar "
            "if half of them (or, for the mean, one of them) did not."
        ),
        controls=[
            Control("y", "Cost", {name: name for name in COSTS}, "messages"),
            centre_control("median"),
        ],
        figures=panels(
            cells,
            lambda members: [
                Series(cell.method, _columns(cell, targets), cell.file) for cell in members
            ],
        ),
        options={"x": "target"},
    )


def _columns(cell: CellBands, targets: list[tuple[str, float, bool]]) -> dict[str, list[object]]:
    columns: dict[str, list[object]] = {"target": [], "reached": []}
    for metric, error, relative in targets:
        columns["target"].append(f"{METRIC_SYMBOLS[metric]} ≤ {error:g}" + " ‖w*‖" * relative)
        for name in COSTS:
            costs = cell.cost_of(metric, name, error, relative).to_numpy()
            for centre, values in summary(costs[:, None]).items():
                columns.setdefault(f"{name} {centre}", []).append(float(values[0]))
        columns["reached"].append(float(np.isfinite(costs).mean()))
    return columns
