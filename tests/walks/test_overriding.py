"""A subclass that overrides a method of a walk or an update takes effect in every engine.

Kernels stand for the methods that they were written for. A subclass either keeps the kernel and
changes its inputs, or runs on the reference.
"""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import walklearn as wl
from walklearn import updates, walks
from walklearn.walks.walk import draw_walk

GRAPH = wl.graphs.barabasi_albert(12, 2, seed=3)
X, Y = wl.datasets.two_gaussians(12, dimension=3, variance=2.0, seed=1)
PROBLEM = wl.Problem(X, Y, penalty=1.0, domain=wl.domains.Ball(3.0))
STEP = wl.PowerStep(0.02)


class LastNeighbour(walks.Uniform):
    """Always moves to the neighbour of the largest number."""

    def hop(self, view: Any, token: Any, state: Any, draws: Any) -> walks.Hop:
        return walks.Hop(int(view.neighbours[-1]), 1, *self.count_visit(view, token, state))


class Double(walks.Uniform):
    """Weighs every gradient twice."""

    def weight(self, view: Any, token: Any, state: Any) -> float:
        return 2.0


class Attractive(walks.Uniform):
    """Announces a score that grows with the number of the node."""

    def announce(self, objective: Any, node: int, degree: int, rng: Any) -> tuple[float, ...]:
        return ((1.0 + node) / degree,)


class ByRootOfDegree(walks.Uniform):
    """Visits nodes in proportion to the root of their degree."""

    def visit_weight(self, importance: Any, degree: Any) -> Any:
        return np.sqrt(degree)


class HalfScale(walks.Uniform):
    """Halves every gradient."""

    def gradient_scale(self, graph: Any, objective: Any = None) -> Any:
        return np.full(graph.node_count, 0.5)


class AnnounceWins(walks.Uniform):
    """Overrides `announce` and a method that the inherited `announce` would have called."""

    def announce(self, objective: Any, node: int, degree: int, rng: Any) -> tuple[float, ...]:
        return ((1.0 + node) / degree,)

    def visit_weight(self, importance: Any, degree: Any) -> Any:
        return np.sqrt(degree)


class RootOfImportance(walks.Weighted):
    """Visits nodes in proportion to the root of L_i."""

    def visit_weight(self, importance: Any, degree: Any) -> Any:
        return np.sqrt(importance)


class Backwards(updates.Sgd):
    """Steps up the gradient."""

    def visit(self, context: Any, token: Any, state: Any) -> updates.VisitResult:
        result = super().visit(context, token, state)
        model = 2.0 * token["model"] - result.token["model"]
        return updates.VisitResult({**result.token, "model": context.objective.project(model)})


class Patient(updates.Saga):
    """Leaves the model at every second update."""

    def visit(self, context: Any, token: Any, state: Any) -> updates.VisitResult:
        result = super().visit(context, token, state)
        if context.updates % 2:
            return result
        return updates.VisitResult({**result.token, "model": token["model"]}, result.state)


def run(walk: Any, engine: Any = None, **options: Any) -> wl.Trace:
    if "update" not in options:
        options.setdefault("step_size", STEP)
    arguments: Any = {"steps": 2000, "seed": 1, "records": 5, "engine": engine} | options
    return wl.simulate(PROBLEM, GRAPH, walk, **arguments)


def assert_same(one: wl.Trace, other: wl.Trace) -> None:
    np.testing.assert_array_equal(one.visits, other.visits)
    np.testing.assert_array_equal(one.messages, other.messages)
    np.testing.assert_allclose(one.models, other.models, rtol=1e-9)


def expected_visits(weights: Any) -> Any:
    return 20_000 * np.asarray(weights) / np.sum(weights)


class OwnDivisor(walks.Simple):
    """Divides gradients by numbers that only a node knows."""

    def divisor(self, node: Any, degree: Any, announcement: Any) -> Any:
        return 5.0 + node


class OwnCount(walks.Uniform):
    """Counts every visit as two."""

    def count_visit(self, view: Any, token: Any, state: Any) -> Any:
        return {**token, "inverse_sum": token["inverse_sum"] + 2.0}, state


