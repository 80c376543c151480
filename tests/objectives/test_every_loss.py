"""One suite for every loss: slopes are derivatives, smoothness bounds them, nothing overflows."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.objectives.cases import MARGIN_LOSSES, targets_for
from walklearn.objectives.linear.losses import Huber, Logistic, Softmax, Squared, SquaredHinge

LOSSES = [
    Logistic(), Squared(), Huber(), Huber(0.3), Huber(5.0), SquaredHinge(), Softmax(), Softmax(4),
]  # fmt: skip


def scores_for(loss, rows, generator, size=3.0):
    shape = (rows, 4) if isinstance(loss, Softmax) else (rows,)
    return size * generator.standard_normal(shape)


def along(loss, scores, direction, h):
    """Return the scores moved by h in a direction."""
    return scores + h * direction if isinstance(loss, Softmax) else scores + h


def distance_to_kink(loss, scores, targets):
    if isinstance(loss, Huber):
        return np.abs(np.abs(scores - targets) - loss.threshold)
    if isinstance(loss, SquaredHinge):
        return np.abs(1.0 - targets * scores)
    return np.full(len(scores), np.inf)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
class TestLoss:
    def test_the_largest_slope_is_approached_and_not_exceeded(self, loss):
        generator = np.random.default_rng(0)
        targets = targets_for(loss, 200, generator, 4)
        for size in (1.0, 1e3, 1e6):
            slopes = loss.slope(scores_for(loss, 200, generator, size), targets)
            sizes = np.linalg.norm(slopes.reshape(200, -1), axis=1)
            assert sizes.max() <= loss.max_slope * (1 + 1e-12)
        assert sizes.max() > min(0.999 * loss.max_slope, 1e5)

    @given(seed=st.integers(0, 2**32), size=st.sampled_from([0.1, 3.0, 20.0]))
    @settings(max_examples=20, deadline=None)
    def test_slope_is_the_derivative_of_the_value(self, loss, seed, size):
        generator = np.random.default_rng(seed)
        targets = targets_for(loss, 20, generator, 4)
        scores = scores_for(loss, 20, generator, size)
        direction = generator.standard_normal(scores.shape)
        h = 1e-5
        rise = loss.value(along(loss, scores, direction, h), targets)
        fall = loss.value(along(loss, scores, direction, -h), targets)
        slope = loss.slope(scores, targets)
        assert slope.shape == scores.shape
        expected = (slope * direction).sum(axis=1) if slope.ndim == 2 else slope
        # At a kink of the slope a central difference has an error of at most β h / 2.
        assert np.allclose((rise - fall) / (2 * h), expected, rtol=1e-6, atol=1e-4)

    @given(seed=st.integers(0, 2**32))
    @settings(max_examples=20, deadline=None)
    def test_curvature_is_the_derivative_of_the_slope(self, loss, seed):
        generator = np.random.default_rng(seed)
        targets = targets_for(loss, 20, generator, 4)
        scores = scores_for(loss, 20, generator)
        smooth = distance_to_kink(loss, scores, targets) > 1e-3
        scores, targets = scores[smooth], targets[smooth]
        direction = generator.standard_normal(scores.shape)
        h = 1e-5
        rise = loss.slope(along(loss, scores, direction, h), targets)
        fall = loss.slope(along(loss, scores, direction, -h), targets)
        curvature = loss.curvature(scores, targets)
        if isinstance(loss, Softmax):
            assert curvature.shape == (len(scores), 4, 4)
            curvature = np.einsum("rkl,rl->rk", curvature, direction)
        assert np.allclose((rise - fall) / (2 * h), curvature, rtol=1e-6, atol=1e-7)

    @given(seed=st.integers(0, 2**32), near=st.booleans())
    @settings(max_examples=30, deadline=None)
    def test_smoothness_is_a_lipschitz_constant_of_the_slope(self, loss, seed, near):
        generator = np.random.default_rng(seed)
        targets = targets_for(loss, 50, generator, 4)
        before = scores_for(loss, 50, generator)
        after = before + scores_for(loss, 50, generator, 1e-3 if near else 3.0)
        change = np.linalg.norm(
            (loss.slope(before, targets) - loss.slope(after, targets)).reshape(50, -1), axis=1
        )
        moved = np.linalg.norm((before - after).reshape(50, -1), axis=1)
        assert (change <= loss.smoothness * moved * (1 + 1e-9) + 1e-13).all()

    def test_smoothness_is_the_tightest_bound(self, loss):
        if isinstance(loss, Softmax):
            scores = np.array(list(itertools.product([-50.0, 0.0], repeat=4)))
            targets = np.zeros(len(scores))
            steepest = np.linalg.eigvalsh(loss.curvature(scores, targets)).max()
        else:
            scores = np.linspace(-8.0, 8.0, 1601)
            steepest = loss.curvature(scores, np.ones_like(scores)).max()
        assert steepest == pytest.approx(loss.smoothness, rel=1e-12)

    @given(seed=st.integers(0, 2**32))
    @settings(max_examples=15, deadline=None)
    def test_value_is_convex_and_not_negative(self, loss, seed):
        generator = np.random.default_rng(seed)
        targets = targets_for(loss, 50, generator, 4)
        a, b = scores_for(loss, 50, generator), scores_for(loss, 50, generator)
        ends = 0.5 * (loss.value(a, targets) + loss.value(b, targets))
        assert (loss.value(0.5 * (a + b), targets) <= ends + 1e-12).all()
        assert (loss.value(a, targets) >= 0).all()

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize("target_dtype", [np.float64, np.float32])
    def test_nothing_overflows_at_huge_scores(self, loss, dtype, target_dtype):
        huge = np.array([1e4, -1e4, 1e4, -1e4], dtype=dtype)
        if isinstance(loss, Softmax):
            huge = np.stack([huge, -huge, 0 * huge, 0 * huge], axis=1)
            targets = np.array([0, 0, 1, 1], dtype=target_dtype)
        else:
            targets = np.array([1, 1, -1, -1], dtype=target_dtype)
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            value = loss.value(huge, targets)
            slope = loss.slope(huge, targets)
            curvature = loss.curvature(huge, targets)
        for array in (value, slope, curvature):
            assert np.isfinite(array).all()
        if isinstance(loss, Softmax):
            assert np.allclose(value, [0.0, 2e4, 2e4, 0.0])
            assert np.allclose(slope[1], [-1, 1, 0, 0])
        if isinstance(loss, Logistic):
            assert np.allclose(value, [0.0, 1e4, 1e4, 0.0])
            assert np.allclose(slope, [0, -1, 1, 0])

    def test_targets_are_checked(self, loss):
        generator = np.random.default_rng(1)
        loss.check_targets(targets_for(loss, 10, generator, 4))
        if isinstance(loss, MARGIN_LOSSES):
            wrong = [0.0, 2.0, np.nan, np.inf, 1.0000001]
        elif isinstance(loss, Softmax):
            wrong = [-1.0, 0.5, np.nan, np.inf]
            if loss.classes is not None:
                wrong.append(float(loss.classes))
        else:
            wrong = []
        for bad in wrong:
            with pytest.raises(ValueError, match="row 1 has label"):
                loss.check_targets(np.array([1.0, bad, 1.0]))

    def test_outputs(self, loss):
        targets = np.array([0.0, 3.0, 1.0])
        assert loss.outputs(targets) == (4 if isinstance(loss, Softmax) else 1)
