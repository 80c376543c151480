"""Figure 1 of the paper: what the Gamma mechanism can promise, for given public bounds.

The paper states no bounds; they are a choice here, and only their ratio ρ matters (θ scales with
them). 1a: δ against ε for a few noise levels θ, by the paper's lemma and exactly, and the floor
that no θ can beat. 1b: the least θ for δ = 0.06, 0.08 and 0.1; a line starts where the target
becomes feasible. Nothing is simulated: the curves are computed, and kept in a directory like those
of studies:

    about.json        what it is, by which version, on which machine
    curves.parquet    a row per point: panel, series, x, y, what the axes say, and its provenance

>>> floor = [curve for curve in delta_curves((50.0, 100.0), [10.0]) if "floor" in curve.series]
>>> round(float(floor[0].y[0]), 3)      # ε = 0.05, ρ = 2: e^-(0.05 + ln 2) / 2
0.238
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from walklearn.plots.axes import COLOURS
from walklearn.privacy import Gamma, InfeasiblePrivacyError, calibrate
from walklearn.privacy.accounting.curves import gamma_floor, gamma_smallest_epsilon
from walklearn.privacy.accounting.printing import format_lower, format_upper
from walklearn.privacy.limits import Array, Bounds
from walklearn.studies.paper.catalogue import COMPUTED
from walklearn.studies.report.figures import Block, Figure, Series, curves_block
from walklearn.studies.report.pictures import Picture

if TYPE_CHECKING:
    import pandas


DELTAS = (0.06, 0.08, 0.1)
EPSILONS = np.linspace(0.05, 10.0, 120)
#: Calibration takes a while: fewer points.
CALIBRATED_AT = np.linspace(0.25, 10.0, 40)
#: The bounds that `walklearn reproduce` shows: ρ = 2 and 10.
SHOWN: tuple[Bounds, ...] = ((50.0, 100.0), (10.0, 100.0))

#: What the vertical axis says, and whether it is logarithmic.
AXES = {"fig1a": ("δ", False), "fig1b": ("least θ", True)}

_FLOOR, _LIMIT = "floor", "limit"
# Lines of a family share a colour; how they were computed is told by their dashes.
_DASHES = {"exactly": 0, "by the paper's lemma": 1, "clamped to the bounds": 2, _LIMIT: 3}
_BLACK_DOTS = 4 * len(COLOURS) - 1
_NOTE = (
    "The paper states no bounds for the values; shown are 50 to 100 (ρ = 2) and 10 to 100 "
    "(ρ = 10). Only ρ matters: θ scales with the bounds. Exact accounting is the hockey stick of "
    "the extreme pair; the lemma is the paper's tail bound. Where the lines of the unclamped "
    "Gamma are missing, no θ will do."
)
_NO_SEED = "none"  # nothing is drawn


class Curve(NamedTuple):
    """A line of a panel: its name, its points, and which of a family of lines it is."""

    series: str
    x: Array
    y: Array
    number: int  # lines of the same number share a colour
    how: str


def delta_curves(bounds: Bounds, thetas: Sequence[float] = ()) -> Iterator[Curve]:
    """δ against ε for each θ (a tenth, one and ten times the upper bound by default)."""
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

    θ is NaN where no θ will do.
    """
    limits = {delta: gamma_smallest_epsilon(delta, bounds) for delta in DELTAS}
    heights: list[Array] = []
    for number, delta in enumerate(DELTAS):
        feasible = limits[delta] < CALIBRATED_AT[-1]
        kinds = [("gamma", "tight", "exactly", feasible),
                 ("gamma", "lemma", "by the paper's lemma", lemma and feasible),
                 ("clamped-gamma", "tight", "clamped to the bounds", clamped)]  # fmt: skip
        for kind, accounting, how, wanted in kinds:
            if wanted:
                values = _least_thetas(kind, delta, bounds, accounting)
                heights.append(values)
                yield Curve(f"δ = {format_upper(delta)} {how}", CALIBRATED_AT, values, number, how)
    for number, (delta, limit) in enumerate(limits.items()):
        if 0.0 < limit < CALIBRATED_AT[-1]:
            ends = np.array([np.nanmin(heights), np.nanmax(heights)])
            series = f"δ = {format_upper(delta)}: no θ will do left of this"
            yield Curve(series, np.full(2, limit), ends, number, _LIMIT)


