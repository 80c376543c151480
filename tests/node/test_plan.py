"""Plans: read with good errors, compared by key, and the same for the same agreement."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from walklearn.errors import InputError
from walklearn.node.agreement.plan import Plan, PlanError
from walklearn.node.disk.creation import _facts as release_facts
from walklearn.objectives.linear.domains import Ball, Box, Everywhere
from walklearn.objectives.linear.losses import Huber, Softmax
from walklearn.privacy import Charge, compose
from walklearn.privacy.accounting.budget import CLIP_SHARE
from walklearn.privacy.mechanisms.row_gaussian import RowGaussian
from walklearn.tables.target_scale import TargetScale
from walklearn.updates.step_sizes import ConstantStep, PowerStep
from walklearn.walks import WALKS, Simple

TEXT = """
name = "hospitals"
nodes = 5
features = ["age", "pressure"]
target = "ill"
classes = ["no", "yes"]
loss = "logistic"
penalty = 1.0
domain = { ball = 10.0 }
step_size = { constant = 0.01 }
updates = 1000
walk = "weighted"

[privacy]
protect = "node"
epsilon = 3.0
delta = 0.03
mechanism = "clamped-gamma"
feature_bound = 2.0
max_rows = 4
clip = 1.0
max_contributions = 20
constants_share = 0.5
"""


def test_a_whole_plan_is_read() -> None:
    plan = Plan.from_text(TEXT)
    assert (plan.walk, plan.step_size, plan.domain) == ("weighted", PowerStep(0.01), Ball(10.0))
    assert plan.bounds == (1.0, 1.0 + 5 * 0.25 * 4 * 4.0)
    mechanism, noise = plan.mechanism, plan.noise
    assert mechanism is not None
    assert noise is not None
    assert (noise.clip, noise.max_contributions, noise.protect) == (1.0, 20, "node")
    assert mechanism.delta(1.5) <= 0.015
    assert noise.delta(1.5) <= 0.015
    charges = [Charge("importance", mechanism, 1), Charge("model", noise, 20)]
    assert compose(charges).delta(3.0) <= 0.03  # the total is what was said


ROWS = """
name = "hospitals"
nodes = 5
rows = 500
features = ["age", "pressure"]
target = "ill"
classes = ["no", "yes"]
loss = "logistic"
aggregate = "mean"
step_size = { constant = 0.01, exponent = 0 }
updates = 200
[columns]
"*" = { centre = 50, spread = 10 }
[privacy]
epsilon = 3.0
delta = 1e-5
"""


def test_of_a_total_and_public_facts_all_else_follows() -> None:
    plan = Plan.from_text(ROWS)
    noise = plan.noise
    assert plan.mechanism is None  # the uniform walk tells nothing
    assert noise is not None
    assert noise.protect == "rows"
    assert noise.delta(3.0) <= 1e-5 < noise.delta(2.99)  # the whole budget goes to the model
    assert 40 <= noise.max_contributions <= 80  # of 40 visits on average
    assert noise.clip == pytest.approx(CLIP_SHARE * 2**0.5)
    for key, value in (("clip", 0.5), ("max_contributions", 7), ("noise_multiplier", 90.0)):
        given = Plan.from_text(f"{ROWS}{key} = {value}\n").noise
        assert getattr(given, key) == value
        assert given is not None
        assert given.delta(3.0) <= 1e-5


def test_a_weighted_walk_releases_its_constants_within_the_total() -> None:
    text = ROWS.replace("[columns]", 'walk = "weighted"\npenalty = 0.1\n[columns]')
    with pytest.raises(PlanError, match="feature_bound"):
        Plan.from_text(text)
    plan = Plan.from_text(text + "feature_bound = 4.0\n")
    mechanism, noise = plan.mechanism, plan.noise
    assert isinstance(mechanism, RowGaussian)
    assert noise is not None
    charges = [Charge("importance", mechanism, 1), Charge("model", noise, noise.max_contributions)]
    assert compose(charges).delta(3.0) <= 1e-5


def test_walks_and_updates_that_nodes_cannot_run_are_refused() -> None:
    text = TEXT.partition("[privacy]")[0].replace('walk = "weighted"\n', "")
    open_model = '[privacy]\nmodel = "in the clear"\n'
    Plan.from_text(f'{text}walk = "simple"\n{open_model}')
    for line, key in (
        ('walk = "oldest-first"', "walk"), ('walk = "tour"', "walk"), ('walk = "jumping"', "walk"),
        ('update = "finito"', "update"),
        ('walk = "simple"\nreweight = "gap"', "reweight"),
        ('walk = "tour"\nreweight = "round"', "reweight"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=key) as refusal:
            Plan.from_text(f"{text}{line}\n{open_model}")
        assert refusal.value.key == key
    with pytest.raises(PlanError, match=r'"oldest-first".*not on nodes.*"uniform"'):
        Plan.from_text(f'{text}walk = "oldest-first"\n{open_model}')


def test_a_walk_of_ones_own_with_gap_weights_is_refused() -> None:
    @WALKS.register
    class Recent(Simple):
        name = "recent"
        reweight: Literal["degree", "gap"] | None = "gap"

    try:
        with pytest.raises(PlanError, match=r'"recent".*not on nodes'):
            Plan.from_text(TEXT.replace('"weighted"', '"recent"'))
    finally:
        WALKS.remove("recent")


def test_digests_keep_their_values() -> None:
    """Nodes compare them, and a record of another digest belongs to another plan."""
    plans = Plan.from_text(TEXT), Plan.from_text(ROWS)
    assert [plan.digest for plan in plans] == [
        "ac440f99af77bdd019016ebed8477cba276f63062852e1a6aad1cb4cb578b5a5",
        "d06bc73a3dfc1e51ee1ac563c87825c4e7044ad408700431484f8fe47c6bb779",
    ]
    facts = [hashlib.sha256(release_facts(plan, None).encode()).hexdigest() for plan in plans]
    assert facts == [
        "d0a5889562b2debfd5dc18b4327af146de410f4aac0ab5ae5631e179965b47f4",
        "19de3225b1c5b912026baf948081dc997ecccacffa9f4ca0c5a273d535d6e6ad",
    ]


def test_an_unprotected_model_must_be_stated() -> None:
    text = TEXT.replace("clip = 1.0\nmax_contributions = 20\nconstants_share = 0.5\n", "")
    plan = Plan.from_text(text + 'model = "in the clear"\n')
    mechanism = plan.mechanism
    assert plan.noise is None
    assert mechanism is not None
    assert mechanism.delta(3.0) <= 0.03  # all of it goes to L_i
    assert not plan.claim.is_private
    with pytest.raises(PlanError, match="epsilon"):
        Plan.from_text(ROWS + 'model = "in the clear"\n')


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("rows = 500\n", ""), "rows"),
        (('aggregate = "mean"', 'aggregate = "mean"\nbatch = 3'), "batch may"),
        (("delta = 1e-5\n", ""), "privacy.delta"),
        (("epsilon = 3.0\n", ""), "privacy.epsilon .*delta"),
        (("epsilon = 3.0\ndelta = 1e-5\n", 'model = "noisy"\n'), "privacy.model"),
        (('"*" = { centre = 50, spread = 10 }', "age = { spread = 10 }"), "of the rows"),
        (("[privacy]", "[model_privacy]\nclip = 1\n[privacy]"), "model_privacy"),
        (("nodes = 5", "nodes = 5\nversion = 1"), "version .*1.* 2"),
        (("epsilon = 3.0", 'epsilon = 3.0\nmechanism = "laplace"'), "unlike uniform"),
        (("epsilon = 3.0", "epsilon = 3.0\nconstants_share = 0.2"), "unlike uniform"),
        (("epsilon = 3.0\ndelta = 1e-5", 'model = "in the clear"\nclip = 1'), "privacy.clip"),
    ],
)
def test_impossible_claims_are_refused(change: tuple[str, str], message: str) -> None:
    assert change[0] in ROWS
    with pytest.raises(PlanError, match=message):
        Plan.from_text(ROWS.replace(*change)).check_usable()


def test_the_plan_of_the_documentation_is_one() -> None:
    page = (Path(__file__).parents[2] / "docs" / "network.md").read_text(encoding="utf-8")
    found = re.search(r"```toml\n(.*?)```", page, flags=re.DOTALL)
    assert found is not None
    plan = Plan.from_text(found[1])
    written = {line.split(".")[0] for line in plan.differences({})}
    assert written <= set(re.findall(r"^\[?([a-z_]+)", found[1], flags=re.MULTILINE))


# What is replaced in TEXT, by what, and what the message must say.
MISTAKES = [
    ("nodes = 5", "nodes = 0", "line 3: nodes .* 0"),
    ("nodes = 5", "nodes = true", "line 3: nodes .*true"),
    ("nodes = 5\n", "", "nodes is missing"),
    ("nodes = 5", "nodes = 5\nupdats = 3", "line 4: updats .* updates[?]"),
    ("epsilon = 3.0\ndelta = 0.03", "epsilon = -1\ndelta = 0.03", "line 16: privacy.epsilon"),
    ("delta = 0.03", "delta = 1.0", r"line 17: privacy.delta .* 1\.0"),
    ("delta = 0.03", "delta = nan", "line 17: privacy.delta .*nan"),
    ("max_rows = 4", "", "line 14: privacy.max_rows"),
    ("max_rows = 4", "max_rows = 4\nbounds = [1, 2]", "line 19: privacy.feature_bound .*bounds"),
    ('"yes"]', '"yes", "maybe"]', "line 6: classes .*two"),
    ('classes = ["no", "yes"]\n', "", "classes .*two"),
    ('loss = "logistic"', 'loss = "squared"', "line 6: classes .*left out"),
    ('loss = "logistic"', 'loss = "quadratic"', "line 7: loss .*quadratic.*logistic"),
    ('loss = "logistic"', "loss = { huber = -1 }", "line 7: loss.huber .*-1"),
    ('"pressure"]', '"age"]', 'line 4: features .*"age"'),
    ('"pressure"]', '"ill"]', 'line 5: target "ill"'),
    ('"pressure"]', "1.5]", r"line 4: features .*1\.5"),
    ("{ ball = 10.0 }", "{ ball = 0 }", "line 9: domain.ball"),
    ("{ ball = 10.0 }", "{ box = [1, 0] }", "line 9: domain.box"),
    ("{ ball = 10.0 }", '"ball"', "line 9: domain "),
    ("{ constant = 0.01 }", "0.01", "line 10: step_size "),
    ("0.01 }", "0.01, exponent = 1.5 }", "line 10: step_size.exponent"),
    ('"weighted"', '"uniform"', "line 18: privacy.mechanism .*L_i"),
    ('"weighted"', '"levy"', "line 12: walk .*levy.*weighted"),
    ('"weighted"', '"weighted"\nlaziness = 1', "line 13: laziness"),
    ('"weighted"', '"weighted"\naggregate = "mean"', "rows"),
    ("penalty = 1.0", "penalty = 0.0", "privacy.*lower"),
    ("hospitals", "The Hospitals", "line 2: name .*a-z"),
    ("nodes = 5", "nodes = 5\nversion = 9", "line 4: version .*9.* 2"),
    ("nodes = 5", "nodes = 5 5", "is not TOML.*line 3"),
    ("max_rows = 4", 'max_rows = 4\nreweight = "as-printed"', "line 21: privacy.reweight"),
    ("[privacy]", "[columns.weight]\nspread = 2\n[privacy]", "line 14: columns.weight"),
    ("[privacy]", "[columns.age]\nspread = 0\n[privacy]", "line 15: columns.age.spread"),
    ("[privacy]", "[columns]\nage = 3\n[privacy]", "line 15: columns.age .*table"),
    ("clip = 1.0", "clip = inf", "line 21: privacy.clip .*inf"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message"), MISTAKES)
def test_a_mistake_is_reported_with_its_key_and_line(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in TEXT
    path = tmp_path / "plan.toml"
    path.write_text(TEXT.replace(old, new))
    with pytest.raises(PlanError, match=message) as caught:
        Plan.read(path)
    assert str(path) in str(caught.value)


def test_the_weighted_walk_needs_a_release() -> None:
    text = TEXT[: TEXT.index("[privacy]")]
    with pytest.raises(PlanError, match=r"privacy.epsilon is missing.*in the clear"):
        Plan.from_text(text)
    clear = Plan.from_text(text + '[privacy]\nmechanism = "in the clear"\n')
    assert clear.bounds is None
    assert clear.mechanism is None


def test_the_digest_sees_values_not_how_they_are_written() -> None:
    plan = Plan.from_text(TEXT)
    reordered = "updates = 1_000\n" + TEXT.replace("updates = 1000\n", "# nothing\n")
    assert Plan.from_text(reordered.replace("penalty = 1.0", "penalty = 1")).digest == plan.digest
    assert Plan.from_text(TEXT.replace("0.03", "0.04")).digest != plan.digest


@pytest.mark.parametrize("domain", [Ball(2.0), Box(-1.0, 3.0), Everywhere()])
@pytest.mark.parametrize("step_size", [PowerStep(0.1, 0.6), ConstantStep(0.2)])
def test_a_plan_survives_json(domain: object, step_size: object) -> None:
    plan = replace(Plan.from_text(TEXT), domain=domain, step_size=step_size)  # type: ignore[arg-type]
    assert Plan.from_dict(json.loads(plan.canonical)) == plan


@pytest.mark.parametrize("loss", [Huber(2.5), Softmax(3)])
def test_losses_survive_json(loss: Huber | Softmax) -> None:
    classes = ("a", "b", "c") if isinstance(loss, Softmax) else None
    scale = None if classes else TargetScale()
    plan = replace(Plan.from_text(TEXT), loss=loss, classes=classes, target_scale=scale)
    assert Plan.from_dict(json.loads(plan.canonical)) == plan
    assert plan.size == (6 if classes else 2)


def test_text_columns_and_scales_are_agreed_upon() -> None:
    columns = (
        '[columns.age]\ncentre = 50\nspread = 20\n[columns.pressure]\ncategories = ["a", "b"]\n'
    )
    plan = Plan.from_text(TEXT + columns)
    assert plan.encoding.feature_names == ("age", "pressure=a", "pressure=b")
    assert plan.size == 3
    assert plan.encoding.encode({"age": [70], "pressure": ["b"]}).tolist() == [[1.0, 0.0, 1.0]]
    assert Plan.from_dict(json.loads(plan.canonical)) == plan
    assert plan.differences(Plan.from_text(TEXT + columns.replace("20", "10"))) == [
        "columns.age.spread"
    ]


def test_differences_name_the_keys() -> None:
    plan = Plan.from_text(TEXT)
    other = Plan.from_text(TEXT.replace("0.03", "0.04").replace('"age"', '"weight"'))
    assert plan.differences(other) == ["features", "privacy.delta"]
    assert plan.differences(json.loads(plan.canonical)) == []
    assert plan.differences({}) == sorted(
        name for name in plan.differences({"unknown": 1}) if name != "unknown"
    )
