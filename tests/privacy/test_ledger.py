"""The ledger: totals, refusals that leave no trace, and files."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from walklearn.privacy.accounting.composition import Charge, Release, compose
from walklearn.privacy.accounting.ledger import AlreadyReleasedError, BudgetExceededError, Ledger
from walklearn.privacy.mechanisms import ClampedGamma, Gamma, Gaussian, Laplace, TruncatedLaplace
from walklearn.privacy.mechanisms.calibration import calibrate
from walklearn.privacy.mechanisms.description import describe, from_description
from walklearn.privacy.model_noise import ModelNoise

BOUNDS = (1.0, 10.0)
LAPLACE = Laplace(9.0, BOUNDS)  # ε = 1
CONSTANT = ClampedGamma(20.0, (1.0, 50.0))
NOISE = ModelNoise(clip=1.0, noise_multiplier=20.0, max_contributions=5)

RELEASES: list[Release] = [
    Gamma(5.0, BOUNDS),
    ClampedGamma(3.0, BOUNDS, (0.5, 30.0)),
    Laplace(3.0, BOUNDS),
    Laplace(3.0, BOUNDS, None),
    TruncatedLaplace(3.0, 20.0, BOUNDS),
    Gaussian(5.0, BOUNDS),
    NOISE,
]


def full_ledger() -> Ledger:
    ledger = Ledger(4, budget=(20.0, 1e-3))
    ledger.charge("importance", CONSTANT)
    ledger.charge("model", NOISE, nodes=[1, 2], times=[2, 3])
    ledger.charge("importance", CONSTANT, nodes=[3], again=True)
    return ledger


def test_totals_are_those_of_the_charges() -> None:
    ledger = full_ledger()
    assert ledger.charges(2) == [
        Charge("importance", CONSTANT, 1),
        Charge("model", NOISE, 3),
    ]
    assert ledger.charges(3) == [Charge("importance", CONSTANT, 2)]
    for node in range(4):
        both = compose(ledger.charges(node))
        assert ledger.total(node, 1e-3) == both.epsilon(1e-3)
    assert ledger.total(0, 1e-3) == CONSTANT.epsilon(1e-3)
    assert ledger.largest_total(1e-3) == (3, ledger.total(3, 1e-3))
    assert Ledger(2).total(1, 0.0) == 0.0
    assert Ledger(2).largest_total(0.0) == (0, 0.0)


def test_a_second_release_is_refused_unless_it_is_paid_for() -> None:
    ledger = Ledger(5)
    ledger.charge("importance", LAPLACE, nodes=[0, 3])
    with pytest.raises(AlreadyReleasedError, match=r"node 3 .*second time.*averaging.*again=True"):
        ledger.charge("importance", LAPLACE, nodes=[2, 3, 4])
    assert not ledger.charges(2)  # all or nothing
    with pytest.raises(AlreadyReleasedError, match="node 0") as refusal:
        ledger.charge("importance", CONSTANT)  # another mechanism is no way around
    assert refusal.value.node == 0
    with pytest.raises(AlreadyReleasedError, match="node 1"):
        ledger.charge("importance", LAPLACE, nodes=[1], times=2)
    with pytest.raises(AlreadyReleasedError, match="node 1"):
        ledger.charge("importance", LAPLACE, nodes=[1, 1])
    ledger.charge("importance", LAPLACE, nodes=[3], again=True)
    assert ledger.total(3, 0.0) == pytest.approx(2.0, rel=1e-12)
    ledger.record_unprotected("importance", nodes=[2])
    with pytest.raises(AlreadyReleasedError, match="node 2"):  # noise on what is known already
        ledger.charge("importance", LAPLACE, nodes=[2])
    ledger.charge("importance", LAPLACE, nodes=[4])  # what one has paid for is no other's affair
    ledger.charge("another constant", LAPLACE, nodes=[3])
    assert ledger.total(3, 0.0) == pytest.approx(3.0, rel=1e-12)


def test_contributions_are_capped() -> None:
    ledger = Ledger(3)
    ledger.charge("model", NOISE, times=3)
    ledger.charge("model", NOISE, nodes=[1], times=2)
    with pytest.raises(AlreadyReleasedError, match=r"node 1 .*6 times.*max_contributions is 5"):
        ledger.charge("model", NOISE)
    with pytest.raises(AlreadyReleasedError, match="max_contributions is 5"):
        ledger.charge("model", NOISE, nodes=[1], again=True)  # nobody can pay for more than the cap
    assert [ledger.charges(node)[0].times for node in range(3)] == [3, 5, 3]
    assert ledger.total(1, 1e-5) == NOISE.epsilon(1e-5)
    assert ledger.total(0, 1e-5) == replace(NOISE, max_contributions=3).epsilon(1e-5)
    ledger.charge("model", NOISE, times=[2, 0, 1])
    assert [ledger.charges(node)[0].times for node in range(3)] == [5, 5, 4]


def test_the_budget_holds_and_a_refusal_changes_nothing() -> None:
    ledger = Ledger(10, budget=(2.5, 1e-6))
    ledger.charge("importance", LAPLACE)
    ledger.charge("importance", LAPLACE, nodes=[7], again=True)
    before = ledger.to_dict()
    with pytest.raises(BudgetExceededError, match=r"node 7 .*spent .*remaining") as refusal:
        ledger.charge("importance", LAPLACE, nodes=[6, 7, 8], again=True)
    error = refusal.value
    assert error.node == 7
    assert error.spent == ledger.total(7, 1e-6)
    assert error.spent + error.remaining == pytest.approx(2.5)
    assert ledger.to_dict() == before
    again = pickle.loads(pickle.dumps(error))
    assert (again.node, again.spent, str(again)) == (7, error.spent, str(error))
    ledger.charge("importance", LAPLACE, nodes=[6, 8], again=True)
    with pytest.raises(BudgetExceededError, match="in the clear"):
        ledger.record_unprotected("model")
    assert all(ledger.total(node, 1e-6) <= 2.5 for node in range(10))


def test_the_budget_is_for_constants_and_model_together() -> None:
    noise = ModelNoise.calibrate(epsilon=1.0, delta=1e-5, clip=1.0, max_contributions=50)
    ledger = Ledger(3, budget=(1.9, 1e-5))
    ledger.charge("importance", LAPLACE)
    with pytest.raises(BudgetExceededError):
        ledger.charge("model", noise, times=50)
    ledger.charge("model", noise, times=[40, 10, 0])
    assert 1.0 < ledger.total(2, 1e-5) + 1e-4 < ledger.total(1, 1e-5) < ledger.total(0, 1e-5) <= 1.9


@pytest.mark.parametrize("kind", ["clamped-gamma", "laplace", "truncated-laplace", "gaussian"])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_a_calibrated_mechanism_fits_its_budget(kind: str, epsilon: float) -> None:
    for delta in (0.01, 1e-6):
        mechanism = calibrate(kind, epsilon=epsilon, delta=delta, bounds=BOUNDS)
        ledger = Ledger(2, budget=(epsilon, delta))
        ledger.charge("importance", mechanism)
        with pytest.raises(BudgetExceededError):
            ledger.charge("importance", mechanism, nodes=[0], again=True)


def test_an_unprotected_release_has_no_finite_total() -> None:
    ledger = Ledger(3)
    ledger.charge("model", NOISE)
    ledger.record_unprotected("importance", nodes=[1])
    assert ledger.total(1, 0.5) == math.inf
    assert compose(ledger.charges(1)).delta(50.0) == 1.0
    assert ledger.total(0, 1e-5) < math.inf
    assert "in the clear" in str(ledger)
    assert "inf" in str(ledger)


@pytest.mark.parametrize("release", RELEASES, ids=repr)
def test_mechanisms_travel_as_json(release: Release) -> None:
    assert from_description(json.loads(json.dumps(describe(release)))) == release


def test_a_ledger_travels_as_json() -> None:
    ledger = full_ledger()
    ledger.budget = None
    ledger.record_unprotected("degree")
    copy = Ledger.from_dict(json.loads(json.dumps(ledger.to_dict())))
    assert copy == ledger
    assert copy.total(2, 1e-3) == ledger.total(2, 1e-3)
    copy.charge("other", LAPLACE, nodes=[0])
    assert copy != ledger
    assert Ledger(4) != Ledger(4, simulated=True)
    assert Ledger(4) != Ledger(4, budget=(1.0, 0.0))
    assert Ledger(4) != 4
    many = Ledger(1000)
    many.charge("importance", LAPLACE)
    assert len(json.dumps(many.to_dict())) < 300
    assert pickle.loads(pickle.dumps(ledger)) == ledger


def test_the_text_shows_everything() -> None:
    text = str(full_ledger())
    lines = text.splitlines()
    assert "budget ε = 20 at δ = 0.001" in lines[0]
    assert "simulated" not in text
    assert "1..2" in lines[2]
    assert "2..3" in lines[3]
    assert lines[-1].startswith("all")
    assert "node 3" in lines[-1]
    assert "δ = 1e-05" in str(Ledger(2, simulated=True))


def test_a_million_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many nodes there are, what they released is composed a few times only."""
    composed = Mock(wraps=compose)
    monkeypatch.setattr("walklearn.privacy.accounting.ledger.compose", composed)
    nodes = 1_000_000
    ledger = Ledger(nodes, budget=(10.0, 1e-3))
    ledger.charge("importance", LAPLACE)
    ledger.charge("model", NOISE, times=np.arange(nodes) % 6)
    assert ledger.total(5, 1e-3) == ledger.total(nodes - 5, 1e-3)
    assert ledger.largest_total(1e-3)[0] == 5
    assert 0 < composed.call_count < 10


CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "no nodes": (lambda: Ledger(0), r"at least 1"),
    "half a node": (lambda: Ledger(1.5), "nodes"),  # type: ignore[arg-type]
    "budget of one": (lambda: Ledger(2, budget=(1.0,)), r"pair"),  # type: ignore[arg-type]
    "budget < 0": (lambda: Ledger(2, budget=(-1.0, 0.0)), "^epsilon"),
    "budget, delta = 1": (lambda: Ledger(2, budget=(1.0, 1.0)), "^delta"),
    "budget inf": (lambda: Ledger(2, budget=(math.inf, 0.0)), "no limit"),
    "no such node": (lambda: Ledger(2).charge("x", LAPLACE, nodes=[2]), r"no node 2: .*0\.\.1"),
    "node -1": (lambda: Ledger(2).total(-1, 0.1), r"no node -1"),
    "times < 0": (lambda: Ledger(2).charge("x", LAPLACE, times=-1), "^times"),
    "times too many": (lambda: Ledger(2).charge("x", NOISE, times=[1, 1, 1]), r"each of the 2"),
    "half a time": (lambda: Ledger(2).charge("x", LAPLACE, times=0.5), r"whole numbers"),
    "a mask": (lambda: Ledger(2).charge("x", LAPLACE, nodes=[True, False]), r"whole numbers"),
    "no mechanism": (lambda: Ledger(2).charge("x", None), r"needs a mechanism"),  # type: ignore[arg-type]
    "no name": (lambda: Ledger(2).charge("", LAPLACE), "text"),
    "unknown kind": (lambda: from_description({"kind": "magic"}), "'magic'"),
    "wrong parameters": (lambda: from_description({"kind": "laplace", "x": 1}), r"parameters of"),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_refused(case: str) -> None:
    action, message = CASES[case]
    with pytest.raises(ValueError, match=message):
        action()


