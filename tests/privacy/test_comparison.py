"""The table of mechanisms: known numbers, checked by simulation, and its words."""

from __future__ import annotations

import math

import numpy as np
import pytest

from walklearn import privacy


@pytest.mark.parametrize(
    ("epsilon", "delta", "kind", "raw"),
    [
        (3.0, 0.06, "clamped-gamma", 0.381),
        (3.0, 0.06, "laplace", 0.297),
        (3.0, 0.06, "truncated-laplace", 0.302),
        (1.0, 0.06, "clamped-gamma", 0.567),
        (1.0, 0.06, "laplace", 0.443),
        (1.0, 0.06, "truncated-laplace", 0.446),
    ],
)
def test_numbers_worked_out_beforehand(epsilon: float, delta: float, kind: str, raw: float) -> None:
    comparison = privacy.compare(epsilon=epsilon, delta=delta, bounds=(1.0, 10.0))
    row = {row.kind: row for row in comparison.rows}[kind]
    assert row.raw_error == pytest.approx(raw, abs=6e-4)
    assert comparison.constant_error == pytest.approx(0.289, abs=5e-4)


def test_shrunk_pure_laplace() -> None:
    comparison = privacy.compare(epsilon=3.0, delta=0.0, bounds=(1.0, 10.0))
    assert comparison.best is not None
    assert comparison.best.kind == "laplace"
    assert comparison.best.shrunk_error == pytest.approx(0.235, abs=5e-4)


@pytest.mark.parametrize("bounds", [(1.0, 2.0), (1.0, 50.0)])
def test_errors_by_simulation(bounds: tuple[float, float]) -> None:
    """A million releases; 2e-3 is more than six standard errors of each error."""
    generator = np.random.default_rng(5)
    lo, hi = bounds
    values = generator.uniform(lo, hi, 1_000_000)
    middle = (lo + hi) / 2
    for row in privacy.compare(epsilon=3.0, delta=0.05, bounds=bounds).rows:
        if row.mechanism is None:
            assert row.kind == "gamma"
            continue
        released = np.clip(row.mechanism.release(values, generator), lo, hi)
        shrunk = middle + row.shrinkage * (released - middle)
        for estimate, error in ((released, row.raw_error), (shrunk, row.shrunk_error)):
            found = math.sqrt(np.mean((estimate - values) ** 2)) / (hi - lo)
            assert found == pytest.approx(error, abs=2e-3)
        # No other linear shrinkage is better.
        for factor in (0.9, 1.1):
            other = middle + factor * row.shrinkage * (released - middle)
            assert np.mean((other - values) ** 2) > np.mean((shrunk - values) ** 2)


def test_rows_are_ranked_and_honest() -> None:
    comparison = privacy.compare(epsilon=3.0, delta=0.03, bounds=(1.0, 50.0))
    raw = [row.raw_error for row in comparison.rows if row.mechanism is not None]
    assert raw == sorted(raw)
    assert {row.kind for row in comparison.rows} == set(privacy.MECHANISMS)
    last = comparison.rows[-1]
    assert last.kind == "gamma"
    assert last.mechanism is None
    assert "the floor is 0.851" in last.reason
    for row in comparison.rows[:-1]:
        assert row.mechanism is not None
        assert row.mechanism.delta(3.0) <= 0.03
        assert row.shrunk_error <= min(row.raw_error, comparison.constant_error)
    text = str(comparison)
    assert "beats the constant" in text
    assert "34 %" in text
    assert "infeasible" in text


def test_words_when_releases_are_worth_something() -> None:
    some = privacy.compare(epsilon=10.0, delta=0.01, bounds=(1.0, 2.0))
    assert "only laplace and truncated-laplace" in some.verdict
    assert "all beat" in privacy.compare(epsilon=100.0, delta=0.01, bounds=(1.0, 2.0)).verdict
    nothing = privacy.compare(epsilon=0.0, delta=0.0, bounds=(1.0, 2.0))
    assert nothing.best is None
    assert "publish a constant" in nothing.verdict
    assert all(row.reason for row in nothing.rows)


def test_precise_releases_have_small_errors() -> None:
    """With noise far below the range the error is the noise itself."""
    raw, shrunk, shrinkage = privacy.release_error(privacy.Gaussian(1e-4, (1.0, 2.0)))
    assert raw == pytest.approx(1e-4, rel=1e-3)
    assert shrunk == pytest.approx(raw, rel=1e-3)
    assert shrinkage == pytest.approx(1.0, abs=1e-6)
