"""Figure 1 of the paper: the privacy of the Gamma mechanism for given public bounds.

The paper states no bounds; those shown are a choice, and only their ratio ρ matters (θ scales with
them). 1a: δ against ε for a few noise levels θ, by the paper's lemma and exactly, and the floor
below which no θ gets. 1b: the least θ for δ = 0.06, 0.08 and 0.1; a line starts where the target
becomes feasible. Nothing is simulated: the curves are computed, and stored like a study's results:

    about.json        question, version, machine
    curves.parquet    a row per point: panel, series, style, x, y, the axes, and its provenance

>>> floor = [curve for curve in delta_curves((50.0, 100.0), [10.0]) if "floor" in curve.series]
>>> round(float(floor[0].y[0]), 3)      # ε = 0.05, ρ = 2: e^-(0.05 + ln 2) / 2
0.238
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from walklearn.plots.axes import COLOURS
from walklearn.privacy import Gamma, InfeasiblePrivacyError, calibrate
from walklearn.privacy.accounting.curves import gamma_floor, gamma_smallest_epsilon
from walklearn.privacy.accounting.printing import format_lower, format_upper
from walklearn.privacy.limits import Array, Bounds
from walklearn.studies.paper.catalogue import COMPUTED
from walklearn.studies.report.figures import computed_curves
from walklearn.studies.report.pictures import Picture

if TYPE_CHECKING:
    import pandas


DELTAS = (0.06, 0.08, 0.1)
EPSILONS = np.linspace(0.05, 10.0, 120)
#: Calibration is slow: fewer points.
CALIBRATED_AT = np.linspace(0.25, 10.0, 40)
#: The bounds that `walklearn reproduce` shows: ρ = 2 and 10.
SHOWN: tuple[Bounds, ...] = ((50.0, 100.0), (10.0, 100.0))

_FLOOR, _LIMIT = "floor", "limit"
# Lines of the same number share a colour; the dash shows how they were computed.
_DASHES = {"exactly": 0, "by the paper's lemma": 1, "clamped to the bounds": 2, _LIMIT: 3}
_BLACK_DOTS = 4 * len(COLOURS) - 1
_NOTE = (
    "The paper states no bounds for the values; shown are 50 to 100 (ρ = 2) and 10 to 100 "
    "(ρ = 10). Only ρ matters: θ scales with the bounds. Exact accounting is the hockey-stick "
    "divergence of the extreme pair; the lemma is the paper's tail bound. The lines of the "
    "unclamped Gamma end where no θ reaches the target."
)


class Curve(NamedTuple):
    """A line of a panel: its name, its points, the number of its colour, how it was computed."""

    series: str
    x: Array
    y: Array
    number: int
    how: str


def delta_curves(bounds: Bounds, thetas: Sequence[float] = ()) -> Iterator[Curve]:
    """Yield δ against ε for each θ (a tenth, one and ten times the upper bound by default)."""
    for number, theta in enumerate(thetas or [0.1 * bounds[1], bounds[1], 10.0 * bounds[1]]):
        mechanism = Gamma(float(theta), bounds)
        exact: Callable[[float], float] = mechanism.delta
        for how, delta in (("exactly", exact), ("by the paper's lemma", mechanism.lemma_delta)):
            values = np.array([delta(float(epsilon)) for epsilon in EPSILONS])
            yield Curve(f"θ = {theta:g} {how}", EPSILONS, values, number, how)
    floor = np.array([gamma_floor(float(epsilon), bounds) for epsilon in EPSILONS])
    yield Curve("floor: no θ goes below", EPSILONS, floor, -1, _FLOOR)


def theta_curves(bounds: Bounds, lemma: bool = True, clamped: bool = True) -> Iterator[Curve]:
    """Yield the least θ against ε for each of `DELTAS`, and vertical lines where each begins.

    θ is NaN where no θ reaches the target.
    """
    limits = {delta: gamma_smallest_epsilon(delta, bounds) for delta in DELTAS}
    heights: list[Array] = []
    for number, delta in enumerate(DELTAS):
        feasible = limits[delta] < CALIBRATED_AT[-1]
        kinds = [("gamma", "tight", "exactly", feasible),
                 ("gamma", "lemma", "by the paper's lemma", lemma and feasible),
                 ("clamped-gamma", "tight", "clamped to the bounds", clamped)]  # fmt: skip
        for kind, accounting, how, is_shown in kinds:
            if is_shown:
                values = _least_thetas(kind, delta, bounds, accounting)
                heights.append(values)
                yield Curve(f"δ = {format_upper(delta)} {how}", CALIBRATED_AT, values, number, how)
    for number, (delta, limit) in enumerate(limits.items()):
        if 0.0 < limit < CALIBRATED_AT[-1]:
            ends = np.array([np.nanmin(heights), np.nanmax(heights)])
            series = f"δ = {format_upper(delta)}: no θ is enough left of this"
            yield Curve(series, np.full(2, limit), ends, number, _LIMIT)


def _least_thetas(kind: str, delta: float, bounds: Bounds, accounting: Any) -> Array:
    def least(epsilon: float) -> float:
        try:
            return calibrate(
                kind, epsilon=epsilon, delta=delta, bounds=bounds, accounting=accounting
            ).noise
        except InfeasiblePrivacyError:
            return float("nan")

    return np.array([least(float(epsilon)) for epsilon in CALIBRATED_AT])


def compute(name: str, out: str | os.PathLike[str]) -> tuple[Path, Picture]:
    """Compute fig1a or fig1b into `out`/name. Return the directory and the picture."""
    from walklearn.studies.cell import digest
    from walklearn.studies.results import Results
    from walklearn.studies.tables import origin_columns, storage_columns

    curves = delta_curves if name == "fig1a" else theta_curves
    points = _table(name, ((bounds, curves(bounds)) for bounds in SHOWN))
    settings = [SHOWN, DELTAS, EPSILONS.tolist(), CALIBRATED_AT.tolist()]
    # Nothing is drawn at random: there is no seed.
    points = points.assign(**origin_columns("none"), **storage_columns(digest(name, settings)))
    results = Results.of_curves(Path(out) / name, points, COMPUTED[name], _NOTE)
    return results.directory, _picture(points, _NOTE)


def for_bounds(bounds: Bounds) -> Picture:
    """Draw both panels for any bounds, for `walklearn privacy plot`."""
    import pandas

    bounds = float(bounds[0]), float(bounds[1])
    least = theta_curves(bounds, lemma=False, clamped=False)
    tables = [_table("fig1a", [(bounds, delta_curves(bounds))]),
              _table("fig1b", [(bounds, least)])]  # fmt: skip
    return _picture(pandas.concat(tables), "Gamma mechanism.")


def _table(name: str, panels: Iterable[tuple[Bounds, Iterable[Curve]]]) -> pandas.DataFrame:
    """The points of fig1a or fig1b, a row each."""
    import pandas

    y_label, is_log = ("δ", False) if name == "fig1a" else ("least θ", True)
    parts = []
    for bounds, panel in panels:
        nothing = Curve("no θ is enough", EPSILONS, np.full(EPSILONS.shape, np.nan), 0, _LIMIT)
        curves = list(panel) or [nothing]
        low, high = bounds
        title = f"values within {low:g} to {high:g}, ρ = {high / low:g}"
        if is_log and not any(curve.how == "exactly" for curve in curves):
            least = min(gamma_smallest_epsilon(delta, bounds) for delta in DELTAS)
            title += f"; unclamped, no θ is enough below ε = {format_lower(least, 3)}"
        parts += [
            pandas.DataFrame({"x": curve.x, "y": curve.y}).assign(
                panel=title, series=curve.series, style=_BLACK_DOTS
                if curve.how == _FLOOR else curve.number + _DASHES[curve.how] * len(COLOURS)
            )
            for curve in curves
        ]  # fmt: skip
    return pandas.concat(parts).assign(x_label="ε", y_label=y_label, y_log=is_log)


def _picture(points: pandas.DataFrame, note: str) -> Picture:
    return Picture(computed_curves(points, "", note), 2, (5.2, 4.4))
