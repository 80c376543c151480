"""Losses from two functions: the same numbers as built-in losses, compiled once per process."""

from __future__ import annotations

import math
import pickle
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import walklearn as wl
from tests.running import python
from tests.simulation.test_memory_equivalence import assert_short_test_agrees
from walklearn.files.checked_table import CheckedTable
from walklearn.files.named_settings import read_named, written
from walklearn.node.agreement.plan import Plan
from walklearn.objectives.linear.losses import LOSSES, FunctionLoss, from_functions
from walklearn.simulation.kernel_inputs import compiled, data_of
from walklearn.simulation.kernels.values import values
from walklearn.simulation.kernels.visits.sgd import near_short
from walklearn.studies import Study, run_cell


def logistic_value(score: float, target: float) -> float:
    margin = target * score
    return max(0.0, -margin) + math.log1p(math.exp(-abs(margin)))


def logistic_slope(score: float, target: float) -> float:
    return float(-target / (1.0 + np.exp(target * score)))


def hinge_value(score: float, target: float) -> float:
    if target * score < 1.0:
        return 0.5 * (1.0 - target * score) ** 2
    return 0.0


def hinge_slope(score: float, target: float) -> float:
    return -target * max(0.0, 1.0 - target * score)


def squared_value(score: float, target: float) -> float:
    return 0.5 * (score - target) ** 2


def squared_slope(score: float, target: float) -> float:
    return score - target


THRESHOLD = 0.5


def huber_value(score: float, target: float) -> float:
    size = abs(score - target)
    inside = min(size, THRESHOLD)
    return inside * (size - 0.5 * inside)


def huber_slope(score: float, target: float) -> float:
    return min(max(score - target, -THRESHOLD), THRESHOLD)


LOGISTIC = from_functions(
    logistic_value, logistic_slope, takes="sign", smoothness=0.25, name="own-logistic"
)
SQUARED = from_functions(
    squared_value, squared_slope, takes="number", smoothness=1, name="own-squared"
)
HUBER = from_functions(
    huber_value, huber_slope, takes="number", smoothness=1.0, name="own-huber", max_slope=THRESHOLD
)
TWINS: list[tuple[FunctionLoss, wl.losses.Loss]] = [
    (LOGISTIC, wl.losses.Logistic()),
    (
        from_functions(hinge_value, hinge_slope, takes="sign", smoothness=1.0, name="own-hinge"),
        wl.losses.SquaredHinge(),
    ),
    (SQUARED, wl.losses.Squared()),
]
every_twin = pytest.mark.parametrize(("own", "built_in"), TWINS, ids=repr)
NODES = 12
GRAPH = wl.graphs.erdos_renyi(NODES, 0.5, seed=3, connected="retry")
STEP = wl.PowerStep(0.02)


def make_problem(loss: wl.losses.Loss, rows: int = 1, **options: Any) -> wl.Problem:
    generator = np.random.default_rng(5)
    X: Any = generator.standard_normal((NODES * rows, 4))
    y = np.sign(generator.standard_normal(len(X)))
    if options.pop("sparse", False):
        X = sp.csr_array(np.where(generator.random(X.shape) < 0.5, X, 0.0))
    settings = {"penalty": 0.1, "aggregate": "mean", **options}
    owner = np.repeat(np.arange(NODES), rows)
    return wl.Problem(X, y, loss=loss, node_of_row=owner, **settings)


def run(problem: wl.Problem, method: Any = "uniform", **options: Any) -> wl.Trace:
    settings = {"steps": 300, "seed": 1, "replicates": 2, "records": 5, "progress": False}
    return wl.simulate(problem, GRAPH, method, **{**settings, **options})


