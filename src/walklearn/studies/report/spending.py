"""Error against what was spent, and what was spent until a target error was reached.

convergence   a panel per graph, problem and step size, a line per method
cost          bars per method, for the targets that a study's claims name
reached       the share of instances that had reached a target, against what they spent
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from walklearn.plots import COSTS
from walklearn.studies.recorded_runs import by_instance, cost_of
from walklearn.studies.report.bands import (
    INTERVAL,
    METRIC_SYMBOLS,
    centre_control,
    cost_control,
    metric_control,
    panels,
    summary,
)
from walklearn.studies.report.figures import Block, Control, Figure, Series
from walklearn.studies.verdicts import MIN_INSTANCES

if TYPE_CHECKING:
    import pandas

    from walklearn.plots.axes import FloatArray
    from walklearn.studies.claims import Claim
    from walklearn.studies.report.bands import CellBands

FEW_PANELS, MANY_PANELS = 6, 12
MANY_LINES = 12


def convergence(cells: Sequence[CellBands], metric: str, *, beside: bool = False) -> Block:
    """Describe the convergence curves of a study, perhaps ``beside`` figures that matter more."""
    figures = [
        Figure(
            title,
            [Series(cell.method, cell.columns, cell.file) for cell in members],
            of=shared,
        )
        for title, shared, members in panels(cells)
    ]
    counts = sorted({len(np.unique(cell.instances)) for cell in cells})
    return Block(
        kind="lines",
        heading="Convergence",
        caption=(
            f"{' to '.join(f'{count:,}' for count in (counts[0], counts[-1])[: len(counts)])} "
            f"instances. Band: {INTERVAL}; each record on its own. No band below "
            f"{MIN_INSTANCES} instances. An instance that diverged counts as infinite: the mean "
            "has a hole there."
        ),
        controls=[metric_control(metric), cost_control(), centre_control()],
        figures=figures,
        shown=_shown(figures, beside),
        options={"band": True},
    )


def _shown(figures: Sequence[Figure], beside: bool) -> int | None:
    """How many panels are unfolded: all of a few, the first of many, none where others matter."""
    lines = {one.name for figure in figures for one in figure.series}
    if beside and (len(figures) > FEW_PANELS or len(lines) > MANY_LINES):
        return 0
    return FEW_PANELS if len(figures) > MANY_PANELS else None


class Target(NamedTuple):
    """An error to be reached, itself or as a share of ‖w*‖.

    >>> str(Target("gap", 0.1, relative=False)), str(Target("distance", 0.3, relative=True))
    ('f(w) − f* ≤ 0.1', '‖w − w*‖ ≤ 0.3 ‖w*‖')
    """

    metric: str
    error: float
    relative: bool

    def __str__(self) -> str:
        of = " ‖w*‖" if self.relative else ""
        return f"{METRIC_SYMBOLS[self.metric]} ≤ {self.error:g}{of}"


def targets_of(claims: Iterable[Claim]) -> list[Target]:
    """The targets that claims are about, each once."""
    found = (
        Target(metric, claim.target, claim.relative)
        for claim in claims
        if claim.kind == "cost-to-target"
        for metric in claim.metrics
    )
    return list(dict.fromkeys(found))


def cost(
    cells: Iterable[CellBands], facts: pandas.DataFrame, claims: Iterable[Claim]
) -> Block | None:
    """Describe what each target costs, and the share of instances that reached it."""
    targets = targets_of(claims)
    if not targets:
        return None
    norms = _norms(facts)
    figures = []
    for title, shared, members in panels(cells):
        series = [
            Series(cell.method, _columns(cell, norms[cell.hash], targets), cell.file)
            for cell in members
        ]
        figures.append(Figure(title, series, of=shared))
    return Block(
        kind="bars",
        heading="What it took to get there",
        caption=(
            f"Cost until the error first was at or below the target, without set-up. Bar: "
            f"{INTERVAL}. An instance that never got there counts as infinite: no bar means that "
            "half of them (or, for the mean, one of them) did not."
        ),
        controls=[
            Control("y", "Cost", {spent: spent for spent in COSTS}, "messages"),
            centre_control("median"),
        ],
        figures=figures,
        options={"x": "target"},
    )


def _norms(facts: pandas.DataFrame) -> dict[str, pandas.Series[float]]:
    """‖w*‖ of each instance, by cell."""
    return dict(iter(facts.set_index("instance").groupby("cell")["optimum_norm"]))


def _columns(
    cell: CellBands, norms: pandas.Series[float], targets: list[Target]
) -> dict[str, list[object]]:
    columns: dict[str, list[object]] = {"target": [str(target) for target in targets]}
    columns["reached"] = []
    for target in targets:
        for spent in COSTS:
            needed = _needed(cell, norms, target, spent)
            for name, values in summary(needed[:, None]).items():
                columns.setdefault(f"{spent} {name}", []).append(float(values[0]))
        columns["reached"].append(float(np.isfinite(needed).mean()))
    return columns


def _needed(cell: CellBands, norms: pandas.Series[float], target: Target, spent: str) -> FloatArray:
    """The cost of each instance."""
    found = cell.against(spent, target.metric)
    scale = norms.reindex(found.instances).to_numpy() if target.relative else 1.0
    wanted = np.broadcast_to(target.error * scale, found.instances.shape)
    return by_instance(found.instances, cost_of(found.costs, found.errors, wanted)).to_numpy()
