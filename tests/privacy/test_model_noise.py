"""Noise on the model: exact costs, least noise, and clipping before the noise."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import walklearn as wl
from walklearn.objectives.linear.losses import Softmax, Squared
from walklearn.privacy.accounting.curves import smallest_epsilon
from walklearn.privacy.model_noise import ModelNoise
from walklearn.privacy.noisy_gradients import CLIP_STEPS

NOISE = ModelNoise(clip=2.0, noise_multiplier=3.0, max_contributions=4)


def exact_delta(epsilon: float, multiplier: float, contributions: int) -> mpmath.mpf:
    with mpmath.workdps(60):
        mu = 2 * mpmath.sqrt(contributions) / mpmath.mpf(multiplier)
        near, far = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
        return mpmath.ncdf(near) - mpmath.exp(epsilon) * mpmath.ncdf(far)


@pytest.mark.parametrize("multiplier", [0.05, 0.5, 3.0, 40.0, 1000.0])
@pytest.mark.parametrize("contributions", [1, 7, 1000])
def test_delta_is_the_analytic_gaussian_and_never_below(
    multiplier: float, contributions: int
) -> None:
    noise = ModelNoise(1.0, multiplier, contributions)
    mu = 2 * np.sqrt(contributions) / multiplier
    for sigmas in (0.0, 0.3, 1.0, 3.0, 6.0):
        epsilon = float(mu * (sigmas + mu / 2))
        truth = exact_delta(epsilon, multiplier, contributions)
        found = noise.delta(epsilon)
        assert found >= truth
        assert found == pytest.approx(float(truth), rel=1e-8, abs=1e-15)


def test_contributions_compose_to_one_gaussian() -> None:
    once = ModelNoise(1.0, 3.0 / 2.0, 1)
    assert NOISE.delta(1.0) == pytest.approx(once.delta(1.0), rel=1e-12)
    assert replace(NOISE, max_contributions=1).delta(1.0) == ModelNoise(9.0, 3.0, 1).delta(1.0)
    deltas = [replace(NOISE, max_contributions=n).delta(1.0) for n in range(1, 6)]
    assert np.all(np.diff(deltas) > 0)
    assert NOISE.delta(np.inf) < 1e-300
    assert NOISE.epsilon(0.0) == np.inf


def test_dp_accounting_agrees() -> None:
    """Its accountant composes the contributions one by one, to slightly more than the truth."""
    from dp_accounting.pld import privacy_loss_distribution as distributions

    one = distributions.from_gaussian_mechanism(
        standard_deviation=NOISE.standard_deviation, sensitivity=2 * NOISE.clip
    )
    theirs = one.self_compose(NOISE.max_contributions)
    for epsilon in (0.0, 0.5, 2.0, 5.0):
        delta = theirs.get_delta_for_epsilon(epsilon)
        assert NOISE.delta(epsilon) <= delta * (1 + 1e-9)
        assert NOISE.delta(epsilon) == pytest.approx(delta, rel=1e-5)


@given(
    st.floats(0.0, 20.0),
    st.floats(-30.0, -0.02),
    st.integers(1, 10_000),
)
@settings(max_examples=60, deadline=None)
def test_calibration_never_exceeds_delta_and_is_least(
    epsilon: float, log_delta: float, contributions: int
) -> None:
    delta = float(np.exp(log_delta))
    noise = ModelNoise.calibrate(
        epsilon=epsilon, delta=delta, clip=0.7, max_contributions=contributions
    )
    assert noise.delta(epsilon) <= delta
    assert exact_delta(epsilon, noise.noise_multiplier, contributions) <= delta
    less = ModelNoise(0.7, noise.noise_multiplier * (1 - 1e-6), contributions)
    assert less.delta(epsilon) > delta or less.delta(epsilon) == pytest.approx(delta, abs=1e-13)


def test_epsilon_inverts_delta() -> None:
    for delta in (0.3, 1e-3, 1e-9, 1e-30):
        epsilon = NOISE.epsilon(delta)
        assert NOISE.delta(epsilon) <= delta < NOISE.delta(epsilon * (1 - 1e-9))
    assert NOISE.epsilon(0.999) == 0.0
    assert smallest_epsilon(lambda _: 0.5, 0.4) == np.inf


NODE = ModelNoise(clip=2.0, noise_multiplier=3.0, max_contributions=4, protect="node")
ONES, ZEROS = np.ones(2), np.zeros(2)


def pull(*rows: list[float], **settings: Any) -> wl.Problem:
    """A node that holds rows whose gradients at w = 0 are the rows themselves.

    A problem refuses rows that are too long; what is clipped does not rely on it.
    """
    problem = wl.Problem(
        np.ones((len(rows), len(rows[0]))), -np.ones(len(rows)), loss=Squared(),
        node_of_row=np.zeros(len(rows), int), **{"nodes": 1, **settings},
    )  # fmt: skip
    problem.__setstate__({"X": np.array(rows, dtype=problem.X.dtype)})
    return problem


def test_the_gradient_of_a_node_is_clipped_before_the_noise() -> None:
    long, short = pull([30.0, 40.0]), pull([0.3, -0.4])

    def protected(problem: wl.Problem, normal: np.ndarray) -> np.ndarray:
        return NODE.protected(problem, 0, ZEROS, normal=normal)

    np.testing.assert_allclose(protected(long, ZEROS), [1.2, 1.6], rtol=1e-15)
    np.testing.assert_array_equal(protected(short, ZEROS), [0.3, -0.4])
    np.testing.assert_allclose(protected(long, ONES), [7.2, 7.6], rtol=1e-15)
    np.testing.assert_array_equal(protected(pull([0.0, 0.0]), ONES), [6.0, 6.0])
    # The sum of all rows is clipped, whatever the aggregate.
    both = pull([30.0, 40.0], [30.0, 40.0], aggregate="node-mean")
    np.testing.assert_allclose(protected(both, ZEROS), [1.2, 1.6], rtol=1e-15)


@pytest.mark.parametrize("aggregate", ["sum", "mean", "node-mean"])
def test_each_row_is_clipped_before_the_sum_and_the_noise(aggregate: Any) -> None:
    """Weights count before the clip; the factor of the aggregate is public and counts after it."""
    problem = pull([30.0, 40.0], [0.3, 0.4], [0.9, 1.2], nodes=2, aggregate=aggregate,
                   empty_nodes="relay", sample_weight=[1.0, 2.0, 4.0])  # fmt: skip
    factor = {"sum": 2.0, "mean": 2.0 / 7.0, "node-mean": 1.0 / 7.0}[aggregate]
    sums = np.array([1.2 + 0.6 + 1.2, 1.6 + 0.8 + 1.6])  # the third is 6 long, and 2 are left
    np.testing.assert_allclose(NOISE.clipped(problem, 0, ZEROS), sums, rtol=1e-15)
    noisy = NOISE.protected(problem, 0, ZEROS, normal=ONES)
    np.testing.assert_allclose(noisy, factor * (sums + 6.0), rtol=1e-15)
    # A relay has no rows to hide, and adds nothing.
    np.testing.assert_array_equal(NOISE.protected(problem, 1, ZEROS, normal=ONES), ZEROS)


def test_a_release_is_the_clipped_row_plus_the_noise() -> None:
    steps = NOISE.draw(2)
    row = NOISE.released(pull([30.0, 40.0]), 0, ZEROS, steps=steps) - NOISE.clip_step * steps
    np.testing.assert_allclose(row, [1.2, 1.6], atol=1e-6)


def test_rows_of_softmax_are_matrices() -> None:
    problem = wl.Problem([[3.0, 4.0]], [1.0], loss=Softmax(3), node_of_row=[0])
    gradient = NOISE.clipped(problem, 0, np.zeros(6))
    slopes = np.array([1 / 3, -2 / 3, 1 / 3])
    whole = np.outer(slopes, [3.0, 4.0]).reshape(-1)
    assert np.linalg.norm(whole) > 2.0
    np.testing.assert_allclose(gradient, whole * 2.0 / np.linalg.norm(whole), rtol=1e-14)


@pytest.mark.parametrize("noise", [NOISE, NODE])
@pytest.mark.parametrize("bad", [1e200, 1e155])
def test_overflow_is_not_revealed(noise: ModelNoise, bad: float) -> None:
    """Of one row among others nothing is left; of the sum of all of them neither."""
    np.testing.assert_array_equal(noise.clipped(pull([1.0, bad]), 0, ZEROS), ZEROS)
    with np.errstate(over="ignore"):
        beside = noise.clipped(pull([1.0, bad], [0.5, 0.5]), 0, ZEROS)
    np.testing.assert_array_equal(beside, [0.5, 0.5] if noise is NOISE else ZEROS)


@given(
    st.lists(st.tuples(st.floats(-1e150, 1e150), st.floats(-1e150, 1e150)), min_size=1, max_size=9),
    st.floats(-1e3, 1e3),
    st.sampled_from(["rows", "node"]),
    st.floats(1e-6, 1e6),
)
@settings(max_examples=200, deadline=None)
def test_replacing_a_row_moves_the_sum_by_two_clips_at_most(
    rows: list[tuple[float, float]], model: float, unit: Any, clip: float
) -> None:
    """On the grid exactly, in whole numbers; in floating point to the share that is charged."""
    noise = ModelNoise(clip, 1.0, 1, unit)
    w = np.array([model, -model / 3])
    problem, other = pull(*map(list, rows)), pull([1.0, -7.0], *map(list, rows[1:]))
    moved = noise.clipped_on_grid(problem, 0, w) - noise.clipped_on_grid(other, 0, w)
    assert sum(int(step) ** 2 for step in moved) <= (2 * CLIP_STEPS) ** 2
    change = noise.clipped(problem, 0, w) - noise.clipped(other, 0, w)
    assert np.linalg.norm(change) <= 2 * clip * (1 + 1e-12) + len(rows) * clip * 1e-15
    grid = noise.clip_step * noise.clipped_on_grid(problem, 0, w)
    off = np.abs(grid - noise.clipped(problem, 0, w))
    assert (off <= (len(rows) + 1) * noise.clip_step * (1 + 1e-6)).all()


def test_rows_are_passed_over_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same sums: whole numbers exactly, others up to the order of summation."""
    rows = np.random.default_rng(2).standard_normal((23, 2)).tolist()
    problem, w = pull(*rows), np.array([0.3, -2.0])
    exact, near = NOISE.clipped_on_grid(problem, 0, w), NOISE.clipped(problem, 0, w)
    monkeypatch.setattr("walklearn.privacy.noisy_gradients.NUMBERS_AT_ONCE", 10)  # 5 rows
    assert len(list(NOISE._gradients(problem, 0, w, ()))) == 5
    np.testing.assert_array_equal(NOISE.clipped_on_grid(problem, 0, w), exact)
    np.testing.assert_allclose(NOISE.clipped(problem, 0, w), near, rtol=1e-13)


