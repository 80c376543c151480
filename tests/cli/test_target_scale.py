"""The public scale of a target: on the command line, in a schema, in a plan and at nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result
from sklearn.datasets import load_diabetes

from tests.node.made_tokens import made_token
from tests.running import invoke, invoke_ok, refusal
from walklearn.models import Model
from walklearn.node.agreement.node_rows import read_node_rows
from walklearn.node.agreement.plan import Plan, PlanError
from walklearn.node.disk.creation import create_node
from walklearn.node.disk.kept_model import newest_model
from walklearn.node.disk.store import Store
from walklearn.node.protocol.learner import Learner
from walklearn.node.protocol.record import Place, Record
from walklearn.node.protocol.tokens import Limits, Line
from walklearn.objectives.linear.losses import Huber
from walklearn.tables import read_rows
from walklearn.tables.target_scale import TargetScale

X, Y = load_diabetes(return_X_y=True, scaled=False)
COLUMNS = [f"c{at}" for at in range(X.shape[1])]
PRIVATE = ("--epsilon", 3, "--delta", 1e-5)
TARGET = "[progress]\ncentre = 150\nspread = 80\n"
REGRESSION = ("--task", "regression")


def column(name: str, centre: float, spread: float) -> str:
    return f"[{name}]\ncentre = {centre:.1f}\nspread = {spread:.1f}\n"


SCHEMA = "".join(
    column(name, float(X[:, at].mean()), float(X[:, at].std())) for at, name in enumerate(COLUMNS)
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    sites = [f"s{at % 20}" for at in range(len(Y))]
    cells = [",".join(f"{each:g}" for each in row) for row in X]
    lines = [f"{a},{b},{c:g}" for a, b, c in zip(cells, sites, Y, strict=True)]
    (tmp_path / "rows.csv").write_text(
        "\n".join([",".join([*COLUMNS, "site", "progress"]), *lines])
    )
    (tmp_path / "schema.toml").write_text(SCHEMA)
    (tmp_path / "whole.toml").write_text(SCHEMA + TARGET)
    return tmp_path


def train(*options: object, out: str = "model") -> Result:
    return invoke("train", "rows.csv", "--target", "progress", "--node-column", "site", *REGRESSION,
                  "--graph", "complete", "--seed", 1, "--out", out, *options)  # fmt: skip


def new_plan(*options: object) -> Result:
    return invoke("plan", "new", "--target", "progress", "--nodes", 20, "--rows", 442, *options)


def test_train_takes_it_from_the_flag_or_the_schema(folder: Path) -> None:
    given = train(*PRIVATE, "--schema", "schema.toml", "--target-scale", "150,80", "--json")
    assert given.exit_code == 0, given.output
    assert json.loads(given.stdout)["private_to_the_owner"]["training_score"]["value"] > 0.33
    assert train(*PRIVATE, "--schema", "whole.toml", out="other").exit_code == 0
    models = [Model.load(folder / name) for name in ("model", "other")]
    np.testing.assert_array_equal(models[0].weights, models[1].weights)
    assert models[0].encoding == models[1].encoding
    assert "(centre 150, spread 80)" in " ".join(models[0].privacy["taken_to_be_public"])
    table = {name: X[:, at] for at, name in enumerate(COLUMNS)}
    assert 100.0 < models[0].predict(table).mean() < 200.0


@pytest.mark.parametrize(
    "arguments",
    [
        ("train", "rows.csv", "--target", "progress", "--node-column", "site", "--out", "model",
         *REGRESSION),
        ("advise", "rows.csv", "--target", "progress", "--node-column", "site", *REGRESSION),
        ("advise", "--graph", "ring", "--nodes", 20, "--rows", 442, *REGRESSION),
        ("plan", "new", "--target", "progress", "--nodes", 20, "--rows", 442),
    ],
    ids=["train", "advise with rows", "advise", "plan new"],
)  # fmt: skip
def test_epsilon_for_numbers_is_refused_without_it(
    folder: Path, arguments: tuple[object, ...]
) -> None:
    message = refusal(*arguments, "--schema", "schema.toml", *PRIVATE)
    assert "--target-scale" in message
    assert not (folder / "model").exists()
    assert not (folder / "plan.toml").exists()
    for scale in (("--schema", "whole.toml", "--target", "progress"),
                  ("--schema", "schema.toml", "--target-scale", "150,80")):  # fmt: skip
        (folder / "plan.toml").unlink(missing_ok=True)
        again = ("--force",) if arguments[0] == "train" else ()
        invoke_ok(*arguments, *PRIVATE, *scale, *again)


def test_noise_made_by_hand_is_refused_without_it(folder: Path) -> None:
    noise = ("--model-noise", 3, 1e-5, 1, 10, "--schema", "schema.toml", "--step-constant", 0.01)
    refused = train(*noise)
    assert refused.exit_code == 2
    assert "--model-noise" in refused.stderr
    assert "--target-scale" in refused.stderr
    assert not (folder / "model").exists()
    assert train(*noise, "--target-scale", "150,80").exit_code == 0
    table = {name: X[:, at] for at, name in enumerate(COLUMNS)}
    assert 100.0 < Model.load(folder / "model").predict(table).mean() < 200.0


def test_errors_about_a_plan_name_its_keys(folder: Path) -> None:
    assert new_plan(*PRIVATE, "--schema", "whole.toml").exit_code == 0
    text = (folder / "plan.toml").read_text()
    (folder / "weighted.toml").write_text(text.replace('walk = "uniform"', 'walk = "weighted"'))
    message = refusal("plan", "check", "weighted.toml")
    assert "privacy.feature_bound" in message


def test_the_clip_of_a_plan_follows_from_the_scaled_loss(folder: Path) -> None:
    assert new_plan(*PRIVATE, "--schema", "whole.toml").exit_code == 0
    text = (folder / "plan.toml").read_text().replace('loss = "squared"', "loss = { huber = 8.0 }")
    noise = Plan.from_text(text).noise
    assert noise is not None
    assert noise.clip == pytest.approx(0.1 * np.sqrt(len(COLUMNS) + 1))


def test_a_scale_that_was_computed_from_the_rows_is_refused(folder: Path) -> None:
    invoke_ok("schema", "rows.csv", "--target", "progress", "--node-column", "site",
                     "--out", "template.toml")  # fmt: skip
    template = (folder / "template.toml").read_text()
    assert "[progress]\nfrom_rows = true\ncentre = 152\nspread = 77\n" in template
    filled, _, target = template.rpartition("[progress]\n")
    (folder / "template.toml").write_text(
        filled.replace("from_rows = true\n", "") + "[progress]\n" + target
    )
    for refused in (
        train(*PRIVATE, "--schema", "template.toml"),
        new_plan(*PRIVATE, "--schema", "template.toml"),
        new_plan("--schema", "template.toml"),
    ):
        assert refused.exit_code == 2
        assert "'progress'" in refused.stderr
    assert train("--schema", "template.toml", "--steps", 50).exit_code == 0  # nothing is private
    public = ("--schema", "template.toml", "--target-scale", "150,80")
    assert train(*PRIVATE, *public, out="public").exit_code == 0


@pytest.mark.parametrize("scale", ["150", "150,many", "150,0"])
def test_bad_scales_are_refused(folder: Path, scale: str) -> None:
    refused = train(*PRIVATE, "--schema", "schema.toml", "--target-scale", scale)
    assert refused.exit_code == 2
    assert f"--target-scale {scale} is not of the form CENTRE,SPREAD" in refused.stderr


def test_classes_have_no_scale_and_a_target_has_no_range(folder: Path) -> None:
    (folder / "range.toml").write_text(SCHEMA + "[progress]\nrange = [0, 400]\n")
    scale = ("--schema", "schema.toml", "--classes", "a,b", "--target-scale", "150,80")
    for refused, word in (
        (new_plan(*scale), "--target-scale"),
        (train(*PRIVATE, "--schema", "range.toml"), "'progress'"),
    ):
        assert refused.exit_code == 2
        assert word in refused.stderr


def test_a_schema_without_privacy_leaves_the_target_alone(folder: Path) -> None:
    plain = read_rows("rows.csv", target="progress", node_column="site", schema="schema.toml")
    whole = read_rows("rows.csv", target="progress", node_column="site", schema="whole.toml")
    np.testing.assert_array_equal(plain.X, whole.X)
    np.testing.assert_array_equal(plain.y, whole.y)


def test_nodes_train_on_scaled_targets_and_give_models_in_the_target_units(folder: Path) -> None:
    assert new_plan(*PRIVATE, "--schema", "whole.toml").exit_code == 0
    plan = Plan.read(folder / "plan.toml")
    assert plan.target_scale == TargetScale(150.0, 80.0)
    assert Plan.from_dict(plan.to_dict()) == plan
    rows = read_node_rows(folder / "rows.csv", plan)
    np.testing.assert_allclose(rows.y, np.clip((Y - 150.0) / 80.0, -3.0, 3.0))
    node = create_node(folder / "node", plan=folder / "plan.toml", data=folder / "rows.csv",
                       record=folder / "record").directory  # fmt: skip
    np.testing.assert_array_equal(node.rows.y, rows.y)
    weights = np.linspace(-0.5, 0.5, plan.size)
    token = made_token(
        Line(0, 1, "ab" * 32, "cd" * 16), 5, 5, weights, np.zeros(0), 0.0, 5.0, False
    )
    with Store.open(node.store_path, Limits.of_plan(plan)) as store:
        store.commit(Record(token.mark, token, Place.HERE))
    model, _ = newest_model(node)
    table: dict[str, Any] = {name: X[:, at] for at, name in enumerate(COLUMNS)}
    np.testing.assert_allclose(model.predict(table), 150.0 + 80.0 * (rows.X @ weights))


def test_a_plan_without_epsilon_scales_and_does_not_cut(folder: Path) -> None:
    assert new_plan("--schema", "schema.toml", "--target-scale", "100,10").exit_code == 0
    plan = Plan.read(folder / "plan.toml")
    rows = read_node_rows(folder / "rows.csv", plan)
    np.testing.assert_allclose(rows.y, (Y - 100.0) / 10.0)
    text = (folder / "plan.toml").read_text().replace('loss = "squared"', "loss = { huber = 5.0 }")
    assert Learner.of_plan(Plan.from_text(text), rows.X, rows.y).problem.loss == Huber(0.5)


def test_plans_and_nodes_without_a_scale_are_refused(folder: Path) -> None:
    assert new_plan(*PRIVATE, "--schema", "whole.toml").exit_code == 0
    text = (folder / "plan.toml").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("target_scale")]
    (folder / "bare.toml").write_text("\n".join(lines))
    message = refusal("plan", "check", "bare.toml")
    assert "target_scale" in message
    with pytest.raises(PlanError, match="target_scale is missing"):
        create_node(folder / "node", plan=folder / "bare.toml", data=folder / "rows.csv",
                    record=folder / "record")  # fmt: skip
    assert not (folder / "node").exists()
    with pytest.raises(PlanError, match="intercept = true"):
        Plan.from_text(text.replace("intercept = true", "intercept = false"))
    in_columns = "\n".join(lines) + "\n" + TARGET.replace("[", "[columns.")
    assert Plan.from_text(in_columns).target_scale == TargetScale(150.0, 80.0)
