"""`walklearn plan`: what it makes can be used, is what is advised, and says what it comes to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes

from tests.running import invoke, invoke_ok, refusal
from walklearn.fitting.resolve import advise
from walklearn.graphs import erdos_renyi
from walklearn.node.agreement.plan import Plan
from walklearn.objectives.linear.losses import Softmax
from walklearn.privacy import PrivacySettings, PublicFacts
from walklearn.tables.target_scale import TargetScale

SCHEMA = """
[age]
centre = 50
spread = 20

["blood pressure"]
range = [60, 220]

[ward]
categories = ["A", "B"]
"""
PRIVATE = ("--epsilon", 3, "--delta", 1e-5)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.toml").write_text(SCHEMA)
    return tmp_path


def new(*options: object, classes: str = "no,yes", nodes: object = 20, run: Any = invoke_ok) -> Any:
    return run("plan", "new", "--schema", "schema.toml", "--target", "ill",
                  *(("--classes", classes) if classes else ()), "--nodes", nodes,
                  "--rows", 5000, *options)  # fmt: skip


def test_a_plan_names_the_key_of_a_walk_that_nodes_cannot_run(folder: Path) -> None:
    new()
    text = (folder / "plan.toml").read_text()
    (folder / "plan.toml").write_text(text.replace('walk = "uniform"', 'walk = "oldest-first"'))
    assert 'walk = "oldest-first"' in refusal("plan", "check", "plan.toml")


def test_without_epsilon_the_update_has_memory(folder: Path) -> None:
    made = new()
    plan = Plan.read(folder / "plan.toml")
    assert (plan.update, plan.updates, plan.step_size, plan.walk) == ("saga", 8000, None, "uniform")
    assert plan.encoding.feature_names == ("age", "blood pressure", "ward=A", "ward=B")
    assert plan.privacy == PrivacySettings(model="in the clear")
    assert not plan.privacy.protects_model
    assert 'model = "in the clear"' in (folder / "plan.toml").read_text()
    assert "ε = ∞" in made.stdout
    assert "roster" in made.stderr  # among 20 nodes it saves work


@pytest.mark.parametrize(("data", "nodes"), [("cancer", 2), ("diabetes", 5), ("diabetes", 20)])
def test_without_epsilon_the_default_updates_reach_the_minimiser(data: str, nodes: int) -> None:
    """What was measured when the number was chosen, on one walk: a gap of at most 1e-5."""
    import walklearn as wl
    from walklearn.cli.plan_text import default_updates

    if data == "cancer":
        estimator, (X, y) = wl.RandomWalkClassifier, load_breast_cancer(return_X_y=True)
    else:
        estimator, (X, y) = wl.RandomWalkRegressor, load_diabetes(return_X_y=True)
        y = y / y.std()
    owners = np.arange(len(y)) % nodes
    problem, graph = estimator(graph="complete").prepare_problem(X, y, nodes=owners)
    walk, updates = wl.walks.Uniform(laziness=0.1), default_updates(nodes)
    run = wl.simulate(
        problem, graph, walk, update=wl.updates.Saga(), steps=updates, records=[updates], seed=1
    )
    assert run.gap[0, -1] < 1e-5


def test_under_epsilon_it_spends_as_advised(folder: Path) -> None:
    made = new(*PRIVATE, nodes=5)
    plan = Plan.read(folder / "plan.toml")
    budget_plan = plan.budget_plan
    facts = PublicFacts(nodes=5, rows=5000, features=4, row_length=3**0.5)
    advice = advise(erdos_renyi(5, 0.9, seed=1), facts, PrivacySettings(3.0, 1e-5))
    assert budget_plan is not None
    assert advice.budget_plan is not None
    assert budget_plan.updates == advice.budget_plan.updates
    assert budget_plan.noise == advice.budget_plan.noise
    assert budget_plan.noise.delta(3.0) <= 1e-5
    assert plan.step_size is not None
    assert plan.step_size.constant == pytest.approx(advice.budget_plan.step, rel=1e-5)
    assert "ε = 3 at δ = 1e-05 for everything" in made.stdout


def test_numbers_and_many_classes(folder: Path) -> None:
    new("--out", "many.toml", classes="a,b,c")
    assert Plan.read(folder / "many.toml").loss == Softmax(3)
    new("--out", "numbers.toml", *PRIVATE, "--target-scale", "-40,8", classes="")
    plan = Plan.read(folder / "numbers.toml")
    assert (plan.classes, plan.target_scale) == (None, TargetScale(-40.0, 8.0))


def test_limits_follow_the_slowest_answer(folder: Path) -> None:
    new("--slowest-answer", 3)
    limits = Plan.read(folder / "plan.toml").time_limits
    assert limits.handover_timeout_seconds == 15.0
    assert limits.reclaim_after_seconds == 30.0
    assert limits.resume_after_seconds == 60.0


def test_the_number_of_nodes_follows_from_the_graph(folder: Path) -> None:
    (folder / "edges.txt").write_text("oslo lima\nlima cairo\ncairo osaka\nosaka oslo\n")
    invoke_ok("plan", "new", "--schema", "schema.toml", "--target", "ill", "--classes", "no,yes",
              "--rows", 50, "--graph", "edges.txt", "--laziness", 0.1)  # fmt: skip
    plan = Plan.read(folder / "plan.toml")
    assert plan.nodes == 4
    assert plan.laziness == 0.1


def test_check_explains_and_tries_rows(folder: Path) -> None:
    new(nodes=4)
    (folder / "rows.csv").write_text("age,blood pressure,ward,ill\n40,120,A,no\n50,90,B,yes\n")
    result = invoke_ok("plan", "check", "plan.toml", "--data", "rows.csv")
    assert "rows.csv: 2 rows" in result.stdout
    facts = json.loads(invoke("plan", "check", "plan.toml", "--json").stdout)
    assert facts["digest"] == Plan.read(folder / "plan.toml").digest
    assert facts["explained"]["nodes"] == "4 nodes with 5,000 rows"
    assert facts["notes"] == []
    (folder / "rows.csv").write_text("age,blood pressure,ward,ill\n40,120,C,no\n")
    message = refusal("plan", "check", "plan.toml", "--data", "rows.csv")
    assert "column 'ward': 'C'" in message


def test_check_notes_doubtful_choices(folder: Path) -> None:
    (folder / "plan.toml").write_text(
        'name = "ours"\nnodes = 9\nfeatures = ["a"]\ntarget = "b"\nloss = "squared"\n'
        "step_size = { constant = 0.1 }\nupdates = 10\n"
    )
    result = invoke_ok("plan", "check", "plan.toml")
    notes = " ".join(result.stderr.split())
    for word in ("10 updates", 'update = "saga"', "not scaled: a.", "roster new", "penalty = "):
        assert word in notes


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--epsilon", 3), ["epsilon = 3", "delta"]),
        ((*PRIVATE, "--updates", 50), ["--updates", "--epsilon"]),
        (("--features", "weight"), ["--features weight", "schema.toml"]),
        (("--name", "St. Olav"), ["--name", '"St. Olav"']),
        (("--classes", "yes"), ["--classes", "−1", "+1"]),
        (("--target", "age"), ['--target "age"', "features"]),
        (("--out", "schema.toml"), ["schema.toml exists", "--out"]),
    ],
)
def test_impossible_plans_are_refused(
    folder: Path, options: tuple[object, ...], words: list[str]
) -> None:
    message = new(*options, run=refusal)
    assert all(word in message for word in words)
    assert not (folder / "plan.toml").exists()


def test_a_schema_from_rows_or_for_others_is_refused(folder: Path) -> None:
    (folder / "schema.toml").write_text("[age]\nfrom_rows = true\nspread = 20\n")
    assert "(from_rows = true)" in new(run=refusal)
    (folder / "schema.toml").write_text('["*"]\nspread = 20\n')
    assert "--features age,pressure" in new(run=refusal)
    new("--features", "age, height")
    assert Plan.read(folder / "plan.toml").features == ("age", "height")
