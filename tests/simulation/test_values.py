"""f of many models, compiled, against `Problem.value`."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from tests.objectives.cases import every_loss, targets_for
from walklearn import Problem, graphs, walks
from walklearn.objectives.linear.losses import Logistic, Softmax
from walklearn.simulation.compiled_batches import CompiledWalks
from walklearn.streams import generators
from walklearn.updates import Sgd
from walklearn.updates.step_sizes import PowerStep
from walklearn.visit import Setting

ROWS, WIDTH = 1100, 7  # more rows than go into one product, and not a multiple of those in a turn


@dataclass
class Drawn:
    """A problem, and f of models by the compiled code."""

    problem: Problem

    def values(self, models: Any) -> Any:
        setting = Setting(self.problem, walks.Uniform(), Sgd(PowerStep(0.1)))
        streams = [generators(np.random.SeedSequence(1))]
        batch = CompiledWalks(setting, graphs.ring(self.problem.nodes), streams)
        return batch.values(models[:, None])[:, 0]


def drawn(loss: Any, weights: str, is_sparse: bool) -> Drawn:
    generator = np.random.default_rng(3)
    rows = generator.standard_normal((ROWS, WIDTH)) * (generator.random((ROWS, WIDTH)) < 0.6)
    X: Any = sparse.csr_array(rows) if is_sparse else rows
    sample_weight = {
        "equal": None,
        "two kinds": np.repeat([1.0, 2.0], ROWS // 2),
        "uneven": generator.random(ROWS),
    }[weights]
    problem = Problem(
        X, targets_for(loss, ROWS, generator), loss=loss, penalty=0.1, aggregate="mean",
        node_of_row=np.arange(ROWS) % 11, sample_weight=sample_weight,
    )  # fmt: skip
    return Drawn(problem)


@every_loss
@pytest.mark.parametrize("weights", ["equal", "two kinds", "uneven"])
@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
def test_are_those_of_the_problem_whoever_else_is_looked_at(
    loss: Any, weights: str, is_sparse: bool
) -> None:
    case = drawn(loss, weights, is_sparse)
    scales = np.geomspace(1e-3, 1e3, 70)[:, None]
    models = scales * np.random.default_rng(0).standard_normal((70, case.problem.size))
    together = case.values(models)
    np.testing.assert_allclose(together, [case.problem.value(each) for each in models], rtol=1e-13)
    for some in (slice(0, 1), slice(5, 8), slice(66, 70)):
        assert (case.values(models[some]) == together[some]).all()


@pytest.mark.parametrize("loss", [Logistic(), Softmax(2)], ids=repr)
def test_losses_far_below_one_keep_their_digits(loss: Any) -> None:
    rows = np.linspace(1.0, 2.0, 50)[:, None]
    classes = np.array([-1.0, 1.0] if isinstance(loss, Logistic) else [0.0, 1.0])
    signs = np.arange(50) % 2
    problem = Problem(rows * (2 * signs[:, None] - 1), classes[signs], loss=loss)
    far = np.array([[30.0]]) if isinstance(loss, Logistic) else np.array([[-8.0, 8.0]])
    value = Drawn(problem).values(far)[0]
    relative = 1e-13 if isinstance(loss, Logistic) else 1e-9  # e^-16 beside 1 has fewer digits
    np.testing.assert_allclose(value, problem.value(far[0]), rtol=relative)
    assert 0 < value < 1e-4


def test_a_model_that_diverged_has_no_value() -> None:
    problem = Problem([[1.0], [2.0]], [1.0, -1.0])
    with np.errstate(invalid="ignore"):
        assert not np.isfinite(Drawn(problem).values(np.array([[np.inf], [np.nan]]))).any()
