"""A loss, a walk and a mechanism of one's own: registered once, and named everywhere."""

from __future__ import annotations

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
from walklearn.privacy import MECHANISMS
from walklearn.privacy.description import describe, from_description
from walklearn.privacy.exact_draws import Law
from walklearn.privacy.mechanism import AT_BOUNDS
from walklearn.problem.losses import LOSSES, Targets
from walklearn.studies import Study, run
from walklearn.updates.random_streams import generators, replicate_seed
from walklearn.updates.sgd import start
from walklearn.walks import WALKS
from walklearn.walks.disclosure import Shown

Array = NDArray[Any]
NODES = 8
GRAPH = wl.graphs.erdos_renyi(NODES, 0.4, seed=2)
X, Y = wl.datasets.two_gaussians(NODES, dimension=3, variance=4.0, seed=7)


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


@dataclass(frozen=True, repr=False)
class RootDegree(wl.walks.Metropolis):
    """Halfway between the uniform and the simple walk: visits in proportion to √degree."""

    name: ClassVar[str] = "root-degree"
    announced_numbers: ClassVar[int] = 1

    @property
    def shown(self) -> Shown:
        return Shown()

    def weight(self, importance: float, degree: int) -> float:
        return float(np.sqrt(max(degree, 1)))

    def visit_weights(self, graph: wl.Graph, problem: wl.Problem | None = None) -> Array:
        return np.array([self.weight(1.0, degree) for degree in graph.degrees])


@dataclass(frozen=True)
class UniformLaw:
    """What an exact release of it is drawn from: P(law ≥ x) as a ball, and a guess of the x."""

    width: float

    def upper(self, x: Any) -> Any:
        return (self.width - x.max(-self.width).min(self.width)) / (2 * self.width)

    def guess(self, upper: float, lower: float) -> float:
        return self.width * (lower - upper)


@dataclass(frozen=True, repr=False)
class UniformNoise(wl.privacy.Mechanism):
    """Noise uniform over ±width: what tells two values apart is where they do not overlap."""

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

    def law(self, value: float) -> tuple[Law, float]:
        return UniformLaw(self.width), value

    def noisy(self, values: Array, generator: np.random.Generator) -> Array:
        return values + self.width * generator.uniform(-1.0, 1.0, values.shape)


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    LOSSES.register(Steep)
    WALKS.register(RootDegree)
    MECHANISMS.register(UniformNoise)
    yield
    _forget()


def _forget() -> None:
    LOSSES.remove("steep")
    WALKS.remove("root-degree")
    MECHANISMS.remove("uniform-noise")


def test_simulate() -> None:
    problem = wl.Problem(X, Y, loss=LOSSES.by_name("steep")(), penalty=1.0, aggregate="mean")
    mechanism = wl.privacy.calibrate("uniform-noise", epsilon=1.0, delta=0.1, bounds=(1.0, 9.0))
    assert (type(mechanism), mechanism.noise) == (UniformNoise, pytest.approx(40.0))
    for walk in (WALKS.by_name("root-degree")(), wl.walks.Weighted(privacy=mechanism)):
        settings: dict[str, Any] = {
            "steps": 3_000, "step_size": wl.PowerStep(0.3), "seed": 1, "progress": False,
        }  # fmt: skip
        with pytest.raises(ValueError, match=r'Steep is not compiled; pass engine="reference"'):
            wl.simulate(problem, GRAPH, walk, **settings)
        trace = wl.simulate(problem, GRAPH, walk, engine="reference", **settings)
        assert trace.distance[0, -1] < 0.2 * trace.distance[0, 0]
    # A walk that hops as ours do has its compiled twin already.
    compiled = wl.simulate(
        wl.Problem(X, Y, penalty=1.0), GRAPH, RootDegree(), steps=40_000,
        step_size=wl.PowerStep(0.01), seed=1, progress=False,
    )  # fmt: skip
    assert compiled.visits is not None
    # 40 000 visits: shares are within 0.02 but for a chance far below 1e-6.
    shares = compiled.visits / compiled.visits.sum()
    np.testing.assert_allclose(shares, RootDegree().stationary(GRAPH), atol=0.02)


def test_what_is_released_is_told_and_read_back() -> None:
    mechanism = UniformNoise(40.0, (1.0, 9.0))
    assert np.all(np.abs(UniformNoise(4.0, (1.0, 9.0), None).release([2.0] * 50) - 2.0) <= 4.001)
    assert from_description(describe(mechanism)) == mechanism
    rows = wl.privacy.compare(epsilon=1.0, delta=0.1, bounds=(1.0, 9.0)).rows
    assert "uniform-noise" in {row.kind for row in rows}
    with pytest.raises(wl.privacy.InfeasiblePrivacyError, match="no noise level of uniform-noise"):
        wl.privacy.calibrate("uniform-noise", epsilon=1.0, delta=0.0, bounds=(1.0, 9.0))


