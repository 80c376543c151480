"""f, f_i, ∇f_i, L_i and w* against SPEC §3, computed here row by row from the raw data.

Nothing expected comes from the package: row losses are written with `math`, constants with
the singular values of a node's own rows, minimisers by the conditions that make them so.
"""

import copy
import itertools
import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from walklearn.problem import Problem
from walklearn.problem.domains import Ball, Box, Everywhere
from walklearn.problem.losses import Huber, Logistic, Softmax, Squared, SquaredHinge
from walklearn.problem.optimum import NoMinimiserError
from walklearn.updates.sgd import update

LOSSES = [Logistic(), Squared(), Huber(0.7), SquaredHinge(), Softmax(3)]
OBJECTIVES = ["sum", "mean", "node-mean"]
BETA = {Logistic: 0.25, Squared: 1.0, Huber: 1.0, SquaredHinge: 1.0, Softmax: 0.5}

every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
every_objective = pytest.mark.parametrize("objective", OBJECTIVES)


def row_loss(loss, w, x, t):
    """ℓ of one row, in plain Python; w is (d,) or (K, d)."""
    if isinstance(loss, Softmax):
        scores = [math.fsum(a * b for a, b in zip(wk, x, strict=True)) for wk in w]
        return math.log(math.fsum(math.exp(s) for s in scores)) - scores[int(t)]
    s = math.fsum(a * b for a, b in zip(w, x, strict=True))
    if isinstance(loss, Logistic):
        return math.log1p(math.exp(-t * s))
    if isinstance(loss, Squared):
        return (s - t) ** 2 / 2
    if isinstance(loss, SquaredHinge):
        return max(0.0, 1 - t * s) ** 2 / 2
    r = abs(s - t)
    return r * r / 2 if r <= loss.threshold else loss.threshold * (r - loss.threshold / 2)


def local_by_spec(case, node, w):
    """f_i of SPEC §3."""
    rows = [r for r in range(len(case.X)) if case.owners[r] == node]
    total = math.fsum(row_loss(case.loss, w, case.X[r], case.y[r]) for r in rows)
    N, M = case.nodes, len(case.X)
    weight = {"sum": N, "mean": N / M, "node-mean": 1 / max(len(rows), 1)}[case.objective]
    return weight * total + case.penalty / 2 * float(np.sum(np.square(w)))


def whole_by_spec(case, w):
    """f of SPEC §3, not as the mean of the f_i."""
    penalty = case.penalty / 2 * float(np.sum(np.square(w)))
    losses = [row_loss(case.loss, w, x, t) for x, t in zip(case.X, case.y, strict=True)]
    if case.objective == "sum":
        return math.fsum(losses) + penalty
    if case.objective == "mean":
        return math.fsum(losses) / len(losses) + penalty
    means = []
    for node in range(case.nodes):
        own = [v for v, owner in zip(losses, case.owners, strict=True) if owner == node]
        means.append(math.fsum(own) / max(len(own), 1))
    return math.fsum(means) / case.nodes + penalty


def smoothness_by_spec(case, node):
    """λ + c β λ_max(X_iᵀX_i) by singular values."""
    own = case.X[case.owners == node]
    largest = np.linalg.svd(own, compute_uv=False)[0] ** 2 if len(own) else 0.0
    N, M = case.nodes, len(case.X)
    weight = {"sum": N, "mean": N / M, "node-mean": 1 / max(len(own), 1)}[case.objective]
    return case.penalty + weight * BETA[type(case.loss)] * largest


class Case:
    """Raw data with rows in arbitrary order, some nodes with many rows, some with none."""

    def __init__(self, loss, objective, penalty=0.4, relays=True, seed=0, rows=17, d=3):
        generator = np.random.default_rng(seed)
        self.loss, self.objective, self.penalty = loss, objective, penalty
        self.X = generator.standard_normal((rows, d)) * np.exp(generator.standard_normal((rows, 1)))
        self.nodes = 7 if relays else 5
        held = np.concatenate([np.arange(5), np.zeros(6, int), np.full(rows - 11, 3)])
        self.owners = generator.permutation(held) + relays  # nodes 0 and 6 are relays
        self.y = targets_for(loss, rows, generator)
        self.K = 3 if isinstance(loss, Softmax) else 1
        self.shape = (3, d) if isinstance(loss, Softmax) else (d,)

    def problem(self, **changes):
        arguments = {
            "loss": self.loss, "penalty": self.penalty, "objective": self.objective,
            "node_of_row": self.owners, "nodes": self.nodes, "empty_nodes": "relay",
        }  # fmt: skip
        return Problem(self.X, self.y, **(arguments | changes))


