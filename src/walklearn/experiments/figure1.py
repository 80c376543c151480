"""Figure 1 of the paper: what the Gamma mechanism can promise, for given public bounds.

The paper states no bounds; they are a choice here, and only their ratio ρ matters (θ scales with
them). 1a: δ against ε for a few noise levels θ, by the paper's lemma and exactly, and the floor
that no θ can beat. 1b: the least θ for δ = 0.06, 0.08 and 0.1; a line starts where the target
becomes feasible. Nothing is simulated: the curves are computed, and kept as points.

>>> floor = [curve for curve in delta_curves((50.0, 100.0), [10.0]) if "floor" in curve.series]
>>> round(float(floor[0].y[0]), 3)      # ε = 0.05, ρ = 2: e^-(0.05 + ln 2) / 2
0.238
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from walklearn.plot.axes import colour, dress
from walklearn.privacy import Gamma, InfeasiblePrivacyError, calibrate
from walklearn.privacy.accounting import gamma_floor, gamma_smallest_epsilon

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
Bounds = tuple[float, float]

DELTAS = (0.06, 0.08, 0.1)
EPSILONS = np.linspace(0.05, 10.0, 120)
#: Calibration takes a while: fewer points.
CALIBRATED_AT = np.linspace(0.25, 10.0, 40)
#: The bounds that `walklearn reproduce` shows: ρ = 2 and 10.
SHOWN: tuple[Bounds, ...] = ((50.0, 100.0), (10.0, 100.0))

_DASHES = {"exactly": "-", "by the paper's lemma": "--", "clamped to the bounds": "-."}


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
    yield Curve("floor: no θ goes below", EPSILONS, floor, -1, "floor")


def theta_curves(bounds: Bounds, lemma: bool = True, clamped: bool = True) -> Iterator[Curve]:
    """The least θ against ε for each of `DELTAS`; NaN where no θ will do."""
    for number, delta in enumerate(DELTAS):
        feasible = gamma_smallest_epsilon(delta, bounds) < CALIBRATED_AT[-1]
        kinds = [("gamma", "tight", "exactly", feasible),
                 ("gamma", "lemma", "by the paper's lemma", lemma and feasible),
                 ("clamped-gamma", "tight", "clamped to the bounds", clamped)]  # fmt: skip
        for kind, accounting, how, wanted in kinds:
            if wanted:
                values = _least_thetas(kind, delta, bounds, accounting)
                yield Curve(f"δ = {delta:g} {how}", CALIBRATED_AT, values, number, how)


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


def draw(bounds: Sequence[float], thetas: Sequence[float], path: Path) -> None:
    """Both panels for any bounds, saved; what `walklearn privacy plot` shows."""
    from matplotlib.figure import Figure

    low, high = float(bounds[0]), float(bounds[1])
    figure = Figure(figsize=(10.8, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    draw_deltas(left, delta_curves((low, high), thetas))
    draw_thetas(right, (low, high), theta_curves((low, high), lemma=False, clamped=False))
    figure.suptitle(f"Gamma mechanism, values within {low:g} to {high:g}")
    figure.savefig(path, dpi=144)


def draw_deltas(axes: Axes, curves: Iterable[Curve]) -> None:
    """A panel of 1a."""
    for curve in curves:
        if curve.how == "floor":
            axes.plot(curve.x, curve.y, color="black", linestyle=":", label=curve.series)
        else:
            label = curve.series.removesuffix(" exactly") if curve.how == "exactly" else None
            axes.plot(curve.x, curve.y, color=colour(curve.number), linestyle=_DASHES[curve.how],
                      label=label)  # fmt: skip
    axes.plot([], [], color="grey", linestyle="--", label="dashed: by the paper's lemma")
    dress(axes, "ε", "δ")
    axes.set(ylim=(0.0, 1.0))
    axes.legend(frameon=False)


def draw_thetas(axes: Axes, bounds: Bounds, curves: Iterable[Curve]) -> None:
    """A panel of 1b."""
    shown = set()
    for curve in curves:
        label = curve.series.partition(" exactly")[0] if curve.how == "exactly" else None
        axes.plot(curve.x, curve.y, color=colour(curve.number), linestyle=_DASHES[curve.how],
                  label=label)  # fmt: skip
        shown.add(curve.how)
    for number, delta in enumerate(DELTAS):
        smallest = gamma_smallest_epsilon(delta, bounds)
        if 0.0 < smallest < CALIBRATED_AT[-1]:
            axes.axvline(smallest, color=colour(number), linestyle=":", linewidth=1)
    dress(axes, "ε", "least θ")
    axes.set_yscale("log")
    if "exactly" in shown:
        axes.plot([], [], color="grey", linestyle=":", label="no θ will do left of this")
    else:
        least = min(gamma_smallest_epsilon(delta, bounds) for delta in DELTAS)
        axes.plot([], [], " ", label=f"unclamped, no θ will do below ε = {least:.1f}")
        for number, delta in enumerate(DELTAS if shown else ()):
            axes.plot([], [], color=colour(number), label=f"δ = {delta:g}")
    for how in ("by the paper's lemma", "clamped to the bounds"):
        if how in shown:
            axes.plot([], [], color="grey", linestyle=_DASHES[how], label=how)
    axes.legend(frameon=False)


def settings() -> list[Any]:
    """All that decides the points, as plain values."""
    return [SHOWN, DELTAS, EPSILONS.tolist(), CALIBRATED_AT.tolist()]


def table(name: str) -> pandas.DataFrame:
    """The points of fig1a or fig1b, for both bounds that are shown."""
    import pandas

    parts = []
    for bounds in SHOWN:
        curves = delta_curves(bounds) if name == "fig1a" else theta_curves(bounds)
        for curve in curves:
            points = {"x": curve.x, "y": curve.y, "number": curve.number, "how": curve.how}
            parts.append(
                pandas.DataFrame(points).assign(
                    panel=panel_title(bounds), series=curve.series, low=bounds[0], high=bounds[1]
                )
            )
    y_label, is_log = ("δ", False) if name == "fig1a" else ("least θ", True)
    return pandas.concat(parts).assign(x_label="ε", y_label=y_label, y_log=is_log)


def panel_title(bounds: Bounds) -> str:
    """What a panel is for.

    >>> panel_title((50.0, 100.0))
    'values within 50 to 100, ρ = 2'
    """
    return f"values within {bounds[0]:g} to {bounds[1]:g}, ρ = {bounds[1] / bounds[0]:g}"


def picture(name: str, points: pandas.DataFrame) -> Figure:
    """fig1a or fig1b, from its table."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.8, 4.4), layout="constrained")
    for axes, bounds in zip(figure.subplots(1, len(SHOWN)), SHOWN, strict=True):
        rows = points[points["low"] == bounds[0]]
        curves = [
            Curve(str(series), part["x"].to_numpy(), part["y"].to_numpy(),
                  int(part["number"].iloc[0]), str(part["how"].iloc[0]))
            for series, part in rows.groupby("series", sort=False)
        ]  # fmt: skip
        if name == "fig1a":
            draw_deltas(axes, curves)
        else:
            draw_thetas(axes, bounds, curves)
        axes.set_title(panel_title(bounds))
    return figure
