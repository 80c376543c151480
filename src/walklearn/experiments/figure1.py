"""Figure 1 of the paper: what the Gamma mechanism can promise, for given public bounds.

The paper states no bounds; they are a choice here. Left: δ against ε for a few noise levels θ, by
the paper's lemma and exactly, and the floor that no θ can beat. Right: the least θ for
δ = 0.06, 0.08 and 0.1; a line starts where the target becomes feasible.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from walklearn.privacy import Gamma, InfeasiblePrivacyError, calibrate
from walklearn.privacy.accounting import gamma_floor, gamma_smallest_epsilon

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DELTAS = (0.06, 0.08, 0.1)
EPSILONS = np.linspace(0.05, 10.0, 120)


def draw(bounds: Sequence[float], thetas: Sequence[float], path: Path) -> None:
    """Both panels, saved."""
    from matplotlib.figure import Figure

    low, high = float(bounds[0]), float(bounds[1])
    figure = Figure(figsize=(10.8, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_deltas(left, (low, high), thetas or tuple(high * np.array([0.1, 1.0, 10.0])))
    _draw_thetas(right, (low, high))
    figure.suptitle(f"Gamma mechanism, values within {low:g} to {high:g}")
    figure.savefig(path, dpi=144)


def least_thetas(delta: float, bounds: tuple[float, float]) -> np.ndarray:
    """The least θ for δ at each of `EPSILONS`, NaN where no θ will do."""

    def least(epsilon: float) -> float:
        try:
            found = calibrate("gamma", epsilon=epsilon, delta=delta, bounds=bounds)
        except InfeasiblePrivacyError:
            return float("nan")
        assert isinstance(found, Gamma)
        return found.theta

    return np.array([least(float(epsilon)) for epsilon in EPSILONS])


def _draw_deltas(axes: Axes, bounds: tuple[float, float], thetas: Sequence[float]) -> None:
    for number, theta in enumerate(thetas):
        mechanism = Gamma(float(theta), bounds)
        exact = [mechanism.delta(float(e)) for e in EPSILONS]
        lemma = [mechanism.lemma_delta(float(e)) for e in EPSILONS]
        axes.plot(EPSILONS, exact, color=f"C{number}", label=f"θ = {theta:g}")
        axes.plot(EPSILONS, lemma, color=f"C{number}", linestyle="--")
    floor = [gamma_floor(float(e), bounds) for e in EPSILONS]
    axes.plot(EPSILONS, floor, color="black", linestyle=":", label="floor: no θ goes below")
    axes.plot([], [], color="grey", linestyle="--", label="dashed: the paper's lemma")
    axes.set(xlabel="ε", ylabel="δ", ylim=(0.0, 1.0))
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)


def _draw_thetas(axes: Axes, bounds: tuple[float, float]) -> None:
    for number, delta in enumerate(DELTAS):
        thetas = least_thetas(delta, bounds)
        if np.isfinite(thetas).any():
            axes.plot(EPSILONS, thetas, color=f"C{number}", label=f"δ = {delta:g}")
            smallest = max(gamma_smallest_epsilon(delta, bounds), 0.0)
            axes.axvline(smallest, color=f"C{number}", linestyle=":", linewidth=1)
    axes.set(xlabel="ε (dotted: no θ will do to the left)", ylabel="least θ (exact accounting)")
    axes.set_yscale("log")
    if axes.lines:
        axes.legend(frameon=False)
    else:
        axes.text(0.5, 0.5, f"no θ reaches δ ≤ {max(DELTAS):g} for ε ≤ {EPSILONS[-1]:g}",
                  ha="center", va="center", transform=axes.transAxes)  # fmt: skip
    axes.grid(alpha=0.3)
