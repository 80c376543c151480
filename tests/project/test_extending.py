"""Parts from outside the package: registered once, and usable everywhere they can work."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from numpy.typing import ArrayLike, NDArray

import walklearn as wl
from tests.node.memory_network import MemoryNetwork
from walklearn.node.agreement.plan import Plan
from walklearn.node.protocol.learner import Learner
from walklearn.objectives.linear.losses import LOSSES, Targets
from walklearn.privacy import MECHANISMS
from walklearn.privacy.draws.exact_draws import Distribution
from walklearn.privacy.limits import AT_BOUNDS
from walklearn.privacy.mechanisms.description import describe, from_description
from walklearn.streams import generators, replicate_seed
from walklearn.studies import Study, run_cell
from walklearn.updates import UPDATES, VisitContext, VisitResult, draw_start
from walklearn.walks import WALKS, Hop, View
from walklearn.walks.disclosure import Disclosure

Array = NDArray[Any]
NODES = 8
GRAPH = wl.graphs.erdos_renyi(NODES, 0.4, seed=2)
X, Y = wl.datasets.two_gaussians(NODES, dimension=3, variance=4.0, seed=7)
RUN: dict[str, Any] = {"seed": 1, "progress": False}


class Centre(wl.Objective):
    """f_i(w) = (1/2) Σ_r a_i ‖w − p_r‖² over the points of a node: two methods and two fields."""

    def __init__(self, points: Array, factors: Array) -> None:
        self.points, self.factors, self.nodes = points, factors, len(points)
        self.parameters = (wl.ArraySpec("centre", points.shape[2:]),)

    def gradient(self, node: int, w: Array, draws: Array) -> Array:
        return self.factors[node] * (w - self.points[node]).sum(axis=0)

    def value(self, w: Array) -> float:
        squares = ((w - self.points) ** 2).sum(axis=(1, 2))
        return float((self.factors * squares).mean() / 2)

    def metrics(self, w: Array) -> dict[str, float]:
        return {"largest": float(np.abs(w).max())}


class CapableCentre(Centre):
    """The same with its minimiser, smoothness constants and gradients of rows."""

    def optimum(self) -> Array:
        weights = np.broadcast_to(self.factors[:, None, None], self.points.shape)
        return np.average(self.points, axis=(0, 1), weights=weights)

    def smoothness(self, node: int) -> float:
        return float(self.factors[node]) * self.points.shape[1]

    def row_gradients(self, node: int, w: Array) -> Array:
        return w - self.points[node]

    def row_factor(self, node: int) -> float:
        return float(self.factors[node])


POINTS = np.random.default_rng(4).normal(1.0, 0.3, (NODES, 3, 2))
FACTORS = np.linspace(0.5, 2.0, NODES)


@dataclass(frozen=True)
class Steep(wl.losses.Loss):
    """½ ln(1 + e^(−2m)), a logistic loss of twice the margin."""

    name: ClassVar[str] = "steep"
    smoothness: ClassVar[float] = 0.5
    takes: ClassVar[Targets] = "sign"

    def value(self, scores: Array, targets: Array) -> Array:
        return 0.5 * np.logaddexp(0.0, -2.0 * targets * scores)

    def slope(self, scores: Array, targets: Array) -> Array:
        return -targets / (1.0 + np.exp(2.0 * targets * scores))

    def curvature(self, scores: Array, targets: Array) -> Array:
        p = np.abs(self.slope(scores, targets))
        return 2.0 * p * (1.0 - p)


class RootDegree(wl.walks.Metropolis):
    """Between the uniform and the simple walk: visits in proportion to √degree."""

    name: ClassVar[str] = "root-degree"

    @property
    def disclosure(self) -> Disclosure:
        return Disclosure()  # nothing about the rows

    def visit_weight(self, importance: Any, degree: Any) -> Any:
        return np.sqrt(degree)


class AnyNeighbour(wl.Walk):
    """Each neighbour with the same probability, as `Simple` does it; with `hop` only."""

    name: ClassVar[str] = "any-neighbour"

    def hop(self, view: View, token: Any, state: Any, draws: Array) -> Hop:
        return Hop(int(view.neighbours[int(draws[0] * len(view.neighbours))]), 1)


class HeavyBall(wl.Update):
    """v ← βv − γ·weight·∇f_i(w), then w ← Π(w + v): the token carries v, nodes count visits."""

    name: ClassVar[str] = "heavy-ball"
    step: float = 0.02
    beta: float = 0.5

    def token_arrays(self, objective: Any, tokens: int = 1) -> Any:
        model = super().token_arrays(objective, tokens)
        return (*model, wl.ArraySpec("velocity", (objective.size,)))

    def node_arrays(self, objective: Any, node: int, tokens: int = 1) -> Any:
        return (wl.ArraySpec("visits", (), "<i8"),)

    def visit(self, context: VisitContext, token: Any, state: Any) -> VisitResult:
        w, objective = token["model"], context.objective
        gradient = context.weight * (context.gradient(w) + objective.penalty * w)
        v = self.beta * token["velocity"] - self.step * gradient
        arrays = {"model": objective.project(w + v), "velocity": v}
        return VisitResult(arrays, {"visits": state["visits"] + 1})


@dataclass(frozen=True)
class UniformLaw:
    """The distribution of an exact release: P(noise ≥ x) as a ball, and a guess of x."""

    width: float

    def upper(self, x: Any) -> Any:
        return (self.width - x.max(-self.width).min(self.width)) / (2 * self.width)

    def guess(self, upper: float, lower: float) -> float:
        return self.width * (lower - upper)


@dataclass(frozen=True, repr=False)
class UniformNoise(wl.privacy.Mechanism):
    """Noise uniform over ±width: δ is the share in which the two distributions do not overlap."""

    name: ClassVar[str] = "uniform-noise"
    noise_names: ClassVar[tuple[str, ...]] = ("width",)
    width: float
    bounds: tuple[float, float]
    clamp: tuple[float, float] | None = AT_BOUNDS

    @property
    def deviation(self) -> float:
        return self.width / np.sqrt(3.0)

    def curve(self, epsilon: ArrayLike) -> Array:
        apart = (self.bounds[1] - self.bounds[0]) / (2.0 * self.width)
        return np.full(np.shape(epsilon), min(1.0, apart))

    def bias_and_variance(self, values: Array) -> tuple[Array, Array]:
        noise = self.width * (np.arange(1000) - 499.5) / 500.0
        released = np.asarray(values)[..., None] + noise
        if self.clamp is not None:
            released = np.clip(released, *self.clamp)
        return released.mean(axis=-1) - values, released.var(axis=-1)

    def distribution(self, value: float) -> tuple[Distribution, float]:
        return UniformLaw(self.width), value

    def noisy(self, values: Array, generator: np.random.Generator) -> Array:
        return values + self.width * generator.uniform(-1.0, 1.0, values.shape)


PARTS: list[tuple[Any, Any]] = [
    (LOSSES, Steep), (WALKS, RootDegree), (WALKS, AnyNeighbour), (UPDATES, HeavyBall),
    (MECHANISMS, UniformNoise),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    for registry, part in PARTS:
        registry.register(part)
    yield
    _forget()


def _forget() -> None:
    for registry, part in PARTS:
        registry.remove(part.name)


def test_every_part_has_fewer_than_50_lines() -> None:
    parts = [(CapableCentre, Centre), (Steep,), (RootDegree,), (AnyNeighbour,), (HeavyBall,)]
    for classes in [*parts, (UniformNoise, UniformLaw)]:
        lines = "\n".join(inspect.getsource(each) for each in classes).splitlines()
        assert len([line for line in lines if line.strip()]) < 50
    for part in (RootDegree, AnyNeighbour, HeavyBall):  # a Part needs no decorator
        definition = ast.parse(textwrap.dedent(inspect.getsource(part))).body[0]
        assert isinstance(definition, ast.ClassDef)
        assert not definition.decorator_list


# An objective


WALKS_WITHOUT_L = [
    wl.walks.Simple(), wl.walks.Uniform(), wl.walks.Uniform(laziness=0.1), RootDegree(),
    AnyNeighbour(), wl.walks.HistoryDriven(), wl.walks.Jumping(wl.walks.Uniform()),
    wl.walks.NonBacktracking(wl.walks.Uniform()), wl.walks.Independent(wl.walks.Uniform()),
]  # fmt: skip


@pytest.mark.parametrize("walk", WALKS_WITHOUT_L, ids=repr)
def test_an_objective_works_with_every_walk_that_needs_no_smoothness(walk: wl.Walk) -> None:
    trace = wl.simulate(
        Centre(POINTS, FACTORS), GRAPH, walk, steps=2_000, step_size=wl.PowerStep(0.1), **RUN
    )
    capable = CapableCentre(POINTS, FACTORS)
    least = capable.value(capable.optimum())
    assert trace.value[0, -1] - least < 0.05 * (trace.value[0, 0] - least)
    # The objective does not know its minimiser, so there is no distance and no gap.
    assert {"value", "largest"} <= set(trace.metrics)
    assert not {"distance", "gap"} & set(trace.metrics)
    assert trace.metrics["largest"][0, -1] == np.abs(trace.models[0]).max()


def test_capabilities_of_an_objective_make_more_possible() -> None:
    capable, plain = CapableCentre(POINTS, FACTORS), Centre(POINTS, FACTORS)
    settings: dict[str, Any] = {"steps": 4_000, "step_size": wl.PowerStep(0.05), **RUN}
    trace = wl.simulate(capable, GRAPH, wl.walks.Weighted(), **settings)
    distance = np.linalg.norm(trace.models[0] - capable.optimum())
    assert trace.distance[0, -1] == pytest.approx(distance, rel=1e-9)
    assert trace.distance[0, -1] < 0.1 * trace.distance[0, 0]
    assert 0 <= trace.gap[0, -1] < 0.1 * trace.gap[0, 0]
    with pytest.raises(wl.CapabilityError) as caught:
        wl.simulate(plain, GRAPH, wl.walks.Weighted(), **settings)
    assert (caught.value.capability, caught.value.needed_by) == (
        "smoothness", wl.walks.Weighted()
    )  # fmt: skip
    assert caught.value.missing_in is plain
    assert "walks.Uniform()" in caught.value.remedy
    with pytest.raises(wl.CapabilityError) as caught:
        wl.simulate(capable, GRAPH, "uniform", steps=3, update="saga", **RUN)
    assert (caught.value.capability, caught.value.needed_by) == ("linear_rows", wl.updates.Saga())
    with pytest.raises(TypeError, match="needs step_size"):
        wl.simulate(capable, GRAPH, "uniform", steps=3, **RUN)


@pytest.mark.parametrize("protect", ["rows", "node"])
def test_an_objective_is_protected(protect: Any) -> None:
    """With hardly any noise the clipped gradients of the rows still lead to the minimiser."""
    capable, plain = CapableCentre(POINTS, FACTORS), Centre(POINTS, FACTORS)
    noise = wl.privacy.ModelNoise(
        clip=20.0, noise_multiplier=1e-6, max_contributions=300, protect=protect
    )
    settings: dict[str, Any] = {
        "steps": 3_000, "step_size": wl.PowerStep(0.05), "privacy": noise, **RUN
    }  # fmt: skip
    trace = wl.simulate(capable, GRAPH, "uniform", **settings)
    assert trace.contributions is not None
    assert trace.contributions.max() == 300
    assert trace.distance[0, -1] < 0.1 * trace.distance[0, 0]
    if protect == "node":  # a node's gradient is clipped as a whole
        wl.simulate(plain, GRAPH, "uniform", **settings)
        return
    with pytest.raises(wl.CapabilityError) as caught:
        wl.simulate(plain, GRAPH, "uniform", **settings)
    assert (caught.value.capability, caught.value.needed_by) == ("row_gradients", noise)
    assert caught.value.missing_in is plain


def test_walks_and_updates_from_outside_work_on_an_objective_from_outside() -> None:
    capable = CapableCentre(POINTS, FACTORS)
    for walk in ("root-degree", "any-neighbour"):
        trace = wl.simulate(
            capable, GRAPH, walk, steps=2_000, update="heavy-ball", engine="reference", **RUN
        )
        assert trace.distance[0, -1] < 0.5 * trace.distance[0, 0]


# A loss, a walk, an update and a mechanism


def test_a_loss_and_a_mechanism_in_simulate() -> None:
    problem = wl.Problem(X, Y, loss=LOSSES.by_name("steep")(), penalty=1.0, aggregate="mean")
    mechanism = wl.privacy.calibrate("uniform-noise", epsilon=1.0, delta=0.1, bounds=(1.0, 9.0))
    assert (type(mechanism), mechanism.noise) == (UniformNoise, pytest.approx(40.0))
    for walk in ("root-degree", wl.walks.Weighted(privacy=mechanism)):
        settings: dict[str, Any] = {"steps": 3_000, "step_size": wl.PowerStep(0.3), **RUN}
        with pytest.raises(ValueError, match=r"Steep\(\) has no kernel"):
            wl.simulate(problem, GRAPH, walk, engine="compiled", **settings)
        with pytest.warns(UserWarning, match=r"Steep\(\) has no kernel"):
            trace = wl.simulate(problem, GRAPH, walk, **settings)
        assert trace.distance[0, -1] < 0.2 * trace.distance[0, 0]
    saga = wl.simulate(problem, GRAPH, "root-degree", steps=3_000, engine="reference", **RUN)
    assert saga.distance[0, -1] < 1e-6


def test_a_walk_of_visit_weights_runs_on_both_engines() -> None:
    """It overrides no method that a kernel stands for, so the kernel does it, too."""
    problem = wl.Problem(X, Y, penalty=1.0)
    settings: dict[str, Any] = {"step_size": wl.PowerStep(0.01), **RUN}
    compiled, reference = (
        wl.simulate(problem, GRAPH, "root-degree", steps=2_000, engine=engine, **settings)
        for engine in ("compiled", "reference")
    )
    np.testing.assert_array_equal(compiled.visits, reference.visits)
    np.testing.assert_allclose(compiled.models, reference.models, rtol=1e-9)
    long = wl.simulate(problem, GRAPH, RootDegree(), steps=40_000, **settings)
    assert long.visits is not None
    # Shares of 40 000 visits differ by more than 0.02 with a probability far below 1e-6.
    shares = long.visits / long.visits.sum()
    np.testing.assert_allclose(shares, RootDegree().stationary(GRAPH), atol=0.02)


def test_a_walk_with_hop_alone_is_simulated_by_the_reference() -> None:
    problem = wl.Problem(X, Y, penalty=1.0)
    for update in (wl.updates.Sgd(wl.PowerStep(0.01)), wl.updates.Saga()):
        settings: dict[str, Any] = {"steps": 500, "update": update, **RUN}
        with pytest.raises(ValueError, match=r"AnyNeighbour\(\) has no kernel"):
            wl.simulate(problem, GRAPH, "any-neighbour", engine="compiled", **settings)
        with pytest.warns(UserWarning, match=r"AnyNeighbour\(\) has no kernel"):
            ours = wl.simulate(problem, GRAPH, "any-neighbour", **settings)
        simple = wl.simulate(problem, GRAPH, "simple", engine="reference", **settings)
        np.testing.assert_array_equal(ours.visits, simple.visits)  # from the same draws
        np.testing.assert_array_equal(ours.models, simple.models)
    with pytest.raises(TypeError, match="transition matrix"):
        AnyNeighbour().transition_matrix(GRAPH)


def test_an_update_is_simulated_by_the_reference() -> None:
    problem = wl.Problem(X, Y, penalty=1.0, aggregate="mean")
    settings: dict[str, Any] = {"steps": 2_000, **RUN}
    with pytest.raises(ValueError, match=r"HeavyBall\(\) has no kernel"):
        wl.simulate(problem, GRAPH, "uniform", update="heavy-ball", engine="compiled", **settings)
    for walk in ("uniform", "weighted", "root-degree"):
        with pytest.warns(UserWarning, match=r"HeavyBall\(\) has no kernel"):
            trace = wl.simulate(problem, GRAPH, walk, update="heavy-ball", **settings)
        assert trace.gap[0, -1] < 0.5 * trace.gap[0, 0]
        # Two vectors of three numbers travel.
        assert trace.bytes[0, -1] == 2 * 3 * 8 * trace.messages[0, -1]
    noise = wl.privacy.ModelNoise(clip=1.0, noise_multiplier=1e-6, max_contributions=9)
    private = wl.simulate(
        problem, GRAPH, "uniform", update=HeavyBall(), privacy=noise, engine="reference", **settings
    )
    assert private.contributions is not None
    assert private.contributions.max() == 9


def test_what_is_released_is_told_and_read_back() -> None:
    mechanism = UniformNoise(40.0, (1.0, 9.0))
    assert np.all(np.abs(UniformNoise(4.0, (1.0, 9.0), None).release([2.0] * 50) - 2.0) <= 4.001)
    assert from_description(describe(mechanism)) == mechanism
    rows = wl.privacy.compare(epsilon=1.0, delta=0.1, bounds=(1.0, 9.0)).rows
    assert "uniform-noise" in {row.kind for row in rows}
    with pytest.raises(wl.privacy.InfeasiblePrivacyError, match="uniform-noise"):
        wl.privacy.calibrate("uniform-noise", epsilon=1.0, delta=0.0, bounds=(1.0, 9.0))


STUDY = """
name = "own"
instances = 1
updates = 60
graphs.ring = { family = "ring", nodes = 6 }
problems.p = { data = "two_gaussians", penalty = 1.0, loss = "steep" }
methods.root = { walk = "root-degree", laziness = 0.1 }
methods.jumps = { walk = "jumping", base = "root-degree" }
methods.hops = { walk = "any-neighbour" }
methods.ball = { walk = "uniform", update = { name = "heavy-ball", beta = 0.3 } }
methods.calibrated = { walk = "weighted", mechanism = "uniform-noise", epsilon = 1.0, delta = 0.1, \
bounds = "instance" }
methods.stated = { walk = "weighted", mechanism = "uniform-noise", width = 5.0, bounds = [1, 99] }
step_sizes.s = { constant = 0.05 }
"""


def test_a_study() -> None:
    cells = Study.from_text(STUDY).cells()
    import_paths = [cell.description["import_paths"] for cell in cells]
    loss = {"loss": {"steep": f"{__name__}:Steep"}}
    assert import_paths[0] == loss | {"walk": {"root-degree": f"{__name__}:RootDegree"}}
    assert loss | {"walk": {"any-neighbour": f"{__name__}:AnyNeighbour"}} in import_paths
    assert loss | {"update": {"heavy-ball": f"{__name__}:HeavyBall"}} in import_paths
    for cell in cells:
        _forget()  # as in a worker, which knows only what the cell says
        records = run_cell(cell).records
        assert np.isfinite(records["average_gap"]).all()


@pytest.mark.filterwarnings("default:.*has no kernel")
def test_an_estimator() -> None:
    settings: dict[str, Any] = {"graph": GRAPH, "loss": "steep", "steps": 800, "random_state": 0}
    with pytest.warns(UserWarning, match="has no kernel"):
        plain = wl.RandomWalkClassifier(walk="root-degree", laziness=0.1, **settings).fit(X, Y)
    assert plain.walk_ == RootDegree(laziness=0.1)
    private = wl.RandomWalkClassifier(
        walk="weighted", mechanism="uniform-noise", epsilon=1.0, delta=0.1, feature_bound=5.0,
        protect="node", model="in the clear", **settings,
    ).fit(X, Y)  # fmt: skip
    assert type(private.walk_.mechanism) is UniformNoise
    hops = wl.RandomWalkClassifier(walk=AnyNeighbour(), **settings).fit(X, Y)
    assert hops.walk_ == AnyNeighbour()
    ball = wl.RandomWalkClassifier(update="heavy-ball", **settings).fit(X, Y)
    assert ball.update_ == HeavyBall()
    for classifier in (plain, private, hops, ball):
        model = classifier.to_model()
        assert (model.kind, model.loss) == ("classifier", "steep")
        np.testing.assert_array_equal(model.predict(X), classifier.predict(X))
        table = pd.DataFrame(X, columns=["x0", "x1", "x2"])
        np.testing.assert_array_equal(model.to_sklearn().predict(table), classifier.predict(X))
        assert not hasattr(classifier, "predict_proba")


PLAN = """
name = "own"
nodes = 8
features = ["a", "b", "c"]
target = "y"
classes = ["no", "yes"]
loss = "steep"
penalty = 1.0
domain = { ball = 3.0 }
step_size = { constant = 0.02 }
updates = 200
"""
RELEASED = """
walk = "weighted"
[privacy]
protect = "node"
model = "in the clear"
mechanism = "uniform-noise"
epsilon = 1.0
delta = 0.1
bounds = [1.0, 40.0]
"""


def test_a_plan_says_it_and_is_the_same_after_a_round_trip() -> None:
    for text in ('walk = "root-degree"', RELEASED):
        plan = Plan.from_text(PLAN + text)
        again = Plan.from_dict(plan.to_dict())
        assert (again, again.digest) == (plan, plan.digest)
        assert again.digest != Plan.from_text(PLAN).digest
        assert plan.to_dict()["loss"] == "steep"
    assert type(plan.mechanism) is UniformNoise
    with pytest.raises(ValueError, match="root-degree"):
        Plan.from_text(PLAN + RELEASED.replace("weighted", "root-degree"))


@pytest.mark.parametrize("text", ['walk = "root-degree"', RELEASED], ids=["walk", "mechanism"])
def test_a_network_does_what_the_simulator_does(text: str) -> None:
    plan = Plan.from_text(PLAN + text)
    mechanism = plan.mechanism
    walk = RootDegree() if mechanism is None else wl.walks.Weighted(privacy=mechanism)
    problem = wl.Problem(X, Y, loss=Steep(), penalty=1.0, domain=wl.domains.Ball(3.0))
    trace = wl.simulate(
        problem, GRAPH, walk, steps=plan.updates, step_size=plan.step_size, seed=5, records=1,
        mean_importance="estimated", streams="node", engine="reference", progress=False,
    )  # fmt: skip
    streams = generators(replicate_seed(np.random.SeedSequence(5), 0), NODES)
    learners = []
    for node in range(NODES):
        learner = Learner.of_plan(plan, X[[node]], Y[[node]])
        if mechanism is not None:
            released = float(mechanism.release(learner.smoothness, streams.of(node).walk))
            learner = Learner.of_plan(plan, X[[node]], Y[[node]], released)
        learners.append(learner)
    network = MemoryNetwork(learners, GRAPH, streams)
    network.run(lambda: network.connected)
    first, model = draw_start(problem, streams.walk)
    network.start_walk(network.nodes[first], model)
    network.run(lambda: network.finished)
    for each in network.nodes:
        final = each.state.record.final
        assert final is not None
        np.testing.assert_array_equal(final.model, trace.models[0])


def test_a_network_does_only_walks_and_updates_that_its_nodes_can_do() -> None:
    for text, name in (('walk = "any-neighbour"', "any-neighbour"),
                       ('update = "heavy-ball"', "heavy-ball")):  # fmt: skip
        with pytest.raises(ValueError, match=name):
            Plan.from_text(PLAN + text)


def test_privacy_is_claimed_for_a_walk_whose_disclosure_is_known() -> None:
    noise = wl.privacy.ModelNoise(
        clip=1.0, noise_multiplier=1.0, max_contributions=3, protect="node"
    )
    problem = wl.Problem(X, Y, penalty=1.0)
    settings: dict[str, Any] = {
        "steps": 10, "step_size": wl.PowerStep(0.01), "engine": "reference", **RUN
    }  # fmt: skip
    for walk in (RootDegree(), AnyNeighbour()):  # neither reads the objective
        wl.simulate(problem, GRAPH, walk, privacy=noise, **settings)

    class Talkative(RootDegree):
        """Announces a number that it makes of the rows, and does not say what it discloses."""

        def announce(self, objective: Any, node: int, degree: int, rng: Any) -> tuple[float, ...]:
            return (objective.smoothness(node),)

    class Follower(RootDegree):
        """The same by another method."""

        def gradient_scale(self, graph: wl.Graph, objective: Any = None) -> Array:
            return np.asarray(objective.smoothness_constants)

    for silent in (Talkative(), Follower()):
        with pytest.raises(ValueError, match=r"(Talk|Foll)"):
            wl.simulate(problem, GRAPH, silent, privacy=noise, **settings)


def test_a_name_is_given_once() -> None:
    class Other(RootDegree):
        """Has forgotten to say its own name."""

    with pytest.raises(ValueError, match="already a walk 'root-degree'"):
        WALKS.register(Other)
    with pytest.raises(ValueError, match="already a walk 'uniform'"):
        WALKS.register_import_path("uniform", "elsewhere:Walk")
    with pytest.raises(ValueError, match=r"'stepe', .*'steep'"):
        LOSSES.by_name("stepe")
    with pytest.raises(ValueError, match="registered walk"):
        WALKS.name_of(Other())
