"""What it took to reach a target: bars per method, for the targets that a study's claims name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from walklearn.plot import COSTS
from walklearn.report.bands import panels, summary
from walklearn.report.convergence import INTERVAL, METRIC_SYMBOLS, centre_control
from walklearn.report.figures import Block, Control, Figure, Series
from walklearn.studies.curves import by_instance, cost_of, runs_of

if TYPE_CHECKING:
    import pandas

    from walklearn.report.bands import CellBands
    from walklearn.studies.claims import Claim


class Target(NamedTuple):
    """An error to be reached, itself or as a share of ‖w*‖."""

    metric: str
    error: float
    relative: bool

    def __str__(self) -> str:
        of = " ‖w*‖" if self.relative else ""
        return f"{METRIC_SYMBOLS[self.metric]} ≤ {self.error:g}{of}"


def cost(
    cells: Iterable[CellBands],
    records: pandas.DataFrame,
    facts: pandas.DataFrame,
    claims: Iterable[Claim],
) -> Block | None:
    """Updates, messages and bytes until each target, with the share of instances that got there."""
    targets = list(
        dict.fromkeys(
            Target(metric, claim.target, claim.relative)
            for claim in claims
            if claim.kind == "cost-to-target"
            for metric in claim.metrics
        )
    )
    if not targets:
        return None
    runs = dict(iter(records.groupby("cell", sort=False)))
    norms = dict(iter(facts.set_index("instance").groupby("cell")["optimum_norm"]))
    figures = []
    for title, members in panels(cells):
        series = [
            Series(cell.method, _columns(runs[cell.hash], norms[cell.hash], targets), cell.file)
            for cell in members
        ]
        figures.append(Figure(title, series, _recompute(members[0].file, targets[0])))
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


def _columns(
    runs: pandas.DataFrame, norms: pandas.Series[float], targets: list[Target]
) -> dict[str, list[object]]:
    columns: dict[str, list[object]] = {"target": [str(target) for target in targets]}
    columns["reached"] = []
    for target in targets:
        for spent in COSTS:
            needed = _needed(runs, norms, target, spent)
            for name, values in summary(needed[:, None]).items():
                columns.setdefault(f"{spent} {name}", []).append(float(values[0]))
        columns["reached"].append(float(np.isfinite(needed).mean()))
    return columns


def _needed(
    runs: pandas.DataFrame, norms: pandas.Series[float], target: Target, spent: str
) -> np.ndarray:
    """The cost of each instance."""
    found = runs_of(runs, spent, target.metric)
    scale = norms.reindex(found.instances).to_numpy() if target.relative else 1.0
    wanted = np.broadcast_to(target.error * scale, found.instances.shape)
    return by_instance(found.instances, cost_of(found.costs, found.errors, wanted)).to_numpy()


def _recompute(file: str, target: Target) -> str:
    facts = file.replace("cells/", "facts/")
    scale = " * facts.optimum_norm[rows.instance].to_numpy()" if target.relative else ""
    return (
        "import pandas\n"
        f"rows = pandas.read_parquet({file!r})\n"
        f"facts = pandas.read_parquet({facts!r}).set_index('instance')\n"
        f"there = rows[rows.{target.metric} <= {target.error:g}{scale}]\n"
        "# first records at the target; the figure interpolates to where the error crossed it\n"
        "print(there.groupby('instance')[['updates', 'messages', 'bytes']].min())"
    )
