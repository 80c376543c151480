"""The table of the half-normal quantile: derived again, and held against ball arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO

import flint
import numpy as np
import pytest
from flint import arb
from numpy.typing import NDArray

from walklearn.privacy.draws import exact_draws, half_normal
from walklearn.privacy.draws.exact_draws import Normal

DEVIATIONS = [2.0**-900, 0.01, 0.51, 1.0, 3.7, 1000.3, 2.0**24 / 3, 1.7 * 2.0**30, 2.0**44, 2.0**53]
deviations = pytest.mark.parametrize("sigma", DEVIATIONS)


@contextmanager
def precision(bits: int) -> Iterator[None]:
    before, flint.ctx.prec = flint.ctx.prec, bits
    try:
        yield
    finally:
        flint.ctx.prec = before


def exact(digits: int, sigma: float, following: int) -> int:
    """Round σ q(u) by ball arithmetic alone; bytes of this value follow the 63 digits."""
    bits = BytesIO(digits.to_bytes(8, "big") + bytes([following]) * 4096)
    (steps,) = exact_draws.rounded([(Normal(sigma), 0.0)], 1.0, bits=bits)
    return int(steps)


def near_column_borders() -> NDArray[np.int64]:
    """All borders of columns, and the numbers where rounding to a double crosses them."""
    borders = [
        (16 + j) << (62 - n - 4) if 62 - n >= 4 else (16 + j) >> (n - 58)
        for n in range(36)
        for j in range(16)
    ]
    shifts = [sign * 2**shift for shift in (0, 1, 8, 9, 10) for sign in (-1, 1)]
    found = {border + shift for border in [*borders, 2**63] for shift in (0, *shifts)}
    return np.array(sorted(m for m in found if 0 <= m < 2**63))


def near_edges_of_cells(sigma: float, count: int, seed: int) -> NDArray[np.int64]:
    """Digits of u at edges k + ½ of cells, then shifted by what the error bound amounts to."""
    generator, found = np.random.default_rng(seed), []
    with precision(200):
        for x in generator.uniform(0.0, 6.0, count):
            edge = arb(math.floor(x * sigma)) + arb(1) / 2
            tail = (edge / (arb(2).sqrt() * sigma)).erfc()
            digits = int((tail * arb(2) ** 63).mid().floor().unique_fmpz())
            found += [digits + shift for shift in (-1, 0, 1)]
            found += [digits + sign * 2**shift for shift in range(2, 14, 2) for sign in (-1, 1)]
    return np.array([digits for digits in found if 0 <= digits < 2**63])


def test_the_shipped_table_is_the_derived_one() -> None:
    shipped = half_normal._table()
    assert shipped.shape == (half_normal.DEGREE + 2, 16 * half_normal.BINADES)
    np.testing.assert_array_equal(shipped, half_normal.derived_table())
    assert half_normal._FILE.stat().st_size < 100_000


def test_the_error_bound_holds_in_every_column() -> None:
    """Against q itself, at both ends, the centre and seeded points of each column."""
    table, generator = half_normal._table(), np.random.default_rng(1)
    worst = 0.0
    with precision(160):
        for column, errors in enumerate(table[-1]):
            first = (half_normal._FIRST + column) << 48
            low = generator.integers(0, 2**48, 8)
            patterns = np.concatenate([[0, 1, 2**47, 2**48 - 1], low]) + first
            doubles = patterns.view(np.float64)
            s = (patterns & (2**48 - 1)) * 2.0**-47 - 1.0
            values = np.polyval(table[-2::-1, column], s)  # Horner's rule too
            for d, value in zip(doubles.tolist(), values.tolist(), strict=True):
                u = arb(d) / arb(2) ** 63
                q = arb(2).sqrt() * u.erfcinv()
                worst = max(worst, float(abs(q - arb(value)).upper()) / errors)
    assert 0.05 < worst < 1.0


@deviations
def test_proved_draws_agree_with_ball_arithmetic(sigma: float) -> None:
    """For digits at borders and edges, whatever digits follow."""
    seed = DEVIATIONS.index(sigma)
    digits = np.concatenate(
        [near_column_borders()[seed::10], near_edges_of_cells(sigma, 200, seed)]
    )
    steps, is_proved = half_normal.magnitudes(digits, sigma)
    assert sigma > 2.0**50 or is_proved.mean() > 0.2
    for m, found in zip(digits[is_proved].tolist(), steps[is_proved].tolist(), strict=True):
        assert found == exact(m, sigma, 0x00) == exact(m, sigma, 0xFF)


def test_the_edges_catch_a_table_without_error_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above can fail: it finds wrong cells once the bound is a 64th."""
    table = half_normal._table().copy()
    table[-1] /= 64
    monkeypatch.setattr(half_normal, "_table", lambda: table)
    sigma = 2.0**44
    digits = near_edges_of_cells(sigma, 100, 4)
    steps, is_proved = half_normal.magnitudes(digits, sigma)
    pairs = zip(digits[is_proved].tolist(), steps[is_proved].tolist(), strict=True)
    assert any(not found == exact(m, sigma, 0x00) == exact(m, sigma, 0xFF) for m, found in pairs)


@pytest.mark.parametrize("sigma", [0.7, 3.3 * 2.0**24, 2.0**45])
def test_blocks_are_the_draws_of_ball_arithmetic(sigma: float) -> None:
    """60,000 draws each of the same bits; more digits than 64 are needed for none of them."""
    count = 60_000
    content = np.random.default_rng(11).bytes(8 * count)
    found = exact_draws.rounded_normal(count, sigma, 1.0, BytesIO(content))
    expected = exact_draws.rounded([(Normal(sigma), 0.0)] * count, 1.0, bits=BytesIO(content))
    np.testing.assert_array_equal(found, np.array(expected, dtype=np.int64))


def test_few_draws_are_left_to_ball_arithmetic() -> None:
    """At 64 times the clip, a share of about 2^-20: 20 of 2^17 have a chance below 1e-20."""
    digits = np.random.default_rng(3).integers(0, 2**63, 2**17)
    _, is_proved = half_normal.magnitudes(digits, 2.0**30)
    assert (~is_proved).sum() < 20
