"""Protections from outside take effect on every engine, and nothing is claimed for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import walklearn as wl
from walklearn.privacy.protection import NoContribution

X, Y = wl.datasets.two_gaussians(12, dimension=3, seed=1)
PROBLEM, RING = wl.Problem(X, Y, penalty=1.0), wl.graphs.ring(12)
SETTINGS: dict[str, Any] = {"steps": 40, "step_size": wl.PowerStep(0.1), "seed": 1}


class Mute(wl.privacy.Protection):
    """Lets no node contribute."""

    def view(self, objective: Any, node: int, state: Any, noise: Any) -> Any:
        return NoContribution(objective, self)


class MuteNoise(wl.privacy.ModelNoise):
    """Changes the view of a protection that the kernels know."""

    def view(self, objective: Any, node: int, state: Any, noise: Any) -> Any:
        return NoContribution(objective, self)


class Doubled(wl.privacy.Protection):
    """Adds a kind of noise of its own, without a cap."""

    adds_noise = True

    def draw_noise(self, gradients: int, size: int, rng: Any) -> np.ndarray:
        return rng.standard_normal((gradients, size))

    def view(self, objective: Any, node: int, state: Any, noise: Any) -> Any:
        view = NoContribution(objective, self)
        view.gradient = lambda node, w, draws: noise[0]  # type: ignore[method-assign]
        return view


@pytest.mark.parametrize("privacy", [Mute(), MuteNoise(1.0, 1.0, 3, "node")], ids=repr)
def test_a_view_of_a_users_own_takes_effect(privacy: Any) -> None:
    with pytest.raises(ValueError, match="has no kernel"):
        wl.simulate(PROBLEM, RING, "uniform", privacy=privacy, engine="compiled", **SETTINGS)
    with pytest.warns(UserWarning, match="has no kernel"):
        trace = wl.simulate(PROBLEM, RING, "uniform", privacy=privacy, **SETTINGS)
    np.testing.assert_array_equal(trace.distance[0], trace.distance[0, 0])


def test_nothing_is_claimed_for_a_protection_from_outside() -> None:
    for privacy in (Doubled(), MuteNoise(1.0, 1.0, 3, "node")):
        trace = wl.simulate(
            PROBLEM, RING, "uniform", privacy=privacy, engine="reference", **SETTINGS
        )
        assert trace.privacy["model"] == "in the clear"
    assert trace.contributions is not None
    assert Doubled().node_arrays(PROBLEM) == ()


def test_a_private_subclass_of_weighted_keeps_its_methods() -> None:
    class Stay(wl.walks.Weighted):
        def hop(self, view: Any, token: Any, state: Any, draws: Any) -> wl.walks.Hop:
            return wl.walks.Hop(view.node, 0, *self.count_visit(view, token, state))

    walk = Stay(privacy=wl.privacy.ClampedGamma(4.0, (1.0, 8.0)))
    trace = wl.simulate(PROBLEM, RING, walk, engine="reference", **SETTINGS)
    assert trace.messages[0, -1] == 0
    assert trace.released is not None


class TwoGradients(wl.Update):
    """Releases two noisy gradients per visit."""

    gradients = 2

    def visit(self, context: Any, token: Any, state: Any) -> wl.updates.VisitResult:
        w = token["model"]
        step = 0.01 * (context.gradient(w, 0) + context.gradient(w, 1))
        return wl.updates.VisitResult({"model": w - step})


class OneTooMany(TwoGradients):
    """Asks for more gradients than it declares."""

    gradients = 1


class Peek(TwoGradients):
    """Reads the rows before the first visit."""

    gradients = 1

    def init_token(self, objective: Any, tokens: int = 1) -> Any:
        nothing = np.zeros(0)
        return {"model": objective.gradient(0, np.zeros(objective.size), nothing)}


NODE_NOISE = wl.privacy.ModelNoise(1.0, 1.0, 3, "node")


def run(update: Any, steps: int, privacy: Any = NODE_NOISE) -> wl.Trace:
    return wl.simulate(
        PROBLEM, RING, "uniform", update=update, steps=steps, seed=1, privacy=privacy,
        engine="reference",
    )  # fmt: skip


def test_every_noisy_gradient_counts_against_the_cap() -> None:
    trace = run(TwoGradients(), 300)
    assert trace.contributions is not None
    assert trace.contributions.max() == 2  # a second visit would make four, and the cap is three
    with pytest.raises(ValueError, match="declared"):
        run(OneTooMany(), 3)


def test_under_noise_no_method_of_an_update_reads_the_rows() -> None:
    with pytest.raises(AttributeError, match="gradient"):
        run(Peek(), 3)


def fit_privately(**settings: Any) -> wl.RandomWalkClassifier:
    return wl.RandomWalkClassifier(graph=RING, laziness=0.1, random_state=1, **settings).fit(X, Y)


class PeekAtTheEnd(TwoGradients):
    """Reads the rows when the model is taken off the token."""

    def model(self, objective: Any, token: Any) -> Any:
        return objective.gradient(0, token["model"], np.zeros(0))


def test_estimators_charge_each_gradient_of_an_update_from_outside() -> None:
    budget: dict[str, Any] = {"epsilon": 3.0, "delta": 1e-5, "row_length": 5.0}
    with pytest.warns(UserWarning, match="no kernel"):
        fitted = fit_privately(update=TwoGradients(), steps=2000, **budget)
    spent, cap = fitted.trace_.contributions, fitted.model_noise_.max_contributions
    assert spent is not None
    assert spent.max() in (cap - 1, cap)
    for update in (Peek(), PeekAtTheEnd()):
        with pytest.warns(UserWarning, match="no kernel"), pytest.raises(AttributeError):
            fit_privately(update=update, steps=20, **budget)


def test_estimators_claim_nothing_for_noise_from_outside() -> None:
    with pytest.raises(ValueError, match="ModelNoise"):
        fit_privately(model_privacy=MuteNoise(1.0, 1.0, 3), steps=20)


class Broadcast(wl.Objective):
    """Returns gradients of the wrong shape, which NumPy would spread over all coordinates."""

    nodes, parameters = 12, (wl.ArraySpec("w", (100,)),)

    def gradient(self, node: int, w: Any, draws: Any) -> Any:
        return np.ones(1)

    def value(self, w: Any) -> float:
        return float(w @ w)


def test_a_gradient_of_the_wrong_shape_is_refused() -> None:
    for privacy in (None, NODE_NOISE):
        with pytest.raises(ValueError, match="shape"):
            wl.simulate(Broadcast(), RING, "uniform", privacy=privacy, **SETTINGS)


def test_a_walk_that_draws_nodes_by_private_numbers_is_refused() -> None:
    class Following(wl.walks.Independent):
        def stationary(self, graph: Any, objective: Any = None) -> Any:
            return objective.importance / objective.importance.sum()

    with pytest.raises(ValueError, match="Following"):
        wl.simulate(PROBLEM, RING, Following(), privacy=NODE_NOISE, **SETTINGS)


class Anchored(wl.Update):
    """Asks a node that is not visited, whose budget nobody would charge."""

    def visit(self, context: Any, token: Any, state: Any) -> wl.updates.VisitResult:
        gradient = context.objective.gradient(0, token["model"], context.draws[0])
        return wl.updates.VisitResult({"model": token["model"] - 0.01 * gradient})


def test_a_gradient_of_another_node_is_refused_under_noise() -> None:
    noise = wl.privacy.ModelNoise(clip=1.0, noise_multiplier=1.0, max_contributions=5)
    with pytest.raises(ValueError, match="node 0, whose budget"):
        run(Anchored(), 40, noise)
