"""Generated data follow their stated law; splits give every node its share.

Statistical tests fix their seeds. The number in their comments is the chance that a correct
generator would fail under a fresh seed.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import chdtrc
from scipy.stats import kstest

from walklearn.objectives.datasets import (
    breast_cancer,
    diabetes,
    digits,
    heterogeneous_rows,
    split_by_similarity,
    split_evenly,
    two_gaussians,
)


class TestTwoGaussians:
    @pytest.mark.parametrize(
        ("variance", "mean"), [(1.0, 1.0), (10.0, [1.0, -2.0, 0.5]), (0.25, 0.0)]
    )
    def test_law(self, variance, mean):
        """x·y − μ is N(0, variance), independent of the label; 21 tests at 1e-7: 2e-6."""
        X, y = two_gaussians(4000, dimension=3, variance=variance, mean=mean, seed=5)
        assert X.shape == (4000, 3)
        assert set(y.tolist()) == {-1.0, 1.0}
        assert abs(y.mean()) < 5.5 / np.sqrt(4000)
        noise = (X - y[:, None] * np.asarray(mean)) / np.sqrt(variance)
        for column in noise.T:
            assert kstest(column, "norm").pvalue > 1e-7
        # Sums of products of independent standard normals: deviation √4000.
        products = [noise[:, 0] @ noise[:, 1], noise[:, 1] @ noise[:, 2], noise[:, 0] @ y]
        assert np.abs(products).max() < 5.5 * np.sqrt(4000)

    def test_no_variance(self):
        X, y = two_gaussians(10, dimension=2, variance=0.0, mean=[3.0, 1.0], seed=1)
        assert np.array_equal(X, y[:, None] * np.array([3.0, 1.0]))


class TestHeterogeneousRows:
    def test_law(self):
        """Row sizes are log-normal × χ: ln‖x‖² = 2·spread·Z + ln χ²_d. 3 tests at 1e-7: 3e-7."""
        spread, dimension = 1.5, 4
        X, _ = heterogeneous_rows(5000, dimension=dimension, spread=spread, seed=2)
        generator = np.random.default_rng(3)
        norms = spread * generator.standard_normal(50_000) + 0.5 * np.log(
            generator.chisquare(dimension, 50_000)
        )
        assert kstest(np.log(np.linalg.norm(X, axis=1)), norms).pvalue > 1e-7
        # Directions are uniform on the sphere: one entry squared is Beta(½, (d−1)/2).
        directions = X / np.linalg.norm(X, axis=1, keepdims=True)
        assert kstest(directions[:, 0] ** 2, "beta", args=(0.5, 1.5)).pvalue > 1e-7
        quadrants = np.bincount(2 * (X[:, 0] > 0) + (X[:, 1] > 0), minlength=4)
        assert chdtrc(3, ((quadrants - 1250) ** 2 / 1250).sum()) > 1e-7

    def test_without_noise_one_model_fits_every_row(self):
        X, y = heterogeneous_rows(40, dimension=5, noise=0.0, seed=1)
        w = np.linalg.lstsq(X, y, rcond=None)[0]
        assert np.allclose(X @ w, y, rtol=1e-10)

    def test_noise_has_its_size(self):
        """Residuals have variance noise²; χ² with 1990 degrees, 6 deviations: 1e-8."""
        X, y = heterogeneous_rows(2000, dimension=10, spread=2.0, noise=0.3, seed=4)
        w, squares, *_ = np.linalg.lstsq(X, y, rcond=None)
        del w
        variance = float(squares[0]) / 1990
        assert variance == pytest.approx(0.09, rel=6 * np.sqrt(2 / 1990))

    def test_no_spread_means_equal_scales(self):
        X, _ = heterogeneous_rows(3000, dimension=2, spread=0.0, seed=6)
        assert kstest(X[:, 0], "norm").pvalue > 1e-7


@pytest.mark.parametrize("make", [two_gaussians, heterogeneous_rows])
class TestSeeds:
    def test_same_seed_same_data(self, make):
        for seed in (3, np.random.SeedSequence(3)):
            a, b = make(20, seed=seed), make(20, seed=3)
            assert np.array_equal(a[0], b[0])
            assert np.array_equal(a[1], b[1])
        assert not np.array_equal(make(20, seed=1)[0], make(20, seed=2)[0])

    def test_a_generator_is_used_up(self, make):
        generator = np.random.default_rng(1)
        assert not np.array_equal(make(20, seed=generator)[0], make(20, seed=generator)[0])

    def test_refusals(self, make):
        with pytest.raises(ValueError, match="rows must be"):
            make(0)
        with pytest.raises(ValueError, match="dimension"):
            make(3, dimension=0)


def test_refused_parameters():
    with pytest.raises(ValueError, match="variance"):
        two_gaussians(3, variance=-1.0)
    with pytest.raises(ValueError, match="spread"):
        heterogeneous_rows(3, spread=-1.0)
    with pytest.raises(ValueError, match="noise"):
        heterogeneous_rows(3, noise=np.nan)


class TestSplits:
    @given(nodes=st.integers(1, 30), more=st.integers(0, 100), seed=st.integers(0, 2**32))
    @settings(max_examples=50, deadline=None)
    def test_every_node_gets_an_even_share(self, nodes, more, seed):
        rows = nodes + more
        generator = np.random.default_rng(seed)
        X, y = generator.standard_normal((rows, 3)), generator.choice([-1.0, 1.0], rows)
        for owners in (
            split_evenly(rows, nodes, seed=seed),
            split_by_similarity(X, nodes),
            split_by_similarity(X, nodes, y),
        ):
            assert owners.shape == (rows,)
            assert owners.dtype == np.int64
            counts = np.bincount(owners, minlength=nodes)
            assert len(counts) == nodes
            assert counts.max() - counts.min() <= 1

    def test_an_even_split_is_random(self):
        """600 splits: row 0 goes to each of 5 nodes, and meets row 1 with probability 2/14.

        χ² at p < 1e-7 and 5.3 deviations: fails with probability below 1e-6.
        """
        first = np.zeros(5)
        together = 0
        for seed in range(600):
            owners = split_evenly(15, 5, seed=seed)
            first[owners[0]] += 1
            together += owners[0] == owners[1]
        assert chdtrc(4, ((first - 120) ** 2 / 120).sum()) > 1e-7
        assert abs(together - 600 * 2 / 14) < 5.3 * np.sqrt(600 * 2 / 14 * 12 / 14)

    def test_same_seed_same_split(self):
        assert np.array_equal(split_evenly(50, 7, seed=1), split_evenly(50, 7, seed=1))
        assert not np.array_equal(split_evenly(50, 7, seed=1), split_evenly(50, 7, seed=2))

    @staticmethod
    def within(X, owners):
        """The share of the variance that is inside nodes."""
        inside = sum(
            ((X[owners == i] - X[owners == i].mean(axis=0)) ** 2).sum() for i in np.unique(owners)
        )
        return inside / ((X - X.mean(axis=0)) ** 2).sum()

    @pytest.mark.parametrize("seed", range(5))
    def test_by_similarity_is_less_mixed(self, seed):
        X, y = two_gaussians(200, dimension=3, variance=1.0, mean=2.0, seed=seed)
        mixed = self.within(X, split_evenly(200, 10, seed=seed))
        alike = self.within(X, split_by_similarity(X, 10))
        assert mixed > 0.85
        assert alike < 0.5 * mixed
        labelled = split_by_similarity(X, 10, y)
        both = [i for i in range(10) if len(set(y[labelled == i])) == 2]
        assert len(both) <= 1, "at most the one node at the cut has both labels"

    def test_by_similarity_cuts_along_the_longest_direction(self):
        line = np.outer([3.0, 1.0, 4.0, 0.0, 5.0, 2.0], [2.0, 1.0])
        owners = split_by_similarity(line, 3)
        groups = {frozenset(np.flatnonzero(owners == i).tolist()) for i in range(3)}
        assert groups == {frozenset({3, 1}), frozenset({5, 0}), frozenset({2, 4})}

    def test_refusals(self):
        with pytest.raises(ValueError, match="3 nodes"):
            split_evenly(2, 3)
        with pytest.raises(ValueError, match="0 nodes"):
            split_by_similarity(np.zeros((4, 2)), 0)


@pytest.mark.parametrize(
    ("load", "shape", "labels"),
    [(breast_cancer, (569, 30), {-1, 1}), (digits, (1797, 64), set(range(10))),
     (diabetes, (442, 10), None)],
)  # fmt: skip
def test_collected_data(load, shape, labels):
    X, y = load()
    assert X.shape == shape
    if labels is None:
        X = np.column_stack([X, y])
    else:
        assert set(y) == labels
    varied = X.std(axis=0) > 0
    assert X.mean(axis=0) == pytest.approx(0, abs=1e-12)
    assert X.std(axis=0)[varied] == pytest.approx(1)
    assert (X[:, ~varied] == 0).all()
