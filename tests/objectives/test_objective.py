"""f, f_i, ∇f_i and L_i, computed here row by row from the raw data.

Nothing expected comes from the package: row losses are written with `math`, constants with
the singular values of a node's own rows.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.objectives.cases import (
    AGGREGATES,
    Case,
    every_aggregate,
    every_loss,
    local_gradient,
    local_value,
)
from walklearn.objectives import Problem
from walklearn.objectives.linear.domains import Ball, Box, Everywhere
from walklearn.objectives.linear.losses import Huber, Logistic, Softmax, Squared, SquaredHinge
from walklearn.updates import ConstantStep, Sgd, VisitContext

BETA = {Logistic: 0.25, Squared: 1.0, Huber: 1.0, SquaredHinge: 1.0, Softmax: 0.5}


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


def local_by_hand(case, node, w):
    """f_i = c_i Σ ℓ over the rows of the node + (λ/2)‖w‖²."""
    rows = [r for r in range(len(case.X)) if case.owners[r] == node]
    total = math.fsum(row_loss(case.loss, w, case.X[r], case.y[r]) for r in rows)
    N, M = case.nodes, len(case.X)
    weight = {"sum": N, "mean": N / M, "node-mean": 1 / max(len(rows), 1)}[case.aggregate]
    return weight * total + case.penalty / 2 * float(np.sum(np.square(w)))


def smoothness_by_hand(case, node):
    """λ + c β λ_max(X_iᵀX_i) by singular values."""
    own = case.X[case.owners == node]
    largest = np.linalg.svd(own, compute_uv=False)[0] ** 2 if len(own) else 0.0
    N, M = case.nodes, len(case.X)
    weight = {"sum": N, "mean": N / M, "node-mean": 1 / max(len(own), 1)}[case.aggregate]
    return case.penalty + weight * BETA[type(case.loss)] * largest


def difference_quotient(function, w, h=1e-6):
    """∇ by central differences."""
    flat = w.reshape(-1)
    steps = h * np.eye(flat.size)
    return np.array([(function(flat + e) - function(flat - e)) / (2 * h) for e in steps])


# ============================================================== f, f_i and gradients


@every_loss
@every_aggregate
@pytest.mark.parametrize("relays", [True, False])
@pytest.mark.parametrize("penalty", [0.0, 0.4])
class TestObjective:
    def test_values_are_those_of_the_formulas(self, loss, aggregate, relays, penalty):
        case = Case(loss, aggregate, penalty, relays)
        problem = case.problem()
        for seed in range(3):
            w = np.random.default_rng(seed).standard_normal(case.shape)
            local = [local_by_hand(case, i, w) for i in range(case.nodes)]
            for model in (w, w.reshape(-1), w.tolist()):
                assert problem.value(model) == pytest.approx(np.mean(local), rel=1e-12)
            for i in range(case.nodes):
                value = local_value(problem, i, w)
                assert value == pytest.approx(local[i], rel=1e-12, abs=1e-15)

    def test_gradients_are_derivatives(self, loss, aggregate, relays, penalty):
        case = Case(loss, aggregate, penalty, relays)
        problem = case.problem()
        w = np.random.default_rng(3).standard_normal(case.shape)
        gradient = problem.full_gradient(w)
        assert gradient.shape == (w.size,)
        scale = 1 + np.abs(gradient).max()
        assert np.allclose(gradient, difference_quotient(problem.value, w), atol=1e-6 * scale)
        locals_ = []
        for i in range(case.nodes):
            local = local_gradient(problem, i, w)
            quotient = difference_quotient(lambda v, i=i: local_value(problem, i, v), w)
            assert np.allclose(local, quotient, atol=1e-6 * (1 + np.abs(local).max()))
            locals_.append(local)
        assert np.allclose(np.mean(locals_, axis=0), gradient, rtol=1e-11, atol=1e-12)

    def test_smoothness_is_that_of_the_formula(self, loss, aggregate, relays, penalty):
        case = Case(loss, aggregate, penalty, relays)
        expected = [smoothness_by_hand(case, i) for i in range(case.nodes)]
        problem = case.problem()
        assert np.allclose(problem.smoothness_constants, expected, rtol=1e-12)
        held = np.bincount(case.owners, minlength=case.nodes) > 0
        least = np.array(expected)[held].min()
        assert np.allclose(problem.importance, np.where(held, expected, least), rtol=1e-12)


@every_loss
@every_aggregate
def test_a_node_alone_has_the_same_loss_as_among_all(loss, aggregate):
    """Bit for bit, from its own rows, the number of nodes and, for the mean, of all rows."""
    case = Case(loss, aggregate)
    whole, w = case.problem(), 0.3 * np.ones(case.shape)
    for i in range(1, 6):
        mine = case.owners == i
        alone = Problem(
            case.X[mine], case.y[mine], loss=loss, penalty=whole.penalty, aggregate=aggregate,
            node_of_row=case.owners[mine], nodes=case.nodes, empty_nodes="relay",
            total_rows=len(case.X),
        )  # fmt: skip
        assert alone.local_value(i, w) == whole.local_value(i, w)
        assert (local_gradient(alone, i, w) == local_gradient(whole, i, w)).all()
        assert alone.smoothness_constants[i] == pytest.approx(
            whole.smoothness_constants[i], rel=1e-14
        )


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
    turned = local_gradient(problem, 0, u + direction) - local_gradient(problem, 0, u - direction)
    ratio = np.linalg.norm(turned) / np.linalg.norm(2 * direction)
    assert ratio == pytest.approx(problem.smoothness_constants[0], rel=1e-5)


def test_the_papers_constant():
    """One row each, λ = 1, logistic: L_i = 1 + N‖x_i‖²/4, f_i = N ℓ + ½‖w‖² (docs/rulings.md)."""
    X = np.random.default_rng(1).standard_normal((20, 4))
    problem = Problem(X, np.where(np.arange(20) % 2, 1.0, -1.0), penalty=1.0)
    assert np.allclose(problem.smoothness_constants, 1 + 20 * (X**2).sum(axis=1) / 4, rtol=1e-13)
    w = np.ones(4)
    margin = -float(X[0].sum())
    expected = 20 * math.log1p(math.exp(-margin)) + 0.5 * 4
    assert local_value(problem, 0, w) == pytest.approx(expected, rel=1e-13)


@given(seed=st.integers(0, 2**32), rows=st.integers(3, 25), d=st.integers(1, 4))
@settings(max_examples=25, deadline=None)
def test_the_order_of_rows_does_not_matter(seed, rows, d):
    generator = np.random.default_rng(seed)
    X, y = generator.standard_normal((rows, d)), generator.choice([-1.0, 1.0], rows)
    owners = np.append(np.arange(3), generator.integers(0, 3, rows - 3))
    order = generator.permutation(rows)
    w = generator.standard_normal(d)
    for aggregate in AGGREGATES:
        a = Problem(X, y, node_of_row=owners, aggregate=aggregate, penalty=0.1)
        b = Problem(X[order], y[order], node_of_row=owners[order], aggregate=aggregate, penalty=0.1)
        assert a.nodes == b.nodes == 3
        assert a.value(w) == pytest.approx(b.value(w), rel=1e-12)
        assert np.allclose(a.smoothness_constants, b.smoothness_constants, rtol=1e-12)
        for i in range(3):
            assert np.allclose(local_gradient(a, i, w), local_gradient(b, i, w), atol=1e-12)


@every_loss
@every_aggregate
def test_a_mini_batch_estimates_the_local_gradient_without_bias(loss, aggregate):
    """The mean over all pairs of rows, with replacement, is ∇f_i, and so is that of values."""
    case = Case(loss, aggregate)
    problem = case.problem()
    node = 1  # has 7 rows
    w = np.random.default_rng(5).standard_normal(case.shape)
    pairs = [(np.array(pair) + 0.5) / 7 for pair in itertools.product(range(7), repeat=2)]
    mean = np.mean([problem.gradient(node, w, draws) for draws in pairs], axis=0)
    assert np.allclose(mean, problem.gradient(node, w), rtol=1e-11, atol=1e-12)
    mean = np.mean([problem.local_value(node, w, draws) for draws in pairs])
    assert mean == pytest.approx(problem.local_value(node, w), rel=1e-11)


# =================================================================== shape and dtype


def test_shapes():
    case = Case(Softmax(3), "sum")
    problem = case.problem()
    assert problem.dimension == 3
    assert problem.outputs == 3
    assert problem.size == 9
    assert problem.model_shape == (3, 3)
    assert problem.parameters[0].nbytes == 72
    assert case.problem(dtype=np.float32).parameters[0].nbytes == 36
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
    assert np.allclose(single.full_gradient(w), double.full_gradient(w), rtol=1e-4, atol=1e-5)
    assert np.allclose(single.smoothness_constants, double.smoothness_constants, rtol=1e-5)
    assert np.allclose(single.solution.model, double.solution.model, rtol=1e-3, atol=1e-4)
    # w* is that of the rounded rows, but exact for them
    exact = Problem(
        case.X.astype(np.float32), case.y, loss=loss, penalty=0.4, aggregate="mean",
        node_of_row=case.owners, nodes=7, empty_nodes="relay",
    )  # fmt: skip
    assert np.linalg.norm(exact.full_gradient(single.solution.model)) < 1e-10


@pytest.mark.parametrize("domain", [Everywhere(), Ball(0.1), Box(-0.1, 0.1)], ids=repr)
def test_updates_keep_single_precision(domain):
    problem = Case(Logistic(), "sum").problem(dtype=np.float32, domain=domain)
    update = Sgd(ConstantStep(10.0))
    context = VisitContext(problem, 1, 0, 1.0, 0, 0, np.zeros((1, 0)))
    token = update.visit(context, update.init_token(problem), {}).token
    assert token["model"].dtype == np.float32
    assert token["model"].any()


@every_loss
@every_aggregate
def test_rows_are_passed_over_in_blocks(monkeypatch, loss, aggregate):
    case = Case(loss, aggregate)
    at_once, in_blocks = case.problem(), case.problem()
    w = np.random.default_rng(3).standard_normal(at_once.size)
    value, gradient, smoothness = (
        at_once.value(w),
        at_once.full_gradient(w),
        at_once.smoothness_constants,
    )
    monkeypatch.setattr("walklearn.objectives.linear.problem.ROWS_AT_ONCE", 3)
    assert in_blocks.value(w) == pytest.approx(value, rel=1e-14)
    assert in_blocks.full_gradient(w) == pytest.approx(gradient, rel=1e-12)
    assert in_blocks.smoothness_constants.tolist() == smoothness.tolist()
