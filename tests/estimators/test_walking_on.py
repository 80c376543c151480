"""partial_fit and warm start: the token keeps w, w̄ and k, and walks on."""

from __future__ import annotations

import os
import signal
import warnings
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import walklearn as wl
from tests.estimators.cases import CANCER, CONSTANTS_ALONE, DIABETES, IRIS
from walklearn import RandomWalkClassifier, RandomWalkRegressor
from walklearn.fitting import training
from walklearn.fitting.request import seeds_of
from walklearn.simulation.batches import ReferenceWalks
from walklearn.streams import generators
from walklearn.visit import Setting

LAPLACE = wl.privacy.calibrate("laplace", epsilon=1.0, delta=0.0, bounds=(0.1, 40.0))


def test_partial_fit_is_one_walk_over_changing_rows() -> None:
    """The same token, moved by the reference step by step over one chunk and then the other."""
    X, y = DIABETES
    chunks = [slice(0, 40), slice(40, 80)]
    graph = wl.graphs.erdos_renyi(40, 0.3, seed=2)
    step = wl.PowerStep(0.02)
    model = RandomWalkRegressor(
        graph=graph, step_size=step, steps=150, standardise=False, penalty=0.1, random_state=7,
        average="all",
    )  # fmt: skip
    position = None
    for call, rows in enumerate(chunks):
        model.partial_fit(X[rows], y[rows])
        problem = wl.Problem(
            np.column_stack([X[rows], np.ones(40)]), y[rows], loss=wl.losses.Squared(),
            penalty=0.1, aggregate="mean",
        )  # fmt: skip
        setting = Setting(problem, wl.walks.Uniform(), wl.updates.Sgd(step))
        streams = generators(seeds_of(7, call).walk)
        batch = ReferenceWalks(setting, graph, [streams], None if position is None else [position])
        batch.advance(150)
        position = batch.positions[0]
        arrays = position.token.update
        average = setting.update.average_model(problem, arrays)
        assert model.n_iter_ == position.token.updates == 150 * (call + 1)
        np.testing.assert_allclose(model.weights_, arrays["model"], rtol=1e-9)
        np.testing.assert_allclose(model.average_, average, rtol=1e-9)
        np.testing.assert_allclose(model.coef_, average[:-1], rtol=1e-9)
    np.testing.assert_allclose(  # k continues, and the step sizes with it
        model._state.token.token.update["step_size_sum"], step(np.arange(1, 301)).sum()
    )


def test_partial_fit_learns_a_stream() -> None:
    X, y = CANCER
    order = np.random.default_rng(0).permutation(len(X))
    model = RandomWalkClassifier(random_state=0, steps=2000)
    for chunk in np.array_split(order, 10):
        model.partial_fit(X[chunk], y[chunk], classes=[0, 1])
    assert model.n_iter_ == 20_000
    assert model.score(X, y) > 0.95
    nodes_of_a_call = RandomWalkClassifier(random_state=0).partial_fit(X[:50], y[:50], [0, 1])
    assert nodes_of_a_call.n_iter_ == 5 * 50


