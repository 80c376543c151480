"""Finito converges to the minimiser whatever the walk, and sums hold each contribution once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris

import walklearn as wl
from walklearn import walks
from walklearn.arrays import zeros
from walklearn.objectives import Problem
from walklearn.updates import Finito, VisitContext
from walklearn.updates.finito import RecentMoves
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


class Centre(wl.Objective):
    """A user's objective: a gradient and a local value are enough."""

    def __init__(self) -> None:
        self.points, self.nodes = np.random.default_rng(9).standard_cauchy((12, 3)), 12
        self.parameters = (wl.ArraySpec("centre", (3,)),)

    def gradient(self, node: int, w: Any, draws: Any) -> Any:
        return np.clip(w - self.points[node], -1, 1)

    def local_value(self, node: int, w: Any, draws: Any = ()) -> float:
        r = abs(w - self.points[node])
        return float(np.where(r < 1, r * r / 2, r - 0.5).sum())

    def value(self, w: Any) -> float:
        return float(np.mean([self.local_value(node, w) for node in range(12)]))


def test_an_objective_of_a_user() -> None:
    objective = Centre()
    run = wl.simulate(objective, GRAPH, "oldest-first", update="finito", steps=4000, seed=1)
    gradients = [objective.gradient(node, run.models.reshape(-1), ()) for node in range(12)]
    assert np.linalg.norm(np.mean(gradients, axis=0)) < 1e-9


def test_relays_weights_and_a_ball() -> None:
    """A relay has no rows: its σ is p/(ρq). It may be the first node of the walk."""
    generator = np.random.default_rng(2)
    X, y = generator.standard_normal((30, 3)), generator.standard_normal(30)
    problem = Problem(X, y, loss=wl.losses.Squared(), penalty=0.1, nodes=12, aggregate="mean",
                      node_of_row=generator.integers(1, 8, 30), empty_nodes="relay",
                      sample_weight=generator.uniform(0.1, 10.0, 30),
                      domain=wl.domains.Ball(0.1))  # fmt: skip
    walking = Tokens(problem, 1, slots=1)
    walking.run(1, [0])
    np.testing.assert_array_equal(walking.update.model(problem, walking.tokens[0]), np.zeros(3))
    walking.run(3000)
    moves = walking.tokens[0]
    expected = max(0.0, float(moves["p"] / moves["q"]) / 2)
    walking.run(1, [0])
    assert np.isclose(walking.nodes[0]["contribution"][-2], expected, rtol=0.2)
    assert walking.errors()[0] < 1e-10


GADGETS = [(6 * k + a, 6 * k + b) for k in range(3)
           for a, b in ((0, 1), (0, 3), (0, 4), (2, 3), (2, 4), (3, 5), (4, 5))]  # fmt: skip
GADGETS += [(2, 9), (8, 15)]
HARD_GRAPHS = {
    "ring": wl.graphs.ring(20),
    "barbell": wl.graphs.barbell(10, 0),
    "lollipop": wl.graphs.from_edges(
        [*((i, j) for i in range(10) for j in range(i)), *((i, i + 1) for i in range(9, 19))]
    ),
    "star": wl.graphs.star(20),
    "tree": wl.graphs.barabasi_albert(20, 1, seed=1),
    "gadgets": wl.graphs.from_edges(GADGETS),
}


def hard_rows(name: str) -> tuple[Any, Any, Any]:
    """Rows, targets and their loss: sorted, of very different lengths, or real ones."""
    generator = np.random.default_rng(4)
    if name == "diabetes":
        X, y = load_diabetes(return_X_y=True)
        order = np.argsort(y)[::4]
        return 20 * X[order], (y[order] - y.mean()) / y.std(), wl.losses.Squared()
    if name == "iris":
        X, y = load_iris(return_X_y=True)
        return (X - X.mean(axis=0)) / X.std(axis=0), y, wl.losses.Softmax()
    lengths = generator.lognormal(sigma=2.5 if name == "lengths" else 0.0, size=(60, 1))
    y = np.where(np.arange(60) < 30, -1.0, 1.0)
    X = (generator.standard_normal((60, 4)) + 0.5 * y[:, None]) * lengths
    return X / np.sqrt(np.mean(X**2)), y, wl.losses.Logistic()