def targets_for(loss, rows, generator):
    if isinstance(loss, Logistic | SquaredHinge):
        return generator.choice([-1.0, 1.0], rows)
    if isinstance(loss, Softmax):
        return generator.permutation(np.arange(rows) % 3).astype(float)
    return 2.0 * generator.standard_normal(rows)


def difference_quotient(function, w, h=1e-6):
    """∇ by central differences."""
    flat = w.reshape(-1)
    steps = h * np.eye(flat.size)
    return np.array([(function(flat + e) - function(flat - e)) / (2 * h) for e in steps])


# ============================================================== f, f_i and gradients


@every_loss
@every_objective
@pytest.mark.parametrize("relays", [True, False])
@pytest.mark.parametrize("penalty", [0.0, 0.4])
class TestObjective:
    def test_values_are_those_of_the_specification(self, loss, objective, relays, penalty):
        case = Case(loss, objective, penalty, relays)
        problem = case.problem()
        for seed in range(3):
            w = np.random.default_rng(seed).standard_normal(case.shape)
            for model in (w, w.reshape(-1), w.tolist()):
                assert problem.value(model) == pytest.approx(whole_by_spec(case, w), rel=1e-12)
            local = [local_by_spec(case, i, w) for i in range(case.nodes)]
            assert problem.value(w) == pytest.approx(np.mean(local), rel=1e-12)
            for i in range(case.nodes):
                assert problem.local_value(i, w) == pytest.approx(local[i], rel=1e-12, abs=1e-15)

    def test_gradients_are_derivatives(self, loss, objective, relays, penalty):
        case = Case(loss, objective, penalty, relays)
        problem = case.problem()
        w = np.random.default_rng(3).standard_normal(case.shape)
        gradient = problem.gradient(w)
        assert gradient.shape == (w.size,)
        scale = 1 + np.abs(gradient).max()
        assert np.allclose(gradient, difference_quotient(problem.value, w), atol=1e-6 * scale)
        locals_ = []
        for i in range(case.nodes):
            local = problem.local_gradient(i, w)
            quotient = difference_quotient(lambda v, i=i: problem.local_value(i, v), w)
            assert np.allclose(local, quotient, atol=1e-6 * (1 + np.abs(local).max()))
            locals_.append(local)
        assert np.allclose(np.mean(locals_, axis=0), gradient, rtol=1e-11, atol=1e-12)

    def test_smoothness_is_that_of_the_specification(self, loss, objective, relays, penalty):
        case = Case(loss, objective, penalty, relays)
        expected = [smoothness_by_spec(case, i) for i in range(case.nodes)]
        problem = case.problem()
        assert np.allclose(problem.smoothness, expected, rtol=1e-12)
        held = np.bincount(case.owners, minlength=case.nodes) > 0
        least = np.array(expected)[held].min()
        assert np.allclose(problem.importance, np.where(held, expected, least), rtol=1e-12)

    def test_smoothness_bounds_how_fast_the_gradient_turns(self, loss, objective, relays, penalty):
        case = Case(loss, objective, penalty, relays)
        problem = case.problem()
        generator = np.random.default_rng(4)
        for i in range(case.nodes):
            L = problem.smoothness[i]
            own = case.X[case.owners == i]
            directions = list(generator.standard_normal((20, *case.shape)))
            if len(own):  # the worst direction: along the top singular vector
                top = np.linalg.svd(own)[2][0]
                directions.append(np.multiply.outer([1, -1, 0], top) if case.K == 3 else top)
            for direction, size in itertools.product(directions, (1e-2, 1.0)):
                u = 0.3 * generator.standard_normal(case.shape)
                v = u + size * direction
                turned = problem.local_gradient(i, u) - problem.local_gradient(i, v)
                moved = np.linalg.norm(u - v)
                assert np.linalg.norm(turned) <= L * moved * (1 + 1e-9) + 1e-12


