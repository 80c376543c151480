"""ε and δ as text that never understates a claim.

A printed claim is rounded up, so that the printed bound holds. A lower bound (a floor of δ, the
result of an audit, a remaining budget) is rounded down. JSON contains all digits.

>>> format_upper(2.4141, 3), format_upper(3.0), format_upper(1e-5), format_lower(2.4189, 3)
('2.42', '3', '1e-05', '2.41')
"""

from __future__ import annotations

import math
from decimal import Decimal


def format_upper(value: float, digits: int = 6) -> str:
    """Return a number of at least 0 with 1 to 15 significant digits, rounded up.

    The text, such as "2.415" or "1e-05", is at least the value and exceeds it by less than one unit
    of its last digit. Infinity is "inf".
    """
    return _rounded(value, digits, 1)


def format_lower(value: float, digits: int = 6) -> str:
    """Return the value with the given number of significant digits, rounded down."""
    return _rounded(value, digits, -1)


def format_claim(epsilon: float, delta: float) -> str:
    """Return a pair as text, both rounded up.

    >>> format_claim(3.0, 1e-5)
    '(ε, δ) = (3, 1e-05)'
    """
    return f"(ε, δ) = ({format_upper(epsilon)}, {format_upper(delta)})"


def _rounded(value: float, digits: int, direction: int) -> str:
    nearest = f"{value:.{digits}g}"
    if not math.isfinite(value) or (float(nearest) - value) * direction >= 0.0:
        return nearest
    # The nearest decimal lies on the wrong side, so the next one lies on the right side.
    unit = Decimal(1).scaleb(Decimal(value).adjusted() + 1 - digits)
    return f"{float(Decimal(nearest) + direction * unit):.{digits}g}"
