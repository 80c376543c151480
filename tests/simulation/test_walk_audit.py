"""Walks that break their word on purpose are found; honest ones are not blamed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import walklearn as wl
from walklearn.privacy import ModelNoise
from walklearn.privacy.noise_test import DEPENDENT, ONE_SIDED, REPEATED, TOO_SMALL
from walklearn.privacy.noisy_gradients import NoisyGradients
from walklearn.privacy.protection import ProtectedObjective
from walklearn.simulation.walk_audit import audit_walk

DELTA = 1e-5


class ClippedTooLate(ModelNoise):
    """The noise comes first and the clip after it: what is shown points at the rows."""

    def protected(
        self, problem: Any, node: int, model: Any, draws: Any = (), *, normal: Any,
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


NOISE = ModelNoise.calibrate(epsilon=3.0, delta=DELTA, clip=1.0, max_contributions=5)


def test_by_default_real_noise_is_audited() -> None:
    """The noise fails by chance with probability below 1e-9."""
    found = audit_walk(NOISE, delta=DELTA, walks=50, confidence=1 - 1e-9)
    assert (found.verdict, found.engine, found.draws) == ("consistent", "released", "real")
    assert found.noise_releases == 500
    assert found.faults == ()
    seeded = audit_walk(NOISE, delta=DELTA, walks=50, seed=1)
    assert (seeded.engine, seeded.draws) == ("compiled", "simulated")


@pytest.mark.parametrize("walks", [4, 200])
@pytest.mark.parametrize("engine", ["released", None])
def test_missing_real_noise_is_found_whatever_epsilon(
    engine: Any, walks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        NoisyGradients, "draw", lambda self, size, bits=None: np.zeros(size, np.int64)
    )
    found = audit_walk(NOISE, delta=DELTA, walks=walks, engine=engine)
    assert found.verdict == "VIOLATED"
    assert TOO_SMALL in found.faults
    assert found.epsilon_lower < found.epsilon  # too few walks for the bound


def test_too_small_real_noise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 85 % of the deviation the test misses with probability below 1e-9."""
    draw = NoisyGradients.draw

    def smaller(self: Any, size: int, bits: Any = None) -> Any:
        return (0.85 * draw(self, size, bits)).astype(np.int64)

    monkeypatch.setattr(NoisyGradients, "draw", smaller)
    assert audit_walk(NOISE, delta=DELTA, walks=200, revisits=1).faults == (TOO_SMALL,)


