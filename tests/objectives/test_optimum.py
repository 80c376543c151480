"""The minimiser w*: optimality conditions, uniqueness, and problems without one."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from tests.objectives.cases import Case, every_aggregate, every_loss, targets_for
from walklearn.objectives import Problem
from walklearn.objectives.linear.domains import Ball, Box, Everywhere
from walklearn.objectives.linear.losses import Huber, Logistic, Softmax, Squared, SquaredHinge
from walklearn.objectives.linear.minimiser import optimum_from_sample
from walklearn.objectives.linear.optimum import NoMinimiserError


def data_for(loss, seed, rows=40, d=3):
    """Return rows that no model separates."""
    generator = np.random.default_rng(seed)
    return generator.standard_normal((rows, d)) + 0.3, targets_for(loss, rows, generator)


def assert_minimiser(problem, tolerance=1e-9):
    """The conditions of Karush, Kuhn and Tucker, each to `tolerance` of ‖∇f(0)‖ + 1."""
    w, domain = problem.solution.model, problem.domain
    assert w.shape == (problem.size,)
    gradient = problem.full_gradient(w)
    slack = tolerance * (1 + np.linalg.norm(problem.full_gradient(np.zeros(problem.size))))
    assert problem.solution.value == pytest.approx(problem.value(w), rel=1e-14)
    if isinstance(domain, Ball):
        norm = np.linalg.norm(w)
        assert norm <= domain.radius * (1 + 1e-12)
        if norm < domain.radius * (1 - 1e-9):
            assert np.linalg.norm(gradient) <= slack
        else:
            multiplier = -(gradient @ w) / (w @ w)
            assert multiplier >= -slack
            assert np.linalg.norm(gradient + multiplier * w) <= slack
    elif isinstance(domain, Box):
        assert (w >= domain.low).all()
        assert (w <= domain.high).all()
        inside = (w > domain.low) & (w < domain.high)
        assert np.abs(gradient[inside]).max(initial=0.0) <= slack
        assert (gradient[w == domain.low] >= -slack).all()
        assert (gradient[w == domain.high] <= slack).all()
    else:
        assert np.linalg.norm(gradient) <= slack


def domains_around(free):
    """Return domains of each kind with w* inside, and with w* outside."""
    norm, low, high = np.linalg.norm(free), free.min(), free.max()
    middle = 0.5 * (low + high)
    return {
        "Everywhere": Everywhere(),
        "Ball inactive": Ball(2 * norm),
        "Ball barely inactive": Ball(1.001 * norm),
        "Ball barely active": Ball(0.999 * norm),
        "Ball active": Ball(0.5 * norm),
        "Ball tiny": Ball(1e-3 * norm),
        "Box inactive": Box(low - 1.0, high + 1.0),
        "Box active": Box(0.5 * (low + middle), 0.5 * (high + middle)),
        "Box one-sided": Box(low - 1.0, middle),
        "Box without 0": Box(high + 0.5, high + 0.7),
    }


KINDS = list(domains_around(np.array([1.0, 2.0])))


@every_loss
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("penalty", [0.0, 0.2])
class TestMinimiser:
    def problem(self, loss, kind, penalty, seed=1):
        X, y = data_for(loss, seed)
        free = Problem(X, y, loss=loss, penalty=max(penalty, 1e-3), aggregate="mean").solution.model
        domain = domains_around(free)[kind]
        return Problem(X, y, loss=loss, penalty=penalty, aggregate="mean", domain=domain)

    def test_first_order_conditions(self, loss, kind, penalty):
        """With λ = .2, f is .2-strongly convex: ‖w − w*‖ ≤ 5 × the residual, about 1e-9."""
        assert_minimiser(self.problem(loss, kind, penalty), 1e-10)

    def test_uniqueness(self, loss, kind, penalty):
        """Full-rank rows: unique, but for softmax, whose scores may be shifted, without penalty.

        A ball that cuts the minimisers off leaves one, whatever the loss.
        """
        problem = self.problem(loss, kind, penalty)
        cut_off = kind in ("Ball active", "Ball tiny")
        if not isinstance(loss, Softmax) or penalty > 0 or cut_off:
            assert problem.solution.unique
        elif kind in ("Everywhere", "Ball inactive", "Box inactive"):
            assert not problem.solution.unique


@every_loss
@pytest.mark.parametrize("seed", [0, 8, 9])
def test_large_features_in_a_box(loss, seed):
    """Features of size 100 make scores that saturate; the box must not stop the solver early."""
    X, y = data_for(loss, seed)
    free = Problem(100 * X, y, loss=loss, penalty=0.2, aggregate="mean").solution.model
    for kind in ("Box active", "Box one-sided", "Box without 0"):
        domain = domains_around(free)[kind]
        problem = Problem(100 * X, y, loss=loss, penalty=0.2, aggregate="mean", domain=domain)
        assert_minimiser(problem, 1e-8)


@every_aggregate
@pytest.mark.parametrize("penalty", [0.0, 2.0])
def test_least_squares_by_the_normal_equations(aggregate, penalty):
    case = Case(Squared(), aggregate, penalty)
    weights = {
        "sum": np.ones(17),
        "mean": np.full(17, 1 / 17),
        "node-mean": 1 / np.bincount(case.owners)[case.owners] / case.nodes,
    }[aggregate]
    normal = (case.X.T * weights) @ case.X + penalty * np.eye(3)
    expected = np.linalg.solve(normal, (case.X.T * weights) @ case.y)
    optimum = case.problem().solution
    assert np.allclose(optimum.model, expected, rtol=1e-10, atol=1e-11)
    assert optimum.unique


class TestUniqueness:
    def wide(self, seed=0):
        """4 rows in 8 dimensions: a 4-dimensional set of models fits them all."""
        generator = np.random.default_rng(seed)
        return generator.standard_normal((4, 8)), generator.standard_normal(4)

    def test_more_columns_than_rows(self):
        X, y = self.wide()
        optimum = Problem(X, y, loss=Squared()).solution
        assert not optimum.unique
        assert optimum.value == pytest.approx(0.0, abs=1e-18)
        assert Problem(X, y, loss=Squared(), penalty=1e-3).solution.unique

    @pytest.mark.parametrize("seed", range(6))
    @pytest.mark.parametrize("factor", [1.001, 1.5, 3.0])
    def test_a_ball_that_holds_many_minimisers(self, seed, factor):
        """The shortest fit is in the ball, so f* = 0, and with it others along the kernel."""
        X, y = self.wide(seed)
        shortest = np.linalg.pinv(X) @ y
        ball = Ball(factor * float(np.linalg.norm(shortest)))
        optimum = Problem(X, y, loss=Squared(), domain=ball).solution
        assert optimum.value == pytest.approx(0.0, abs=1e-12)
        assert not optimum.unique

    @pytest.mark.parametrize("seed", range(3))
    def test_a_ball_that_holds_none_of_them(self, seed):
        X, y = self.wide(seed)
        shortest = np.linalg.pinv(X) @ y
        ball = Ball(0.5 * float(np.linalg.norm(shortest)))
        problem = Problem(X, y, loss=Squared(), domain=ball)
        assert problem.solution.unique
        assert_minimiser(problem)
        assert np.linalg.norm(problem.solution.model) == pytest.approx(ball.radius, rel=1e-12)

    def test_a_repeated_column(self):
        X, y = data_for(Logistic(), 2)
        doubled = np.column_stack([X, X[:, 0]])
        assert not Problem(doubled, y).solution.unique
        assert not Problem(doubled, y, domain=Ball(100.0)).solution.unique
        assert not Problem(doubled, y, domain=Box(-100.0, 100.0)).solution.unique

    @pytest.mark.parametrize("seed", range(10))
    def test_squared_hinge_with_room_between_the_classes(self, seed):
        """f* = 0 is reached by every w of large enough margin."""
        X = np.random.default_rng(seed).standard_normal((20, 3))
        problem = Problem(X, np.sign(X @ [1.0, 2.0, 3.0]), loss=SquaredHinge())
        assert problem.solution.value == pytest.approx(0.0, abs=1e-12)
        assert not problem.solution.unique

    def test_huber_between_two_outliers(self):
        """Half the rows pull up, half down, all by the threshold: any w in [−9, 9] will do."""
        problem = Problem([[1.0], [1.0]], [10.0, -10.0], loss=Huber())
        assert not problem.solution.unique
        assert problem.solution.value == pytest.approx(2 * 9.5)


class TestNoMinimiser:
    def test_separable(self):
        X = np.random.default_rng(1).standard_normal((20, 3))
        y = np.sign(X @ [1.0, -1.0, 0.5])
        with pytest.raises(NoMinimiserError, match="no minimiser"):
            _ = Problem(X, y).solution

    def test_quasi_separable(self):
        """Both labels on the hyperplane itself; beyond it only one each side."""
        X = [[0.0, 1.0], [0.0, 1.0], [0.0, -1.0], [1.0, 0.3], [-1.0, 0.2]]
        with pytest.raises(NoMinimiserError):
            _ = Problem(X, [1.0, -1.0, 1.0, 1.0, -1.0]).solution

    def test_one_class_only(self):
        with pytest.raises(NoMinimiserError):
            _ = Problem([[1.0, 2.0], [1.0, -1.0]], [1.0, 1.0]).solution

    @every_aggregate
    def test_softmax_separable(self, aggregate):
        generator = np.random.default_rng(2)
        centres = 10 * np.array([[1.0, 0.0], [-1.0, 1.0], [-1.0, -1.0]])
        y = np.arange(30) % 3
        X = centres[y] + generator.standard_normal((30, 2))
        with pytest.raises(NoMinimiserError):
            _ = Problem(X, y, loss=Softmax(), aggregate=aggregate).solution

    def test_softmax_with_one_class_apart(self):
        """Classes 0 and 1 overlap, class 2 is far off: still no minimiser."""
        generator = np.random.default_rng(3)
        y = np.arange(30) % 3
        X = generator.standard_normal((30, 2))
        X[y == 2] += [100.0, 0.0]
        X = np.column_stack([X, np.ones(30)])
        with pytest.raises(NoMinimiserError):
            _ = Problem(X, y, loss=Softmax()).solution

    def test_a_class_that_no_row_has(self):
        """With an intercept its score can fall without limit."""
        X, y = data_for(Logistic(), 1)
        X = np.column_stack([X, np.ones(len(X))])
        with pytest.raises(NoMinimiserError):
            _ = Problem(X, (y > 0).astype(float), loss=Softmax(3)).solution

    @pytest.mark.parametrize("loss", [Squared(), SquaredHinge(), Huber()], ids=repr)
    def test_other_losses_have_one(self, loss):
        X = np.random.default_rng(1).standard_normal((20, 3))
        problem = Problem(X, np.sign(X @ [1.0, -1.0, 0.5]), loss=loss)
        assert_minimiser(problem)

    @pytest.mark.parametrize("cure", [{"penalty": 1e-3}, {"domain": Ball(5.0)}])
    def test_a_penalty_or_a_domain_cures_it(self, cure):
        X = np.random.default_rng(1).standard_normal((20, 3))
        problem = Problem(X, np.sign(X @ [1.0, -1.0, 0.5]), **cure)
        assert_minimiser(problem)
        assert problem.solution.unique

    def test_a_large_ball_around_separable_rows_is_active(self):
        """f falls without limit, so w* is on the sphere, as long as f differs from its infimum;
        for larger balls uniqueness is not claimed."""
        X = np.random.default_rng(1).standard_normal((20, 3))
        y = np.sign(X @ [1.0, -1.0, 0.5])
        for radius in (10.0, 30.0, 100.0):
            model = Problem(X, y, domain=Ball(radius)).solution.model
            assert np.linalg.norm(model) == pytest.approx(radius, rel=1e-9)
        far = Problem(X, y, domain=Ball(1e4)).solution
        assert far.value < 1e-20
        assert not far.unique

    @pytest.mark.parametrize("unit", [1e-12, 1e-9, 1e-6, 1e6])
    @pytest.mark.parametrize("columns", [[0, 1, 2], [2]])
    def test_units_do_not_decide(self, unit, columns):
        """The units of features do not decide if rows can be separated."""
        for seed in range(5):
            X = np.random.default_rng(seed).standard_normal((30, 3))
            separable, overlapping = np.sign(X[:, 2]), np.repeat([1.0, -1.0], 30)
            X[:, columns] *= unit
            with pytest.raises(NoMinimiserError):
                _ = Problem(X, separable).solution
            # Every row with both labels: w* = 0.
            optimum = Problem(np.concatenate([X, X]), overlapping).solution
            assert optimum.value == pytest.approx(60 * math.log(2), rel=1e-12)


COLUMN_SCALES = np.array([1e-3, 1e-1, 10.0, 1e3])


@pytest.mark.parametrize("loss", [Logistic(), Squared(), Huber(), SquaredHinge()], ids=repr)
@pytest.mark.parametrize("domain", [Everywhere(), Ball(1e5)], ids=repr)
def test_badly_scaled_features(loss, domain):
    """The rows have full rank whatever the units of their columns."""
    X, y = data_for(loss, 5, rows=60, d=4)
    plain = Problem(X, y, loss=loss)
    scaled = Problem(X * COLUMN_SCALES, y, loss=loss, domain=domain)
    expected = plain.solution.model / COLUMN_SCALES
    assert np.allclose(scaled.solution.model, expected, rtol=1e-7)
    assert scaled.solution.value == pytest.approx(plain.solution.value, rel=1e-12)
    assert scaled.solution.unique


def test_more_numbers_than_a_dense_hessian_would_hold():
    """2100 features on the diagonal: w*_a = y_a/(1 + λ)."""
    y = np.linspace(-1.0, 1.0, 2100)
    problem = Problem(np.eye(2100), y, loss=Squared(), penalty=1.0)
    assert problem.solution.unique
    assert np.allclose(problem.solution.model, y / 2, atol=1e-8)


def test_the_optimum_is_solved_once():
    problem = Case(Logistic(), "sum").problem()
    assert problem.solution is problem.solution


@every_loss
@every_aggregate
@pytest.mark.parametrize("domain", [Everywhere(), Ball(50.0), Ball(0.01), Box(-0.01, 0.02)])
def test_many_rows_start_from_a_sample(monkeypatch, loss, aggregate, domain):
    """If that fails (a sphere, a bound, a loss with a kink), the usual solver is used."""
    X, y = data_for(loss, seed=1, rows=6000)
    owners = np.sort(np.random.default_rng(1).integers(0, 40, len(X)))
    arguments = {"loss": loss, "aggregate": aggregate, "penalty": 0.1, "domain": domain}
    usual = Problem(X, y, node_of_row=owners, **arguments)
    monkeypatch.setattr("walklearn.objectives.linear.minimiser.SAMPLED_ROWS", 2000)
    monkeypatch.setattr("walklearn.objectives.linear.minimiser.MANY_ROWS", 5000)
    many = Problem(X, y, node_of_row=owners, **arguments)
    slope = np.linalg.norm(usual.full_gradient(usual.solution.model))
    inside = slope < 1e-9 * np.linalg.norm(usual.full_gradient(np.zeros(usual.size)))
    is_quick = optimum_from_sample(many) is not None
    assert is_quick <= inside
    assert is_quick or not isinstance(loss, Logistic | Squared | Softmax) or not inside
    assert_minimiser(many)
    assert many.solution.unique
    assert many.solution.model == pytest.approx(usual.solution.model, rel=1e-9, abs=1e-11)


def test_a_sample_without_a_class_or_minimiser_is_no_start(monkeypatch):
    """One row in three thousand is of the third class, and one keeps the others apart."""
    monkeypatch.setattr("walklearn.objectives.linear.minimiser.SAMPLED_ROWS", 20)
    X, y = data_for(Softmax(2), seed=2, rows=3000)
    y = np.where(np.arange(3000) == 17, 2, y % 2)
    assert optimum_from_sample(Problem(X, y, loss=Softmax(3), penalty=0.1)) is None
    x = np.where(np.arange(3000) == 17, -1.0, 1.0)[:, None]
    problem = Problem(x, np.ones(3000))
    assert optimum_from_sample(problem) is None
    assert_minimiser(problem)


@pytest.mark.parametrize("domain", [Everywhere(), Ball(1.0), Box(-0.1, 0.2)], ids=repr)
@pytest.mark.parametrize("loss", [Logistic(), Softmax(3)], ids=repr)
def test_conjugate_gradients_find_what_the_dense_hessian_finds(
    domain: Any, loss: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = np.random.default_rng(0)
    X = generator.standard_normal((100, 20)) * (generator.uniform(size=(100, 20)) < 0.3)
    y = np.arange(100) % 3 if isinstance(loss, Softmax) else np.where(X[:, 0] > 0.1, 1.0, -1.0)
    settings = {"loss": loss, "penalty": 0.01, "domain": domain, "aggregate": "mean"}
    expected = Problem(X, y, **settings).solution
    monkeypatch.setattr("walklearn.objectives.linear.optimum.LARGEST_HESSIAN", 5)
    for rows in (X, csr_array(X)):
        found = Problem(rows, y, **settings).solution
        np.testing.assert_allclose(found.model, expected.model, atol=1e-12)
        assert found.unique


def test_the_minimiser_of_sparse_rows_with_many_features() -> None:
    """A Hessian of 20,000 × 20,000 would take 3 GB."""
    X = random_array((2000, 20_000), density=0.002, format="csr", rng=1)
    y = np.where(np.arange(2000) % 2, 1.0, -1.0)
    problem = Problem(X, y, penalty=1e-3, aggregate="mean")
    assert np.linalg.norm(problem.full_gradient(problem.solution.model)) < 1e-14