def test_the_average_of_a_stream_is_over_its_last_half() -> None:
    X, y = DIABETES
    model = RandomWalkRegressor(step_size=0.02, steps=100, random_state=7)
    sums = [(0, 0.0, 0.0)]
    for call in range(1, 30):
        model.partial_fit(X[:40], y[:40])
        token = model._state.token.token
        sums.append((token.updates, token.update["weighted_sum"], token.update["step_size_sum"]))
        (updates, weighted, total), now = sums[call // 2], sums[-1]
        assert updates <= now[0] / 2
        tail = model._state.units.to_original((now[1] - weighted) / (now[2] - total))
        if call % 2 == 0:  # else it begins in the middle of a call
            np.testing.assert_allclose(model.average_, tail, rtol=1e-7)
    assert len(model._state.marks) < 40  # however many calls there are


def test_a_stream_teaches_as_much_as_scikit_learns_sgd() -> None:
    """Seven chunks of 500 rows with the heavy tails of word counts.

    Over seeds 0 to 4 the means were 0.794 (stream), 0.776 (scikit-learn) and 0.798 (fit); before,
    with an average that began at the start and an update for each row, the stream had 0.71. The
    seed is fixed, so this cannot fail by chance.
    """
    from sklearn.linear_model import SGDClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    generator = np.random.default_rng(0)
    X = np.exp(1.2 * generator.normal(size=(4500, 57))) * (generator.random((4500, 57)) < 0.3)
    scores = np.log1p(X) @ generator.normal(size=57)
    noise = 0.3 * generator.logistic(size=4500)
    y = ((scores - scores.mean()) / scores.std() + noise > 0).astype(int)
    stream, scaled = RandomWalkClassifier(random_state=0), StandardScaler().fit(X[:500])
    sgd = SGDClassifier(loss="log_loss", alpha=1e-3, average=True, random_state=0)
    for rows in np.split(np.arange(3500), 7):
        stream.partial_fit(X[rows], y[rows], classes=[0, 1])
        sgd.partial_fit(scaled.transform(X[rows]), y[rows], classes=[0, 1])
    fit = RandomWalkClassifier(random_state=0).fit(X[:3500], y[:3500])
    new = X[3500:], y[3500:]
    assert stream.score(*new) > make_pipeline(scaled, sgd).score(*new)
    assert stream.score(*new) > fit.score(*new) - 0.02


def test_classes_are_passed_in_the_first_call() -> None:
    X, y = IRIS
    model = RandomWalkClassifier(random_state=0, steps=1000)
    with pytest.raises(ValueError, match=r"classes .*partial_fit"):
        model.partial_fit(X, y)
    model.partial_fit(X[:50], y[:50], classes=[2, 1, 0])  # one class only, so far
    assert model.classes_.tolist() == [0, 1, 2]
    model.partial_fit(X, y)
    with pytest.raises(ValueError, match=r"^classes .*\[0 1 2\]"):
        model.partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match=r"labels \[7\] .*\[0 1 2\]"):
        model.partial_fit(X, np.full(len(X), 7))
    with pytest.raises(ValueError, match=r"2 features.*4 features"):
        model.partial_fit(X[:, :2], y)


def test_units_are_those_of_the_first_rows() -> None:
    X, y = CANCER
    model = RandomWalkClassifier(random_state=0, steps=3000).partial_fit(X[:300], y[:300], [0, 1])
    units = model._state.units
    model.partial_fit(1000.0 * X[300:], y[300:])
    assert model._state.units is units
    np.testing.assert_allclose(units.shift, X[:300].mean(axis=0))


def test_new_nodes_join_and_known_ones_keep_their_numbers() -> None:
    X, y = IRIS
    rows = np.arange(len(X))
    model = RandomWalkClassifier(random_state=0, steps=500)
    model.partial_fit(X, y, [0, 1, 2], nodes=np.array(["b", "d"])[rows % 2])
    first = model.graph_
    model.partial_fit(X, y, nodes=np.array(["d", "b"])[rows % 2])
    assert model.graph_ is first
    model.partial_fit(X, y, nodes=np.array(["a", "b", "c"])[rows % 3])
    assert model._state.network.names == ("b", "d", "a", "c")
    assert model.graph_.node_count == model.ledger_.nodes == 4
    with pytest.raises(ValueError, match=r"earlier rows .*nodes="):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match=r"network .*graph"):
        model.set_params(graph="ring").partial_fit(X, y, nodes=rows % 3)


def test_rows_one_per_node_may_be_more_than_before() -> None:
    X, y = IRIS
    model = RandomWalkClassifier(random_state=0).partial_fit(X[::3], y[::3], [0, 1, 2])
    assert model.graph_.node_count == 50
    model.partial_fit(X, y)
    assert model.graph_.node_count == 150
    model.partial_fit(X[:20], y[:20])  # the other nodes relay
    assert model.graph_.node_count == 150
    assert model.n_iter_ == 5 * (50 + 150 + 20)