@pytest.mark.parametrize("sign", [1, -1])
def test_noise_that_is_used_twice_is_found(sign: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every second visit of a node reuses the last noise, or its negative."""
    draw, drawn = NoisyGradients.draw, [np.zeros(0, np.int64)] * 4

    def reused(self: Any, size: int, bits: Any = None) -> Any:
        drawn.append(sign * drawn[-2] if len(drawn) % 4 >= 2 else draw(self, size, bits))
        return drawn[-1]

    monkeypatch.setattr(NoisyGradients, "draw", reused)
    assert REPEATED in audit_walk(NOISE, delta=DELTA, walks=20, engine="released").faults


ENGINES = pytest.mark.parametrize("engine", ["released", wl.node.observe_visits])
WALKS = pytest.mark.parametrize("walks", [10, 200])


@WALKS
@ENGINES
def test_noise_that_lost_its_sign_is_found(
    engine: Any, walks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = NoisyGradients.draw
    monkeypatch.setattr(NoisyGradients, "draw", lambda *arguments: np.abs(draw(*arguments)))
    assert ONE_SIDED in audit_walk(NOISE, delta=DELTA, walks=walks, engine=engine).faults


# Large offsets leave the signs alone only; the deviation is about 10^8 steps.
OFFSET = pytest.mark.parametrize("offset", [3, 10**6])


@WALKS
@OFFSET
@ENGINES
def test_noise_that_cancels_between_coordinates_is_found(
    engine: Any, offset: int, walks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = NoisyGradients.draw

    def cancelling(self: Any, size: int, bits: Any = None) -> Any:
        drawn = draw(self, size, bits)
        drawn[1:] = offset * np.arange(1, size) - drawn[0]
        return drawn

    monkeypatch.setattr(NoisyGradients, "draw", cancelling)
    assert DEPENDENT in audit_walk(NOISE, delta=DELTA, walks=walks, engine=engine).faults


@pytest.mark.parametrize("sign", [1, -1])
@OFFSET
@ENGINES
def test_noise_that_nearly_copies_the_previous_noise_is_found(
    engine: Any, offset: int, sign: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 200 walks on each data set the test misses this with probability below 1e-9."""
    draw, previous = NoisyGradients.draw, list[Any]()

    def copied(self: Any, size: int, bits: Any = None) -> Any:
        if previous:
            return sign * previous.pop() + offset
        previous.append(draw(self, size, bits))
        return previous[-1].copy()

    monkeypatch.setattr(NoisyGradients, "draw", copied)
    found = audit_walk(NOISE, delta=DELTA, walks=200, engine=engine).faults
    assert DEPENDENT in found
    assert (REPEATED in found) == (offset == 3)


@pytest.mark.parametrize("multiplier", [2.0**-24, 1e-6, 1e-3, 8.0, 1e6])
@pytest.mark.parametrize(("walks", "cap"), [(4, 1), (4, 3), (20, 2)])
def test_honest_noise_of_any_size_has_no_faults(multiplier: float, walks: int, cap: int) -> None:
    """Each audit fails by chance with probability below 1e-9, also if most draws are 0."""
    noise = ModelNoise(1.0, multiplier, cap)
    for _ in range(10):
        assert audit_walk(noise, delta=DELTA, walks=walks, revisits=1).faults == ()
    for seed in range(10):
        assert audit_walk(noise, delta=DELTA, walks=walks, revisits=1, seed=seed).faults == ()


def test_a_clip_after_real_noise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    released = NoisyGradients.released

    def clipped(self: Any, problem: Any, node: int, *arguments: Any, **options: Any) -> Any:
        noisy = released(self, problem, node, *arguments, **options)
        longest = self.factor(problem, node) * self.clip
        return noisy * min(1.0, longest / float(np.linalg.norm(noisy)))

    monkeypatch.setattr(NoisyGradients, "released", clipped)
    assert TOO_SMALL in audit_walk(NOISE, delta=DELTA, walks=20, engine="released").faults


def test_a_cap_that_a_real_walk_does_not_keep_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def uncounted(self: Any, objective: Any, node: int, state: Any, noise: Any) -> Any:
        return ProtectedObjective(objective, self, node, noise)

    monkeypatch.setattr(ModelNoise, "view", uncounted)
    found = audit_walk(NOISE, delta=DELTA, walks=4, engine="released")
    assert found.violated
    assert found.faults == ("the model changes after the last contribution",)


def test_the_audit_states_the_largest_epsilon_that_it_could_refute() -> None:
    silent = ModelNoise(clip=1.0, noise_multiplier=1e-3, max_contributions=2)
    found = audit_walk(silent, epsilon=1.0, delta=DELTA, walks=200, seed=1)
    assert found.largest_refutable_epsilon == pytest.approx(2.286, abs=1e-3)
    assert found.epsilon_lower == pytest.approx(found.largest_refutable_epsilon)
    assert "up to 2.28" in str(found)  # rounded down


def test_an_engine_that_does_not_exist() -> None:
    with pytest.raises(ValueError, match=r"no engine 'node'.*walklearn\.node\.observe_visits"):
        audit_walk(NOISE, delta=DELTA, engine="node")  # type: ignore[arg-type]


def test_too_few_walks() -> None:
    with pytest.raises(ValueError, match="walks must be"):
        audit_walk(wl.privacy.ModelNoise(1.0, 5.0, 2), delta=DELTA, walks=1)
