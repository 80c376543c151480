"""Printed ε and δ are rounded up, printed lower bounds down, each by less than a unit."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import walklearn
from walklearn import privacy
from walklearn.privacy.accounting.printing import format_claim, format_lower, format_upper

POSITIVE = st.floats(min_value=1e-300, max_value=1e300)


def unit_of(value: float, digits: int) -> Fraction:
    """One unit of the last digit, of the power of ten that the value lies in."""
    power = math.floor(math.log10(value))
    if Fraction(10) ** (power + 1) <= Fraction(value):
        power += 1
    if Fraction(10) ** power > Fraction(value):
        power -= 1
    return Fraction(10) ** (power + 1 - digits)


@given(value=POSITIVE, digits=st.integers(1, 15))
@example(value=2.4148, digits=3)
@example(value=9.9999999, digits=4)
@example(value=1.0 + 2.0**-52, digits=4)
@example(value=0.1 + 0.2, digits=6)
@example(value=1e-5, digits=1)
@example(value=1.4e-320, digits=2)
def test_the_text_bounds_the_value_within_a_unit(value: float, digits: int) -> None:
    upper, lower = format_upper(value, digits), format_lower(value, digits)
    assert float(lower) <= value <= float(upper)
    # The shortest decimal of a float may differ from it by half a unit in its last place.
    unit = unit_of(value, digits) + Fraction(math.ulp(value))
    assert Fraction(upper) - Fraction(value) < unit
    assert Fraction(value) - Fraction(lower) < unit
    for text in (upper, lower):
        assert len(re.sub(r"e.*|\.", "", text).strip("0")) <= digits


@pytest.mark.parametrize("number", [0.0, 1.0, 3.0, 0.5, 1e-5, 1e-6, 0.06, 120.0])
def test_short_numbers_stay_as_they_are(number: float) -> None:
    assert format_upper(number) == format_lower(number) == f"{number:g}"


def test_infinity_and_pairs() -> None:
    assert format_upper(math.inf) == format_lower(math.inf) == "inf"
    assert format_claim(2.99999999, 1.00000001e-5) == "(ε, δ) = (3, 1.00001e-05)"


@settings(deadline=None, max_examples=50)
@given(epsilon=st.floats(0.01, 20.0), delta=st.floats(1e-9, 0.1), times=st.integers(1, 60))
@example(epsilon=0.1, delta=1e-5, times=3)
def test_ledgers_and_plans_never_understate(epsilon: float, delta: float, times: int) -> None:
    noise = privacy.ModelNoise(1.0, 2.0 / epsilon, times)
    ledger = privacy.Ledger(2, (1e9, delta))
    ledger.charge("model", noise, times=times)
    total = float(str(ledger).splitlines()[-1].split()[-1])
    assert ledger.total(0, delta) <= total <= ledger.total(0, delta) * 1.0011
    words = str(privacy.Claim(epsilon, delta, "rows"))
    numbers = re.findall(r"[εδ] = (\S+)", words)
    assert float(numbers[0]) >= epsilon
    assert float(numbers[1]) >= delta


def test_a_spent_budget_is_rounded_up_and_the_rest_down() -> None:
    ledger = privacy.Ledger(1, (2.41484, 0.0))
    laplace = privacy.Laplace(1.0 / 1.23456789, (1.0, 2.0))
    ledger.charge("importance", laplace)
    with pytest.raises(privacy.BudgetExceededError) as error:
        ledger.charge("importance", laplace, again=True)
    text = str(error.value)
    spent, left = (float(re.search(rf"{word} (\S+?)[,.]?(\s|$)", text)[1])  # type: ignore[index]
                   for word in ("spent", "remaining"))  # fmt: skip
    assert spent >= ledger.total(0, 0.0)
    assert left <= 2.41484 - ledger.total(0, 0.0)


def test_audits_round_their_lower_bounds_down() -> None:
    found = privacy.audit(privacy.Laplace(1.0, (1.0, 4.0)), 3.0, samples=2000, seed=1)
    text = str(found)
    assert float(re.search(r"δ ≥ (\S+)", text)[1]) <= found.delta_lower  # type: ignore[index]
    assert float(re.search(r"ε ≥ (\S+)", text)[1]) <= found.epsilon_lower  # type: ignore[index]
    assert float(re.search(r"δ = (\S+)", text)[1]) >= found.delta  # type: ignore[index]


def test_no_module_formats_epsilon_or_delta_by_itself() -> None:
    """A format such as {epsilon:.3g} rounds to the nearest number, which may be too small."""
    pattern = re.compile(
        r"\{[^{}]*\b(epsilon|delta|spent|floor)\w*(\([^{}]*\)|'\]|\"\])?:[^{}]*[gfe]\}"
    )
    # Refusals echo what was given and state no claim.
    echoes = re.compile(r"(epsilon = |--epsilon )\{[^{}]*:g\} (needs|for)|^\s*(>>>|\.\.\.)")
    folder = Path(walklearn.__file__).parent
    found = [
        f"{path.relative_to(folder)}:{number}: {line.strip()}"
        for path in sorted(folder.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line) and not echoes.search(line)
    ]
    assert found == []