RUNS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "sgd": ({}, {"step_size": STEP}),
    "sgd in a box": ({"domain": wl.domains.Box(-0.5, 0.5)}, {"step_size": STEP}),
    "sgd in single precision": ({"dtype": np.float32}, {"step_size": STEP}),
    "sgd, many rows": ({"rows": 3}, {"step_size": STEP}),
    "sgd, mini-batches": ({"rows": 3}, {"step_size": STEP, "batch": 2}),
    "sgd, sparse": ({"sparse": True}, {"step_size": STEP}),
    "saga": ({}, {"update": "saga"}),
    "saga in a ball": ({"domain": wl.domains.Ball(0.5)}, {"update": "saga"}),
    "saga, many rows": ({"rows": 3}, {"update": "saga"}),
    "saga, mini-batches": ({"rows": 3}, {"update": "saga", "batch": 2}),
    "saga, sparse": ({"sparse": True}, {"update": "saga"}),
    "meetings": ({}, {"method": wl.AsynchronousGossip(), "step_size": STEP}),
    "rounds": ({"rows": 3}, {"method": wl.SynchronousGossip(), "step_size": STEP}),
    "tracking": ({}, {"method": wl.GradientTracking(), "step_size": wl.ConstantStep(0.02)}),
}


# All kernels with one loss, and two kernels with the others: compiling takes seconds.
COMBINATIONS = [(TWINS[0], name) for name in RUNS]
COMBINATIONS += [(twin, name) for twin in TWINS[1:] for name in ("sgd", "saga")]


@pytest.mark.parametrize(("twin", "name"), COMBINATIONS, ids=repr)
def test_both_engines_agree_with_the_built_in_loss(
    twin: tuple[FunctionLoss, wl.losses.Loss], name: str
) -> None:
    (own, built_in), (of_problem, of_run) = twin, RUNS[name]
    expected = run(make_problem(built_in, **of_problem), engine="reference", **of_run)
    tolerance = 1e-4 if "dtype" in of_problem else 1e-9
    for engine in ("compiled", "reference"):
        trace = run(make_problem(own, **of_problem), engine=engine, **of_run)
        np.testing.assert_allclose(trace.models, expected.models, atol=tolerance)
        np.testing.assert_allclose(trace.gap, expected.gap, atol=tolerance)
        np.testing.assert_allclose(trace.messages, expected.messages)


@every_twin
def test_the_same_minimiser_and_constants(own: FunctionLoss, built_in: wl.losses.Loss) -> None:
    problem, twin = make_problem(own), make_problem(built_in)
    np.testing.assert_allclose(problem.solution.model, twin.solution.model, atol=1e-9)
    np.testing.assert_allclose(problem.smoothness_constants, twin.smoothness_constants)


@every_twin
def test_a_row_that_is_not_tried_would_not_have_contradicted(
    own: FunctionLoss, built_in: wl.losses.Loss
) -> None:
    """Scores lie inside and outside the table of slopes; steps have both directions."""
    assert_short_test_agrees(built_in, data_of(make_problem(own)).loss, 15.0)


def test_far_rows() -> None:
    """Rows out of the cache have kernels of their own."""
    X, y = wl.datasets.two_gaussians(20_000, dimension=8, seed=1)
    graph = wl.graphs.ring(20_000)
    for settings in ({"step_size": STEP}, {"update": "saga"}):
        own, built_in = (
            wl.simulate(wl.Problem(X, y, loss=loss, penalty=0.1), graph, "uniform", steps=500,
                        seed=1, gaps=False, progress=False, engine="compiled", **settings)
            for loss in (LOGISTIC, wl.losses.Logistic())
        )  # fmt: skip
        np.testing.assert_allclose(own.models, built_in.models, atol=1e-9)


def test_private_updates() -> None:
    noise = wl.privacy.ModelNoise(clip=0.3, noise_multiplier=0.1, max_contributions=40)
    own, built_in = (
        run(make_problem(loss), privacy=noise, step_size=STEP)
        for loss in (LOGISTIC, wl.losses.Logistic())
    )
    np.testing.assert_allclose(own.models, built_in.models, atol=1e-9)


def fails_to_compile(score: float, target: float) -> float:
    return sum({"half": 0.5 * (score - target) ** 2}.values())