def _least_thetas(kind: str, delta: float, bounds: Bounds, accounting: Any) -> Array:
    def least(epsilon: float) -> float:
        try:
            found = calibrate(
                kind, epsilon=epsilon, delta=delta, bounds=bounds, accounting=accounting
            )
        except InfeasiblePrivacyError:
            return float("nan")
        return found.noise

    return np.array([least(float(epsilon)) for epsilon in CALIBRATED_AT])


def compute(name: str, out: str | os.PathLike[str]) -> tuple[Path, Picture]:
    """Compute fig1a or fig1b into `out`/name. Return the directory and the picture."""
    from walklearn.studies.cell import digest
    from walklearn.studies.results import Results
    from walklearn.studies.tables import keeping, origin

    computed = origin(_NO_SEED)
    settings = [SHOWN, DELTAS, EPSILONS.tolist(), CALIBRATED_AT.tolist()]
    panels = {
        bounds: list(delta_curves(bounds) if name == "fig1a" else theta_curves(bounds))
        for bounds in SHOWN
    }
    points = _table(name, panels).assign(**computed, **keeping(digest(name, settings)))
    results = Results.of_curves(Path(out) / name, points, COMPUTED[name], _NOTE)
    blocks = [_panel(name, bounds, curves, _NOTE) for bounds, curves in panels.items()]
    return results.directory, Picture(blocks, len(blocks), (5.2, 4.4))


def _table(name: str, panels: Mapping[Bounds, Iterable[Curve]]) -> pandas.DataFrame:
    """The points of fig1a or fig1b, a row each."""
    import pandas

    parts = [
        pandas.DataFrame({"x": curve.x, "y": curve.y}).assign(
            panel=panel_title(bounds), series=curve.series
        )
        for bounds, curves in panels.items()
        for curve in curves
    ]
    y_label, is_log = AXES[name]
    return pandas.concat(parts).assign(x_label="ε", y_label=y_label, y_log=is_log)


def panel_title(bounds: Bounds) -> str:
    """What a panel is for.

    >>> panel_title((50.0, 100.0))
    'values within 50 to 100, ρ = 2'
    """
    return f"values within {bounds[0]:g} to {bounds[1]:g}, ρ = {bounds[1] / bounds[0]:g}"


def both(bounds: Bounds, thetas: Sequence[float]) -> Picture:
    """Both panels for any bounds; what `walklearn privacy plot` shows."""
    low, high = float(bounds[0]), float(bounds[1])
    curves = {
        "fig1a": delta_curves((low, high), thetas),
        "fig1b": theta_curves((low, high), lemma=False, clamped=False),
    }
    blocks = [_panel(name, (low, high), each, "Gamma mechanism.") for name, each in curves.items()]
    return Picture(blocks, len(blocks), (5.2, 4.4))


def _panel(name: str, bounds: Bounds, curves: Iterable[Curve], caption: str) -> Block:
    curves, title, (y_label, is_log) = list(curves), panel_title(bounds), AXES[name]
    if name == "fig1b" and not any(curve.how == "exactly" for curve in curves):
        least = min(gamma_smallest_epsilon(delta, bounds) for delta in DELTAS)
        title += f"; unclamped, no θ will do below ε = {format_lower(least, 3)}"
    series = [Series(curve.series, {"x": curve.x, "y": curve.y}, "") for curve in curves]
    return curves_block(
        title, caption, [Figure(title, series)], ("ε", y_label, is_log),
        styles={
            curve.series: _BLACK_DOTS
            if curve.how == _FLOOR
            else curve.number + _DASHES[curve.how] * len(COLOURS)
            for curve in curves
        },
    )  # fmt: skip
