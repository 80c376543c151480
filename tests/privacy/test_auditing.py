"""The audit refutes false claims and believes true ones.

A true claim is refuted with probability at most 1 − confidence. The settings here use 1e-5 at
fixed seeds, so a failure of one of these tests means a mistake, not bad luck.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import special

from walklearn.privacy.auditing import audit
from walklearn.privacy.draws import exact_draws
from walklearn.privacy.mechanisms import (
    ClampedGamma,
    Gamma,
    Gaussian,
    Laplace,
    TruncatedLaplace,
)
from walklearn.privacy.mechanisms.mechanism import Mechanism
from walklearn.privacy.mechanisms.row_gaussian import RowGaussian

BOUNDS = (1.0, 10.0)
CONFIDENCE = 1 - 1e-5

MECHANISMS: list[Mechanism] = [
    *(Gamma(theta, BOUNDS) for theta in (0.1, 1.0, 10.0, 300.0)),
    *(ClampedGamma(theta, bounds) for theta in (1.0, 20.0) for bounds in (BOUNDS, (1.0, 50.0))),
    ClampedGamma(20.0, BOUNDS, (2.0, 8.0)),
    *(Laplace(scale, BOUNDS) for scale in (1.0, 3.0, 30.0)),
    Laplace(3.0, BOUNDS, None),
    TruncatedLaplace(3.0, 12.0, BOUNDS, None),
    TruncatedLaplace(3.0, 12.0, BOUNDS),
    *(Gaussian(sigma, BOUNDS) for sigma in (2.0, 9.0)),
    Gaussian(9.0, BOUNDS, None),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
@pytest.mark.parametrize("epsilon", [0.0, 0.7, 3.0])
def test_right_mechanisms_pass(mechanism: Mechanism, epsilon: float) -> None:
    for seed in (1, 2):
        result = audit(mechanism, epsilon, samples=40_000, confidence=CONFIDENCE, seed=seed)
        assert result.verdict == "consistent"
        assert result.delta == mechanism.delta(epsilon)
        assert result.epsilon_lower <= epsilon


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_the_bound_comes_near_the_truth(mechanism: Mechanism) -> None:
    """So half the true δ would be refuted, in both directions and at atoms too."""
    epsilon = 0.7
    truth = mechanism.delta(epsilon)
    result = audit(mechanism, epsilon, delta=truth / 2, seed=3)
    if isinstance(mechanism, Gamma) and mechanism.theta > 100:
        return  # what lies below the grid is lifted to one step: the release costs less
    assert result.violated == (truth > 0)
    assert truth - 0.02 <= result.delta_lower <= truth
    assert (result.epsilon_lower > epsilon) == result.violated


@dataclass(frozen=True, repr=False)
class NaiveGamma(Gamma):
    """δ as one would first write it: its threshold is a plain power, which is 0 for large θ."""

    def delta(self, epsilon: float) -> float:
        a, b = self.bounds[1] / self.theta, self.bounds[0] / self.theta
        ratio = special.gamma(a) / special.gamma(b)
        up, down = ((math.exp(sign * epsilon) * ratio) ** (1 / (a - b)) for sign in (1.0, -1.0))
        above = special.gammaincc(a, up) - math.exp(epsilon) * special.gammaincc(b, up)
        below = special.gammainc(b, down) - math.exp(epsilon) * special.gammainc(a, down)
        return float(max(above, below, 0.0))


@dataclass(frozen=True, repr=False)
class LogNaiveGamma(NaiveGamma):
    """The same claim for a release that keeps its smallest values, as logarithms."""

    def release(self, values: Any, generator: np.random.Generator | None = None) -> Any:
        generator = generator or np.random.default_rng()
        shape = np.asarray(values) / self.theta
        draws = np.log(generator.standard_gamma(shape + 1))
        return math.log(self.theta) + draws - generator.standard_exponential(shape.shape) / shape


def test_the_underflow_bug_is_found() -> None:
    liar = NaiveGamma(8000.0, BOUNDS)
    assert liar.delta(1.0) == 0.0  # the false claim
    result = audit(liar, epsilon=1.0, seed=1)
    assert result.verdict == "VIOLATED"
    assert 0.005 < result.delta_lower <= Gamma(8000.0, BOUNDS).delta(1.0)
    assert result.epsilon_lower > 1.0
    assert "VIOLATED" in str(result)
    assert NaiveGamma(10.0, BOUNDS).delta(1.0) == pytest.approx(Gamma(10.0, BOUNDS).delta(1.0))
    assert audit(NaiveGamma(10.0, BOUNDS), epsilon=1.0, seed=1).verdict == "consistent"


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_underflow_bug_is_found_on_every_grid(epsilon: float) -> None:
    liar = LogNaiveGamma(8000.0, BOUNDS)
    assert liar.delta(epsilon) == 0.0
    result = audit(liar, epsilon, seed=2)
    truth = Gamma(8000.0, BOUNDS).delta(epsilon)
    assert result.violated
    assert truth - 0.02 < result.delta_lower <= truth


@dataclass(frozen=True, repr=False)
class TooLittleNoise(Laplace):
    """Draws half the noise that it accounts for."""

    def release(self, values: Any, generator: np.random.Generator | None = None) -> Any:
        return Laplace(self.scale / 2, self.bounds, self.clamp).release(values, generator)


def test_too_little_noise_is_found() -> None:
    result = audit(TooLittleNoise(9.0, BOUNDS), epsilon=1.0, seed=4)
    assert result.violated
    assert result.delta < 1e-12
    assert 1.5 < result.epsilon_lower <= 2.0


def test_atoms_count_on_both_ends() -> None:
    """All that this mechanism tells is which end of the clamp comes out."""
    mechanism = ClampedGamma(1e4, BOUNDS)
    result = audit(mechanism, 0.0, delta=0.0, seed=5)
    assert result.violated
    assert mechanism.delta(0.0) / 2 < result.delta_lower <= mechanism.delta(0.0)


@pytest.mark.parametrize("samples", [None, 100])
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_missing_real_noise_is_found(
    mechanism: Mechanism, samples: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the claim is too weak for the bounds, or the samples are too few."""
    if isinstance(mechanism, Gamma | ClampedGamma) and mechanism.theta > 100:
        return  # nearly all honest releases are equal
    monkeypatch.setattr(
        exact_draws, "rounded", lambda laws, *_, **__: [centre for _, centre in laws]
    )
    result = audit(mechanism, 3.0, samples=samples)
    assert result.verdict == "VIOLATED"
    assert result.faults
    assert result.draws == "real"


