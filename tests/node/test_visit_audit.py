"""The audit of a real node's visits finds the faults that a node could have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import walklearn as wl
from walklearn.node.protocol.learner import Learner
from walklearn.privacy import ModelNoise
from walklearn.privacy.noise_test import REPEATED, TOO_SMALL
from walklearn.privacy.noisy_gradients import NoisyGradients
from walklearn.simulation.walk_audit import WalkAudit

DELTA = 1e-5


def audit(walks: int = 10, protect: Any = "rows", **options: Any) -> WalkAudit:
    noise = ModelNoise.calibrate(
        epsilon=3.0, delta=DELTA, clip=1.0, max_contributions=4, protect=protect
    )
    return wl.audit_walk(
        noise, delta=DELTA, walks=walks, engine=wl.node.observe_visits, **options
    )  # fmt: skip


@pytest.mark.parametrize("protect", ["rows", "node"])
def test_an_honest_node_has_no_faults(protect: Any) -> None:
    """It would by chance with probability 1e-9 at most."""
    found = audit(walks=60, protect=protect, confidence=1 - 1e-9)
    assert (found.verdict, found.draws, found.faults) == ("consistent", "real", ())
    assert (found.engine, found.visits, found.noise_releases) == ("observe_visits", 8, 480)


def test_missing_noise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        NoisyGradients, "draw", lambda self, size, bits=None: np.zeros(size, np.int64)
    )
    assert audit().faults == (TOO_SMALL, REPEATED)


def test_noise_that_a_visit_leaves_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    released = NoisyGradients.released

    def bare(self: Any, *arguments: Any, steps: Any) -> Any:
        return released(self, *arguments, steps=np.zeros_like(steps))

    monkeypatch.setattr(NoisyGradients, "released", bare)
    assert audit().faults == (TOO_SMALL, REPEATED)


def test_noise_that_is_used_twice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    draw, drawn = NoisyGradients.draw, list[Any]()

    def reused(self: Any, size: int, bits: Any = None) -> Any:
        drawn.append(drawn[-1] if len(drawn) % 2 else draw(self, size, bits))
        return drawn[-1]

    monkeypatch.setattr(NoisyGradients, "draw", reused)
    assert REPEATED in audit().faults


def test_a_clip_after_the_noise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    released = NoisyGradients.released

    def clipped(self: Any, objective: Any, node: int, *arguments: Any, **options: Any) -> Any:
        noisy = released(self, objective, node, *arguments, **options)
        longest = self.factor(objective, node) * self.clip
        return noisy * min(1.0, longest / float(np.linalg.norm(noisy)))

    monkeypatch.setattr(NoisyGradients, "released", clipped)
    assert TOO_SMALL in audit().faults


def test_a_cap_that_is_not_kept_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    visit = Learner.visit

    def uncounted(self: Any, token: Any, draws: Any, contributions: int = 0) -> Any:
        return visit(self, token, draws, 0)

    monkeypatch.setattr(Learner, "visit", uncounted)
    assert audit().faults == ("the model changes after the last contribution",)


def test_a_seed_is_refused() -> None:
    with pytest.raises(ValueError, match="takes no seed"):
        audit(seed=1)
