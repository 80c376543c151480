"""Finito converges to the minimiser whatever the walk, and sums hold each contribution once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import walklearn as wl
from walklearn import walks
from walklearn.arrays import zeros
from walklearn.objectives import Problem
from walklearn.updates import Finito, VisitContext
from walklearn.visit import Setting

GRAPH = wl.graphs.barabasi_albert(12, 2, seed=3)
LOSSES: list[Any] = [
    wl.losses.Logistic(), wl.losses.Squared(), wl.losses.Huber(0.3), wl.losses.SquaredHinge(),
    wl.losses.Softmax(),
]  # fmt: skip
NO_DRAWS = np.zeros((1, 0))


def make_problem(loss: Any = LOSSES[0], rows: int = 12, **options: Any) -> Problem:
    generator = np.random.default_rng(7)
    X = generator.standard_normal((rows, 4))
    y = np.where(generator.random(rows) < 0.5, -1.0, 1.0)
    if isinstance(loss, wl.losses.Softmax):
        y = np.arange(rows) % 3
    owners = None if rows == 12 else np.r_[np.arange(12), generator.integers(0, 12, rows - 12)]
    return Problem(X, y, loss=loss, node_of_row=owners, **{"penalty": 0.5, **options})


class Tokens:
    """Several tokens that visit nodes at random, one after the other."""

    def __init__(self, objective: Any, tokens: int, slots: int, seed: int = 1) -> None:
        self.objective, self.update = objective, Finito(estimates_gradient=True)
        self.generator, self.active = np.random.default_rng(seed), list(range(tokens))
        nodes = range(objective.nodes)
        self.tokens = [self.update.init_token(objective, slots) for _ in range(slots)]
        self.nodes = [zeros(self.update.node_arrays(objective, node, slots)) for node in nodes]

    def run(self, visits: int, nodes: Any = None) -> None:
        chosen = self.generator.integers(self.objective.nodes, size=visits)
        for k, node in enumerate(chosen if nodes is None else nodes):
            slot = self.active[k % len(self.active)]
            context = VisitContext(self.objective, int(node), slot, 1.0, k, 0, NO_DRAWS)
            self.tokens[slot], self.nodes[node] = self.update.visit(
                context, self.tokens[slot], self.nodes[node]
            )

    def newest(self, name: str) -> Any:
        """The newest sums of all tokens, added."""
        known = [self.tokens[slot] for slot in self.active] + self.nodes
        versions = np.array([each["versions"] for each in known])
        pairs = enumerate(versions.argmax(axis=0))
        return sum(known[holder][name][slot] for slot, holder in pairs)

    def errors(self) -> list[float]:
        best = self.objective.optimum()
        models = [self.update.model(self.objective, self.tokens[slot]) for slot in self.active]
        return [float(np.linalg.norm(w - best)) for w in models]

    def check_sums(self) -> None:
        """Each contribution is in the newest sums once."""
        contributions = np.array([node["contribution"] for node in self.nodes])
        gradients = np.array([node["g"] for node in self.nodes])
        for name, parts in (("sums", contributions), ("gradient_sums", gradients)):
            np.testing.assert_allclose(
                self.newest(name), parts.sum(axis=0), rtol=0, atol=1e-13 * abs(parts).max()
            )


@pytest.mark.parametrize(
    ("walk", "loss"),
    [(walks.Simple(), loss) for loss in LOSSES]
    + [(walks.Uniform(), LOSSES[0]), (walks.Weighted(), LOSSES[1])],
    ids=repr,
)
def test_the_minimiser_whatever_the_walk(walk: Any, loss: Any) -> None:
    """To the last digits: neither hubs nor nodes with a large L_i count more."""
    problem = make_problem(loss, rows=30)
    run = wl.simulate(problem, GRAPH, walk, update="finito", engine="reference", steps=6000, seed=1)
    best = problem.optimum()
    assert np.linalg.norm(run.models.reshape(-1) - best) < 1e-11 * np.linalg.norm(best)
    np.testing.assert_array_equal(run.averages, run.models)


@pytest.mark.parametrize(("tokens", "lost"), [(1, 0), (1, 1), (3, 0), (3, 2)])
def test_sums_hold_each_contribution_once_also_after_a_loss(tokens: int, lost: int) -> None:
    """A lost token is replaced in a slot that was never used, by the sums that a node knows."""
    problem = make_problem(rows=30, penalty=0.1)
    walking = Tokens(problem, tokens, slots=tokens + lost)
    for loss in range(lost):
        walking.run(60)
        slot, node = walking.active.pop(), int(walking.generator.integers(12))
        known = {name: walking.nodes[node][name] for name in ("sums", "gradient_sums", "versions")}
        walking.tokens[slot] = {}
        fresh = tokens + loss
        walking.tokens[fresh] |= known
        walking.tokens[fresh] = walking.update.restart(problem, walking.tokens[fresh], loss + 1)
        walking.active.append(fresh)
    for _ in range(5):
        walking.run(40)
        walking.check_sums()
    walking.run(3000 * tokens)
    walking.check_sums()
    assert max(walking.errors()) < 1e-11


def test_the_fixed_point_holds_for_all_curvatures() -> None:
    """If all z_i are w*, w is w*, whatever the σ_i, and a visit leaves it there."""
    problem, generator = make_problem(domain=wl.domains.Ball(0.2)), np.random.default_rng(2)
    best, update = problem.optimum(), Finito()
    token = update.init_token(problem)
    states = []
    for node in range(12):
        sigma, g = generator.lognormal(sigma=2.0), problem.gradient(node, best)
        contribution = np.array([*(sigma * best - g), sigma, 1.0])
        token["sums"] = token["sums"] + contribution
        states.append(zeros(update.node_arrays(problem, node))
                      | {"z": best, "g": g, "contribution": contribution})  # fmt: skip
    for node in range(12):
        np.testing.assert_allclose(update.model(problem, token), best, atol=1e-8)
        context = VisitContext(problem, node, 0, 1.0, 0, 0, NO_DRAWS)
        token, states[node] = update.visit(context, token, states[node])


def test_costs_are_those_of_the_specification() -> None:
    """A message: m(d + 3) + 7 numbers. A node: 3d + 3 + m(d + 3). More only for the estimate."""
    problem, d = make_problem(), 4
    for m in (1, 4):
        assert Finito().message_bytes(problem, m) == 8 * (m * (d + 3) + 7)
        arrays = Finito().node_arrays(problem, 0, m)
        assert sum(spec.nbytes for spec in arrays) == 8 * (3 * d + 3 + m * (d + 3))
        longer = Finito(estimates_gradient=True).message_bytes(problem, m)
        assert longer - Finito().message_bytes(problem, m) == 8 * m * d


@pytest.mark.parametrize(
    ("problem", "capability"),
    [
        (make_problem().with_batch(1), "is_exact"),
        (make_problem(dtype=np.float32), "is_double"),
    ],
)
def test_what_it_needs(problem: Problem, capability: str) -> None:
    with pytest.raises(wl.CapabilityError) as caught:
        Setting(problem, walks.Uniform(), Finito())
    assert caught.value.capability == capability
    assert "updates.Saga()" in caught.value.remedy


def test_it_is_refused_under_every_epsilon() -> None:
    noise = wl.privacy.ModelNoise(clip=1.0, noise_multiplier=1.0, max_contributions=2)
    with pytest.raises(wl.CapabilityError) as caught:
        Setting(make_problem(), walks.Uniform(), Finito(), privacy=noise)
    assert caught.value.capability == "local_value"
    mechanism = wl.privacy.ClampedGamma(theta=4.0, bounds=(1.0, 8.0))
    with pytest.raises(ValueError, match=r"Sgd\(step_size\)"):
        Setting(make_problem(), walks.Weighted(privacy=mechanism), Finito())
