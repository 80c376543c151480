"""What a reader of a study's results must know before believing them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from walklearn.studies.results import Results

ROUNDING = 1e-6  # of a calibrated δ


def notes(results: Results) -> list[str]:
    """Runs that diverged, steps at the end of their grid, targets that no noise reaches, …

    One line for each cell and matter, in the order of the cells.
    """
    facts = results.facts()
    if facts.empty:
        return []
    groups = facts.groupby(["graph", "problem", "step_size", "method"], sort=False)
    return [note for names, rows in groups for note in _notes(", ".join(map(str, names)), rows)]


def _notes(cell: str, rows: Any) -> Iterator[str]:
    first, count = rows.iloc[0], len(rows)
    if (infeasible := int(rows["infeasible"].sum())) > 0:
        floor = rows["floor"].max()
        yield (
            f"{cell}: no noise reaches (ε, δ) = ({first['epsilon']:g}, {first['delta']:g}) on "
            f"{infeasible} of {count} instances, which were left out; δ is at least {floor:.3g}."
        )
    if (delta := rows["achieved_delta"].max()) > first["delta"] + ROUNDING:
        yield (
            f"{cell}: really has δ = {delta:.3g} at ε = {first['epsilon']:g}, not "
            f"{first['delta']:g}; it is not private as asked."
        )
    if first["bounds_from"] == "instance":
        yield f"{cell}: bounds taken from the data, so its release is not private."
    if (outside := int((rows["outside"] > 0).sum())) > 0:
        yield f"{cell}: on {outside} of {count} instances some L_i lay outside the public bounds."
    if bool(rows["at_edge"].any()):
        yield (
            f"{cell}: the best step constant, {json.loads(first['tuning'])['constant']:g}, is at "
            "the end of its grid; a better one may lie outside."
        )
    if (diverged := int(rows["diverged"].sum())) > 0:
        yield f"{cell}: {diverged} of {count} instances diverged; they count as infinitely bad."
    if (flat := int((~rows["optimum_unique"]).sum())) > 0:
        yield f"{cell}: w* is not unique on {flat} of {count} instances; distances are not defined."
