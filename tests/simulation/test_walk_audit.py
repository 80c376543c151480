"""Walks that break their word on purpose are found; honest ones are not blamed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import walklearn as wl
from walklearn.privacy import ModelNoise
from walklearn.simulation.walk_audit import audit_walk

DELTA = 1e-5


class ClippedTooLate(ModelNoise):
    """The noise comes first and the clip after it: what is shown points at the rows."""

    def protected(
        self, problem: Any, node: int, model: Any, picks: Any = None, *, normal: Any,
        contributes: bool = True,
    ) -> Any:  # fmt: skip
        noisy = self.standard_deviation * np.asarray(normal)
        if contributes:
            noisy = noisy + problem.row_gradients(node, model).sum(axis=0)
        clipped = noisy * min(1.0, self.clip / float(np.linalg.norm(noisy)))
        return self.factor(problem, node) * clipped


@pytest.mark.parametrize("protect", ["rows", "node"])
@pytest.mark.parametrize(
    ("engine", "walks"), [("compiled", 4000), ("reference", 200), ("released", 60)]
)
def test_an_honest_walk_is_not_blamed(protect: Any, engine: Any, walks: int) -> None:
    """By chance it would be with probability 1e-3 at most."""
    noise = ModelNoise.calibrate(
        epsilon=2.0, delta=DELTA, clip=0.5, max_contributions=2, protect=protect
    )
    found = audit_walk(noise, delta=DELTA, walks=walks, revisits=3, seed=1, engine=engine)
    assert not found.violated
    assert found.epsilon == pytest.approx(2.0)
    if walks > 1000:  # a few hundred walks may show nothing at all
        assert 0.3 < found.epsilon_lower < 2.0


def test_missing_noise_is_found() -> None:
    silent = ModelNoise(clip=1.0, noise_multiplier=1e-3, max_contributions=2)
    assert audit_walk(silent, epsilon=3.0, delta=DELTA, walks=1000, seed=1).violated


def test_a_cap_that_is_not_kept_is_found() -> None:
    """The claim is for one contribution, and the walk makes forty."""
    claimed = ModelNoise.calibrate(epsilon=1.0, delta=DELTA, clip=1.0, max_contributions=1)
    lax = ModelNoise(1.0, claimed.noise_multiplier, max_contributions=40)
    found = audit_walk(lax, epsilon=1.0, delta=DELTA, walks=4000, revisits=1, seed=1)
    assert found.violated
    kept = audit_walk(claimed, epsilon=1.0, delta=DELTA, walks=4000, revisits=40, seed=1)
    assert not kept.violated


def test_a_clip_after_the_noise_is_found() -> None:
    noise = ModelNoise.calibrate(epsilon=1.0, delta=DELTA, clip=1.0, max_contributions=2)
    late = ClippedTooLate(noise.clip, noise.noise_multiplier, noise.max_contributions)
    arguments: dict[str, Any] = {"delta": DELTA, "walks": 300, "revisits": 1, "seed": 1}
    assert not audit_walk(noise, engine="reference", **arguments).violated
    assert audit_walk(late, engine="reference", **arguments).violated


def test_a_real_release_whose_noise_is_missing_is_found() -> None:
    silent = ModelNoise(clip=1.0, noise_multiplier=1e-3, max_contributions=2)
    found = audit_walk(silent, epsilon=2.0, delta=DELTA, walks=300, revisits=1, engine="released")
    assert found.violated


def test_too_few_walks() -> None:
    with pytest.raises(ValueError, match="at least 4 walks"):
        audit_walk(wl.privacy.ModelNoise(1.0, 5.0, 2), delta=DELTA, walks=1)