def most_by_stopping(noise: ModelNoise, prices: list[float]) -> float:
    """What a neighbour gains who looks at the contributions and stops when it likes.

    After each it may claim that the rows were the first of two, with ε priced at that moment: the
    excess P − e^ε Q it can reach, by dynamic programming over the log of the likelihood ratio,
    which is N(±μ²/2, μ²) for one contribution, on a grid of 0.002 and by interpolation.
    """
    mu = 2.0 / noise.noise_multiplier
    grid = np.arange(-5.0, 5.0, 0.002)
    nodes = np.linspace(-9.0, 9.0, 241)
    weights = np.exp(-(nodes**2) / 2)
    weights /= weights.sum()
    value = np.maximum(0.0, -np.expm1(prices[-1] - grid))
    for price in reversed(prices[:-1]):
        next_values = [np.interp(grid + mu * z + mu**2 / 2, grid, value) for z in nodes]
        value = np.maximum(-np.expm1(price - grid), np.tensordot(weights, next_values, 1))
    return float(weights @ [np.interp(mu * z + mu**2 / 2, grid, value) for z in nodes])


@pytest.mark.parametrize(("cap", "times"), [(2, 1.8), (10, 4.5)])
def test_only_the_cost_of_the_cap_is_valid(cap: int, times: float) -> None:
    """Priced at the drawn number, a neighbour who stops at the right moment gets several δ."""
    delta = 1e-5
    noise = ModelNoise.calibrate(epsilon=1.0, delta=delta, clip=1.0, max_contributions=cap)
    so_far = [replace(noise, max_contributions=count).epsilon(delta) for count in range(1, cap + 1)]
    assert most_by_stopping(noise, so_far) > times * delta
    assert most_by_stopping(noise, [so_far[-1]] * cap) == pytest.approx(delta, rel=0.02)


def test_a_release_that_is_written_twice_counts_twice() -> None:
    """The second one took the place of the first, and the total was too low."""
    ledger = Ledger(2)
    ledger.charge("importance", Laplace(scale=9.0, bounds=(1.0, 10.0)))
    content = ledger.to_dict()
    content["releases"] *= 2
    both = Ledger.from_dict(content)
    assert both.charges(0)[0].times == 2
    assert both.total(0, delta=0.0) == pytest.approx(2.0)


def test_printed_costs_are_rounded_up() -> None:
    """An ε that is rounded to the nearest is claimed too small half the time."""
    ledger = Ledger(nodes=1, budget=(3.0, 0.0))
    ledger.charge("importance", Laplace(scale=9.0 / 1.00004, bounds=(1.0, 10.0)))
    assert str(ledger).splitlines()[-1].split()[-1] == "1.001"


def test_only_noise_can_be_simulated() -> None:
    ledger = Ledger(nodes=1, simulated=True)
    ledger.record_unprotected("model")
    assert "seed" not in str(ledger)
    ledger.charge("importance", Laplace(scale=9.0, bounds=(1.0, 10.0)))
    assert "seed" in str(ledger)
