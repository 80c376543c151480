"""Every mechanism at the same (ε, δ) and bounds, by the error of what it releases.

The error is the root mean square of (release − value)/(hi − lo) for values uniform over the
bounds, every release clamped to the bounds. *Raw* is the release as it comes. *Shrunk* is
m + s(R − m), the best linear move towards the midpoint m: with E over values and noise,

    s = E[(R − m)(v − m)] / E[(R − m)²],   error² = E[(v − m)²] − s E[(R − m)(v − m)],

all of it from public quantities, so it is free. The *constant* m itself, a release that tells
nothing at all, has the error 1/√12 = .289: a mechanism is worth something only below it.

>>> print(compare(epsilon=3.0, delta=0.06, bounds=(1.0, 10.0)))
(epsilon, delta) = (3, 0.06), bounds 1..10: error as a share of the range
mechanism             noise      raw   shrunk
laplace                2.88    0.298    0.232
truncated-laplace      15.2    0.302    0.234
gaussian               4.46    0.346    0.252
clamped-gamma          6.42    0.381    0.260
constant                  -    0.289    0.289
gamma                     -        -        -   infeasible: no noise level gives delta <= 0.06...
As released, none beats the constant, which tells nothing.
After shrinkage the best, laplace, is 20 % closer than the constant:
it tells a neighbour 35 % of the variance of a value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

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
class Row:
    """One mechanism of a comparison.

    Parameters
    ----------
    kind
        The name of the mechanism.
    mechanism
        The calibrated mechanism; None where the target is infeasible.
    raw_error, shrunk_error
        Root mean square errors of what is released, and of that moved towards the midpoint, as
        shares of the range; NaN where the target is infeasible.
    shrinkage
        The factor s by which `shrunk` moves a release.
    reason
        Why the target is infeasible; empty where it is not.

    Examples
    --------
    >>> row = compare(epsilon=1.0, delta=1e-5, bounds=(1.0, 2.0)).best
    >>> row.kind, row.shrunk_error <= row.raw_error
    ('laplace', True)
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
    epsilon
        ε, at least 0: P(outcome) ≤ e^ε · P(outcome with the other value) + δ for all outcomes.
    delta
        δ, the additive slack in that inequality.
    bounds
        Public lo and hi over all data a node could hold, never computed from data.
    rows
        A row for each mechanism.
    constant_error
        The error of telling nothing but the midpoint of the bounds, as a share of the range.

    Examples
    --------
    >>> found = compare(epsilon=1.0, delta=1e-5, bounds=(1.0, 2.0))
    >>> found.best.kind, [row.kind for row in found.rows if row.mechanism is None]
    ('laplace', ['gamma'])
    """

    epsilon: float
    delta: float
    bounds: Bounds
    rows: tuple[Row, ...]
    constant_error: float = CONSTANT_ERROR

    @property
    def _feasible(self) -> list[Row]:
        return [row for row in self.rows if row.mechanism is not None]

    @property
    def best(self) -> Row | None:
        """The feasible mechanism with the least error after shrinkage."""
        return min(self._feasible, key=lambda row: row.shrunk_error, default=None)

    @property
    def verdict(self) -> str:
        """What a neighbour learns from a release that a constant would not tell, in words."""
        if self.best is None:
            return "No mechanism reaches this target: publish a constant, the midpoint."
        useful = [row.kind for row in self._feasible if row.raw_error < self.constant_error]
        if len(useful) in (0, len(self._feasible)):
            beats = "all beat" if useful else "none beats"
        else:
            beats = f"only {' and '.join(useful)} beat{'s' if len(useful) == 1 else ''}"
        share = self.best.shrunk_error / self.constant_error
        return (
            f"As released, {beats} the constant, which tells nothing.\n"
            f"After shrinkage the best, {self.best.kind}, is {_percent(1 - share)} closer than the "
            f"constant:\nit tells a neighbour {_percent(1 - share**2)} of the variance of a value."
        )

    def __str__(self) -> str:
        rows, feasible, error = list(map(str, self.rows)), len(self._feasible), self.constant_error
        lines = [
            f"(epsilon, delta) = ({format_upper(self.epsilon)}, {format_upper(self.delta)}), "
            f"bounds {self.bounds[0]:g}..{self.bounds[1]:g}: error as a share of the range",
            f"{'mechanism':<18}{'noise':>9}{'raw':>9}{'shrunk':>9}",
            *rows[:feasible],
            f"{'constant':<18}{'-':>9}{error:>9.3f}{error:>9.3f}",
            *rows[feasible:],
            self.verdict,
        ]
        return "\n".join(lines)


def compare(*, epsilon: float, delta: float, bounds: Sequence[float]) -> Comparison:
    """Calibrate every mechanism to (ε, δ) and rank them by the error of what they release.

    Parameters
    ----------
    epsilon
        ε, at least 0: P(outcome) ≤ e^ε · P(outcome with the other value) + δ for all outcomes.
    delta
        δ, the additive slack in that inequality.
    bounds
        Public lo and hi over all data a node could hold, never computed from data.

    Returns
    -------
    Comparison
        The mechanisms in order of their raw error.

    Examples
    --------
    >>> best = compare(epsilon=3.0, delta=0.03, bounds=(1.0, 10.0)).rows[0]
    >>> best.mechanism is not None
    True
    """
    ends = check_bounds(bounds)
    rows = [_row(kind, epsilon, delta, ends) for kind in MECHANISMS]
    rows.sort(key=lambda row: (row.mechanism is None, row.raw_error))
    return Comparison(float(epsilon), float(delta), ends, tuple(rows))


def release_error(mechanism: Mechanism) -> tuple[float, float, float]:
    """Measure how far a release, clamped to its bounds, lies from the truth.

    Parameters
    ----------
    mechanism
        The mechanism to measure.

    Returns
    -------
    raw : float
        The root mean square error, as a share of the range.
    shrunk : float
        The same after `shrunk`.
    shrinkage : float
        The factor of `shrunk`.

    Examples
    --------
    >>> from walklearn.privacy.mechanisms import Laplace
    >>> raw, shrunk, shrinkage = release_error(Laplace(scale=3.0, bounds=(1.0, 10.0)))
    >>> raw > shrunk
    True
    """
    if isinstance(mechanism, Gamma):
        # Clamping what it releases is free.
        mechanism = ClampedGamma(mechanism.theta, mechanism.bounds)
    lo, hi = mechanism.bounds
    nodes, weights = _quadrature()
    middle, values = (lo + hi) / 2, lo + (hi - lo) * nodes
    bias, variance = mechanism.bias(values), mechanism.variance(values)
    raw = float(weights @ (variance + bias**2))
    off_middle = values + bias - middle
    together = float(weights @ (off_middle * (values - middle)))
    square = float(weights @ (variance + off_middle**2))
    shrinkage = together / square
    left = max((hi - lo) ** 2 / 12 - shrinkage * together, 0.0)
    return math.sqrt(raw) / (hi - lo), math.sqrt(left) / (hi - lo), shrinkage


def shrunk(mechanism: Mechanism, released: ArrayLike) -> NDArray[np.float64]:
    """Move released values towards the midpoint of the bounds, which costs no privacy.

    A release R becomes m + s(R − m), with the factor s of least error. Where the noise is large
    beside the range little is left but the midpoint m; where it is small the values stay.

    Parameters
    ----------
    mechanism
        What released the values.
    released
        The values R.

    Returns
    -------
    NDArray[np.float64]
        The values moved.

    Examples
    --------
    >>> from walklearn.privacy.mechanisms import Laplace
    >>> shrunk(Laplace(scale=9.0, bounds=(1.0, 10.0)), [1.0, 5.5, 10.0])
    array([4.74152262, 5.5       , 6.25847738])
    """
    low, high = mechanism.bounds
    middle = (low + high) / 2
    inside = np.clip(np.asarray(released, dtype=np.float64), low, high)
    return np.asarray(middle + release_error(mechanism)[2] * (inside - middle))


def _row(kind: str, epsilon: float, delta: float, bounds: Bounds) -> Row:
    try:
        mechanism = calibrate(kind, epsilon=epsilon, delta=delta, bounds=bounds)
    except InfeasiblePrivacyError as error:
        return Row(kind, None, math.nan, math.nan, math.nan, str(error))
    return Row(kind, mechanism, *release_error(mechanism))


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
