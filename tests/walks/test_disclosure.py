"""Disclosures of walks: no privacy is claimed for a walk that does not state its disclosure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import walklearn as wl
from walklearn import walks
from walklearn.walks.disclosure import Disclosure, check_protectable, disclosure_of, reveals_rows

GRAPH = wl.graphs.ring(5)
X, Y = np.eye(5), np.array([1.0, -1.0, 1.0, -1.0, 1.0])
NOISE = wl.privacy.ModelNoise(clip=1.0, noise_multiplier=1.0, max_contributions=2)
IN_THE_CLEAR = Disclosure(reveals_rows=True)
SCALED = Disclosure(scaled_by="Stating()")


class Stating(walks.Jumping):
    """A wrapper with its own statement of its disclosure."""

    stated: Disclosure | None = None

    @property
    def disclosure(self) -> Disclosure | None:
        return self.stated


class Unstated(walks.Uniform):
    """States no disclosure."""

    @property
    def disclosure(self) -> Disclosure | None:
        return None


class Revealing(walks.Uniform):
    """States that it reveals rows, and takes no mechanism."""

    @property
    def disclosure(self) -> Disclosure | None:
        return IN_THE_CLEAR


def simulate(walk: walks.Walk) -> wl.Trace:
    problem = wl.Problem(X, Y, penalty=1.0)
    return wl.simulate(problem, GRAPH, walk, steps=10, step_size=wl.PowerStep(0.1), seed=1,
                       privacy=NOISE)  # fmt: skip


@pytest.mark.parametrize("stated", [IN_THE_CLEAR, SCALED, None], ids=str)
def test_the_disclosure_of_a_wrapper_counts(stated: Disclosure | None) -> None:
    with pytest.raises(ValueError, match=r"in the clear|true L_i|claimed"):
        simulate(Stating(walks.Uniform(), stated=stated))


def test_a_wrapper_cannot_deny_what_the_walk_inside_reveals() -> None:
    outer = Stating(walks.Weighted(), stated=Disclosure())
    assert disclosure_of(outer).is_unprotected
    assert reveals_rows(outer)
    with pytest.raises(ValueError, match="in the clear"):
        check_protectable(outer)
    with pytest.raises(ValueError, match="true L_i"):
        check_protectable(Stating(walks.Uniform(normalise=True), stated=Disclosure()))


def test_privacy_is_claimed_for_a_wrapper_that_reveals_nothing() -> None:
    assert (
        simulate(Stating(walks.Uniform(), stated=Disclosure())).privacy["model"] != "in the clear"
    )


@pytest.mark.parametrize(
    ("walk", "match"),
    [(Unstated(), "Unstated"), (Revealing(), "takes no mechanism")],
    ids=["unstated", "revealing"],
)
def test_an_estimator_claims_nothing_of_them(walk: walks.Walk, match: str) -> None:
    private = {"epsilon": 1.0, "delta": 0.01, "feature_bound": 1.0}
    with pytest.raises(ValueError, match=match):
        wl.RandomWalkClassifier(graph=GRAPH, walk=walk, **private).fit(X, Y)


@pytest.mark.parametrize(
    ("walk", "text"),
    [
        (Unstated(), "unknown"),
        (Revealing(), "unprotected"),
        (walks.Uniform(normalise=True), "reveals the L_i"),
    ],
    ids=["unstated", "revealing", "normalised"],
)
def test_a_model_lists_what_is_not_protected(walk: walks.Walk, text: str) -> None:
    assert any(text in sentence for sentence in privacy_of(walk)["not_protected"])
    assert "only their degree" in " ".join(privacy_of(walks.Uniform())["protected"])
    assert "only their degree" not in " ".join(privacy_of(walk)["protected"])


def privacy_of(walk: walks.Walk) -> Any:
    estimator = wl.RandomWalkClassifier(graph=GRAPH, walk=walk, steps=20, random_state=0)
    return estimator.fit(X, Y).to_model().privacy


def test_every_walk_of_this_package_is_known() -> None:
    wrappers = (walks.Jumping, walks.NonBacktracking, walks.Independent, walks.HistoryDriven)
    for base in (walks.Simple(), walks.Uniform(), walks.Weighted()):
        for walk in (base, *(wrap(base) for wrap in wrappers)):
            assert walk.disclosure_is_known
