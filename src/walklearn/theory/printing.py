"""A diagnosis as a table of lines."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from walklearn.theory.coverage import Coverage

if TYPE_CHECKING:
    from walklearn.theory.diagnosis import Diagnosis


def lines_of(d: Diagnosis) -> Iterator[str]:
    """Yield the lines of the table."""
    yield f"{d.walk} on {d.node_count:,} nodes and {d.edge_count:,} edges"
    if d.method != "measured":
        yield from _mixing_lines(d)
    if d.coverage is not None:
        yield from _coverage_lines(d.coverage)
    yield f"  acceptance rate     {_number(d.acceptance_rate):<10} of the steps move the token"
    yield f"  set-up              {d.setup_messages:<10,} messages"
    yield f"  residual σ²         {_number(d.residual)}"
    yield f"  largest step 2/L    {_number(d.largest_step)}"
    if not math.isnan(d.printed_constant):
        printed = _number(d.printed_constant)
        yield f"  the paper's bound   {printed:<10} (Lmax / Lmin) σ² + Lmax², as printed; see docs"
    if d.constant is None:
        yield "  constant            none: no theorem covers this walk"
    else:
        yield f"  constant            {_number(d.constant.value):<10} {d.constant.theorem}, max of"
        for name, formula in zip(
            ("noise", "smoothness", "mixing"), d.constant.formulas, strict=True
        ):
            term = getattr(d.constant, name)
            mark = "  <- largest" if term == d.constant.value else ""
            yield f"    {name:<17} {_number(term):<10} {formula}{mark}"
        yield "  Constants hide factors (diameter of W, gradient bound, c): compare walks only."
    if d.warnings:
        yield "Warnings"
    for warning in d.warnings:
        yield f"  - {warning}"


def _mixing_lines(d: Diagnosis) -> Iterator[str]:
    yield f"  spectral gap        {_number(d.spectral_gap):<10} {_method_note(d)}"
    below_one = f"1 - {d.spectral_gap / 2:.4g}" if 0 < d.spectral_gap < 1e-3 else ""
    yield f"  λ_P                 {below_one or _number(d.lambda_P)}"
    yield f"  relaxation time     {_number(d.relaxation_time):<10} steps"
    yield f"  mixing time         {_number(d.mixing_time):<10} steps at most (to total variation ¼)"


def _coverage_lines(c: Coverage) -> Iterator[str]:
    is_covered = math.isfinite(c.cover_time)
    cover_time = f"{c.cover_time:,.0f}" if is_covered else f"> {c.path_length:,}"
    longest_gap = f"{c.longest_gap:,.0f}" if is_covered else f"> {c.longest_gap:,.0f}"
    yield f"  cover time          {cover_time:<10} steps until every node is visited"
    yield f"  longest gap         {longest_gap:<10} steps between two visits to a node"
    yield f"    measured          the largest of {c.path_count} paths of {c.path_length:,} steps"
    if math.isfinite(c.gap_bound):
        yield f"    proven            at most {c.cover_bound:,.0f} and {c.gap_bound:,.0f} steps"


def _method_note(d: Diagnosis) -> str:
    if d.method == "unknown":
        return "(unknown)"
    if d.method == "bound":
        return f"(bound: between {_number(d.gap_bounds[0])} and {_number(d.gap_bounds[1])})"
    last = "not reversible" if math.isnan(d.lambda_N) else f"λ_N = {d.lambda_N:.6g}"
    return f"({d.method}: λ_2 = {d.lambda_2:.6g}, {last})"


def _number(value: float) -> str:
    return "unknown" if math.isnan(value) else f"{value:.4g}"