STUDY = """
name = "own"
instances = 1
updates = 60
graphs.ring = { family = "ring", nodes = 6 }
problems.p = { data = "two_gaussians", penalty = 1.0, loss = "steep" }
methods.root = { walk = "root-degree", laziness = 0.1 }
methods.jumps = { walk = "jumping", base = "root-degree" }
methods.calibrated = { walk = "weighted", mechanism = "uniform-noise", epsilon = 1.0, delta = 0.1, \
bounds = "instance" }
methods.stated = { walk = "weighted", mechanism = "uniform-noise", width = 5.0, bounds = [1, 99] }
step_sizes.s = { constant = 0.05 }
"""


def test_a_study() -> None:
    cells = Study.from_text(STUDY).cells()
    assert cells[0].description["homes"] == {
        "loss": {"steep": f"{__name__}:Steep"},
        "walk": {"root-degree": f"{__name__}:RootDegree"},
    }
    for cell in cells:
        _forget()  # as in a worker: what it needs to know, the cell says
        records = run(cell).records
        assert np.isfinite(records["average_gap"]).all()


def test_an_estimator() -> None:
    settings: dict[str, Any] = {"graph": GRAPH, "loss": "steep", "steps": 800, "random_state": 0}
    plain = wl.RandomWalkClassifier(walk="root-degree", laziness=0.1, **settings).fit(X, Y)
    assert plain.walk_ == RootDegree(laziness=0.1)
    private = wl.RandomWalkClassifier(
        walk="weighted", mechanism="uniform-noise", epsilon=1.0, delta=0.1, feature_bound=5.0,
        protect="node", model="in the clear", **settings,
    ).fit(X, Y)  # fmt: skip
    assert type(private.walk_.mechanism) is UniformNoise
    for classifier in (plain, private):
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
    assert type(plan.calibrated_mechanism()) is UniformNoise
    with pytest.raises(ValueError, match="with the root-degree walk, which tells nothing else"):
        Plan.from_text(PLAN + RELEASED.replace("weighted", "root-degree"))


@pytest.mark.parametrize("text", ['walk = "root-degree"', RELEASED], ids=["walk", "mechanism"])
def test_a_network_does_what_the_simulator_does(text: str) -> None:
    plan = Plan.from_text(PLAN + text)
    mechanism = plan.calibrated_mechanism()
    walk = RootDegree() if mechanism is None else wl.walks.Weighted(privacy=mechanism)
    problem = wl.Problem(X, Y, loss=Steep(), penalty=1.0, domain=wl.domains.Ball(3.0))
    trace = wl.simulate(
        problem, GRAPH, walk, steps=plan.updates, step_size=plan.step_size, seed=5, records=1,
        mean_importance="estimated", streams="node", engine="reference", progress=False,
    )  # fmt: skip
    streams = generators(replicate_seed(np.random.SeedSequence(5), 0), NODES)
    learners = []
    for node in range(NODES):
        learner = Learner.of_plan(plan, X[[node]], Y[[node]], simulated=True)
        if mechanism is not None:
            released = float(mechanism.release(learner.smoothness, streams.of(node).walk))
            learner = Learner.of_plan(plan, X[[node]], Y[[node]], released, simulated=True)
        learners.append(learner)
    network = MemoryNetwork(learners, GRAPH, streams)
    network.run(lambda: network.connected)
    first, model = start(problem, streams.walk)
    network.start_walk(network.nodes[first], model)
    network.run(lambda: network.finished)
    for each in network.nodes:
        final = each.state.record.final
        assert final is not None
        np.testing.assert_array_equal(final.model, trace.models[0])


def test_privacy_is_claimed_for_a_walk_that_says_what_it_shows() -> None:
    noise = wl.privacy.ModelNoise(
        clip=1.0, noise_multiplier=1.0, max_contributions=3, protect="node"
    )
    problem = wl.Problem(X, Y, penalty=1.0)
    settings: dict[str, Any] = {
        "steps": 10, "step_size": wl.PowerStep(0.01), "progress": False, "seed": 1,
    }  # fmt: skip
    wl.simulate(problem, GRAPH, RootDegree(), model_privacy=noise, **settings)

    class Silent(RootDegree):
        """Says nothing itself."""

    with pytest.raises(ValueError, match="no privacy can be claimed for Silent"):
        wl.simulate(problem, GRAPH, Silent(), model_privacy=noise, **settings)


def test_a_name_is_given_once() -> None:
    class Other(RootDegree):
        """Has forgotten to say its own name."""

    with pytest.raises(ValueError, match="there is a walk named 'root-degree' already"):
        WALKS.register(Other)
    with pytest.raises(ValueError, match="there is a walk named 'uniform' already"):
        WALKS.register_home("uniform", "elsewhere:Walk")
    with pytest.raises(ValueError, match="no loss 'stepe', did you mean 'steep'"):
        LOSSES.by_name("stepe")
    with pytest.raises(ValueError, match="is of no registered walk"):
        WALKS.name_of(Other())
