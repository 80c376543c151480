"""`walklearn schema`: what it writes is read by training, advice and plans, and is not private."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.running import invoke, invoke_ok, refusal
from walklearn.node.agreement.plan import Plan, PlanError
from walklearn.tables import Schema

PLAN = """
name = "hospitals"
nodes = 4
features = ["age", "blood pressure"]
target = "ill"
classes = ["no", "yes"]
loss = "logistic"
step_size = { constant = 0.01 }
updates = 100
columns = "schema.toml"
"""


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    generator = np.random.default_rng(3)
    table = pd.DataFrame(
        {
            "age": generator.normal(50.0, 20.0, 2000),
            "blood pressure": 100.0 + generator.lognormal(0.0, 2.2, 2000),
            "ill": generator.choice(["no", "yes"], 2000),
            "site": generator.integers(0, 4, 2000),
        }
    )
    table.to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path / "rows.csv"


def test_a_schema_to_be_filled_in(rows: Path) -> None:
    out = rows.with_name("schema.toml")
    data = ("--target", "ill", "--node-column", "site")
    result = invoke_ok("schema", rows, *data, "--out", out)
    assert "from the rows" in result.stdout
    text = out.read_text(encoding="utf-8")
    assert "COME FROM THE ROWS" in text
    assert text.count("# A range does not suit this column") == 1
    schema = Schema.of(out)
    assert schema.from_rows == ("age", "blood pressure")
    age = schema.of_column("age")
    assert age is not None
    assert (age.centre, age.spread) == pytest.approx((50.0, 20.0), rel=0.1)
    printed = invoke("schema", rows, *data)
    assert printed.stdout == text
    again = invoke("schema", rows, *data, "--out", out)
    assert (again.exit_code, "schema.toml" in again.stderr) == (2, True)

    private = ("--epsilon", "3", "--delta", "1e-5", "--task", "classification", "--schema", out)
    for command in (("train", "--out", rows.with_name("model")), ("advise",)):
        message = refusal(command[0], rows, *command[1:], *data, *private)
        assert "blood pressure" in message
    rows.with_name("plan.toml").write_text(PLAN)
    with pytest.raises(PlanError, match=r"line 10: columns: the schema .*computed"):
        Plan.read(rows.with_name("plan.toml"))

    out.write_text(text.replace("from_rows = true\n", ""), encoding="utf-8")
    plan = Plan.read(rows.with_name("plan.toml"))
    assert plan.columns == tuple(Schema.of(out).columns.values())
    assert Plan.from_dict(plan.to_dict()) == plan


def test_a_range_that_is_too_wide_is_noted(rows: Path) -> None:
    common = ("train", rows, "--target", "ill", "--node-column", "site", "--steps", "100")
    scales = ("--range", "blood pressure=0,5000", "--scale", "age=50,20")
    result = invoke_ok(*common, *scales, "--out", rows.with_name("one"))
    assert "'blood pressure' are in a small part" in " ".join(result.stderr.split())
    scales = ("--scale", "*=50,20", "--scale", "blood pressure=105,10")
    result = invoke(*common, *scales, "--out", rows.with_name("other"))
    assert "small part" not in result.stderr
