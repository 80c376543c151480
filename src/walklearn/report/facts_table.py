"""What else is known of each cell: steps taken, boundary, mixing, privacy; means over instances."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from walklearn.report.verdict_table import number

if TYPE_CHECKING:
    import pandas

IDENTITY = ("graph", "problem", "step_size", "method")

#: Columns of the facts that a reader of figures asks for, and what they are called here.
SHOWN = {
    "constant": "step constant c",
    "boundary_share": "ended on the boundary of W",
    "diverged": "diverged",
    "smoothness_spread": "max L / mean L",
    "spectral_gap": "spectral gap",
    "mixing_time": "mixing time",
    "acceptance_rate": "acceptance rate",
    "sigma2": "σ²",
    "bound": "the theorem's constant",
    "parameter": "noise",
    "epsilon": "ε",
    "achieved_delta": "δ it has",
    "outside": "values clamped",
}


@dataclass(frozen=True)
class FactsTable:
    """A heading per column, and a row per cell that ends with its file."""

    heads: list[str]
    rows: list[list[str]]


def facts_table(facts: pandas.DataFrame, file_of: Callable[[str], str]) -> FactsTable:
    """Means over the instances of each cell; columns that say nothing are left out."""
    named = facts.groupby("cell", sort=False)[list(IDENTITY)].first()
    present = [name for name in SHOWN if name in facts and facts[name].notna().any()]
    means = facts.groupby("cell", sort=False)[present].mean()
    means = means.loc[:, (means.fillna(0) != 0).any()]
    rows = [
        [*map(str, named.loc[cell]), *(number(float(value)) for value in row),
         file_of(f"facts/{cell}.parquet")]
        for cell, row in zip(means.index, means.to_numpy(), strict=True)
    ]  # fmt: skip
    heads = [*(name.replace("_", " ") for name in IDENTITY), *(SHOWN[str(name)] for name in means)]
    return FactsTable([*heads, "file"], rows)