def test_the_factor_reveals_no_single_weight() -> None:
    """To the last digit: 49 · (1/49) is not 1 in doubles, and would tell of a weight of 49."""
    for aggregate in ("sum", "mean", "node-mean"):
        one, other = (
            pull(*[[1.0, 2.0]] * 3, aggregate=aggregate, sample_weight=weights)
            for weights in ([49.0, 1.0, 48.0], [3.0, 47.0, 48.0])
        )
        assert one.row_factor(0) == other.row_factor(0)


def test_single_precision_is_clipped_in_double() -> None:
    rows = np.random.default_rng(1).standard_normal((200, 30)).astype(np.float32)
    problem = wl.Problem(rows, np.full(200, -1.0), loss=Squared(), dtype=np.float32,
                         node_of_row=np.zeros(200, int))  # fmt: skip
    alone = [pull(row.tolist(), dtype=np.float32) for row in rows]
    lengths = [np.linalg.norm(NOISE.clipped(each, 0, np.zeros(30))) for each in alone]
    assert max(lengths) <= 2.0 * (1 + 1e-15)
    np.testing.assert_allclose(
        NOISE.clipped(problem, 0, np.zeros(30, np.float32)),
        np.sum([NOISE.clipped(each, 0, np.zeros(30)) for each in alone], axis=0),
        atol=1e-12,
    )