@every_objective
def test_smoothness_is_the_least_bound_for_the_squared_loss(objective):
    case = Case(Squared(), objective)
    problem = case.problem()
    for i in range(1, 6):
        top = np.linalg.svd(case.X[case.owners == i])[2][0]
        turned = problem.local_gradient(i, top) - problem.local_gradient(i, np.zeros(3))
        assert np.linalg.norm(turned) == pytest.approx(problem.smoothness[i], rel=1e-12)


@every_loss
@every_objective
def test_a_node_alone_has_the_same_loss_as_among_all(loss, objective):
    """Bit for bit, from its own rows, the number of nodes and, for the mean, of all rows."""
    case = Case(loss, objective)
    whole, w = case.problem(), 0.3 * np.ones(case.shape)
    for i in range(1, 6):
        mine = case.owners == i
        alone = Problem(
            case.X[mine], case.y[mine], loss=loss, penalty=whole.penalty, objective=objective,
            node_of_row=case.owners[mine], nodes=case.nodes, empty_nodes="relay",
            total_rows=len(case.X),
        )  # fmt: skip
        assert alone.local_value(i, w) == whole.local_value(i, w)
        assert (alone.local_gradient(i, w) == whole.local_gradient(i, w)).all()
        assert alone.smoothness[i] == pytest.approx(whole.smoothness[i], rel=1e-14)


@every_loss
def test_smoothness_is_reached_by_one_row(loss):
    """β is tight for each loss, so L_i is for one row, at the score of steepest slope."""
    x = np.array([1.0, -2.0, 0.5])
    y = 2.0 if isinstance(loss, Softmax) else 1.0
    problem = Problem([x], [y], loss=loss, penalty=0.1)
    if isinstance(loss, Softmax):
        u = np.outer([0.0, 0.0, -40.0], x) / (x @ x)
        direction = 1e-4 * np.outer([1.0, -1.0, 0.0], x)
    else:
        # residual about −1e-3 or margin about 0, in the curved part of every loss
        u = (0.999 if isinstance(loss, Huber) else 0.0) * x / (x @ x)
        direction = 1e-4 * x
    turned = problem.local_gradient(0, u + direction) - problem.local_gradient(0, u - direction)
    ratio = np.linalg.norm(turned) / np.linalg.norm(2 * direction)
    assert ratio == pytest.approx(problem.smoothness[0], rel=1e-5)


def test_the_papers_constant():
    """One row each, penalty 1, logistic: L_i = 1 + N‖x_i‖²/4, f_i = N ℓ + ½‖w‖² (ruling 1)."""
    X = np.random.default_rng(1).standard_normal((20, 4))
    problem = Problem(X, np.where(np.arange(20) % 2, 1.0, -1.0), penalty=1.0)
    assert np.allclose(problem.smoothness, 1 + 20 * (X**2).sum(axis=1) / 4, rtol=1e-13)
    w = np.ones(4)
    margin = -float(X[0].sum())
    expected = 20 * math.log1p(math.exp(-margin)) + 0.5 * 4
    assert problem.local_value(0, w) == pytest.approx(expected, rel=1e-13)


@given(seed=st.integers(0, 2**32), rows=st.integers(3, 25), d=st.integers(1, 4))
@settings(max_examples=25, deadline=None)
def test_the_order_of_rows_does_not_matter(seed, rows, d):
    generator = np.random.default_rng(seed)
    X, y = generator.standard_normal((rows, d)), generator.choice([-1.0, 1.0], rows)
    owners = np.append(np.arange(3), generator.integers(0, 3, rows - 3))
    order = generator.permutation(rows)
    w = generator.standard_normal(d)
    for objective in OBJECTIVES:
        a = Problem(X, y, node_of_row=owners, objective=objective, penalty=0.1)
        b = Problem(X[order], y[order], node_of_row=owners[order], objective=objective, penalty=0.1)
        assert a.node_count == b.node_count == 3
        assert a.value(w) == pytest.approx(b.value(w), rel=1e-12)
        assert np.allclose(a.smoothness, b.smoothness, rtol=1e-12)
        for i in range(3):
            assert np.allclose(a.local_gradient(i, w), b.local_gradient(i, w), atol=1e-12)


