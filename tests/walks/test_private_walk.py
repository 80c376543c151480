"""Algorithm 3: both reweightings, one release per replicate, noise on the model, the ledger."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import walklearn as wl
from tests.objectives.cases import local_gradient
from walklearn import privacy, walks

GRAPH = wl.graphs.erdos_renyi(12, 0.4, seed=4, connected="retry")
X, Y = wl.datasets.two_gaussians(12, dimension=3, variance=2.0, seed=1)
PROBLEM = wl.Problem(X, Y, penalty=1.0, domain=wl.domains.Ball(3.0), aggregate="mean")
BOUNDS = (1.0, 8.0)  # L_i = 1 + ‖x‖²/4 here
MECHANISM = privacy.ClampedGamma(theta=4.0, bounds=BOUNDS)
MODEL = np.array([0.3, -0.5, 0.2])


def estimate(walk: walks.Walk) -> np.ndarray:
    """The stationary expectation of ĝ."""
    shares = walk.stationary(GRAPH, PROBLEM)
    scale = walk.gradient_scale(GRAPH, PROBLEM)
    gradients = [local_gradient(PROBLEM, i, MODEL) for i in range(12)]
    return np.asarray((shares * scale) @ np.array(gradients))


class OwnScale(walks.Uniform):
    """A user's walk, whose steps reveal L_i."""

    def gradient_scale(self, graph: wl.Graph, problem: Any = None) -> np.ndarray:
        return np.asarray(problem.smoothness_constants.mean() / problem.smoothness_constants)


def noise_of(multiplier: float, max_contributions: int, clip: float = 1.0) -> privacy.ModelNoise:
    return privacy.ModelNoise(clip, multiplier, max_contributions, protect="node")


def drawn(seed: int = 1, problem: wl.Problem = PROBLEM, **options: Any) -> walks.Metropolis:
    """The weighted walk after one release."""
    walk = walks.Weighted(privacy=MECHANISM, **options)
    return walk.sample_release(GRAPH, problem, np.random.default_rng(seed))


def run(walk: Any, **options: Any) -> wl.Trace:
    defaults = {"steps": 500, "step_size": wl.PowerStep(0.02), "replicates": 4, "seed": 3}
    return wl.simulate(PROBLEM, GRAPH, walk, **{**defaults, **options})


