"""The largest eigenvalue of each node, by every method."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from walklearn import graphs, privacy, walks
from walklearn.objectives import Problem
from walklearn.objectives.linear import smoothness
from walklearn.objectives.linear.smoothness import largest_eigenvalues

COUNTS = [1, 2, 40, 0, 33, 70, 3]
OFFSETS = np.append(0, np.cumsum(COUNTS))


def drawn(shift: float, features: int = 50) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(5)
    shape = (OFFSETS[-1], features)
    rows = (shift + generator.standard_normal(shape)) * (generator.random(shape) < 0.3)
    rows[OFFSETS[2] : OFFSETS[2] + 3] = 0.0
    return rows, generator.random(len(rows)) + 0.5


def one_by_one(rows: np.ndarray, weights: np.ndarray) -> list[float]:
    weighted = rows * np.sqrt(weights)[:, None]
    parts = [weighted[a:b] for a, b in pairwise(OFFSETS)]
    return [np.linalg.norm(part, 2) ** 2 if len(part) else 0.0 for part in parts]


@pytest.mark.parametrize("shift", [0.0, 1.0])  # without a gap Lanczos' method is given up
def test_are_those_of_each_node_dense_or_sparse(shift: float) -> None:
    rows, weights = drawn(shift)
    expected, squares = one_by_one(rows, weights), (rows**2).sum(axis=1)
    for X in (rows, sparse.csr_array(rows)):
        found = largest_eigenvalues(X, weights, squares, OFFSETS)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_lanczos_is_taken_and_a_node_alone_has_the_same_bits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows, weights = drawn(1.0)
    squares, X = (rows**2).sum(axis=1), sparse.csr_array(rows)
    monkeypatch.setattr(smoothness, "_of_one", lambda block: -1.0)
    together = largest_eigenvalues(X, weights, squares, OFFSETS)
    large = np.array(COUNTS) > smoothness.FEW
    assert (together[large] > 0).all()
    for node in np.flatnonzero(large):
        part = slice(OFFSETS[node], OFFSETS[node + 1])
        offsets = np.array([0, COUNTS[node]])
        alone = largest_eigenvalues(X[part], weights[part], squares[part], offsets)
        assert alone[0] == together[node]


def test_rows_of_zeros_have_none() -> None:
    rows = sparse.csr_array((80, 40))
    offsets = np.array([0, 40, 80])
    assert (largest_eigenvalues(rows, np.ones(80), np.zeros(80), offsets) == 0).all()


def test_a_release_for_sparse_rows_is_not_iterated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim about single rows rests on the largest eigenvalue itself, whatever the rows."""
    rows, _ = drawn(1.0)
    settings = {"node_of_row": np.repeat(np.arange(7), COUNTS), "nodes": 7, "empty_nodes": "relay",
                "aggregate": "mean", "penalty": 0.1}  # fmt: skip
    problem = Problem(sparse.csr_array(rows), np.ones(len(rows)), **settings)
    dense = Problem(rows, np.ones(len(rows)), **settings)

    def iterate(*arguments: object) -> None:
        raise AssertionError("iterated")

    monkeypatch.setattr(smoothness, "_by_lanczos", iterate)
    np.testing.assert_allclose(problem.exact_smoothness, dense.smoothness_constants, rtol=1e-14)
    with pytest.raises(AssertionError, match="iterated"):
        assert problem.smoothness_constants.size
    monkeypatch.undo()
    release = privacy.row_release(
        problem.loss, epsilon=1.0, delta=1e-5, nodes=7, feature_bound=20.0, total_rows=len(rows)
    )
    walk = walks.Weighted(privacy=release, reweight="as-printed").sample_release(
        graphs.complete(7), problem
    )
    held = np.array(COUNTS) > 0
    np.testing.assert_array_equal(walk.true_importance[held], problem.exact_smoothness[held])
