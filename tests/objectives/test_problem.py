"""A problem is a value: it compares, pickles, never changes, and refuses invalid arguments."""

import copy
import json
import pickle

import numpy as np
import pytest
from scipy import sparse

from tests.objectives.cases import Case, every_aggregate, local_gradient
from walklearn.objectives import Problem
from walklearn.objectives.linear.domains import Ball, Box
from walklearn.objectives.linear.losses import Huber, Logistic, Softmax, Squared


def make(**changes):
    arguments = {"X": np.eye(3), "y": [1.0, -1.0, 1.0], "penalty": 0.5, "domain": Ball(2.0)}
    return Problem(**(arguments | changes))


DIFFERENT = {
    "X": {"X": 2 * np.eye(3)},
    "y": {"y": [1.0, 1.0, 1.0]},
    "loss": {"loss": Squared()},
    "loss parameter": {"loss": Huber(2.0)},
    "penalty": {"penalty": 0.6},
    "domain": {"domain": Ball(3.0)},
    "owners": {"node_of_row": [0, 0, 1]},
    "nodes": {"nodes": 4, "empty_nodes": "relay"},
    "aggregate": {"aggregate": "mean"},
    "rows elsewhere": {"total_rows": 9},
    "dtype": {"dtype": np.float32},
    "shape": {"X": np.eye(3).reshape(9, 1), "y": np.ones(9)},
}


class TestValue:
    @pytest.mark.parametrize("name", DIFFERENT)
    def test_problems_with_another_argument_differ(self, name):
        assert make() != make(**DIFFERENT[name])
        assert make(**DIFFERENT[name]) == make(**DIFFERENT[name])
        assert make().describe() != make(**DIFFERENT[name]).describe()

    @pytest.mark.parametrize("again", ["twin", "pickle", "deepcopy"])
    def test_copies_are_equal(self, again):
        problem = make()
        _ = problem.solution, problem.smoothness_constants
        other = {
            "twin": make,
            "pickle": lambda: pickle.loads(pickle.dumps(problem)),
            "deepcopy": lambda: copy.deepcopy(problem),
        }[again]()
        assert other == problem
        assert hash(other) == hash(problem)
        assert {problem: 1}[other] == 1
        assert other.value([1.0, 2.0, 3.0]) == problem.value([1.0, 2.0, 3.0])
        assert np.array_equal(other.solution.model, problem.solution.model)

    @pytest.mark.parametrize(
        ("a", "b"),
        [
            ({"domain": Ball(2)}, {"domain": Ball(2.0)}),
            ({"domain": Ball(np.float64(2.0))}, {"domain": Ball(2.0)}),
            ({"domain": Box(np.float64(-1.0), 1)}, {"domain": Box(-1.0, 1.0)}),
            ({"loss": Huber(1)}, {"loss": Huber(1.0)}),
            ({"loss": Softmax(np.int64(3)), "y": [0, 1, 2]}, {"loss": Softmax(3), "y": [0, 1, 2]}),
            ({"penalty": np.float64(0.5)}, {"penalty": 0.5}),
            ({"empty_nodes": "relay"}, {"empty_nodes": "error"}),
        ],
    )
    def test_equal_arguments_make_equal_problems(self, a, b):
        """The radius 2‖w*‖ is a NumPy number: it must not make another problem of it."""
        for key in a:
            if key in ("loss", "domain"):
                assert a[key] == b[key]
        assert make(**a) == make(**b)
        assert make(**a).describe() == make(**b).describe()

    def test_no_problem_equals_anything_else(self):
        assert make() != "problem"

    def test_description_is_json(self):
        description = make(loss=Huber(np.float64(2.0)), penalty=np.float32(0.5)).describe()
        assert json.loads(json.dumps(description)) == description
        assert description["rows"] == 3
        assert description["dimension"] == 3
        assert description["nodes"] == 3

    def test_repr_is_short(self):
        case = Case(Logistic(), "mean")
        assert len(repr(case.problem())) < 200
        assert "17 rows of 3 features on 7 nodes" in repr(case.problem())


ARRAYS = ["X", "y", "node_of_row", "offsets", "row_weights", "smoothness_constants", "importance"]


