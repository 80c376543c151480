"""Every mechanism at the same (ε, δ) and bounds, by the error of its release.

The error is the root mean square of (release − value)/(hi − lo) for values uniform over the
bounds, every release clamped to the bounds. *Raw* is the release itself. *Shrunk* is
m + s(R − m), the best linear move towards the midpoint m: with E over values and noise,

    s = E[(R − m)(v − m)] / E[(R − m)²],   error² = E[(v − m)²] − s E[(R − m)(v − m)],

all of it from public quantities, so shrinkage costs no privacy. The *constant* m reveals nothing
and has the error 1/√12 = .289: a mechanism is only useful below it.

>>> print(compare(epsilon=3.0, delta=0.06, bounds=(1.0, 10.0)))
(epsilon, delta) = (3, 0.06), bounds 1..10: error as a share of the range
mechanism             noise      raw   shrunk
laplace                2.88    0.298    0.232
truncated-laplace      15.2    0.302    0.234
gaussian               4.46    0.346    0.252
clamped-gamma          6.42    0.381    0.260
constant                  -    0.289    0.289
gamma                     -        -        -   infeasible: no noise level gives delta <= 0.06...
As released, none beats the constant, which reveals nothing.
After shrinkage the best, laplace, is 20 % closer than the constant:
it reveals 35 % of the variance of a value to a neighbour.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from walklearn.privacy.accounting.printing import format_upper
from walklearn.privacy.limits import Bounds, check_bounds
from walklearn.privacy.mechanisms import MECHANISMS, ClampedGamma, Gamma
from walklearn.privacy.mechanisms.calibration import calibrate
from walklearn.privacy.mechanisms.infeasible import InfeasiblePrivacyError
from walklearn.privacy.mechanisms.mechanism import Mechanism

CONSTANT_ERROR = 1 / math.sqrt(12.0)


@dataclass(frozen=True)
class ComparedMechanism:
    """One mechanism of a comparison.

    Parameters
    ----------
    kind
        The name of the mechanism.
    mechanism
        The calibrated mechanism; None if the target is infeasible.
    raw_error, shrunk_error
        Root mean square errors of a release, and of a release moved towards the midpoint, as
        shares of the range; NaN if the target is infeasible.
    shrinkage
        The factor s of `shrink_release`.
    reason
        The reason why the target is infeasible; empty if it is feasible.
    """

    kind: str
    mechanism: Mechanism | None
    raw_error: float
    shrunk_error: float
    shrinkage: float
    reason: str = ""

    def __str__(self) -> str:
        if self.mechanism is None:
            return f"{self.kind:<18}{'-':>9}{'-':>9}{'-':>9}   infeasible: {self.reason}"
        noise = f"{self.mechanism.noise:.3g}"
        return f"{self.kind:<18}{noise:>9}{self.raw_error:>9.3f}{self.shrunk_error:>9.3f}"


@dataclass(frozen=True)
class Comparison:
    """The mechanisms at one target: feasible ones by raw error, then the infeasible ones.

    Parameters
    ----------
    epsilon, delta
        P(outcome) ≤ e^ε · P(outcome with the other value) + δ for all outcomes.
    bounds
        Public lo and hi over all data that a node could hold, never computed from data.
    rows
        A row for each mechanism.
    """

    epsilon: float
    delta: float
    bounds: Bounds
    rows: tuple[ComparedMechanism, ...]
    constant_error: ClassVar[float] = CONSTANT_ERROR

    @property
    def _feasible(self) -> list[ComparedMechanism]:
        return [row for row in self.rows if row.mechanism is not None]

    @property
    def best(self) -> ComparedMechanism | None:
        """The feasible mechanism with the smallest error after shrinkage."""
        return min(self._feasible, key=lambda row: row.shrunk_error, default=None)

    @property
    def verdict(self) -> str:
        """Sentences on the use of a release to a neighbour, compared with a constant."""
        if self.best is None:
            return "No mechanism reaches this target: publish a constant, the midpoint."
        useful = [row.kind for row in self._feasible if row.raw_error < CONSTANT_ERROR]
        if len(useful) in (0, len(self._feasible)):
            beats = "all beat" if useful else "none beats"
        else:
            beats = f"only {' and '.join(useful)} beat{'s' if len(useful) == 1 else ''}"
        share = self.best.shrunk_error / CONSTANT_ERROR
        return (
            f"As released, {beats} the constant, which reveals nothing.\n"
            f"After shrinkage the best, {self.best.kind}, is {_percent(1 - share)} closer than the "
            f"constant:\nit reveals {_percent(1 - share**2)} of the variance of a value to a "
            "neighbour."
        )

    def __str__(self) -> str:
        rows, feasible = list(map(str, self.rows)), len(self._feasible)
        lines = [
            f"(epsilon, delta) = ({format_upper(self.epsilon)}, {format_upper(self.delta)}), "
            f"bounds {self.bounds[0]:g}..{self.bounds[1]:g}: error as a share of the range",
            f"{'mechanism':<18}{'noise':>9}{'raw':>9}{'shrunk':>9}",
            *rows[:feasible],
            f"{'constant':<18}{'-':>9}{CONSTANT_ERROR:>9.3f}{CONSTANT_ERROR:>9.3f}",
            *rows[feasible:],
            self.verdict,
        ]
        return "\n".join(lines)


def compare(*, epsilon: float, delta: float, bounds: Sequence[float]) -> Comparison:
    """Calibrate every mechanism to (ε, δ) and rank them by the error of their releases.

    Parameters
    ----------
    epsilon, delta
        P(outcome) ≤ e^ε · P(outcome with the other value) + δ for all outcomes.
    bounds
        Public lo and hi over all data that a node could hold, never computed from data.

    Returns
    -------
    Comparison
        The mechanisms in order of their raw error.
    """
    ends = check_bounds(bounds)
    rows = [_compared(kind, epsilon, delta, ends) for kind in MECHANISMS]
    rows.sort(key=lambda row: (row.mechanism is None, row.raw_error))
    return Comparison(float(epsilon), float(delta), ends, tuple(rows))


def release_error(mechanism: Mechanism) -> tuple[float, float, float]:
    """Compute the error of a release that is clamped to its bounds.

    Parameters
    ----------
    mechanism
        The mechanism.

    Returns
    -------
    raw : float
        The root mean square error, as a share of the range.
    shrunk : float
        The same after `shrink_release`.
    shrinkage : float
        The factor of `shrink_release`.
    """
    if isinstance(mechanism, Gamma):  # clamping its releases costs no privacy
        mechanism = ClampedGamma(mechanism.theta, mechanism.bounds)
    lo, hi = mechanism.bounds
    nodes, weights = _quadrature()
    middle, values = (lo + hi) / 2, lo + (hi - lo) * nodes
    bias, variance = mechanism.mean(values) - values, mechanism.variance(values)
    raw = float(weights @ (variance + bias**2))
    off_middle = values + bias - middle
    product = float(weights @ (off_middle * (values - middle)))
    square = float(weights @ (variance + off_middle**2))
    shrinkage = product / square
    remainder = max((hi - lo) ** 2 / 12 - shrinkage * product, 0.0)
    return math.sqrt(raw) / (hi - lo), math.sqrt(remainder) / (hi - lo), shrinkage


def shrink_release(mechanism: Mechanism, released: ArrayLike) -> NDArray[np.float64]:
    """Move released values towards the midpoint of the bounds, which costs no privacy.

    A release R becomes m + s(R − m), with the factor s of smallest error. If the noise is large
    beside the range, nearly only the midpoint m remains; if it is small, the values stay.

    Parameters
    ----------
    mechanism
        The mechanism that released the values.
    released
        The values R.

    Returns
    -------
    NDArray[np.float64]
        The moved values.

    Examples
    --------
    >>> from walklearn.privacy.mechanisms import Laplace
    >>> shrink_release(Laplace(scale=9.0, bounds=(1.0, 10.0)), [1.0, 5.5, 10.0])
    array([4.74152262, 5.5       , 6.25847738])
    """
    low, high = mechanism.bounds
    middle = (low + high) / 2
    clamped = np.clip(np.asarray(released, dtype=np.float64), low, high)
    return np.asarray(middle + release_error(mechanism)[2] * (clamped - middle))


def _compared(kind: str, epsilon: float, delta: float, bounds: Bounds) -> ComparedMechanism:
    try:
        mechanism = calibrate(kind, epsilon=epsilon, delta=delta, bounds=bounds)
    except InfeasiblePrivacyError as error:
        return ComparedMechanism(kind, None, math.nan, math.nan, math.nan, str(error))
    return ComparedMechanism(kind, mechanism, *release_error(mechanism))


def _quadrature() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Gauss–Legendre on [0, 1], refined towards the ends where clamping bends the curves."""
    nodes, weights = np.polynomial.legendre.leggauss(16)
    edges = np.array([0.0, 1e-6, 1e-4, 1e-3, 1e-2, 0.1, 0.3, 0.5])
    edges = np.concatenate([edges, 1.0 - edges[-2::-1]])
    widths = np.diff(edges)[:, None]
    points = edges[:-1, None] + widths * (nodes + 1) / 2
    return points.ravel(), (widths * weights / 2).ravel()


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.005 else f"{100 * share:.2g} %"