@pytest.mark.parametrize("seed", range(5))
def test_released_weights_are_unbiased_for_every_draw(seed: int) -> None:
    np.testing.assert_allclose(estimate(drawn(seed)), PROBLEM.full_gradient(MODEL), rtol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_printed_weights_are_biased_for_a_draw(seed: int) -> None:
    walk = drawn(seed, reweight="as-printed")
    error = np.abs(estimate(walk) - PROBLEM.full_gradient(MODEL)).max()
    assert error > 0.01 * np.abs(PROBLEM.full_gradient(MODEL)).max()


@pytest.mark.parametrize("reweight", ["released", "as-printed"])
def test_on_average_over_gamma_draws_both_are_unbiased(reweight: Any) -> None:
    """R / ΣR is Dirichlet, so E π_R = π_L. 3 entries within 5 standard errors: fails by chance
    with a probability of 2e-6 (the seed is fixed)."""
    private = walks.Weighted(privacy=privacy.Gamma(4.0, (0.5, 20.0)), reweight=reweight)
    generator = np.random.default_rng(5)
    draws = np.array(
        [estimate(private.sample_release(GRAPH, PROBLEM, generator)) for _ in range(4000)]
    )
    error = draws.mean(axis=0) - PROBLEM.full_gradient(MODEL)
    allowed = 5 * draws.std(axis=0) / np.sqrt(len(draws)) + 1e-12
    assert (np.abs(error) < allowed).all()


def test_one_draw_minimises_the_sum_that_is_printed() -> None:
    """With printed weights one network converges to the minimiser of Σ (R_i / L_i) f_i."""
    walk: Any = drawn(reweight="as-printed")
    weights = walk.importance / PROBLEM.smoothness_constants
    fits = {
        name: run(w, steps=400_000, records=1, replicates=8, step_size=wl.PowerStep(0.1)).models
        for name, w in {"printed": walk, "true": walks.Weighted()}.items()
    }

    def weighted_gradient(model: np.ndarray) -> np.ndarray:
        local = [local_gradient(PROBLEM, i, model) for i in range(12)]
        return np.asarray(weights @ np.array(local) / weights.sum())

    mean = fits["printed"].mean(axis=0)
    gradient = np.linalg.norm(PROBLEM.full_gradient(mean))
    assert np.linalg.norm(weighted_gradient(mean)) < 0.1 * gradient
    assert np.linalg.norm(PROBLEM.full_gradient(fits["true"].mean(axis=0))) < 0.01


def test_every_replicate_has_its_own_releases() -> None:
    trace = run(walks.Weighted(privacy=MECHANISM))
    assert trace.released is not None
    assert trace.released.shape == (4, 12)
    assert len(np.unique(trace.released, axis=0)) == 4
    assert ((trace.released >= BOUNDS[0]) & (trace.released <= BOUNDS[1])).all()
    assert trace == run(walks.Weighted(privacy=MECHANISM), cores=1)
    np.testing.assert_array_equal(
        trace.released[:2], run(walks.Weighted(privacy=MECHANISM), replicates=2).released
    )


def test_values_outside_the_bounds_are_clamped_and_counted() -> None:
    trace = run(walks.Weighted(privacy=privacy.ClampedGamma(4.0, (1.5, 2.0))))
    L = PROBLEM.smoothness_constants
    outside = int(((L < 1.5) | (L > 2.0)).sum())
    assert outside > 0
    assert trace.privacy["out_of_bounds"] == [outside] * 4


def test_the_ledger_lists_what_was_published() -> None:
    ledgers = run(walks.Weighted(privacy=MECHANISM)).ledger
    assert len(ledgers) == 4
    assert [(c.what, c.times) for c in ledgers[0].charges(0) if c.what == "importance"] == [
        ("importance", 1)
    ]
    assert ledgers[0].total(0, delta=0.03) == np.inf  # the model is unprotected
    assert "in the clear" in str(run(walks.Weighted()).ledger[0])
    trace = run(walks.Weighted(privacy=MECHANISM), privacy=noise_of(20.0, 10), steps=100)
    assert trace.contributions is not None
    ledger = trace.ledger[0]
    spent = ledger.total(0, delta=0.05)
    assert MECHANISM.epsilon(0.05) < spent < np.inf
    model = next(c for c in ledger.charges(0) if c.what == "model")
    assert model.times == 10  # the cap: an observer of the tokens chooses when to stop


@pytest.mark.parametrize("protect", ["rows", "node"])
@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_nodes_past_their_cap_leave_the_model_unchanged(engine: Any, protect: Any) -> None:
    """Neither noise nor the penalty moves w; the visits and the running average count on."""
    problem = wl.Problem(X, Y, domain=wl.domains.Ball(1e3), penalty=0.5, aggregate="mean")
    noise = privacy.ModelNoise(clip=1.0, noise_multiplier=1.0, max_contributions=3, protect=protect)
    run = wl.simulate(problem, GRAPH, walks.Uniform(), steps=2000, privacy=noise, seed=3,
                      records=range(100, 2001, 100), step_size=wl.ConstantStep(0.01),
                      replicates=2, engine=engine)  # fmt: skip
    assert run.contributions is not None
    assert (run.contributions == 3).all()
    assert run.visits.sum() == 2 * 2000
    assert run.updates[-1] == 2000
    assert (run.distance[:, -8:] == run.distance[:, -1:]).all()  # w stands still
    assert (np.diff(run.average_distance[:, -8:]) != 0).all()  # w̄ still moves towards it


def test_contributions_are_clipped() -> None:
    """One visit moves the model by the step times at most the clip, whatever the rows."""
    loud = wl.Problem(1e3 * X, Y, domain=wl.domains.Ball(1e9), aggregate="mean")
    noise = noise_of(1e-12, 1, clip=2.0)
    options = {"steps": 1, "step_size": wl.ConstantStep(1.0), "replicates": 20, "seed": 3}
    plain = wl.simulate(loud, GRAPH, walks.Uniform(), **options)
    clipped = wl.simulate(loud, GRAPH, walks.Uniform(), privacy=noise, **options)
    start = plain.averages  # after one visit the average is the start
    moved = np.linalg.norm(clipped.models - start, axis=1)
    assert moved.max() == pytest.approx(2.0, rel=1e-6)
    assert (np.linalg.norm(plain.models - start, axis=1) > 10.0).any()


def test_a_walk_drawn_before_is_charged_too() -> None:
    walk: Any = drawn()
    for walk_or_jumps in (walk, walks.Jumping(walk)):
        trace = run(walk_or_jumps, privacy=noise_of(20.0, 10), steps=100)
        assert "importance" in [charge.what for charge in trace.ledger[0].charges(0)]
        assert trace.ledger[0].total(0, delta=0.05) > MECHANISM.epsilon(0.05)
        np.testing.assert_array_equal(trace.released, np.tile(walk.importance, (4, 1)))


@pytest.mark.parametrize("wrap", [lambda walk: walk, walks.NonBacktracking, walks.Jumping])
def test_no_method_of_a_walk_after_its_release_can_read_the_true_constants(wrap: Any) -> None:
    values_seen: list[Any] = []

    class Curious(walks.Weighted):
        def divisor(self, *of_node: Any) -> Any:
            values_seen.append({**vars(self), **vars(type(self))})
            return super().divisor(*of_node)

    true = PROBLEM.smoothness_constants
    run(wrap(Curious(privacy=MECHANISM)), steps=5, engine="reference", mean_importance="estimated")
    assert values_seen
    for values in (value for each in values_seen for value in each.values()):
        assert not (isinstance(values, np.ndarray) and np.isin(true, values).any())


def test_a_relay_does_not_release_the_constant_of_another_node() -> None:
    problem = wl.Problem(X[:11], Y[:11], penalty=1.0, nodes=12, empty_nodes="relay",
                         aggregate="mean")  # fmt: skip
    walk: Any = drawn(problem=problem, reweight="as-printed")
    assert walk.true_importance[11] == BOUNDS[0]
    assert (walk.true_importance[:11] == problem.smoothness_constants[:11]).all()


def test_shrinking_moves_releases_to_the_midpoint_and_stays_unbiased() -> None:
    plain, shrinking = (drawn(2, shrink=shrink) for shrink in (False, True))
    released, followed = (walk.release for walk in (plain, shrinking))
    factor = privacy.release_error(MECHANISM)[2]
    np.testing.assert_allclose(followed, 4.5 + factor * (released - 4.5))  # of bounds 1..8
    assert 0.1 < factor < 0.9
    np.testing.assert_allclose(estimate(shrinking), PROBLEM.full_gradient(MODEL), rtol=1e-12)
    with pytest.raises(ValueError, match="shrink and reweight"):
        walks.Weighted(shrink=True)


@pytest.mark.parametrize("kind", ["gamma", "clamped-gamma", "laplace"])
def test_shrinking_brings_releases_nearer(kind: str) -> None:
    """Mean square error over values uniform in the bounds, 20,000 draws: by a third or more."""
    mechanism = privacy.calibrate(kind, epsilon=2.0, delta=0.05, bounds=(1.0, 2.0))
    generator = np.random.default_rng(1)
    values = generator.uniform(1.0, 2.0, 20_000)
    released = mechanism.release(values, generator)
    shrunk = privacy.shrink_release(mechanism, released)
    error, after = (np.mean((guess - values) ** 2) for guess in (released, shrunk))
    assert after < 0.67 * error
    assert after < 1 / 12  # the error of the midpoint
    assert after == pytest.approx(privacy.release_error(mechanism)[1] ** 2, rel=0.05)


def test_a_large_epsilon_does_not_hide_the_rows() -> None:
    """The attack is a useful test only if it succeeds when ε is useless."""
    X, y = wl.datasets.two_gaussians(50, dimension=10, seed=1)
    problem = wl.Problem(X, y, penalty=1.0, aggregate="mean")
    graph = wl.graphs.erdos_renyi(50, 0.2, seed=1, connected="retry")

    def recovered(epsilon: float) -> int:
        noise = privacy.ModelNoise.calibrate(
            epsilon=epsilon, delta=1e-3, clip=1.0, max_contributions=1
        )
        return wl.attack(
            problem, graph, walks.Uniform(), wl.PowerStep(0.1), 2000, noise, 1
        ).recovered

    assert recovered(1000.0) >= 20
    assert recovered(3.0) == 0


def test_tokens_of_the_squared_loss_reveal_no_more_than_moments() -> None:
    """Rows with the same XᵀX and Xᵀy give the same models, so rows do not follow from them."""
    generator = np.random.default_rng(1)
    rows, targets = generator.normal(size=(4, 3, 3)), generator.normal(size=(4, 3))
    rotation, _ = np.linalg.qr(generator.normal(size=(3, 3)))

    def models(loss: Any, turned: bool) -> np.ndarray:
        turn = rotation if turned else np.eye(3)
        problem = wl.Problem(
            (turn @ rows).reshape(12, 3), (targets @ turn.T).ravel(), loss=loss,
            node_of_row=np.repeat(np.arange(4), 3),
        )  # fmt: skip
        return wl.simulate(
            problem, wl.graphs.ring(4), walks.Uniform(), step_size=wl.PowerStep(0.02), steps=50,
            replicates=1, seed=1,
        ).models  # fmt: skip

    squared, huber = wl.losses.Squared(), wl.losses.Huber(0.5)
    np.testing.assert_allclose(models(squared, True), models(squared, False), atol=1e-12)
    assert np.abs(models(huber, True) - models(huber, False)).max() > 1e-3


def test_noise_costs_accuracy_and_no_noise_costs_none() -> None:
    options = {"steps": 20_000, "step_size": wl.PowerStep(0.1)}
    plain = run(walks.Uniform(), **options).distance[:, -1].mean()
    quiet, loud = noise_of(1e-15, 10**9, clip=1e6), noise_of(5.0, 10**9, clip=5.0)
    same = run(walks.Uniform(), privacy=quiet, **options).distance[:, -1].mean()
    assert same == pytest.approx(plain, rel=1e-6)
    assert run(walks.Uniform(), privacy=loud, **options).distance[:, -1].mean() > 2 * plain


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (walks.Weighted(), "in the clear"),
        (walks.Weighted(PROBLEM.smoothness_constants), "in the clear"),
        (walks.NonBacktracking(walks.Weighted()), "in the clear"),
        (OwnScale(), "claimed"),
        (walks.Weighted(privacy=MECHANISM, reweight="as-printed"), "as-printed"),
        (walks.Uniform(normalise=True), "normalise"),
        (wl.AsynchronousGossip(), "for walks"),
    ],
    ids=repr,
)
def test_claims_that_would_be_false_are_refused(method: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(method, privacy=noise_of(1.0, 3))


def test_bad_walks() -> None:
    with pytest.raises(ValueError, match=r"bounds are \(1\.0, 9\.0\)"):
        walks.Weighted(privacy=MECHANISM, bounds=(1.0, 9.0))
    with pytest.raises(ValueError, match="unclamped laplace"):
        walks.Weighted(privacy=privacy.Laplace(1.0, BOUNDS, clamp=None))
    with pytest.raises(ValueError, match="as-printed"):
        walks.Weighted(privacy=MECHANISM, reweight="printed")
    for alone in ({"bounds": BOUNDS}, {"reweight": "as-printed"}):
        with pytest.raises(ValueError, match="Pass privacy"):
            walks.Weighted(**alone)
    with pytest.raises(ValueError, match="public=True"):
        walks.Weighted(public=True)
    with pytest.raises(TypeError, match="mechanism"):
        walks.Weighted(privacy=3.0)
    with pytest.raises(TypeError, match="sample_release"):
        walks.Weighted(privacy=MECHANISM).stationary(GRAPH, PROBLEM)


def test_private_walks_are_values() -> None:
    walk = walks.Weighted(privacy=MECHANISM, reweight="as-printed", laziness=0.1)
    assert pickle.loads(pickle.dumps(walk)) == walk
    assert walk != walks.Weighted(privacy=MECHANISM)
    assert walks.Weighted(privacy=MECHANISM).is_private
    assert walks.Jumping(walk).is_private
    assert not walks.Weighted().is_private
    released = drawn(reweight="as-printed", laziness=0.1)
    assert pickle.loads(pickle.dumps(released)) == released
    assert not released.is_private


def test_a_trace_with_releases_survives_a_file(tmp_path: Any) -> None:
    trace = run(walks.Weighted(privacy=MECHANISM), privacy=noise_of(20.0, 10))
    for suffix in ("npz", "parquet"):
        trace.save(tmp_path / f"run.{suffix}")
        assert wl.Trace.load(tmp_path / f"run.{suffix}") == trace


class Exact(wl.privacy.Gaussian):
    """Releases the values as they are, and inherits the cost of the noise."""

    def release(self, values: Any, generator: Any = None) -> Any:
        return np.array(values, dtype=float)


def test_no_privacy_is_claimed_for_a_mechanism_with_its_own_draw() -> None:
    exact = Exact(5.0, (1.0, 136.0))
    problem = wl.Problem(*wl.datasets.two_gaussians(10, dimension=3, seed=1), penalty=1.0)
    ring, walk = wl.graphs.ring(10), walks.Weighted(privacy=exact)
    with pytest.raises(ValueError, match="Override `curve`"):
        wl.simulate(problem, ring, walk, step_size=wl.PowerStep(0.1), steps=5, seed=1)
    with pytest.raises(ValueError, match="Override `curve`"):
        wl.privacy.Ledger(3).charge("importance", exact)

    class Free(wl.privacy.ModelNoise):
        def epsilon(self, delta: float) -> float:
            return 0.0

    with pytest.raises(ValueError, match="claimed"):
        wl.privacy.Ledger(3).charge("model", Free(1.0, 1.0, 5))


class OwnConstants(wl.Problem):
    """Constants that do not come from the rows."""

    def smoothness(self, node: int) -> float:
        return 1.0 + 10.0 * node


def test_an_overridden_smoothness_is_released() -> None:
    data = wl.datasets.two_gaussians(10, dimension=3, seed=1)
    little = wl.privacy.Gaussian(1e-6, (1.0, 136.0))
    trace = wl.simulate(
        OwnConstants(*data, penalty=1.0), wl.graphs.ring(10), walks.Weighted(privacy=little),
        step_size=wl.PowerStep(0.001), steps=5, seed=1, gaps=False,
    )  # fmt: skip
    assert trace.released is not None
    np.testing.assert_allclose(trace.released[0], 1.0 + 10.0 * np.arange(10), atol=1e-4)


def test_the_sensitivity_of_a_row_is_used_for_its_own_problem_only() -> None:
    release = wl.privacy.row_release(
        wl.losses.Logistic(), epsilon=1.0, delta=1e-5, nodes=10, feature_bound=1.0, total_rows=60,
        penalty=1.0, features=3,
    )  # fmt: skip
    X, y = wl.datasets.two_gaussians(60, dimension=3, seed=1)
    nodes = np.repeat(np.arange(10), 6)
    walk, ring = walks.Weighted(privacy=release), wl.graphs.ring(10)
    with pytest.raises(ValueError, match="holds for L_i of a Problem"):
        wl.simulate(
            OwnConstants(X, y, penalty=1.0, node_of_row=nodes), ring, walk, steps=5, seed=1,
            step_size=wl.PowerStep(0.1),
        )  # fmt: skip
    with pytest.raises(ValueError, match="unknown"):
        wl.RandomWalkClassifier(graph=ring, walk=walk, steps=5, step_size=0.1).fit(
            X, y > 0, nodes=nodes
        )
