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
            return wl.walks.Hop(view.node, 0, self.count_visit(view, token), state)

    walk = Stay(privacy=wl.privacy.ClampedGamma(4.0, (1.0, 8.0)))
    trace = wl.simulate(PROBLEM, RING, walk, engine="reference", **SETTINGS)
    assert trace.messages[0, -1] == 0
    assert trace.released is not None