@every_loss
@every_objective
def test_picked_rows_estimate_the_local_gradient_without_bias(loss, objective):
    """The mean over all pairs of picks, with replacement, is ∇f_i."""
    case = Case(loss, objective)
    problem = case.problem()
    node = 1  # has 7 rows
    w = np.random.default_rng(5).standard_normal(case.shape)
    pairs = [np.array(pair) for pair in itertools.product(range(7), repeat=2)]
    mean = np.mean([problem.local_gradient(node, w, picks) for picks in pairs], axis=0)
    assert np.allclose(mean, problem.local_gradient(node, w), rtol=1e-11, atol=1e-12)


# =================================================================== shape and dtype


def test_shapes():
    case = Case(Softmax(3), "sum")
    problem = case.problem()
    assert problem.dimension == 3
    assert problem.outputs == 3
    assert problem.size == 9
    assert problem.model_shape == (3, 3)
    assert problem.model_bytes == 72
    assert case.problem(dtype=np.float32).model_bytes == 36
    plain = Case(Logistic(), "sum").problem()
    assert (plain.outputs, plain.size, plain.model_shape) == (1, 3, (3,))
    assert plain.offsets.tolist() == [0, 0, 7, 8, 9, 16, 17, 17]


@every_loss
def test_single_precision_is_close(loss):
    case = Case(loss, "mean")
    double, single = case.problem(), case.problem(dtype=np.float32)
    assert single.X.dtype == np.float32
    assert double != single
    w = np.random.default_rng(6).standard_normal(case.shape).astype(np.float32)
    assert single.value(w) == pytest.approx(double.value(w), rel=1e-5)
    assert np.allclose(single.gradient(w), double.gradient(w), rtol=1e-4, atol=1e-5)
    assert np.allclose(single.smoothness, double.smoothness, rtol=1e-5)
    assert np.allclose(single.optimum.model, double.optimum.model, rtol=1e-3, atol=1e-4)
    # w* is that of the rounded rows, but exact for them
    exact = Problem(
        case.X.astype(np.float32), case.y, loss=loss, penalty=0.4, objective="mean",
        node_of_row=case.owners, nodes=7, empty_nodes="relay",
    )  # fmt: skip
    assert np.linalg.norm(exact.gradient(single.optimum.model)) < 1e-10


@pytest.mark.parametrize("domain", [Everywhere(), Ball(0.1), Box(-0.1, 0.1)], ids=repr)
def test_updates_keep_single_precision(domain):
    problem = Case(Logistic(), "sum").problem(dtype=np.float32, domain=domain)
    model, _ = update(problem, 1, np.zeros(3, dtype=np.float32), step=10.0)
    assert model.dtype == np.float32


# ====================================================================== the minimiser


def data_for(loss, seed, rows=40, d=3):
    """Rows that no model separates."""
    generator = np.random.default_rng(seed)
    return generator.standard_normal((rows, d)) + 0.3, targets_for(loss, rows, generator)