class DoubleAverage(updates.Sgd):
    """Has an average of its own."""

    def average_model(self, objective: Any, token: Any) -> Any:
        return 2.0 * token["model"]


COMPILED = [
    Attractive(), ByRootOfDegree(), HalfScale(), AnnounceWins(), RootOfImportance(), OwnDivisor(),
]  # fmt: skip
UNCOMPILED = [LastNeighbour(), Double()]


@pytest.mark.parametrize("walk", COMPILED, ids=repr)
@pytest.mark.parametrize(
    "wrap", [lambda walk: walk, walks.NonBacktracking, walks.Jumping, walks.HistoryDriven],
    ids=["alone", "NonBacktracking", "Jumping", "HistoryDriven"],
)  # fmt: skip
def test_overrides_that_keep_the_kernel_take_effect_in_both_engines(walk: Any, wrap: Any) -> None:
    outer, plain = wrap(walk), wrap(walks.Uniform())
    assert outer.is_compiled
    fast, slow = run(outer, "compiled"), run(outer, "reference")
    assert_same(fast, slow)
    assert not np.allclose(fast.models, run(plain, "compiled").models, rtol=1e-6)


@pytest.mark.parametrize("walk", UNCOMPILED, ids=repr)
@pytest.mark.parametrize(
    "wrap", [lambda walk: walk, walks.NonBacktracking, walks.Jumping],
    ids=["alone", "NonBacktracking", "Jumping"],
)  # fmt: skip
def test_overrides_that_the_kernel_does_not_know_run_on_the_reference(walk: Any, wrap: Any) -> None:
    outer = wrap(walk)
    assert not outer.is_compiled
    with pytest.raises(ValueError, match="has no kernel"):
        run(outer, "compiled", steps=10)
    with pytest.warns(UserWarning, match="has no kernel"):
        default = run(outer, steps=300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_same(default, run(outer, "reference", steps=300))
    plain = run(wrap(walks.Uniform()), "reference", steps=300)
    assert not np.allclose(default.models, plain.models, rtol=1e-6)


@pytest.mark.parametrize(
    ("walk", "plain"), [(OwnDivisor(), walks.Simple()), (OwnCount(), walks.Uniform())]
)
def test_overrides_of_the_estimated_mean_take_effect(walk: Any, plain: Any) -> None:
    changed, unchanged = (
        run(each, "reference", steps=100, mean_importance="estimated") for each in (walk, plain)
    )
    assert not np.allclose(changed.models, unchanged.models, rtol=1e-6)
    if walk.is_compiled:
        assert_same(run(walk, "compiled", steps=100, mean_importance="estimated"), changed)
    else:
        with pytest.raises(ValueError, match="has no kernel"):
            run(walk, "compiled", steps=10, mean_importance="estimated")


def test_an_override_of_the_average_runs_on_the_reference() -> None:
    update = DoubleAverage(STEP)
    with pytest.raises(ValueError, match="has no kernel"):
        run(walks.Uniform(), "compiled", update=update, steps=10)
    changed = run(walks.Uniform(), "reference", update=update, steps=100)
    np.testing.assert_allclose(changed.averages, 2.0 * changed.models)


def test_hop_decides_the_path() -> None:
    visits = run(LastNeighbour(), "reference").visits
    followed, node = np.zeros(12, dtype=int), int(np.argmax(visits))
    for _ in range(50):
        followed[node] = 1
        node = int(GRAPH.neighbours(node)[-1])
    assert visits[followed == 0].sum() <= 12  # at most on the way into the cycle


def test_weight_and_gradient_scale_are_factors_of_the_gradient() -> None:
    """A weight of two is a step twice as long."""
    plain = {
        constant: run(walks.Uniform(), "reference", step_size=wl.PowerStep(constant), steps=200)
        for constant in (0.01, 0.04)
    }
    doubled = run(Double(), "reference", steps=200)
    halved = run(HalfScale(), "reference", steps=200)
    np.testing.assert_allclose(doubled.models, plain[0.04].models, rtol=1e-9)
    np.testing.assert_allclose(halved.models, plain[0.01].models, rtol=1e-9)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize(
    ("walk", "weights"),
    [
        (Attractive(), 1.0 + np.arange(12)),
        (AnnounceWins(), 1.0 + np.arange(12)),
        (ByRootOfDegree(), np.sqrt(GRAPH.degrees)),
        (RootOfImportance(), np.sqrt(PROBLEM.smoothness_constants)),
    ],
    ids=["announce", "announce and visit_weight", "visit_weight", "visit_weight of Weighted"],
)
def test_announced_scores_decide_the_visits(walk: Any, weights: Any, engine: str) -> None:
    """20,000 visits at a fixed seed: the total variation distance is below 0.02 in practice."""
    visits = run(walk, engine, steps=20_000, gaps=False).visits
    expected = expected_visits(weights)
    assert np.abs(visits - expected).sum() / 40_000 < 0.05
    assert np.abs(expected - expected_visits(np.ones(12))).sum() / 40_000 > 0.05


@pytest.mark.parametrize("walk", [*COMPILED, *UNCOMPILED], ids=repr)
def test_a_node_announces_the_same_numbers_as_the_table_of_a_simulation(walk: Any) -> None:
    table = walk.announcements(GRAPH, PROBLEM)
    for node in range(12):
        announced = walk.announce(PROBLEM, node, int(GRAPH.degrees[node]), None)
        np.testing.assert_allclose(table[node], announced, rtol=1e-12)


@pytest.mark.parametrize("update", [Backwards(STEP), Patient()], ids=repr)
def test_an_update_that_overrides_visit_runs_on_the_reference(update: updates.Update) -> None:
    assert not update.is_compiled
    with pytest.raises(ValueError, match="has no kernel"):
        run(walks.Uniform(), "compiled", update=update, steps=10)
    with pytest.warns(UserWarning, match="has no kernel"):
        default = run(walks.Uniform(), update=update, steps=100)
    assert_same(default, run(walks.Uniform(), "reference", update=update, steps=100))
    base = updates.Sgd(STEP) if isinstance(update, updates.Sgd) else updates.Saga()
    plain = run(walks.Uniform(), "reference", update=base, steps=100)
    assert not np.allclose(default.models, plain.models, rtol=1e-6)


@pytest.mark.parametrize(
    "part", [*COMPILED, *UNCOMPILED, Backwards(STEP), Patient(), Patient(0.1)], ids=repr
)
def test_subclasses_are_values_too(part: Any) -> None:
    again = pickle.loads(pickle.dumps(part))
    assert (again, hash(again), repr(again)) == (part, hash(part), repr(part))
    base = type(part).__mro__[1]
    assert part != (base(STEP) if base is updates.Sgd else base())


def test_no_privacy_is_claimed_for_an_override_that_may_disclose_rows() -> None:
    noise = wl.privacy.ModelNoise(clip=1.0, noise_multiplier=1.0, max_contributions=2)
    for walk in (Attractive(), HalfScale(), walks.NonBacktracking(Attractive())):
        assert not walk.disclosure_is_known
        with pytest.raises(ValueError, match=type(walk).__name__):
            run(walk, privacy=noise, steps=10)
    assert ByRootOfDegree().disclosure_is_known


class RandomAnnouncement(walks.Weighted):
    """Announces the importance with noise of its own."""

    def announce(self, objective: Any, node: int, degree: int, rng: Any) -> tuple[float, ...]:
        value = 1.0 + rng.random()
        return value / degree, value


class Alternating(walks.Uniform):
    """Takes two draws, and keeps the number of its visits at each node."""

    @property
    def draws(self) -> int:
        return 2

    def node_arrays(self, tokens: int) -> Any:
        return (wl.ArraySpec("count", (), "<i8"),)

    def hop(self, view: Any, token: Any, state: Any, draws: Any) -> walks.Hop:
        first = super().hop(view, token, {}, draws[int(state["count"]) % 2 :])
        return first._replace(state={**state, "count": state["count"] + 1})


@pytest.mark.parametrize("mean", ["exact", "estimated"])
@pytest.mark.parametrize("streams", ["replicate", "node"])
@pytest.mark.parametrize("wrap", [lambda walk: walk, walks.NonBacktracking])
def test_random_announcements_are_drawn_once_from_the_seed(
    mean: Any, streams: Any, wrap: Any
) -> None:
    walk = wrap(RandomAnnouncement())
    options: Any = {"mean_importance": mean, "streams": streams, "replicates": 2}
    one, other = (run(walk, engine, **options) for engine in ("compiled", "reference"))
    assert_same(one, other)
    assert_same(one, run(walk, "compiled", **options))
    assert not np.array_equal(one.models, run(walk, "compiled", seed=2, **options).models)
    single = run(walk, "compiled", **{**options, "replicates": 1})
    np.testing.assert_array_equal(single.models[0], one.models[0])


@pytest.mark.parametrize("wrap", [walks.NonBacktracking, walks.Jumping])
def test_a_walk_can_build_on_one_with_state_and_more_draws(wrap: Any) -> None:
    walk = wrap(Alternating())
    trace = run(walk, "reference", steps=20_000)
    assert trace.visits is not None
    # Each node has 1/12 of 20,000 visits; the walk mixes within some 30 visits, so the standard
    # deviation is below 250: a difference of 1,000 has a probability below 1e-3, for a fixed seed.
    assert np.abs(trace.visits - 20_000 / 12).max() < 1_000
    assert {spec.name for spec in walk.node_arrays(1)} >= {"count"}


def test_the_expected_visits_of_a_private_walk_follow_its_own_visit_weights() -> None:
    mechanism = wl.privacy.calibrate("laplace", epsilon=3.0, delta=1e-3, bounds=(1.0, 9.0))
    walk = RootOfImportance(privacy=mechanism)
    trace = run(walk, "compiled", replicates=2, steps=100)
    assert trace.expected_visits is not None
    assert trace.released is not None
    roots = np.sqrt(trace.released)
    expected = (roots / roots.sum(axis=1, keepdims=True)).mean(axis=0)
    np.testing.assert_allclose(trace.expected_visits, expected, rtol=1e-12)


@pytest.mark.parametrize("walk", [Attractive(), AnnounceWins(), ByRootOfDegree()], ids=repr)
def test_the_stationary_distribution_belongs_to_the_announced_scores(walk: Any) -> None:
    shares = walk.stationary(GRAPH, PROBLEM)
    np.testing.assert_allclose(shares @ walk.transition_matrix(GRAPH, PROBLEM), shares, rtol=1e-12)
    trace = run(walk, "compiled", steps=10)
    assert trace.expected_visits is not None
    np.testing.assert_allclose(trace.expected_visits, shares, rtol=1e-12)


def test_a_history_driven_walk_refuses_a_walk_whose_hop_it_would_ignore() -> None:
    with pytest.raises(TypeError, match="own hop"):
        walks.HistoryDriven(Alternating())


class OwnRelease(walks.Uniform):
    """Has its own release, and states it."""

    mechanism: Any = None
    drawn: bool = False

    @property
    def disclosure(self) -> Any:
        return walks.disclosure.Disclosure(True, self.mechanism)

    @property
    def is_private(self) -> bool:
        return not self.drawn

    def sample_release(self, graph: Any, objective: Any, generator: Any = None) -> Any:
        made = self.mechanism.release(objective.importance, generator)
        return self.bound(own_release=made, drawn=True)

    def announce(self, objective: Any, node: int, degree: int, rng: Any) -> tuple[float, ...]:
        released: Any = getattr(self, "own_release", None)
        return (float(released[node]) / degree,)


MECHANISM = wl.privacy.calibrate("laplace", epsilon=3.0, delta=1e-3, bounds=(1.0, 9.0))


def test_a_release_of_its_own_is_drawn_once_for_each_replicate() -> None:
    walk = OwnRelease(mechanism=MECHANISM)
    fast, slow = (run(walk, engine, replicates=2) for engine in ("compiled", "reference"))
    assert_same(fast, slow)
    assert fast.expected_visits is not None
    # 20,000 visits at a fixed seed: the total variation distance is below 0.02 in practice.
    trace = run(walk, "compiled", steps=20_000)
    assert np.abs(trace.visits / 20_000 - trace.expected_visits).sum() / 2 < 0.05


class Leaky(walks.Weighted):
    """Announces the true L_i, whatever its mechanism."""

    def announce(self, objective: Any, node: int, degree: int, rng: Any) -> tuple[float, ...]:
        value = float(objective.smoothness(node))
        return value / degree, value


class LeakyScale(walks.Weighted):
    """Scales the gradients by the true L_i."""

    def gradient_scale(self, graph: Any, objective: Any = None) -> Any:
        return 1.0 / objective.importance


@pytest.mark.parametrize("kind", [Leaky, LeakyScale])
@pytest.mark.parametrize("wrap", [lambda walk: walk, walks.NonBacktracking])
def test_no_release_is_claimed_for_a_walk_that_may_disclose_more(kind: Any, wrap: Any) -> None:
    walk = wrap(kind(privacy=MECHANISM))
    with pytest.raises(ValueError, match=type(walk).__name__):
        run(walk, steps=10)
    fit = wl.RandomWalkClassifier(graph=GRAPH, walk=walk, loss="logistic", steps=10)
    with pytest.raises(ValueError, match=type(walk).__name__):
        fit.fit(X, Y)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize(
    ("method", "value", "message"),
    [
        ("gradient_scale", np.ones(3), "gradient_scale"),
        ("gradient_scale", np.full(12, -1.0), "gradient_scale"),
        ("gradient_scale", np.full(12, np.nan), "gradient_scale"),
        ("gradient_scale", np.zeros(12), "gradient_scale"),
        ("announce", (-1.0,), "positive"),
        ("announce", (np.nan,), "finite"),
        ("announce", None, "finite numbers"),
        ("announce", 1.0, "finite numbers"),
        ("announce", (), "at least 1"),
        ("visit_weight", -1.0, "positive"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(
    engine: Any, method: str, value: Any, message: str
) -> None:
    kind = type("Odd", (walks.Uniform,), {method: lambda *_, **__: value})
    with pytest.raises(ValueError, match=message):
        run(kind(), engine, steps=10)


def test_an_announcement_that_is_too_short_is_refused() -> None:
    kind = type("Short", (walks.Weighted,), {"announce": lambda *_: (1.0,)})
    for walk in (kind(), walks.NonBacktracking(kind())):
        with pytest.raises(ValueError, match="at least 2 numbers"):
            run(walk, "compiled", steps=10)


def test_other_simulations_draw_announcements_once_too() -> None:
    walk = RandomAnnouncement()
    drawn = [draw_walk(walk, GRAPH, PROBLEM, np.random.default_rng(1)) for _ in range(2)]
    np.testing.assert_array_equal(drawn[0].table, drawn[1].table)
    assert draw_walk(drawn[0], GRAPH, PROBLEM, None) is drawn[0]
    recovered = [wl.attack(PROBLEM, GRAPH, walk, STEP, 50, seed=1).recovered for _ in range(2)]
    assert recovered[0] == recovered[1]
    assert np.isfinite(wl.theory.diagnose(GRAPH, PROBLEM, walk, seed=1).spectral_gap)


def test_all_announced_numbers_count_as_sent() -> None:
    kind = type("Three", (walks.Weighted,), {"announce": lambda *_: (1.0, 1.0, 1.0)})
    for walk in (kind(), walks.NonBacktracking(kind())):
        assert run(walk, "compiled", steps=5).announcement_bytes == 2 * GRAPH.edge_count * 3 * 8


@pytest.mark.parametrize("name", ["announce", "hop", "weight", "gradient_scale", "node_arrays"])
def test_a_node_cannot_do_a_walk_whose_override_it_would_not_call(name: str) -> None:
    assert walks.Uniform.is_local()
    assert not type("Other", (walks.Uniform,), {name: lambda *_: None}).is_local()


def test_a_walk_with_its_own_hop_does_not_keep_a_distribution_that_is_no_longer_true() -> None:
    for name in ("stationary", "transition_matrix"):
        for walk in (LastNeighbour(), walks.NonBacktracking(LastNeighbour()).walk):
            with pytest.raises(TypeError, match="own hop"):
                getattr(walk, name)(GRAPH)
    with pytest.raises(TypeError, match="own hop"):
        walks.Independent(LastNeighbour()).stationary(GRAPH)
    trace = wl.simulate(PROBLEM, GRAPH, LastNeighbour(), steps=5, seed=1, step_size=STEP,
                        engine="reference")  # fmt: skip
    assert trace.expected_visits is None

    class Known(LastNeighbour):
        def stationary(self, graph: Any, objective: Any = None) -> Any:
            return np.full(graph.node_count, 1.0 / graph.node_count)

    trace = wl.simulate(PROBLEM, GRAPH, Known(), steps=5, seed=1, step_size=STEP,
                        engine="reference")  # fmt: skip
    assert trace.expected_visits is not None


class WrongShares(walks.Uniform):
    def stationary(self, graph: Any, objective: Any = None) -> Any:
        return np.ones(3)


class FailingShares(walks.Uniform):
    def stationary(self, graph: Any, objective: Any = None) -> Any:
        raise TypeError("mistake")


class OwnScale(wl.Walk):
    def hop(self, view: Any, token: Any, state: Any, draws: Any) -> walks.Hop:
        return walks.Hop(int(view.neighbours[0]), 1)

    def gradient_scale(self, graph: Any, objective: Any = None) -> Any:
        return np.ones(graph.node_count)


class HalfAQuestion(wl.Walk):
    def hop(self, view: Any, token: Any, state: Any, draws: Any) -> walks.Hop:
        return walks.Hop(int(view.neighbours[0]), 1, questions=0.5)  # type: ignore[arg-type]


class AllNeighbours(wl.Walk):
    def hop(self, view: Any, token: Any, state: Any, draws: Any) -> walks.Hop:
        return walks.Hop(view.neighbours, 1)


class NoWeight(walks.Uniform):
    def weight(self, view: Any, token: Any, state: Any) -> Any:
        return None


class FewerDraws(walks.Uniform):
    draws = -1  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("walk", "mean", "kind", "message"),
    [
        (WrongShares(), "exact", ValueError, "stationary of WrongShares"),
        (FailingShares(), "exact", TypeError, "mistake"),
        (OwnScale(), "estimated", ValueError, "own gradient_scale"),
        (HalfScale(), "estimated", ValueError, "own gradient_scale"),
        (walks.Jumping(HalfScale()), "estimated", ValueError, "own gradient_scale"),
        (HalfAQuestion(), "exact", ValueError, "0.5 questions"),
        (AllNeighbours(), "exact", ValueError, "AllNeighbours"),
        (NoWeight(), "exact", ValueError, "weight None"),
        (FewerDraws(), "exact", ValueError, "draws of FewerDraws"),
    ],
    ids=repr,
)
def test_mistakes_in_a_walk_are_named(walk: Any, mean: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message):
        wl.simulate(PROBLEM, GRAPH, walk, steps=5, seed=1, step_size=STEP, mean_importance=mean,
                    engine="reference")  # fmt: skip


class BareArray(wl.Update):
    def visit(self, context: Any, token: Any, state: Any) -> updates.VisitResult:
        return updates.VisitResult(np.zeros(3))  # type: ignore[arg-type]


class BareSpec(wl.Update):
    def token_arrays(self, objective: Any, tokens: int = 1) -> Any:
        return wl.ArraySpec("model", (objective.size,))

    def visit(self, context: Any, token: Any, state: Any) -> updates.VisitResult:
        return updates.VisitResult(token)


class NoModel(BareSpec):
    def token_arrays(self, objective: Any, tokens: int = 1) -> Any:
        return (wl.ArraySpec("w", (objective.size,)),)


@pytest.mark.parametrize(
    ("update", "kind", "message"),
    [
        (BareArray(), TypeError, r"BareArray\(\) .*dict"),
        (BareSpec(), TypeError, "tuple of wl.ArraySpec"),
        (NoModel(), ValueError, 'declares no array "model"'),
    ],
    ids=repr,
)
def test_mistakes_in_an_update_are_named(update: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message):
        wl.simulate(PROBLEM, GRAPH, "uniform", update=update, steps=5, seed=1, engine="reference")


def test_saga_takes_any_real_number_as_its_step() -> None:
    assert updates.Saga(np.float32(0.5)) == updates.Saga(0.5)  # type: ignore[arg-type]