@pytest.mark.parametrize("update", ["sgd", "saga"])
def test_warm_start_resumes(update: str) -> None:
    """With memory w stays until the token has met every node's rows again: some 4,000 hops."""
    X, y = CANCER
    common: dict[str, Any] = {"update": update, "steps": 10_000, "random_state": 0}
    model = RandomWalkClassifier(warm_start=True, **common).fit(X, y)
    first = model.weights_
    model.fit(X, y)
    assert model.n_iter_ == 20_000
    assert np.abs(model.weights_ - first).max() > 0
    cold = RandomWalkClassifier(**common).fit(X, y)
    np.testing.assert_array_equal(cold.weights_, first)
    cold.fit(X, y)  # begins anew
    np.testing.assert_array_equal(cold.weights_, first)
    with pytest.raises(ValueError, match=r"warm_start .*\[0 1\], now \[1 2\]"):
        model.fit(X, y + 1)


def test_a_warm_start_needs_fewer_updates() -> None:
    X, y = CANCER
    model = RandomWalkClassifier(update="sgd", warm_start=True, tol=1e-3, random_state=0).fit(X, y)
    before = model.n_iter_
    model.fit(X, y)
    assert model.n_iter_ - before < before / 10


def test_partial_fit_resumes_from_the_minimiser_of_a_fit() -> None:
    """The paper's update takes w over and k with it, so its steps are short: w* is not thrown off.

    What the walk remembered is of other rows: a fit that goes on begins to collect anew.
    """
    X, y = CANCER
    model = RandomWalkClassifier(penalty=0.01, warm_start=True, random_state=0).fit(X, y)
    found, updates = model.coef_, model.n_iter_
    model.partial_fit(X, y)
    assert isinstance(model.update_, wl.updates.Sgd)
    assert model.n_iter_ == updates + 5 * len(X)
    np.testing.assert_array_equal(model.coef_[0], model.average_[:-1])
    assert 0 < np.linalg.norm(model.coef_ - found) < 0.2 * np.linalg.norm(found)
    model.fit(X, y)
    assert model.update_ == wl.updates.Finito(estimates_gradient=True)
    np.testing.assert_array_equal(model.coef_[0], model.weights_[:-1])
    assert np.linalg.norm(model.coef_ - found) < 2e-4 * np.linalg.norm(found)


def test_a_release_is_drawn_anew_and_charged_whether_rows_changed_or_not() -> None:
    """Telling the same again where the rows are the same would tell that they are."""
    X, y = CANCER
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = RandomWalkClassifier(
        warm_start=True, steps=1000, random_state=0, **CONSTANTS_ALONE
    ).fit(X, y)

    for times, targets in ((2, y), (3, 1 - y)):
        released = model.trace_.released
        model.fit(X, targets)
        (entry,) = (e for e in model.ledger_.to_dict()["releases"] if e["what"] == "importance")
        assert entry["times"] == times
        assert not np.array_equal(model.trace_.released, released)


def test_resuming_never_exceeds_the_total() -> None:
    X, y = CANCER
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    total: dict[str, Any] = {"epsilon": 3.0, "delta": 1e-5, "row_length": 5.5, "random_state": 0}
    model = RandomWalkClassifier(**total, warm_start=True).fit(X[:40], y[:40])
    before, first = model.ledger_.to_dict(), model.weights_
    cap = model.model_noise_.max_contributions
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X[:40], y[:40])
        assert model.ledger_.to_dict() == before  # the cap was paid for, and holds
        assert model.trace_.contributions.max() <= cap
    assert not np.array_equal(model.weights_, first)
    with pytest.warns(UserWarning, match=f"ε allows {cap} times"):
        model.fit(X[:40], y[:40])