def assert_minimiser(problem, tolerance=1e-9):
    """The conditions of Karush, Kuhn and Tucker, each to `tolerance` of ‖∇f(0)‖ + 1."""
    w, domain = problem.optimum.model, problem.domain
    assert w.shape == (problem.size,)
    gradient = problem.gradient(w)
    slack = tolerance * (1 + np.linalg.norm(problem.gradient(np.zeros(problem.size))))
    assert problem.optimum.value == pytest.approx(problem.value(w), rel=1e-14)
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
    """W with w* inside and W with w* cut off, of each kind."""
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
        free = Problem(X, y, loss=loss, penalty=max(penalty, 1e-3), objective="mean").optimum.model
        domain = domains_around(free)[kind]
        return Problem(X, y, loss=loss, penalty=penalty, objective="mean", domain=domain)

    def test_first_order_conditions(self, loss, kind, penalty):
        """Where λ = .2, f is .2-strongly convex: ‖w − w*‖ ≤ 5 × the residual, about 1e-9."""
        assert_minimiser(self.problem(loss, kind, penalty), 1e-10)

    def test_no_other_solver_finds_less(self, loss, kind, penalty):
        problem = self.problem(loss, kind, penalty)
        domain, optimum = problem.domain, problem.optimum
        ball = [{
            "type": "ineq",
            "fun": lambda w: domain.radius**2 - w @ w,
            "jac": lambda w: -2 * w,
        }] if isinstance(domain, Ball) else []  # fmt: skip
        bounds = [(domain.low, domain.high)] * problem.size if isinstance(domain, Box) else None
        start = domain.project(np.full(problem.size, 0.01))
        found = minimize(
            problem.value, start, jac=problem.gradient, method="SLSQP", constraints=ball,
            bounds=bounds, options={"ftol": 1e-15, "maxiter": 500},
        )  # fmt: skip
        other = domain.project(found.x)
        assert optimum.value <= problem.value(other) + 1e-12
        assert problem.value(other) == pytest.approx(optimum.value, abs=1e-7)
        if optimum.unique:
            assert np.allclose(other, optimum.model, atol=2e-3)

    def test_uniqueness(self, loss, kind, penalty):
        """Full-rank rows: unique, but for softmax, whose scores may be shifted, without penalty.

        A ball that cuts the minimisers off leaves one, whatever the loss.
        """
        problem = self.problem(loss, kind, penalty)
        cut_off = kind in ("Ball active", "Ball tiny")
        if not isinstance(loss, Softmax) or penalty > 0 or cut_off:
            assert problem.optimum.unique
        elif kind in ("Everywhere", "Ball inactive", "Box inactive"):
            assert not problem.optimum.unique


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("seed", [0, 8, 9])
def test_large_features_in_a_box(loss, seed):
    """Features of size 100 make scores that saturate; the box must not stop the solver early."""
    X, y = data_for(loss, seed)
    free = Problem(100 * X, y, loss=loss, penalty=0.2, objective="mean").optimum.model
    for kind in ("Box active", "Box one-sided", "Box without 0"):
        domain = domains_around(free)[kind]
        problem = Problem(100 * X, y, loss=loss, penalty=0.2, objective="mean", domain=domain)
        assert_minimiser(problem, 1e-8)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("penalty", [0.0, 2.0])
def test_least_squares_by_the_normal_equations(objective, penalty):
    case = Case(Squared(), objective, penalty)
    weights = {
        "sum": np.ones(17),
        "mean": np.full(17, 1 / 17),
        "node-mean": 1 / np.bincount(case.owners)[case.owners] / case.nodes,
    }[objective]
    normal = (case.X.T * weights) @ case.X + penalty * np.eye(3)
    expected = np.linalg.solve(normal, (case.X.T * weights) @ case.y)
    optimum = case.problem().optimum
    assert np.allclose(optimum.model, expected, rtol=1e-10, atol=1e-11)
    assert optimum.unique


def test_logistic_regression_by_iterated_least_squares():
    """Newton's method written out, to 12 digits."""
    X, y = data_for(Logistic(), 3)
    w = np.zeros(3)
    for _ in range(50):
        p = 1 / (1 + np.exp(-y * (X @ w)))
        hessian = (X.T * (p * (1 - p))) @ X + 0.5 * np.eye(3)
        w = w - np.linalg.solve(hessian, -X.T @ (y * (1 - p)) + 0.5 * w)
    assert np.allclose(Problem(X, y, penalty=0.5).optimum.model, w, rtol=1e-11, atol=1e-12)