def test_a_function_that_numba_rejects_runs_on_the_reference() -> None:
    loss = from_functions(
        fails_to_compile, squared_slope, takes="number", smoothness=1.0, name="rejected"
    )
    reason = compiled(fails_to_compile)
    assert isinstance(reason, str)
    assert "sum" in reason
    expected = run(make_problem(SQUARED), step_size=STEP, engine="reference")
    with pytest.warns(UserWarning, match="rejected") as warned:
        trace = run(make_problem(loss), step_size=STEP)
    assert reason in str(warned[0].message)
    np.testing.assert_array_equal(trace.models, expected.models)
    with pytest.raises(ValueError, match="rejected") as error:
        run(make_problem(loss), step_size=STEP, engine="compiled")
    assert reason in str(error.value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(make_problem(loss), step_size=STEP, engine="reference")


@pytest.mark.parametrize(
    "function", [lambda s, t: str(s), lambda s, t: (s, t), lambda s, t: 1j * s, print]
)
def test_only_functions_that_return_a_real_number_are_compiled(function: Any) -> None:
    assert isinstance(compiled(function), str)


def test_the_second_run_compiles_nothing() -> None:
    for loss in (LOGISTIC, pickle.loads(pickle.dumps(LOGISTIC))):
        run(make_problem(loss), step_size=STEP, engine="compiled")
        counts = [len(kernel.signatures) for kernel in (near_short, values)]
        run(make_problem(loss), step_size=STEP, engine="compiled")
        assert [len(kernel.signatures) for kernel in (near_short, values)] == counts


def test_machine_code_for_functions_is_not_saved() -> None:
    run(make_problem(LOGISTIC), step_size=STEP, engine="compiled")
    index = near_short._cache._cache_file._load_index()
    assert not any("FromFunctions" in str(key) for key in index)


LIGHT = """
import sys
import walklearn as wl
loss = wl.losses.from_functions(lambda s, t: 0.5 * (s - t) ** 2, lambda s, t: s - t,
                                takes="number", smoothness=1.0, name="own")
assert "numba" not in sys.modules
problem = wl.Problem([[1.0], [2.0]], [1.0, 3.0], loss=loss, penalty=0.1)
for progress in {progress}:
    wl.simulate(problem, wl.graphs.complete(2), "uniform", steps=10, seed=1, progress=progress,
                step_size=wl.ConstantStep(0.1))
"""


@pytest.mark.parametrize(("progress", "lines"), [((None, None), 1), ((False, None), 0)])
def test_compilation_is_announced_once(progress: tuple[bool | None, ...], lines: int) -> None:
    done = python(LIGHT.format(progress=progress))
    assert done.returncode == 0, done.stderr
    assert len(done.stderr.splitlines()) == lines
    assert ("'own'" in done.stderr) == bool(lines)


def test_equality_and_pickling() -> None:
    again = from_functions(
        logistic_value, logistic_slope, takes="sign", smoothness=0.25, name="own-logistic"
    )
    assert again == LOGISTIC == pickle.loads(pickle.dumps(LOGISTIC))
    assert hash(again) == hash(LOGISTIC)
    assert SQUARED != LOGISTIC
    local = from_functions(
        lambda s, t: (s - t) ** 2, lambda s, t: 2.0 * (s - t), takes="number", smoothness=2,
        name="local",
    )  # fmt: skip
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(local)
    with pytest.raises(AttributeError):
        LOGISTIC.name = "other"  # type: ignore[misc]


def failing(score: float, target: float) -> float:
    raise KeyError("no such score")


WRONG: list[tuple[Callable[..., Any], Callable[..., Any], str]] = [
    (failing, squared_slope, "KeyError"),
    (squared_value, failing, "KeyError"),
    (lambda s, t: math.nan, squared_slope, "is nan"),
    (squared_value, lambda s, t: math.inf, "is inf"),
    (lambda s, t: squared_value(s, t) - 5.0, squared_slope, "at least 0"),
    (squared_value, lambda s, t: t - s, "Check slope"),
    (squared_value, lambda s, t: 1.1 * (s - t), "Check slope"),
    (lambda s, t: (s - t) ** 2, lambda s, t: 2.0 * (s - t), "smoothness 1 "),
    (lambda s, t: 1.0 - np.cos(s), lambda s, t: np.sin(s), "convex"),
    (lambda s: s, squared_slope, "TypeError"),
]


@pytest.mark.parametrize(("value", "slope", "message"), WRONG)
def test_wrong_functions_are_refused(value: Any, slope: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"'wrong'.*{message}"):
        from_functions(value, slope, takes="number", smoothness=1.0, name="wrong")


@pytest.mark.parametrize(
    "settings",
    [{"takes": "class"}, {"smoothness": 0.0}, {"smoothness": math.inf}, {"max_slope": 0.5},
     {"max_slope": -1.0}, {"name": ""}],
    ids=repr,
)  # fmt: skip
def test_wrong_settings_are_refused(settings: dict[str, Any]) -> None:
    right = {"takes": "number", "smoothness": 1.0, "name": "own"}
    with pytest.raises(ValueError, match=next(iter(settings))):
        from_functions(squared_value, squared_slope, **{**right, **settings})


def test_labels_are_checked() -> None:
    with pytest.raises(ValueError, match=r"'own-logistic'.* labels -1 and \+1"):
        wl.Problem([[1.0], [2.0]], [0.0, 1.0], loss=LOGISTIC)


def test_an_overflow_of_math_names_the_score() -> None:
    loss = from_functions(
        lambda s, t: math.log(1.0 + math.exp(-t * s)),
        lambda s, t: -t / (1.0 + math.exp(t * s)),
        takes="sign", smoothness=0.25, name="plain",
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"score 1000 .*OverflowError"):
        loss.slope(np.array([0.0, 1000.0]), np.ones(2))


@pytest.fixture
def _registered() -> Iterator[None]:
    for loss in (LOGISTIC, HUBER):
        LOSSES.register(loss)
    yield
    for loss in (LOGISTIC, HUBER):
        LOSSES.remove(loss.name)


@pytest.mark.usefixtures("_registered")
@pytest.mark.parametrize("by_name", [False, True])
def test_estimators(by_name: bool) -> None:
    """A loss of numbers is rescaled with the target, so its threshold keeps its unit."""
    X, y = wl.datasets.two_gaussians(40, dimension=3, seed=2)
    numbers = 20.0 * X[:, 0] + np.random.default_rng(1).standard_t(2, 40)
    cases: list[tuple[Any, FunctionLoss, wl.losses.Loss, Any]] = [
        (wl.RandomWalkClassifier, LOGISTIC, wl.losses.Logistic(), y),
        (wl.RandomWalkRegressor, HUBER, wl.losses.Huber(THRESHOLD), numbers),
    ]
    for kind, own, built_in, targets in cases:
        given = own.name if by_name else own
        fitted, twin = (
            clone(kind(loss=loss, steps=3000, random_state=1)).fit(X, targets)
            for loss in (given, built_in)
        )
        np.testing.assert_allclose(fitted.coef_, twin.coef_, rtol=1e-6)
        assert LOSSES.name_of(fitted.loss_) == own.name
        assert pickle.loads(pickle.dumps(fitted)).predict(X) == pytest.approx(fitted.predict(X))


PLAN = """
name = "own"
nodes = 8
features = ["a", "b", "c"]
target = "y"
classes = ["no", "yes"]
loss = "own-logistic"
penalty = 1.0
domain = { ball = 3.0 }
step_size = { constant = 0.02 }
updates = 200
walk = "uniform"
"""
STUDY = """
name = "own"
instances = 1
updates = 60
graphs.ring = { family = "ring", nodes = 6 }
problems.p = { data = "two_gaussians", penalty = 1.0, loss = "own-logistic" }
methods.uniform = { walk = "uniform" }
step_sizes.s = { constant = 0.05 }
"""


@pytest.mark.usefixtures("_registered")
def test_plans_and_studies() -> None:
    table = CheckedTable.parse('loss = "own-huber"', "plan.toml", ValueError)
    assert read_named(table, "loss", LOSSES) is HUBER
    assert written(HUBER, LOSSES) == written(HUBER.rescaled(3.0), LOSSES) == "own-huber"
    plan = Plan.from_text(PLAN)
    assert plan.loss is LOGISTIC
    assert Plan.from_dict(plan.to_dict()).digest == plan.digest
    (cell,) = Study.from_text(STUDY).cells()
    assert np.isfinite(run_cell(cell).records["average_gap"]).all()


def test_a_name_belongs_to_one_loss() -> None:
    with pytest.raises(ValueError, match="'logistic'"):
        LOSSES.register(
            from_functions(
                logistic_value, logistic_slope, takes="sign", smoothness=0.25, name="logistic"
            )
        )
