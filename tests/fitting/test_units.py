"""Units: what a model says does not depend on whether it is asked in given or trained units."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import StandardScaler

from walklearn.fitting.units import Units


@given(seed=st.integers(0, 2**32), intercept=st.booleans(), outputs=st.integers(1, 3))
@settings(max_examples=50, deadline=None)
def test_scores_are_the_same_in_both_units(seed: int, intercept: bool, outputs: int) -> None:
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((8, 4)) * 10.0 ** generator.integers(-6, 7, 4)
    X += generator.standard_normal(4)
    targets = generator.standard_normal(8) + 5.0
    units = Units.standard(X, generator.uniform(0.1, 2.0, 8), intercept, targets)
    model = generator.standard_normal((outputs, 4 + intercept))
    scores = units.rows(X) @ model.T + units.target.centre
    back = units.to_original(model)
    given_rows = np.column_stack([X, np.ones(8)]) if intercept else X
    np.testing.assert_allclose(given_rows @ back.T, scores, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(units.to_original(model[0]), back[0])


def test_units_are_those_of_a_standard_scaler() -> None:
    X = np.random.default_rng(0).gamma(2.0, size=(50, 3)) * [1.0, 1e6, 1e-9]
    weights = np.arange(50.0)
    units = Units.standard(X, weights, intercept=True)
    scaler = StandardScaler().fit(X, sample_weight=weights)
    np.testing.assert_allclose(units.rows(X)[:, :3], scaler.transform(X))
    again = np.repeat(X, weights.astype(int), axis=0)
    np.testing.assert_allclose(Units.standard(again, np.ones(len(again)), True).scale, units.scale)


@pytest.mark.parametrize("column", [np.full(5, 0.0), np.full(5, 3e200), [1e200, -1e200, 0, 0, 0]])
def test_odd_columns_stay_finite(column: Any) -> None:
    X = np.column_stack([column, np.arange(5.0)])
    units = Units.standard(X, np.ones(5), True)
    assert np.isfinite(units.rows(X)).all()
    assert (units.scale > 0).all()


def test_without_an_intercept_nothing_is_shifted() -> None:
    X = np.array([[3.0, -4.0], [4.0, 3.0]])
    units = Units.standard(X, np.ones(2), False, np.array([5.0, 6.0]))
    assert units.target.centre == 0.0
    np.testing.assert_array_equal(units.shift, [0.0, 0.0])
    np.testing.assert_allclose(units.scale, [12.5**0.5] * 2)


def test_a_column_that_spans_too_much_is_refused() -> None:
    X = np.array([[0.0, 1.7e308], [1.0, -1.7e308], [0.0, -1.7e308]])
    with pytest.raises(ValueError, match="column 1 of X"):
        Units.standard(X, np.ones(3), intercept=True)