class TestUniqueness:
    def wide(self, seed=0):
        """4 rows in 8 dimensions: a 4-dimensional set of models fits them all."""
        generator = np.random.default_rng(seed)
        return generator.standard_normal((4, 8)), generator.standard_normal(4)

    def test_more_columns_than_rows(self):
        X, y = self.wide()
        optimum = Problem(X, y, loss=Squared()).optimum
        assert not optimum.unique
        assert optimum.value == pytest.approx(0.0, abs=1e-18)
        assert Problem(X, y, loss=Squared(), penalty=1e-3).optimum.unique

    @pytest.mark.parametrize("seed", range(6))
    @pytest.mark.parametrize("factor", [1.001, 1.5, 3.0])
    def test_a_ball_that_holds_many_minimisers(self, seed, factor):
        """The shortest fit is in the ball, so f* = 0, and with it others along the kernel."""
        X, y = self.wide(seed)
        shortest = np.linalg.pinv(X) @ y
        ball = Ball(factor * float(np.linalg.norm(shortest)))
        optimum = Problem(X, y, loss=Squared(), domain=ball).optimum
        assert optimum.value == pytest.approx(0.0, abs=1e-12)
        assert not optimum.unique

    @pytest.mark.parametrize("seed", range(3))
    def test_a_ball_that_holds_none_of_them(self, seed):
        X, y = self.wide(seed)
        shortest = np.linalg.pinv(X) @ y
        ball = Ball(0.5 * float(np.linalg.norm(shortest)))
        problem = Problem(X, y, loss=Squared(), domain=ball)
        assert problem.optimum.unique
        assert_minimiser(problem)
        assert np.linalg.norm(problem.optimum.model) == pytest.approx(ball.radius, rel=1e-12)

    def test_a_repeated_column(self):
        X, y = data_for(Logistic(), 2)
        doubled = np.column_stack([X, X[:, 0]])
        assert not Problem(doubled, y).optimum.unique
        assert not Problem(doubled, y, domain=Ball(100.0)).optimum.unique
        assert not Problem(doubled, y, domain=Box(-100.0, 100.0)).optimum.unique

    @pytest.mark.parametrize("seed", range(10))
    def test_squared_hinge_with_room_between_the_classes(self, seed):
        """f* = 0 is reached by every w of large enough margin."""
        X = np.random.default_rng(seed).standard_normal((20, 3))
        problem = Problem(X, np.sign(X @ [1.0, 2.0, 3.0]), loss=SquaredHinge())
        assert problem.optimum.value == pytest.approx(0.0, abs=1e-12)
        assert not problem.optimum.unique

    def test_huber_between_two_outliers(self):
        """Half the rows pull up, half down, all by the threshold: any w in [−9, 9] will do."""
        problem = Problem([[1.0], [1.0]], [10.0, -10.0], loss=Huber())
        assert not problem.optimum.unique
        assert problem.optimum.value == pytest.approx(2 * 9.5)


class TestNoMinimiser:
    def test_separable(self):
        X = np.random.default_rng(1).standard_normal((20, 3))
        y = np.sign(X @ [1.0, -1.0, 0.5])
        with pytest.raises(NoMinimiserError, match="no minimiser"):
            _ = Problem(X, y).optimum

    def test_quasi_separable(self):
        """Both labels on the hyperplane itself; beyond it only one each side."""
        X = [[0.0, 1.0], [0.0, 1.0], [0.0, -1.0], [1.0, 0.3], [-1.0, 0.2]]
        with pytest.raises(NoMinimiserError):
            _ = Problem(X, [1.0, -1.0, 1.0, 1.0, -1.0]).optimum

    def test_one_class_only(self):
        with pytest.raises(NoMinimiserError):
            _ = Problem([[1.0, 2.0], [1.0, -1.0]], [1.0, 1.0]).optimum

    @pytest.mark.parametrize("objective", OBJECTIVES)
    def test_softmax_separable(self, objective):
        generator = np.random.default_rng(2)
        centres = 10 * np.array([[1.0, 0.0], [-1.0, 1.0], [-1.0, -1.0]])
        y = np.arange(30) % 3
        X = centres[y] + generator.standard_normal((30, 2))
        with pytest.raises(NoMinimiserError):
            _ = Problem(X, y, loss=Softmax(), objective=objective).optimum

    def test_softmax_with_one_class_apart(self):
        """Classes 0 and 1 overlap, class 2 is far off: still no minimiser."""
        generator = np.random.default_rng(3)
        y = np.arange(30) % 3
        X = generator.standard_normal((30, 2))
        X[y == 2] += [100.0, 0.0]
        X = np.column_stack([X, np.ones(30)])
        with pytest.raises(NoMinimiserError):
            _ = Problem(X, y, loss=Softmax()).optimum

    def test_a_class_that_no_row_has(self):
        """With an intercept its score can fall for ever."""
        X, y = data_for(Logistic(), 1)
        X = np.column_stack([X, np.ones(len(X))])
        with pytest.raises(NoMinimiserError):
            _ = Problem(X, (y > 0).astype(float), loss=Softmax(3)).optimum

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
        assert problem.optimum.unique

    def test_a_large_ball_around_separable_rows_is_active(self):
        """f falls along a direction for ever, so w* is on the sphere, as far as f can be told
        from its infimum; beyond that the minimiser is not claimed to be known."""
        X = np.random.default_rng(1).standard_normal((20, 3))
        y = np.sign(X @ [1.0, -1.0, 0.5])
        for radius in (10.0, 30.0, 100.0):
            model = Problem(X, y, domain=Ball(radius)).optimum.model
            assert np.linalg.norm(model) == pytest.approx(radius, rel=1e-9)
        far = Problem(X, y, domain=Ball(1e4)).optimum
        assert far.value < 1e-20
        assert not far.unique

    @pytest.mark.parametrize("unit", [1e-12, 1e-9, 1e-6, 1e6])
    @pytest.mark.parametrize("columns", [[0, 1, 2], [2]])
    def test_units_do_not_decide(self, unit, columns):
        """Whether rows can be separated does not depend on the units of their features."""
        for seed in range(5):
            X = np.random.default_rng(seed).standard_normal((30, 3))
            separable, overlapping = np.sign(X[:, 2]), np.repeat([1.0, -1.0], 30)
            X[:, columns] *= unit
            with pytest.raises(NoMinimiserError):
                _ = Problem(X, separable).optimum
            # Every row with both labels: w* = 0.
            optimum = Problem(np.concatenate([X, X]), overlapping).optimum
            assert optimum.value == pytest.approx(60 * math.log(2), rel=1e-12)


