"""One suite for every registered update: declared arrays, inputs, draws, and that it is a value."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest

import walklearn as wl
from walklearn import updates
from walklearn.arrays import conform, zeros

X, Y = wl.datasets.two_gaussians(20, dimension=3, variance=2.0, seed=1)
OWNERS = np.r_[np.arange(6), np.random.default_rng(1).integers(0, 6, 14)]
PROBLEM = wl.Problem(X, Y, node_of_row=OWNERS, penalty=0.5, domain=wl.domains.Ball(3.0))
SOFTMAX = wl.Problem(X, np.arange(20) % 3, loss=wl.losses.Softmax(), node_of_row=OWNERS)
SINGLE = wl.Problem(X, Y, node_of_row=OWNERS, penalty=0.5, dtype=np.float32)
BATCH = PROBLEM.with_batch(2)
OBJECTIVES = {"rows": PROBLEM, "batch": BATCH, "classes": SOFTMAX, "single": SINGLE}
STEP = wl.PowerStep(0.1)
UPDATES: list[updates.Update] = [
    updates.Sgd(STEP),
    updates.Sgd(wl.ConstantStep(0.1), average=False),
    updates.Saga(),
    updates.Saga(0.01),  # type: ignore[arg-type]
    updates.Finito(),
    updates.Finito(estimates_gradient=True),
]
EXACT = {"rows": PROBLEM, "classes": SOFTMAX}  # for updates that refuse mini-batches and float32

every_update = pytest.mark.parametrize("update", UPDATES, ids=repr)
every_case = pytest.mark.parametrize(
    ("update", "name"),
    [(u, name) for u in UPDATES for name in (EXACT if "is_exact" in u.needs else OBJECTIVES)],
    ids=repr,
)


def context_of(update: updates.Update, objective: Any, node: int, k: int) -> updates.VisitContext:
    draws = np.random.default_rng(k).random((update.gradients, objective.draws))
    return updates.VisitContext(objective, node, 0, 1.0, k, 100, draws)


def test_every_registered_update_is_among_the_cases() -> None:
    shipped = {
        name for name in updates.UPDATES.names if updates.UPDATES.import_path_of(name) is None
    }
    assert {type(update).name for update in UPDATES} == shipped


@every_case
def test_visits_change_no_input_and_return_the_declared_arrays(
    update: updates.Update, name: str
) -> None:
    objective = OBJECTIVES[name]
    specs = update.token_arrays(objective)
    token = update.init_token(objective)
    states = {node: zeros(update.node_arrays(objective, node)) for node in range(6)}
    for k in range(30):
        node = k % 6
        context, state = context_of(update, objective, node, k), states[node]
        for array in (*token.values(), *state.values(), context.draws):
            array.setflags(write=False)
        before = copy.deepcopy((token, state))
        result = update.visit(context, token, state)
        for given, kept in zip((token, state), before, strict=True):
            for key, array in given.items():
                np.testing.assert_array_equal(array, kept[key])
        of_node = update.node_arrays(objective, node)
        for declared, arrays in ((specs, result.token), (of_node, result.state)):
            conform(declared, arrays, update)
            given = {(a, np.shape(b), np.asarray(b).dtype.str) for a, b in arrays.items()}
            assert given == set(map(tuple, declared))
        token, states[node] = dict(result.token), dict(result.state)
    assert not np.array_equal(update.model(objective, token), objective.start)


@every_case
def test_the_first_token_conforms_and_carries_the_start(update: updates.Update, name: str) -> None:
    objective = OBJECTIVES[name]
    token = update.init_token(objective)
    conform(update.token_arrays(objective), token, update)
    for vector in (update.model, update.average_model):
        np.testing.assert_array_equal(vector(objective, token), objective.start)
    assert update.gradient_estimate(objective, token) is None


@every_case
def test_message_bytes_are_those_of_the_counted_arrays(update: updates.Update, name: str) -> None:
    objective = OBJECTIVES[name]
    specs = update.token_arrays(objective)
    assert set(update.uncounted) >= {s.name for s in specs} & {"weighted_sum", "collects"}
    counted = [spec.nbytes for spec in specs if spec.name not in update.uncounted]
    assert update.message_bytes(objective) == sum(counted)
    assert counted[0] >= objective.size * np.dtype(specs[0].dtype).itemsize


@every_update
def test_the_average_since_an_earlier_copy(update: updates.Update) -> None:
    """Of the later updates alone, as if the earlier ones had not been averaged."""
    token = update.init_token(PROBLEM)
    states = {node: zeros(update.node_arrays(PROBLEM, node)) for node in range(6)}
    models, gammas, tokens = [], [], [token]
    for k in range(10):
        context = context_of(update, PROBLEM, k % 6, k)
        models.append(update.model(PROBLEM, token))
        gammas.append(STEP(k + 1))
        token, states[k % 6] = update.visit(context, token, states[k % 6])
        tokens.append(token)
    average = update.average_model(PROBLEM, update.with_average_since(tokens[4], token))
    if update == updates.Sgd(STEP):
        expected = np.average(models[4:], axis=0, weights=gammas[4:])
        np.testing.assert_allclose(average, expected, rtol=1e-12)
    else:
        np.testing.assert_array_equal(average, update.model(PROBLEM, token))


@every_update
def test_every_update_is_a_value(update: updates.Update) -> None:
    for other in (pickle.loads(pickle.dumps(update)), copy.deepcopy(update)):
        assert (other, hash(other), repr(other)) == (update, hash(update), repr(update))
    assert [update == other for other in UPDATES].count(True) == 1
    assert repr(update).startswith(f"{type(update).__name__}(")
    names: dict[str, Any] = vars(updates) | {"PowerStep": wl.PowerStep}
    assert eval(repr(update), names) == update
    for field in dataclasses.fields(update):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(update, field.name, None)


@pytest.mark.parametrize("update", UPDATES[:4], ids=repr)  # Finito has no kernel yet
def test_every_shipped_update_is_compiled(update: updates.Update) -> None:
    assert update.is_compiled
