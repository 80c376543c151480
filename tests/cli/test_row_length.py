"""The public length of a row is the same wherever a private run is planned, advised or trained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.running import invoke_ok
from walklearn.node.agreement.plan import Plan
from walklearn.node.disk.creation import create_node
from walklearn.privacy.settings import PrivacySettings, PublicFacts, declared_lengths
from walklearn.tables import read_rows
from walklearn.tables.encoding import Column, Encoding

WARDS = [f"w{number}" for number in range(9)]
SPREADS = "[age]\ncentre = 50\nspread = 20\n[dose]\ncentre = 0\nspread = 2\n"
RANGES = "[age]\nrange = [0, 100]\n[dose]\nrange = [-9, 9]\n"
TEXTS = f"[ward]\ncategories = {json.dumps(WARDS)}\n[sex]\ncategories = ['f', 'm']\n"
PRIVATE = ("--epsilon", 3, "--delta", 1e-5)
ROWS, NODES = 400, 4


def write_rows(folder: Path) -> Path:
    generator = np.random.default_rng(0)
    path = folder / "rows.csv"
    lines = ["age,dose,ward,sex,site,ill"] + [
        f"{generator.normal(50, 20):.3f},{generator.normal(0, 2):.3f},{generator.choice(WARDS)},"
        f"{'fm'[at % 2]},s{at % NODES},{'yes' if at % 3 else 'no'}"
        for at in range(ROWS)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def result_of(*arguments: object) -> dict[str, Any]:
    result = invoke_ok(*arguments, "--json")
    facts: dict[str, Any] = json.loads(result.stdout)
    return facts


@pytest.mark.parametrize("numbers", [SPREADS, RANGES, ""], ids=["spreads", "ranges", "text only"])
def test_every_command_clips_at_the_same_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, numbers: str
) -> None:
    monkeypatch.chdir(tmp_path)
    data, schema = write_rows(tmp_path), tmp_path / "schema.toml"
    schema.write_text(numbers + TEXTS)
    of_rows = ("--target", "ill", "--node-column", "site", "--graph", "complete")
    of_rows += () if numbers else ("--drop", "age", "--drop", "dose")
    result_of("train", data, *of_rows, *PRIVATE, "--schema", schema, "--task", "classification",
         "--seed", 1, "--out", "model")  # fmt: skip
    ledger = json.loads((tmp_path / "model" / "ledger.json").read_text())
    clips = {"train": ledger["releases"][0]["mechanism"]["clip"]}
    facts = result_of("advise", "--graph", "complete", "--nodes", NODES, "--rows", ROWS,
                 "--task", "classification", "--schema", schema, *PRIVATE)  # fmt: skip
    clips["advise"] = facts["clip"]
    facts = result_of("advise", data, *of_rows, "--schema", schema, *PRIVATE,
                 "--task", "classification")  # fmt: skip
    clips["advise with rows"] = facts["clip"]
    result_of("plan", "new", "--schema", schema, "--target", "ill", "--classes", "no,yes",
         "--nodes", NODES, "--rows", ROWS, *PRIVATE)  # fmt: skip
    plan = Plan.read(tmp_path / "plan.toml")
    budget_plan = plan.budget_plan
    assert budget_plan is not None
    clips["plan"] = budget_plan.noise.clip
    node = create_node(tmp_path / "node", plan=tmp_path / "plan.toml", data=data,
                       record=tmp_path / "record.sqlite")  # fmt: skip
    assert node.release.noise is not None
    clips["node"] = node.release.noise["clip"]
    columns = 4 if numbers else 2
    assert clips == pytest.approx(dict.fromkeys(clips, 0.2 * (columns + 1) ** 0.5), rel=1e-9)


def test_the_step_of_a_plan_is_the_one_that_its_own_facts_give(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.toml").write_text(SPREADS + TEXTS)
    result_of("plan", "new", "--schema", "schema.toml", "--target", "ill", "--classes", "no,yes",
         "--nodes", NODES, "--rows", ROWS, *PRIVATE)  # fmt: skip
    facts = result_of("advise", "--graph", "complete", "--nodes", NODES, "--rows", ROWS,
                 "--task", "classification", "--schema", "schema.toml", *PRIVATE)  # fmt: skip
    plan = Plan.read(tmp_path / "plan.toml")
    assert plan.step_size is not None
    assert plan.step_size.constant == pytest.approx(facts["step_constant"], rel=1e-5)


def test_a_text_adds_one_to_the_squared_length_however_many_categories(tmp_path: Path) -> None:
    (tmp_path / "schema.toml").write_text(SPREADS + TEXTS)
    rows = read_rows(write_rows(tmp_path), target="ill", node_column="site",
                     schema=tmp_path / "schema.toml")  # fmt: skip
    squares = np.einsum("ra,ra->r", rows.X, rows.X)
    # Mean of 400 squared lengths with deviation 2: a seed is fixed; 0.5 is 5 standard errors.
    assert squares.mean() == pytest.approx(4.0, abs=0.5)
    assert declared_lengths(rows.encoding)["row_length"] == 2.0
    assert rows.X.shape[1] == 13


def test_a_bound_below_the_typical_length_replaces_it() -> None:
    encoding = Encoding(tuple(Column(f"x{at}", None, 0.0, 1.0, 3.0) for at in range(9)))

    def length(encoding: Encoding | None, **given: float) -> float | None:
        lengths = declared_lengths(encoding, **given)
        facts = PublicFacts(1, row_length=lengths["row_length"])
        settings = PrivacySettings(feature_bound=lengths["feature_bound"])
        return facts.public_length(settings, intercept=False)

    assert length(encoding) == 3.0
    assert length(encoding, feature_bound=0.5) == 0.5
    assert length(None) is None
    assert length(None, row_length=2.0, feature_bound=5.0) == 2.0