@pytest.mark.parametrize("graph", HARD_GRAPHS)
@pytest.mark.parametrize("rows", ["sorted", "lengths", "diabetes", "iris"])
def test_it_converges_without_tuning(rows: str, graph: str) -> None:
    """Neighbouring nodes hold similar rows, and the walk reaches all of them only slowly."""
    X, y, loss = hard_rows(rows)
    nodes = HARD_GRAPHS[graph].node_count
    problem = Problem(X, y, loss=loss, penalty=0.03, aggregate="mean",
                      node_of_row=np.arange(len(y)) * nodes // len(y))  # fmt: skip
    run = wl.simulate(problem, HARD_GRAPHS[graph], "oldest-first", update=Finito(), steps=2500,
                      seed=1, records=np.arange(10, 2501, 10), engine="reference")  # fmt: skip
    size = np.linalg.norm(problem.optimum())
    assert run.distance[0, -1] < 1e-3 * size
    assert run.distance.max() < 10 * size


EXTREMES: dict[str, dict[str, Any]] = {
    "one node": {"nodes": 1},
    "two nodes": {"nodes": 2},
    "rows of zeros": {"scales": [0.0, 1.0]},
    "only zeros": {"scales": [0.0]},
    "equal rows": {"rows": 1},
    "separable": {"shift": 6.0, "penalty": 1e-6},
    "a heavy row": {"scales": [30.0] + 39 * [1.0], "visits": 4000},
    "a large penalty": {"penalty": 1e6},
    "small columns": {"scales": [1e-8], "penalty": 0.1e-16},
    "large columns": {"scales": [1e8], "penalty": 0.1e16},
    "repeated visits": {"repeat": 7, "visits": 4000},
    "classes": {"loss": wl.losses.Softmax(), "shift": 3.0, "visits": 6000},
}


@pytest.mark.parametrize("name", EXTREMES)
def test_extremes(name: str) -> None:
    """No overflow, no division by 0, no search without an end; and the minimiser."""
    case = {"nodes": 20, "scales": [1.0], "rows": 40, "shift": 1.0, "penalty": 0.1, "repeat": 1,
            "visits": 2000, "loss": wl.losses.Logistic(), **EXTREMES[name]}  # fmt: skip
    generator = np.random.default_rng(5)
    y = np.where(generator.random(case["rows"]) < 0.5, -1.0, 1.0)
    X = generator.standard_normal((len(y), 4)) + case["shift"] * y[:, None]
    X, y = (np.resize(each, (40, *each.shape[1:])) for each in (X, y))
    X *= np.resize(case["scales"], (40, 1))
    targets = np.arange(40) % 3 if isinstance(case["loss"], wl.losses.Softmax) else y
    problem = Problem(X, targets, loss=case["loss"], penalty=case["penalty"], aggregate="mean",
                      node_of_row=np.arange(40) % case["nodes"])  # fmt: skip
    walking = Tokens(problem, 1, slots=1)
    path = np.resize(np.arange(case["nodes"]), case["visits"] // case["repeat"])
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        walking.run(case["visits"], np.repeat(path, case["repeat"]))
    assert walking.errors()[0] <= 1e-8 * np.linalg.norm(problem.optimum())


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


@pytest.mark.parametrize("heavy", [0.1, 100.0])
def test_a_heavy_node_moves_less(heavy: float) -> None:
    """By D/(D + θL_i) of the way to w, and at most by three quarters."""
    problem = make_problem(rows=30)
    walking = Tokens(problem, 1, slots=1)
    walking.run(100)
    token, before, update = walking.tokens[0], walking.nodes[3], walking.update
    D = float(token["sums"][0, -2] + problem.penalty * token["sums"][0, -1])
    before["smoothness"] = np.asarray(heavy * D)
    way = update.model(problem, token) - before["z"]
    walking.run(1, [3])
    share = min(0.75, 1 / (1 + 0.5 * heavy))
    np.testing.assert_allclose(walking.nodes[3]["z"] - before["z"], share * way, rtol=1e-9)


def test_the_guard_raises_theta_if_moves_grow_or_stop_to_shrink() -> None:
    """Not before 3 covers with all nodes, and never beyond 2."""
    for growth in (1.5, 1.0):
        moves, thetas = RecentMoves(), []
        for k in range(1500):
            move = np.full(2, 1e-3 * growth ** min(k, 60))
            moves = moves.after(5.0, move, move)
            thetas.append(moves.theta)
        assert thetas[:15] == 15 * [0.5]
        assert sorted(set(thetas)) == [0.5, 1.0, 2.0]
        assert thetas == sorted(thetas)
        assert np.isclose(moves.curvature, 1.0)
    moves = RecentMoves()
    for k in range(1500):
        moves = moves.after(5.0, np.full(2, 0.9**k), np.full(2, 0.9**k))
    assert moves.theta == 0.5


def test_moves_are_recent_for_a_cover_by_all_tokens() -> None:
    """m tokens visit n nodes together, so each keeps 1 − m/n of its sums at a visit."""
    for tokens, keep in ((1, 0.8), (4, 0.2), (5, 0.0), (16, 0.0)):
        moves = RecentMoves(p=3.0, q=2.0).after(5.0, np.ones(2), np.full(2, 2.0), tokens=tokens)
        np.testing.assert_allclose((moves.p, moves.q), (keep * 3.0 + 4.0, keep * 2.0 + 2.0))


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