def test_exceeding_the_total_of_a_node_is_refused() -> None:
    X, y = CANCER
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = RandomWalkClassifier(
        epsilon=3.0, delta=1e-5, row_length=5.5, feature_bound=8.0, random_state=0, steps=20,
        walk="weighted", protect="node", warm_start=True,
    )  # fmt: skip

    def run_walk() -> None:
        for _ in range(12):  # each time L_i is stated anew
            model.fit(X, y, nodes=np.arange(len(X)) % 20)

    with pytest.raises(wl.privacy.BudgetExceededError, match=r"importance .*node 0 .*ε = 3 at"):
        run_walk()
    assert 2.5 < model.ledger_.largest_total(1e-5)[1] <= 3.0  # nothing half done


def test_an_interrupt_keeps_the_model_and_is_stated_after_resuming() -> None:
    X, y = CANCER

    def interrupt(updates: int, loss: float) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    model = RandomWalkClassifier(
        steps=1000, random_state=0, warm_start=True, callback=interrupt, **CONSTANTS_ALONE
    )
    with pytest.warns(UserWarning, match=r"interrupted after \d+ updates"):
        model.fit(X, y)
    assert model.interrupted_
    assert 0 < model.n_iter_ < 1000
    model.set_params(callback=None).fit(X, y)
    assert not model.interrupted_
    stated = model.to_model().privacy["not_protected"]
    assert any("user interrupted" in each for each in stated)


@pytest.mark.parametrize("schema", [None, {"*": {"centre": 1.0, "spread": 2.0}}], ids=str)
def test_a_saved_model_is_resumed_in_its_units(schema: Any) -> None:
    """An update more moves the minimiser by next to nothing, whatever units it is kept in."""
    X, y = IRIS
    common: dict[str, Any] = {"penalty": 0.1, "schema": schema, "random_state": 0}
    found = RandomWalkClassifier(**common).fit(X, y)
    resumed = RandomWalkClassifier(**common, steps=1).resume_from(found.to_model()).fit(X, y)
    assert resumed.n_iter_ == found.n_iter_ + 1
    assert np.linalg.norm(resumed.coef_ - found.coef_) < 1e-2 * np.linalg.norm(found.coef_)
    anew = resumed.fit(X, y)  # the next fit, without warm_start, begins with zeros
    assert anew.n_iter_ == 1


def test_input_that_does_not_fit_a_saved_model_is_refused() -> None:
    X, y = IRIS
    model = RandomWalkClassifier(steps=10, random_state=0).fit(X, y).to_model()
    for rows, labels, parameters, why in (
        (X, y, CONSTANTS_ALONE, "private walk"),
        (X[:, :3], y, {}, "15 numbers, .* 12, softmax and an"),
        (X, y, {"fit_intercept": False}, "15 numbers, .* 12, .*no intercept"),
        (X[:100], y[:100], {}, r"classes \(0, 1, 2\), .*\(0, 1\)"),
    ):
        with pytest.raises(ValueError, match=why):
            RandomWalkClassifier(**parameters, random_state=0).resume_from(model).fit(rows, labels)
    other = RandomWalkRegressor(random_state=0).resume_from(model)
    with pytest.raises(ValueError, match=r"15 numbers, .* 5, squared"):
        other.fit(X, y)


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ({"epsilon": 3.0, "delta": 1e-5, "row_length": 5.5}, {"epsilon": 9.0}),
        ({}, CONSTANTS_ALONE),
        ({"walk": wl.walks.Weighted(privacy=LAPLACE)}, {"walk": "weighted"}),
        ({"walk": wl.walks.Weighted(privacy=LAPLACE)}, {"walk": "uniform"}),
        ({"walk": "weighted", "standardise": False}, {"walk": wl.walks.Weighted(privacy=LAPLACE)}),
    ],
    ids=str,
)
def test_the_protection_of_later_calls_is_that_of_the_first(first: Any, then: Any) -> None:
    X, y = CANCER
    model = RandomWalkClassifier(**first, random_state=0, steps=20)
    model.partial_fit(X[:40], y[:40], [0, 1])
    with pytest.raises(ValueError, match=r"protection .*first call"):
        model.set_params(**then).partial_fit(X[:40], y[:40])


