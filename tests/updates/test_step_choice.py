"""Step sizes that are chosen do not blow up, and walks stop when they are done."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import walklearn as wl
from walklearn import walks
from walklearn.objectives.linear.losses import Huber, Logistic, Softmax, Squared, SquaredHinge
from walklearn.updates.step_choice import (
    choose_step,
    has_converged,
    max_steps,
    public_step,
    public_steps,
    visited_mass,
)

GRAPH = wl.graphs.erdos_renyi(60, 0.15, seed=1, connected="retry")
WALKS: list[Any] = [
    walks.Uniform(),
    walks.Weighted(),
    walks.Simple(reweight="degree"),
    walks.Uniform(normalise=True),
    walks.Weighted(np.linspace(1.0, 50.0, 60)),
    walks.Jumping(walks.Weighted()),
]


def wild_problem(loss: Any, penalty: float = 0.1, **options: Any) -> wl.Problem:
    """Rows whose lengths span five decades, one of them 0, where every L_i is another."""
    generator = np.random.default_rng(3)
    X = generator.standard_normal((60, 4)) * np.logspace(-3, 2, 60)[:, None]
    X[7] = 0.0
    if isinstance(loss, Softmax):
        y = (X @ generator.standard_normal((4, 3))).argmax(axis=1)
    elif isinstance(loss, Squared | Huber):
        y = X @ [1.0, -1.0, 2.0, 0.5] + 0.1 * generator.standard_normal(60)
    else:
        y = np.where(X @ [1.0, -1.0, 2.0, 0.5] + 0.01 * generator.standard_normal(60) > 0, 1, -1)
    return wl.Problem(X, y, loss=loss, penalty=penalty, aggregate="mean", **options)


@pytest.mark.parametrize("walk", WALKS, ids=repr)
@pytest.mark.parametrize(
    "loss", [Logistic(), Squared(), Huber(), SquaredHinge(), Softmax()], ids=repr
)
def test_the_chosen_step_does_not_blow_up(walk: Any, loss: Any) -> None:
    """Without a domain to stop it, f stays in reach; a step that overshoots gives 1e10 and more."""
    problem = wild_problem(loss)
    step = choose_step(problem, GRAPH, walk)
    run = wl.simulate(problem, GRAPH, walk, steps=5000, step_size=step, replicates=3, seed=1)
    start = problem.value(np.zeros(problem.size))
    assert np.isfinite(run.models).all()
    assert run.error("value").max() < 300 * start


@pytest.mark.parametrize("walk", WALKS, ids=repr)
def test_least_squares_never_overshoot(walk: Any) -> None:
    problem = wild_problem(Squared())
    step = choose_step(problem, GRAPH, walk)
    scale = walk.gradient_scale(GRAPH, problem)
    assert step.constant * (scale * problem.smoothness_constants).max() == pytest.approx(1.0)


def test_the_pull_of_the_penalty_never_overshoots() -> None:
    """Node 7 has a row of zeros: L_7 = λ, and a weighted walk scales its step by L̄ / λ."""
    for penalty in (1e-3, 0.1, 10.0):
        problem = wild_problem(Logistic(), penalty)
        step = choose_step(problem, GRAPH, walks.Weighted())
        largest = walks.Weighted().gradient_scale(GRAPH, problem).max()
        assert step.constant * largest * penalty <= 1.0 + 1e-12
    assert choose_step(wild_problem(Logistic(), 0.0), GRAPH, walks.Uniform()).constant > 0
    nothing = wl.Problem(np.zeros((60, 2)), np.ones(60))  # L_i = 0 everywhere
    assert np.isfinite(choose_step(nothing, GRAPH, walks.Uniform()).constant)


def test_the_public_step_looks_at_nothing_but_what_is_public() -> None:
    bounds = (0.1, 40.0)
    mechanism = wl.privacy.Laplace(10.0, bounds)
    problem = wild_problem(Squared())
    walk = walks.Weighted(privacy=mechanism).sample_release(
        GRAPH, problem, np.random.default_rng(1)
    )
    released = walk.release
    for loss in (Squared(), SquaredHinge()):
        step = public_step(loss, 0.1, GRAPH, walk, bounds)
        assert step.constant == pytest.approx(released.min() / released.mean() / 40.0)
    long = public_step(Logistic(), 1e-9, GRAPH, walk, bounds)
    assert long.constant == pytest.approx(8.0 / released.mean())
    assert public_step(Logistic(), 1e-9, GRAPH, walks.Uniform(), bounds).constant == pytest.approx(
        8.0 / 20.05
    )
    noisy = public_step(Logistic(), 1e-9, GRAPH, walk, bounds, noise_length=25.0)
    assert noisy.constant == pytest.approx(1 / 25.0)
    quiet = public_step(Logistic(), 1e-9, GRAPH, walk, bounds, noise_length=1e-3)
    assert quiet == long


def test_lengths_of_walks() -> None:
    assert [public_steps(n, 10**9) for n in (1, 1000, 50_000, 10**6)] == [
        20_000, 100_000, 1_000_000, 10_000_000,
    ]  # fmt: skip
    assert public_steps(1000, 500) == 500
    assert [max_steps(n, has_memory=False) for n in (10, 10**6)] == [1_000_000, 50_000_000]


@pytest.mark.parametrize(
    ("losses", "coverage", "done"),
    [
        ([0.5], 1.0, False),  # nothing to compare with
        ([0.5, 0.499], 1.0, True),
        ([0.5, 0.48], 1.0, False),  # still falling
        ([0.5, 0.52], 1.0, False),  # rising: worse on the other parts
        ([0.5, 0.499], 0.8, False),  # not enough nodes
        ([0.5, np.nan], 1.0, False),
    ],
)
def test_when_to_stop(losses: list[float], coverage: float, done: bool) -> None:
    assert has_converged(losses, zero_loss=0.7, tol=0.01, coverage=coverage) is done


def test_visited_mass() -> None:
    problem = wild_problem(Logistic())
    visits = np.zeros(60, dtype=np.int64)
    visits[:15] = 3
    assert visited_mass(walks.Uniform(), GRAPH, problem, visits) == pytest.approx(0.25)
    weighted = visited_mass(walks.Weighted(), GRAPH, problem, visits)
    assert weighted == pytest.approx(
        problem.smoothness_constants[:15].sum() / problem.smoothness_constants.sum()
    )
