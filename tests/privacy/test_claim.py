"""Claims are objects: ledgers make them, and text, JSON and HTML are views of them."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from walklearn.privacy import Claim, Laplace, Ledger, ModelNoise

NOISE = ModelNoise.calibrate(epsilon=2.0, delta=1e-6, clip=1.0, max_contributions=5)


def ledger(budget: tuple[float, float] | None = None, simulated: bool = False) -> Ledger:
    made = Ledger(3, budget, simulated)
    made.charge("model", NOISE, times=5)
    return made


def test_without_a_budget_the_claim_is_the_largest_total() -> None:
    made = ledger()
    made.charge("importance", Laplace(30.0, (1.0, 10.0)), nodes=[1])
    (claim,) = made.claims
    assert claim == Claim(made.total(1, 1e-5), 1e-5, "rows")
    assert made.claim(1e-7).epsilon == made.total(1, 1e-7) > claim.epsilon


def test_with_a_budget_the_claim_also_covers_later_releases() -> None:
    made = ledger(budget=(3.0, 1e-6))
    assert made.claims == (Claim(3.0, 1e-6, "rows"),)
    assert made.total(0, 1e-6) <= 3.0
    assert made.claim(1e-4).epsilon == 3.0


def test_a_budget_does_not_cover_a_smaller_delta() -> None:
    made = Ledger(1, budget=(2.0, 1e-6))
    made.charge("model", NOISE, times=5)
    assert made.total(0, 1e-9) > 2.0
    assert made.claim(1e-9) == Claim(made.total(0, 1e-9), 1e-9, "rows")


def test_a_seed_or_an_empty_ledger_claims_nothing() -> None:
    assert ledger(simulated=True).claims == Ledger(2).claims == ()
    assert ledger(simulated=True).claim_without_seed() == ledger().claim()
    assert not ledger(simulated=True).claim().is_private


@pytest.mark.parametrize("simulated", [False, True])
def test_one_unprotected_release_makes_epsilon_infinite(simulated: bool) -> None:
    made = Ledger(3, simulated=simulated)
    made.record_unprotected("model", nodes=[2])
    (claim,) = made.claims
    assert claim.epsilon == math.inf
    assert not claim.is_private
    content = json.loads(json.dumps(claim.to_dict(), allow_nan=False))
    assert content == dict.fromkeys(("epsilon", "delta", "unit", "adversary")) | {"private": False}
    assert not Claim.from_dict(content).is_private
    partly = ledger()
    partly.record_unprotected("importance", nodes=[0])
    assert not partly.claim().is_private


@given(
    epsilon=st.floats(0.0, 50.0),
    delta=st.floats(0.0, 0.5),
    unit=st.sampled_from(["rows", "node"]),
)
def test_claims_survive_json(epsilon: float, delta: float, unit: str) -> None:
    claim = Claim(epsilon, delta, unit, adversary="<neighbours> & others")  # type: ignore[arg-type]
    assert Claim.from_dict(json.loads(json.dumps(claim.to_dict()))) == claim
    html = claim._repr_html_()
    assert "&lt;neighbours&gt; &amp; others" in html
    assert html.count("<") == 2


def test_a_unit_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="unit"):
        Claim(1.0, 1e-5, "patients")  # type: ignore[arg-type]