@pytest.mark.parametrize(
    ("terms", "claim", "what"),
    [
        ({}, "not_protected", "disclosed its L_i"),
        (CONSTANTS_ALONE, "protected", "every node, released"),
    ],
)
def test_disclosures_of_earlier_calls_are_stated(terms: Any, claim: str, what: str) -> None:
    X, y = CANCER
    model = RandomWalkClassifier(walk="weighted", steps=20, **terms)
    model.partial_fit(X[:40], y[:40], [0, 1])
    model.set_params(walk="uniform").partial_fit(X[:40], y[:40])
    stated = model.to_model().privacy
    assert any(what in each for each in stated[claim])
    assert not any("no constant" in each for each in stated["protected"])


def test_new_rows_and_new_nodes_of_a_call_are_within_the_total() -> None:
    X, y = CANCER
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = RandomWalkClassifier(epsilon=3.0, delta=1e-5, row_length=5.5, random_state=0)
    model.partial_fit(X[:30], y[:30], [0, 1])
    noise = model.model_noise_
    assert model.n_iter_ == 30
    model.partial_fit(X[30:90], y[30:90])
    assert model.model_noise_ == noise  # fixed by the first call
    assert model.graph_.node_count == 60
    counts = [model.ledger_.charges(node)[0].times for node in range(60)]
    assert counts == [noise.max_contributions] * 60
    assert model.ledger_.largest_total(1e-5)[1] <= 3.0


def test_the_cap_on_contributions_outlives_a_call() -> None:
    X, y = CANCER
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    noise = wl.privacy.ModelNoise(
        clip=3.0, noise_multiplier=5.0, max_contributions=7, protect="node"
    )
    model = RandomWalkClassifier(
        walk="uniform", steps=300, random_state=0, model_privacy=noise, feature_bound=8.0
    )
    for call in range(1, 4):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the cap is reached
            model.partial_fit(X[:30], y[:30], [0, 1])
        most = model.trace_.contributions.max()
        assert most == 7
        assert max(model.ledger_.charges(node)[0].times for node in range(30)) == 7
        assert model.n_iter_ == 300 * call
    assert model.trace_.contributions.min() == 7  # every node has reached it, and is not past it


@pytest.mark.parametrize("sparse", [False, True])
def test_a_row_that_moved_to_another_node_is_refused_before_anything_is_drawn(
    sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its cap is kept at each of its nodes, so that it may add to the model more than ε allows."""
    X, y = CANCER[0][:40], CANCER[1][:40]
    rows = csr_array(X) if sparse else X
    shuffled = np.random.default_rng(3).permutation(40)
    elsewhere = int((shuffled != np.arange(40)).sum())

    def stream(**settings: Any) -> RandomWalkClassifier:
        model = RandomWalkClassifier(steps=20, random_state=0, **settings)
        return model.partial_fit(rows, y, [0, 1])

    total: dict[str, Any] = {"epsilon": 3.0, "delta": 1e-5, "row_length": 5.5}
    model, warm = stream(**total), stream(**total).set_params(warm_start=True)
    before, ledger = model.coef_.copy(), model.ledger_.to_dict()
    for again in (model.partial_fit, warm.fit):
        with monkeypatch.context() as patch:
            patch.setattr(training, "run_walk", lambda *_: pytest.fail("noise was drawn"))
            with pytest.raises(ValueError, match=f"{elsewhere} of 40 rows"):
                again(rows[shuffled], y[shuffled])
            for form in (csr_array(X), X, X.astype(np.float32)):  # in whatever form it comes back
                with pytest.raises(ValueError, match=f"{elsewhere} of 40 rows"):
                    again(form[shuffled], y[shuffled])
    assert (model.coef_.tolist(), model.ledger_.to_dict()) == (before.tolist(), ledger)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stream(**total).partial_fit(rows, y)  # where they were
        stream(**total).partial_fit(rows, 1 - y)  # others
        stream().partial_fit(rows[shuffled], y[shuffled])  # nothing is claimed
