"""Rounded magnitudes of Gaussian noise in bulk: a certified table, then only + and × of doubles.

q(u) is the magnitude that a standard normal number exceeds with probability u. Let m be the first
63 binary digits of u, so u lies in [m, m + 1] / 2^63, and let σ ≥ 2^-900 be the standard deviation
in steps of the grid. `magnitudes` returns the whole number nearest to σ q(u), and True if this is
proved. `exact_draws` decides the other draws by ball arithmetic, with the same digits and more.

**Table.** `half_normal.npy` has a column for each interval of u: 2^-n (1 + j/16) to
2^-n (1 + (j + 1)/16), for n = 1 to 32 and j = 0 to 15. The exponent and the first four digits of m,
rounded to a double d, select the column. It holds the Taylor coefficients c_k of q at the centre
of the interval, in the variable s from −1 to 1, as doubles, and an error bound E. Ball arithmetic
computes all of this (`derived_table`), and a test derives the file again.

**Proof.** Let ε = 2^-52; this covers every rounding mode of the processor. Let u₀ and r be the
interval's centre and radius, q_k the Taylor coefficients of q at u₀, and c_k a double next to
q_k r^k. The polynomial p(s) = Σ c_k s^k, k ≤ D, is evaluated by Horner's rule. The error bound E is
the sum of five bounds:

1. *Digits.* |d/2^63 − u| ≤ 2^-63 + ε (u₀ + r): the digits after the 63rd, and the rounding of m
   to d. By the mean value theorem, q changes by at most max |q'| times this. The maximum is over
   the interval, widened by the same length on both sides.
2. *Truncation.* Σ |q_k| r^k over D < k < K, and max |q_K| r^K for Lagrange's remainder, where the
   maximum is over all expansion points in the interval.
3. *Coefficients.* Σ |c_k − q_k r^k|.
4. *Horner's rule.* s is exact: the digits of d after those that select the column, times 2^-47,
   minus 1. The coefficient c_k passes through at most 2k + 1 roundings, each a factor of 1 + δ,
   |δ| ≤ ε. The error is at most Σ γ_(2k+1) |c_k|, where γ_n = nε/(1 − nε).
5. *Product.* y = σ p is rounded once: at most ε (1 + γ_(2D+1)) Σ |c_k|.

So |y − σ q(u)| ≤ σE. The stored E is larger by a factor of more than 1 + 2^-51. This covers the
rounding of the computed σE, and underflow, which adds less than 2^-1010 to p and to y: E is above
2^-52, and σE 2^-51 above 2^-1003.

Let k be the whole number next to y. The difference y − k is exact. Rounding is monotone, so if the
computed ½ − |y − k| exceeds the computed σE, so does the exact one. Then k − ½ < σ q(u) < k + ½,
which proves k. Otherwise the draw is undecided: a share of about 2^-50 σ of the draws, and
the magnitudes beyond the table (a share of 2^-32).

>>> magnitudes(np.array([2**62, 1, 2**63 - 1]), sigma=2.0**24)  # the median, and both ends
(array([ 11316060, 106333286,    657266]), array([ True, False, False]))
"""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

BINADES = 32  # n = 1 to 32
DEGREE = 9  # D
_LEADING = 4  # digits of m after the first 1 that select the column
_TERMS = 24  # K
_LOW_BITS = 52 - _LEADING
_FIRST = (1023 + 63 - BINADES) << _LEADING  # exponent and leading digits of the first column
_FILE = Path(__file__).with_name("half_normal.npy")


def magnitudes(
    digits: NDArray[np.int64], sigma: float
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return round(σ q(u)) for the first 63 digits of each u, and which of them are proved.

    The time depends on neither: every operation is applied to all draws.
    """
    *coefficients, errors = _table()
    rounded = digits.astype(np.float64)
    pattern = rounded.view(np.int64)
    column = (pattern >> _LOW_BITS) - _FIRST
    s = (pattern & ((1 << _LOW_BITS) - 1)).astype(np.float64)
    s *= 2.0 ** (1 - _LOW_BITS)
    s -= 1.0
    y = coefficients[DEGREE].take(column, mode="clip")
    for coefficient in coefficients[DEGREE - 1 :: -1]:
        y *= s
        y += coefficient.take(column, mode="clip")
    y *= sigma
    nearest = np.rint(y)
    y -= nearest
    margin = errors.take(column, mode="clip")
    margin *= sigma
    is_proved = 0.5 - np.abs(y, out=y) > margin
    is_proved &= column.view(np.uint64) < len(errors)  # a negative column counts as a huge one
    return nearest.astype(np.int64), is_proved


def derived_table() -> NDArray[np.float64]:
    """Derive the table by ball arithmetic; row k holds the c_k of all columns, the last row E."""
    from flint import arb, ctx

    before = ctx.prec, ctx.cap
    ctx.prec, ctx.cap = 300, _TERMS + 1
    try:
        columns = [
            _column((arb(1) + arb(2 * j + 1) / 2 ** (_LEADING + 1)) / 2**n, arb(2) ** (-n - 5))
            for n in range(BINADES, 0, -1)
            for j in range(2**_LEADING)
        ]
    finally:
        ctx.prec, ctx.cap = before
    return np.array(columns).T.copy()


def _column(centre: Any, radius: Any) -> list[float]:
    """Return c_0 to c_D and E for one interval; the docstring of the module numbers the bounds."""
    from flint import arb

    epsilon = arb(2) ** -52
    digits = arb(2) ** -63 + epsilon * (centre + radius)
    series = _series(centre)
    hull = _series(arb(centre, radius + digits))
    stored = [float(q * radius**k) for k, q in enumerate(series[: DEGREE + 1])]
    sizes = [abs(arb(c)) for c in stored]

    def gamma(n: int) -> Any:
        return n * epsilon / (1 - n * epsilon)

    error = abs(hull[1]) * digits
    error += sum(abs(series[k]) * radius**k for k in range(DEGREE + 1, _TERMS))
    error += abs(hull[_TERMS]) * radius**_TERMS
    error += sum(abs(c - series[k] * radius**k) for k, c in enumerate(stored))
    error += sum(gamma(2 * k + 1) * size for k, size in enumerate(sizes))
    error += epsilon * (1 + gamma(2 * DEGREE + 1)) * sum(sizes)
    # Three binary digits, rounded up: the last digits of a ball's radius vary between versions.
    mantissa, exponent = math.frexp(float((error * (1 + arb(2) ** -50)).upper()))
    return [*stored, math.ldexp(math.ceil(8 * mantissa) / 8, exponent)]


def _series(u: Any) -> list[Any]:
    """Enclose q_0 to q_K at every point of a ball, by reverting the series of P(|normal| ≥ x)."""
    from flint import arb, arb_series

    x = arb(2).sqrt() * u.erfcinv()
    density = (-(arb_series([x, 1]) ** 2) / 2).exp() * -(2 / arb.pi()).sqrt()
    reverted = density.integral().reversion()
    return [x, *(reverted[k] for k in range(1, _TERMS + 1))]


@cache
def _table() -> NDArray[np.float64]:
    table: NDArray[np.float64] = np.load(_FILE)
    return table


if __name__ == "__main__":
    np.save(_FILE, derived_table())