COLUMN_SCALES = np.array([1e-3, 1e-1, 10.0, 1e3])


@pytest.mark.parametrize("loss", [Logistic(), Squared(), Huber(), SquaredHinge()], ids=repr)
@pytest.mark.parametrize("domain", [Everywhere(), Ball(1e5)], ids=repr)
class TestBadlyScaledFeatures:
    def problems(self, loss, domain):
        X, y = data_for(loss, 5, rows=60, d=4)
        return Problem(X, y, loss=loss), Problem(X * COLUMN_SCALES, y, loss=loss, domain=domain)

    def test_they_are_solved(self, loss, domain):
        plain, scaled = self.problems(loss, domain)
        expected = plain.optimum.model / COLUMN_SCALES
        assert np.allclose(scaled.optimum.model, expected, rtol=1e-7)
        assert scaled.optimum.value == pytest.approx(plain.optimum.value, rel=1e-12)

    def test_the_minimiser_is_still_the_only_one(self, loss, domain):
        """The rows have full rank whatever the units of their columns."""
        _, scaled = self.problems(loss, domain)
        assert scaled.optimum.unique


def test_more_numbers_than_a_dense_hessian_would_hold():
    """2100 features on the diagonal: w*_a = y_a/(1 + λ)."""
    y = np.linspace(-1.0, 1.0, 2100)
    problem = Problem(np.eye(2100), y, loss=Squared(), penalty=1.0)
    assert problem.optimum.unique
    assert np.allclose(problem.optimum.model, y / 2, atol=1e-8)


def test_the_optimum_is_solved_once():
    problem = Case(Logistic(), "sum").problem()
    assert problem.optimum is problem.optimum


# ================================================================ a problem is a value


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
    "objective": {"objective": "mean"},
    "rows elsewhere": {"total_rows": 9},
    "dtype": {"dtype": np.float32},
    "shape": {"X": np.eye(3).reshape(9, 1), "y": np.ones(9)},
}


class TestValue:
    @pytest.mark.parametrize("name", DIFFERENT)
    def test_what_makes_problems_differ(self, name):
        assert make() != make(**DIFFERENT[name])
        assert make(**DIFFERENT[name]) == make(**DIFFERENT[name])
        assert make().describe() != make(**DIFFERENT[name]).describe()

    @pytest.mark.parametrize("again", ["twin", "pickle", "deepcopy"])
    def test_copies_are_equal(self, again):
        problem = make()
        _ = problem.optimum, problem.smoothness
        other = {
            "twin": make,
            "pickle": lambda: pickle.loads(pickle.dumps(problem)),
            "deepcopy": lambda: copy.deepcopy(problem),
        }[again]()
        assert other == problem
        assert hash(other) == hash(problem)
        assert {problem: 1}[other] == 1
        assert other.value([1.0, 2.0, 3.0]) == problem.value([1.0, 2.0, 3.0])
        assert np.array_equal(other.optimum.model, problem.optimum.model)

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


