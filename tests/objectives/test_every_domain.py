"""One suite for every domain: projections are nearest points, samples are uniform.

Statistical tests fix their seeds; the number in their comments is the chance that correct code
would fail under a fresh seed.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ks_2samp

from walklearn.objectives.linear.domains import Ball, Box, Everywhere

DOMAINS = [
    Everywhere(), Ball(np.float64(2.0)), Ball(0.5), Box(np.float64(-1.0), 2.0), Box(0.5, 3.0),
    Box(-4.0, -3.5),
]  # fmt: skip
BOUNDED = [domain for domain in DOMAINS if not isinstance(domain, Everywhere)]


def inside(domain, model, slack=1e-12):
    """Return True if a model is in W, by the definition of W."""
    if isinstance(domain, Ball):
        return bool(np.sqrt(np.sum(model**2)) <= domain.radius * (1 + slack))
    if isinstance(domain, Box):
        return bool((model >= domain.low - slack).all() and (model <= domain.high + slack).all())
    return True


def draw_by_rejection(domain, count, size, generator):
    """Draw uniform points of W from a box around it."""
    if isinstance(domain, Everywhere):
        return 5.0 * generator.standard_normal((count, size))
    if isinstance(domain, Box):
        low, high = domain.low, domain.high
    else:
        low, high = -domain.radius, domain.radius
    points = np.empty((0, size))
    while len(points) < count:
        tries = low + (high - low) * generator.random((2 * count, size))
        kept = [point for point in tries if inside(domain, point, 0.0)]
        points = np.vstack([points, np.array(kept).reshape(-1, size)])
    return points[:count]


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
class TestDomain:
    @given(seed=st.integers(0, 2**32), scale=st.sampled_from([0.1, 1.0, 10.0, 1e6]))
    @settings(max_examples=15, deadline=None)
    def test_projection(self, domain, size, seed, scale):
        generator = np.random.default_rng(seed)
        u, v = scale * generator.standard_normal((2, size))
        before = u.copy()
        pu, pv = domain.project(u), domain.project(v)
        assert np.array_equal(u, before), "the argument was changed"
        assert pu.shape == u.shape
        assert inside(domain, pu)
        assert np.allclose(domain.project(pu), pu, rtol=1e-14, atol=0), "idempotent"
        distance = np.linalg.norm(u - v)
        assert np.linalg.norm(pu - pv) <= distance * (1 + 1e-12), "non-expansive"
        for point in draw_by_rejection(domain, 20, size, generator):
            # Nearest point of a convex set: the angle at Π(u) towards any other is obtuse.
            assert np.dot(u - pu, point - pu) <= 1e-9 * (1 + np.linalg.norm(u))
            assert np.linalg.norm(u - pu) <= np.linalg.norm(u - point) * (1 + 1e-12)

    def test_points_of_the_domain_stay_where_they_are(self, domain, size):
        for point in draw_by_rejection(domain, 30, size, np.random.default_rng(2)):
            assert np.array_equal(domain.project(point), point)

    def test_projection_keeps_single_precision(self, domain, size):
        for model in (np.full(size, 100.0), np.full(size, 1e-3)):
            assert domain.project(model.astype(np.float32)).dtype == np.float32

    def test_samples_are_inside_and_reproducible(self, domain, size):
        draws = [domain.sample(size, np.random.default_rng(seed)) for seed in (5, 5, 6)]
        assert all(draw.shape == (size,) and inside(domain, draw) for draw in draws)
        assert np.array_equal(draws[0], draws[1])
        if isinstance(domain, Everywhere):
            assert (draws[2] == 0).all()
        else:
            assert not np.array_equal(draws[0], draws[2])

    def test_bounded_says_so(self, domain, size):
        del size
        assert domain.bounded is not isinstance(domain, Everywhere)


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("domain", BOUNDED, ids=repr)
def test_samples_are_uniform(domain, size):
    """Two-sample Kolmogorov-Smirnov against rejection sampling on fixed projections.

    5 features × 15 cases at p < 1e-7: fails with probability below 1e-5.
    """
    generator = np.random.default_rng(11)
    drawn = np.array([domain.sample(size, generator) for _ in range(3000)])
    expected = draw_by_rejection(domain, 3000, size, np.random.default_rng(12))
    assert all(inside(domain, point) for point in drawn)
    directions = np.random.default_rng(13).standard_normal((3, size))
    features = [lambda p, a=a: p @ a for a in directions]
    features += [lambda p: np.linalg.norm(p, axis=1), lambda p: p[:, 0] * p[:, -1]]
    for feature in features:
        assert ks_2samp(feature(drawn), feature(expected)).pvalue > 1e-7


@pytest.mark.parametrize("radius", [0.0, -1.0, np.inf, np.nan])
def test_a_ball_needs_a_radius(radius):
    with pytest.raises(ValueError, match="radius"):
        Ball(radius)


@pytest.mark.parametrize("bounds", [(1.0, 1.0), (2.0, 1.0), (-np.inf, 1.0), (0.0, np.nan)])
def test_a_box_needs_bounds(bounds):
    with pytest.raises(ValueError, match="low < high"):
        Box(*bounds)