def test_values_are_frozen_comparable_and_travel() -> None:
    assert ModelNoise(2, 3, 4) == NOISE
    assert hash(NOISE) == hash(ModelNoise(2.0, 3.0, 4))
    assert pickle.loads(pickle.dumps(NOISE)) == NOISE
    assert NOISE.standard_deviation == 6.0


def calibrate(**changes: Any) -> ModelNoise:
    target: dict[str, Any] = {"epsilon": 1, "delta": 1e-5, "clip": 1, "max_contributions": 1}
    return ModelNoise.calibrate(**{**target, **changes})


CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "no clip": (lambda: ModelNoise(0.0, 1.0, 1), "^clip"),
    "NaN clip": (lambda: ModelNoise(float("nan"), 1.0, 1), "^clip"),
    "infinite clip": (lambda: ModelNoise(float("inf"), 1.0, 1), "^clip"),
    "no noise": (lambda: ModelNoise(1.0, 0.0, 1), "^noise_multiplier"),
    "negative noise": (lambda: ModelNoise(1.0, -1.0, 1), "^noise_multiplier"),
    "no contributions": (lambda: ModelNoise(1.0, 1.0, 0), "^max_contributions"),
    "half a contribution": (lambda: ModelNoise(1.0, 1.0, 1.5), r"whole number"),  # type: ignore[arg-type]
    "epsilon < 0": (lambda: NOISE.delta(-1.0), "^epsilon"),
    "epsilon NaN": (lambda: NOISE.delta(float("nan")), "^epsilon"),
    "delta = 1": (lambda: NOISE.epsilon(1.0), "^delta"),
    "calibrate to delta = 0": (lambda: calibrate(delta=0.0), r"never gives delta = 0"),
    "calibrate to inf": (lambda: calibrate(epsilon=np.inf), r"no privacy"),
    "calibrate, epsilon < 0": (lambda: calibrate(epsilon=-1), "^epsilon"),
    "calibrate, delta = 1": (lambda: calibrate(delta=1.0), "^delta"),
    "calibrate, no clip": (lambda: calibrate(clip=0.0), "^clip"),
    "too much noise": (lambda: calibrate(epsilon=0, delta=1e-110), r"more noise than 1e\+100"),
    "shapes": (
        lambda: NOISE.protected(pull([1.0, 2.0]), 0, ZEROS, normal=[1.0]),
        "normal numbers",
    ),
    "another unit": (lambda: ModelNoise(1.0, 1.0, 1, "row"), r'protect must be "rows"'),  # type: ignore[arg-type]
    "a mini-batch of rows": (
        lambda: NOISE.clipped(pull([1.0, 2.0]), 0, ZEROS, [0.5]),
        "several times",
    ),
    "a model that is not finite": (
        lambda: NOISE.clipped_on_grid(pull([1.0, 2.0]), 0, np.array([1.0, np.nan])),
        "not finite",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_refused(case: str) -> None:
    action, message = CASES[case]
    with pytest.raises(ValueError, match=message):
        action()