ARRAYS = ["X", "y", "node_of_row", "offsets", "row_weights", "smoothness", "importance"]


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
    def test_arrays(self, name):
        with pytest.raises(ValueError, match="read-only"):
            getattr(make(), name)[0] = 0

    @pytest.mark.parametrize("name", ARRAYS)
    def test_arrays_after_pickling(self, name):
        """Workers get their problems by pickle."""
        problem = make()
        getattr(problem, name)
        with pytest.raises(ValueError, match="read-only"):
            getattr(pickle.loads(pickle.dumps(problem)), name)[0] = 0

    def test_the_minimiser(self):
        with pytest.raises(ValueError, match="read-only"):
            make().optimum.model[0] = 5.0


# =========================================================================== refusals


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"X": np.ones(3)}, ValueError, "shape"),
        ({"X": np.ones((0, 3)), "y": []}, ValueError, "at least 1"),
        ({"y": [1.0, -1.0]}, ValueError, "one target per row"),
        ({"y": [1.0, 0.0, 1.0]}, ValueError, "row 1 has label 0"),
        ({"y": [1.0, -1.0, np.nan]}, ValueError, "row 2"),
        ({"X": [[1.0], [np.inf], [0.0]]}, ValueError, "row 1 has a value"),
        ({"penalty": -1.0}, ValueError, "penalty"),
        ({"penalty": np.nan}, ValueError, "penalty"),
        ({"objective": "total"}, ValueError, "objective"),
        ({"empty_nodes": "skip"}, ValueError, "empty_nodes"),
        ({"dtype": np.int64}, ValueError, "float32"),
        ({"loss": "logistic"}, TypeError, "loss"),
        ({"loss": Logistic}, TypeError, "loss"),
        ({"domain": 3.0}, TypeError, "domain"),
        ({"node_of_row": [0, 1]}, ValueError, "one node per row"),
        ({"node_of_row": [0, 1, -1]}, ValueError, "node numbers"),
        ({"node_of_row": [0.0, 1.0, 2.0]}, ValueError, "node numbers"),
        ({"node_of_row": [0, 1, 3]}, ValueError, "node 2 has no rows"),
        ({"nodes": 4}, ValueError, "node 3 has no rows"),
        ({"nodes": 2}, ValueError, "only 2 nodes"),
        ({"nodes": 0}, ValueError, "nodes"),
        ({"nodes": 3.5}, (TypeError, ValueError), "nodes"),
        ({"total_rows": 2}, ValueError, "at least the 3 that are here"),
        ({"total_rows": np.inf}, ValueError, "total_rows"),
    ],
)
def test_what_is_refused(changes, error, message):
    with pytest.raises(error, match=message):
        make(**changes)


@pytest.mark.parametrize("node", [-1, 3])
def test_a_node_that_does_not_exist(node):
    """A silent answer for node −1 would be a slice of the wrong rows."""
    problem = make()
    with pytest.raises((IndexError, ValueError)):
        problem.local_gradient(node, np.zeros(3))
    with pytest.raises((IndexError, ValueError)):
        problem.local_value(node, np.zeros(3))


def test_a_model_of_the_wrong_size():
    with pytest.raises(ValueError, match="3"):
        make().value(np.zeros(4))


@every_objective
def test_rows_held_by_other_nodes(objective):
    generator = np.random.default_rng(1)
    X, y = generator.standard_normal((12, 2)), np.array([1.0, -1.0] * 6)
    rows = {"penalty": 1.0, "objective": objective}
    together = Problem(X, y, node_of_row=np.zeros(12, dtype=int), **rows)
    owners = np.array([0, 1, 1, 2, 2, 2] * 2)
    apart = together.held_by(owners, 3)
    fresh = Problem(X, y, node_of_row=owners, **rows)
    assert apart == fresh
    assert apart.optimum.model == pytest.approx(fresh.optimum.model, abs=1e-12)
    assert apart.optimum.value == pytest.approx(fresh.optimum.value, rel=1e-12)
    assert (apart.optimum is together.optimum) == (objective != "node-mean")
