"""What follows from a total (ε, δ): a claim that holds, steps that suit, and clear refusals."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from walklearn.objectives.linear.losses import LOSSES, Huber, Logistic, Softmax, Squared
from walklearn.privacy import BudgetPlan, PrivacySettings, PublicFacts, plan_budget

# The examples include a δ that is not small and an ε that is not, too.
pytestmark = [
    pytest.mark.filterwarnings("ignore:δ = .* is large"),
    pytest.mark.filterwarnings("ignore:ε = .* offers little protection"),
]
FACTS: dict[str, Any] = {"nodes": 20, "rows": 455, "features": 30, "row_length": math.sqrt(30)}
LENGTH = math.sqrt(31)  # with the intercept


def plan_of(
    epsilon: float = 3.0, delta: float = 1e-5, loss: Any = None, **changes: Any
) -> BudgetPlan:
    """Plan a budget with these changes of the settings, the public facts or the other arguments."""
    facts = {name: changes.pop(name, value) for name, value in FACTS.items()}
    others = {
        name: changes.pop(name)
        for name in ("aggregate", "penalty", "reveals_rows", "step", "updates")
        if name in changes
    }
    settings = PrivacySettings(epsilon, delta, **changes)
    return plan_budget(settings, PublicFacts(**facts), loss or Logistic(), **others)


@given(
    st.floats(0.05, 20.0),
    st.floats(-30.0, -1.0),
    st.integers(1, 10**6),
    st.sampled_from(["rows", "node"]),
    st.sampled_from(["sum", "mean", "node-mean"]),
    st.booleans(),
    st.one_of(st.none(), st.integers(1, 10**6)),
)
@settings(max_examples=100, deadline=None)
def test_the_total_holds_for_all_facts(
    epsilon: float,
    power: float,
    nodes: int,
    unit: Any,
    aggregate: str,
    reveals_rows: bool,
    updates: Any,
) -> None:
    """The parts add up to the total, and the noise keeps its part."""
    delta = 10.0**power
    got = plan_of(epsilon, delta, nodes=nodes, rows=7.0 * nodes, protect=unit,
                   aggregate=aggregate, reveals_rows=reveals_rows, updates=updates)  # fmt: skip
    spent = got.constants or (0.0, 0.0)
    assert bool(got.constants) == reveals_rows
    left = (epsilon - spent[0], delta - spent[1])
    assert got.noise.delta(left[0]) <= left[1]
    assert got.noise.protect == unit
    assert got.updates >= 1
    assert got.step > 0
    assert updates is None or got.updates == updates


@pytest.mark.parametrize("loss", [kind() for kind in LOSSES.values()], ids=repr)
@pytest.mark.parametrize("unit", ["rows", "node"])
def test_the_walk_is_the_same_for_every_aggregate(loss: Any, unit: Any) -> None:
    """The sum has gradients M times those of the mean, and steps M times shorter."""
    mean, total = (plan_of(loss=loss, protect=unit, aggregate=o) for o in ("mean", "sum"))
    clip = 455.0 if unit == "node" else 1.0
    assert total.step * 455 == pytest.approx(mean.step)
    assert total.noise.clip == pytest.approx(clip * mean.noise.clip)
    assert total.noise.noise_multiplier == mean.noise.noise_multiplier


# Clip, step and ratio of the facts above as they were before losses stated their largest slope.
@pytest.mark.parametrize(
    ("loss", "step"),
    [(Squared(), 0.00248640647436777), (Huber(1.0), 0.00248640647436777),
     (Logistic(), 0.006216016185919424)],
    ids=repr,
)  # fmt: skip
def test_slopes_beyond_the_clip_change_nothing(
    loss: Any, step: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    got = plan_of(loss=loss)
    expected = (1.1135528725660044, step, 0.1603438214220732)
    assert (got.noise.clip, got.step, got.noise_to_signal) == pytest.approx(expected, rel=1e-12)
    monkeypatch.setattr(type(loss), "max_slope", math.inf)
    assert plan_of(loss=loss) == got  # to the last bit


@pytest.mark.parametrize("unit", ["rows", "node"])
@pytest.mark.parametrize("aggregate", ["mean", "sum"])
def test_a_loss_with_small_slopes_is_clipped_at_them(unit: Any, aggregate: str) -> None:
    """A multiple of a loss has the same noise and walks as far in steps as much shorter."""
    usual = plan_of(loss=Huber(0.2), protect=unit, aggregate=aggregate)
    small = plan_of(loss=Huber(0.002), protect=unit, aggregate=aggregate)
    assert small.noise.clip == pytest.approx(usual.noise.clip / 100)
    assert small.noise.noise_multiplier == usual.noise.noise_multiplier
    assert small.step == pytest.approx(100 * usual.step)
    assert small.noise_to_signal == usual.noise_to_signal
    assert plan_of(loss=Huber(0.3), protect=unit, aggregate=aggregate) == usual


def test_a_clip_that_no_gradient_reaches_counts_as_noise() -> None:
    reached, wide = (plan_of(loss=Huber(0.1), clip=share * LENGTH) for share in (0.1, 1.0))
    assert wide.noise_to_signal == pytest.approx(10 * reached.noise_to_signal)
    assert wide.step <= reached.step


def test_the_penalty_limits_the_step() -> None:
    tiny = Huber(1e-8)
    assert plan_of(loss=tiny).step > 1000.0
    assert plan_of(loss=tiny, penalty=1e-3).step == 1000.0
    assert plan_of(penalty=1e-3) == plan_of()


def test_more_rows_columns_and_epsilon_act_as_they_should() -> None:
    few, many = plan_of(), plan_of(rows=4550)
    assert many.noise_to_signal == pytest.approx(few.noise_to_signal / 10)
    assert many.step > few.step
    assert many.noise == few.noise
    assert plan_of(features=309).noise_to_signal > few.noise_to_signal
    assert plan_of(1.0).noise_to_signal > few.noise_to_signal > plan_of(9.0).noise_to_signal
    assert plan_of(protect="node").noise_to_signal > 20 * few.noise_to_signal
    assert plan_of(row_length=None, feature_bound=math.sqrt(30)).step > few.step
    # A row of one node each: the units ask for the same noise.
    assert (
        plan_of(rows=20).noise.noise_multiplier
        == plan_of(rows=20, protect="node").noise.noise_multiplier
    )


def test_steps_do_not_overshoot() -> None:
    for loss in (Logistic(), Squared(), Softmax(3)):
        got = plan_of(1e3, loss=loss, rows=10**9)
        assert got.step * loss.smoothness * LENGTH**2 <= 1 + 1e-12


def test_given_parts_stay() -> None:
    got = plan_of(clip=2.0, max_contributions=7, step=0.5, updates=123)
    assert (got.noise.clip, got.noise.max_contributions) == (2.0, 7)
    assert (got.step, got.updates) == (0.5, 123)
    given = plan_of(noise_multiplier=30.0, max_contributions=100)
    assert given.noise.noise_multiplier == 30.0
    # As many contributions as the noise allows, and one more would be too many.
    chosen = plan_of(noise_multiplier=10.0).noise
    more = replace(chosen, max_contributions=chosen.max_contributions + 1)
    assert chosen.delta(3.0) <= 1e-5 < more.delta(3.0)


def test_the_cap_is_hardly_wasted_and_hardly_reached() -> None:
    assert plan_of().updates / 20 < plan_of().noise.max_contributions == 50
    assert plan_of(nodes=10**5, rows=10**6).noise.max_contributions == 10
    alone = plan_of(nodes=1, updates=40)
    assert alone.noise.max_contributions == alone.updates == 40
    walk = plan_of(updates=901)
    assert 49 <= walk.noise.max_contributions <= 51


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no rows": ({"rows": None}, r'protect="rows" .*\(rows\)'),
    "no rows for the sum": (
        {"rows": None, "protect": "node", "aggregate": "sum"},
        r'aggregate="sum" .*\(rows\)',
    ),
    "no length": ({"row_length": None}, "epsilon .*row_length or feature_bound"),
    "no nodes": ({"nodes": 0}, "nodes .*got 0"),
    "negative rows": ({"rows": -1.0}, r"^rows .*-1\.0"),
    "no features": ({"features": None}, "epsilon .*features"),
    "a unit": ({"protect": "row"}, "protect .*'row'"),
    "delta 0": ({"delta": 0.0}, "delta = 0"),
    "no epsilon": ({"epsilon": float("inf")}, "epsilon = inf"),
    "a share of nothing": ({"constants_share": 0.5}, "constants_share .*L_i"),
    "a share of all": ({"constants_share": 1.0, "reveals_rows": True}, r"constants_share .*1\.0"),
    "too little noise": (
        {"noise_multiplier": 1.0},
        r"noise_multiplier = 1 .* 1 contribution .*or ε\.$",
    ),
    "too large a cap": (
        {"noise_multiplier": 10.0, "max_contributions": 50},
        "noise_multiplier = 10 .* 50 contributions .*max_contributions",
    ),
    "no clip": ({"clip": 0.0}, r"clip .*0\.0"),
    "no step": ({"step": 0.0}, r"^step .*0\.0"),
    "half an update": ({"updates": 0.5}, r"^updates .*0\.5"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused(case: str) -> None:
    changes, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        plan_of(**changes)


def test_a_large_delta_is_a_warning() -> None:
    with pytest.warns(UserWarning, match=r"δ = 0.01 .*455 rows.*4.55 .*0.0001"):
        plan_of(delta=0.01)
    with pytest.warns(UserWarning, match="δ = 0.05 .*20 nodes"):
        plan_of(delta=0.05, protect="node")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan_of(delta=1e-3)
        plan_of(delta=0.01, protect="node")


def test_noise_that_cannot_be_drawn_is_refused_with_a_remedy() -> None:
    noise = plan_of(epsilon=0.0, delta=1e-9).noise
    with pytest.raises(ValueError, match=r"5\.64e\+09 .*epsilon or delta"):
        noise.draw(1)