def test_a_seed_audits_simulated_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_draws, "rounded", None)
    result = audit(Laplace(3.0, BOUNDS), 3.0, samples=1000, seed=1)
    assert (result.verdict, result.draws) == ("consistent", "simulated")


def test_real_noise_that_is_right_passes() -> None:
    """It fails by chance with probability below 2e-9 for each mechanism: there is no seed."""
    for mechanism in (Laplace(3.0, BOUNDS), Gaussian(9.0, BOUNDS), Gamma(1.0, BOUNDS)):
        result = audit(mechanism, 1.0, samples=4000, confidence=1 - 1e-9)
        assert (result.verdict, result.draws, result.faults) == ("consistent", "real", ())
        assert result.noise_releases == 3000


def test_the_audit_states_the_largest_epsilon_that_it_could_refute() -> None:
    """Releases that are far apart give just this bound, and no draws give a larger one."""
    result = audit(Laplace(1e-3, BOUNDS), 3.0, delta=1e-9, samples=20_000, seed=1)
    assert result.epsilon_lower == pytest.approx(result.largest_refutable_epsilon)
    assert result.largest_refutable_epsilon == pytest.approx(7.094, abs=1e-3)
    assert "7.09" in str(result)
    honest = audit(Laplace(1.0, BOUNDS), 9.0, samples=20_000, seed=1)
    assert honest.largest_refutable_epsilon < 9.0
    assert "exceeds" in str(honest)


def test_a_claim_about_one_row_is_audited_for_values_that_one_row_can_move() -> None:
    release = RowGaussian(sigma=0.5, bounds=(1.0, 9.0), sensitivity=0.5)
    delta = release.delta(1.0)
    assert not audit(release, 1.0, confidence=CONFIDENCE, seed=1).violated
    assert audit(release, 1.0, delta=0.8 * delta, confidence=CONFIDENCE, seed=1).violated


@dataclass(frozen=True)
class OwnMechanism:
    """The smallest mechanism that can be audited: simulated draws only, and no law."""

    scale: float
    bounds: tuple[float, float] = BOUNDS

    def delta(self, epsilon: float) -> float:
        return 0.0

    def release(self, values: Any, rng: np.random.Generator) -> Any:
        return values + rng.laplace(scale=self.scale, size=np.shape(values))


def test_a_mechanism_of_ones_own_is_audited() -> None:
    honest = audit(OwnMechanism(9.0), 1.0, samples=20_000, confidence=1 - 1e-9)
    assert (honest.verdict, honest.draws, honest.noise_releases) == ("consistent", "simulated", 0)
    assert audit(OwnMechanism(3.0), 1.0).violated  # misses with a chance far below 1e-9


def test_the_same_seed_gives_the_same_audit() -> None:
    first, second, other = (
        audit(MECHANISMS[0], 1.0, samples=1001, seed=seed) for seed in (1, 1, 2)
    )
    assert first == second != other
    assert first.samples == 1000
    assert audit(MECHANISMS[0], math.inf, samples=100).delta_lower == 0.0


CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "epsilon < 0": (lambda: audit(MECHANISMS[0], -1.0), "^epsilon"),
    "delta = 1": (lambda: audit(MECHANISMS[0], 1.0, delta=1.0), "^delta"),
    "one sample": (lambda: audit(MECHANISMS[0], 1.0, samples=1), "^samples"),
    "half a sample": (lambda: audit(MECHANISMS[0], 1.0, samples=9.5), r"whole"),  # type: ignore[arg-type]
    "certain": (lambda: audit(MECHANISMS[0], 1.0, confidence=1.0), "^confidence"),
    "confidence 0": (lambda: audit(MECHANISMS[0], 1.0, confidence=0.0), "^confidence"),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_refused(case: str) -> None:
    action, message = CASES[case]
    with pytest.raises(ValueError, match=message):
        action()