class TestImmutable:
    def test_attributes(self):
        with pytest.raises(AttributeError):
            make().penalty = 3.0

    def test_the_data_are_copied(self):
        X, y, owners = np.eye(3), np.array([1.0, -1.0, 1.0]), np.arange(3)
        problem = Problem(X, y, node_of_row=owners)
        before = problem.value([1.0, 2.0, 3.0])
        X[:], y[:], owners[:] = 7.0, 1.0, 0
        assert problem.value([1.0, 2.0, 3.0]) == before
        assert X.flags.writeable

    @pytest.mark.parametrize("name", ARRAYS)
    def test_arrays_before_and_after_pickling(self, name):
        problem = make()
        getattr(problem, name)
        for each in (problem, pickle.loads(pickle.dumps(problem))):
            with pytest.raises(ValueError, match="read-only"):
                getattr(each, name)[0] = 0

    def test_the_minimiser(self):
        with pytest.raises(ValueError, match="read-only"):
            make().solution.model[0] = 5.0


# =========================================================================== refusals


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"X": np.ones(3)}, ValueError, "shape"),
        ({"X": np.ones((0, 3)), "y": []}, ValueError, "at least 1"),
        ({"y": [1.0, -1.0]}, ValueError, r"y must .*\(2,\)"),
        ({"y": [1.0, 0.0, 1.0]}, ValueError, "row 1 has label 0"),
        ({"y": [1.0, -1.0, np.nan]}, ValueError, "row 2"),
        ({"X": [[1.0], [np.inf], [0.0]]}, ValueError, "row 1 has a value"),
        ({"penalty": -1.0}, ValueError, "penalty"),
        ({"penalty": np.nan}, ValueError, "penalty"),
        ({"aggregate": "total"}, ValueError, "aggregate"),
        ({"empty_nodes": "skip"}, ValueError, "empty_nodes"),
        ({"dtype": np.int64}, ValueError, "float32"),
        ({"loss": "logistic"}, TypeError, "loss"),
        ({"loss": Logistic}, TypeError, "loss"),
        ({"domain": 3.0}, TypeError, "domain"),
        ({"node_of_row": [0, 1]}, ValueError, "node_of_row"),
        ({"node_of_row": [0, 1, -1]}, ValueError, "node numbers"),
        ({"node_of_row": [0.0, 1.0, 2.0]}, ValueError, "node numbers"),
        ({"node_of_row": [0, 1, 3]}, ValueError, "node 2 has no rows"),
        ({"nodes": 4}, ValueError, "node 3 has no rows"),
        ({"nodes": 2}, ValueError, "only 2 nodes"),
        ({"nodes": 0}, ValueError, "nodes"),
        ({"nodes": 3.5}, (TypeError, ValueError), "nodes"),
        ({"total_rows": 2}, ValueError, "at least 3"),
        ({"total_rows": np.inf}, ValueError, "total_rows"),
    ],
)
def test_invalid_arguments_are_refused(changes, error, message):
    with pytest.raises(error, match=message):
        make(**changes)


@pytest.mark.parametrize("node", [-1, 3])
def test_a_node_that_does_not_exist(node):
    """Without an error, node −1 would be a slice of the wrong rows."""
    problem = make()
    with pytest.raises((IndexError, ValueError)):
        local_gradient(problem, node, np.zeros(3))
    with pytest.raises((IndexError, ValueError)):
        problem.local_value(node, np.zeros(3))


def test_a_model_of_the_wrong_size():
    with pytest.raises(ValueError, match="3"):
        make().value(np.zeros(4))


@every_aggregate
def test_rows_held_by_other_nodes(aggregate):
    generator = np.random.default_rng(1)
    X, y = generator.standard_normal((12, 2)), np.array([1.0, -1.0] * 6)
    rows = {"penalty": 1.0, "aggregate": aggregate}
    together = Problem(X, y, node_of_row=np.zeros(12, dtype=int), **rows)
    owners = np.array([0, 1, 1, 2, 2, 2] * 2)
    apart = together.with_owners(owners, 3)
    fresh = Problem(X, y, node_of_row=owners, **rows)
    assert apart == fresh
    assert apart.solution.model == pytest.approx(fresh.solution.model, abs=1e-12)
    assert apart.solution.value == pytest.approx(fresh.solution.value, rel=1e-12)
    assert (apart.solution is together.solution) == (aggregate != "node-mean")


def test_sparse_rows_without_a_copy_stay_unchanged() -> None:
    """Repeated entries are summed in a copy; rows without them are not copied."""
    twice = sparse.csr_array(([1.0, 2.0, 3.0], [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    problem = Problem(twice, [1.0, -1.0], penalty=1.0, copy=False)
    assert twice.data.tolist() == [1.0, 2.0, 3.0]
    assert problem.X.toarray().tolist() == [[3.0, 0.0], [0.0, 3.0]]
    once = sparse.csr_array(np.eye(2))
    assert np.shares_memory(Problem(once, [1.0, -1.0], copy=False).X.data, once.data)
