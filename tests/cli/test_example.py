"""`walklearn example`: its files fit each other, and nobody's rows are among the public ones."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from tests.running import invoke, invoke_ok, refusal
from walklearn.cli.example import ROWS_OF
from walklearn.node.agreement.node_rows import read_node_rows
from walklearn.node.agreement.plan import Plan
from walklearn.tables import Schema


@pytest.fixture(scope="module")
def hospitals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("example") / "hospitals"
    made = invoke_ok("example", "hospitals", folder)
    (folder.parent / "said.txt").write_text(made.stdout)
    return folder


def test_every_site_has_its_rows_and_they_fit_the_plan(hospitals: Path) -> None:
    plan = Plan.read(hospitals / "plan.toml")
    counts = {
        path.stem: len(read_node_rows(path, plan).y) for path in hospitals.glob("sites/*.csv")
    }
    assert counts == ROWS_OF
    assert plan.rows == sum(ROWS_OF.values())
    assert plan.nodes == len(ROWS_OF)
    assert plan.noise is not None
    everybody = pd.read_csv(hospitals / "patients.csv")
    assert everybody.groupby("site").size().to_dict() == ROWS_OF


def test_no_protected_patient_is_among_the_public_ones(hospitals: Path) -> None:
    schema = Schema.of(hospitals / "schema.toml")
    assert not schema.from_rows
    published = pd.read_csv(hospitals / "published.csv")
    assert schema.columns["area"].centre == pytest.approx(published["area"].mean(), rel=0.01)
    apart = [published, pd.read_csv(hospitals / "test.csv")]
    apart.append(pd.read_csv(hospitals / "patients.csv").drop(columns="site"))
    assert not pd.concat(apart).duplicated().any()


def test_the_next_commands_work_as_printed(
    hospitals: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(hospitals)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    said = (hospitals.parent / "said.txt").read_text().replace("\\\n", " ")
    commands = re.findall(r"^  walklearn (.*)$", said, flags=re.MULTILINE)
    assert len(commands) == 5
    for command in commands:
        done = invoke(*command.split())
        assert done.exit_code == 0, f"{command}\n{done.output}"
        if command.startswith("train") and "--epsilon" not in command:  # else noise decides
            score = re.search(r"test +accuracy ([\d.]+)", done.output)
            assert score
            assert float(score[1]) > 0.85


def test_a_node_with_everybodys_rows_is_noted(hospitals: Path, tmp_path: Path) -> None:
    def noted(name: str, data: Path) -> str:
        made = invoke_ok("node", "init", tmp_path / name, "--plan", hospitals / "plan.toml",
                      "--data", data)  # fmt: skip
        return " ".join(made.stderr.split())

    everybody = noted("all", hospitals / "patients.csv")
    assert "400 rows" in everybody
    assert "its column 'site' names 'cairo', 'lima', 'osaka' and 2 others" in everybody
    assert noted("oslo", hospitals / "sites" / "oslo.csv") == ""
    rows = pd.read_csv(hospitals / "patients.csv")
    rows[rows["site"] == "lima"].to_csv(tmp_path / "lima.csv", index=False)
    assert noted("lima", tmp_path / "lima.csv") == ""
    rows.assign(site=rows["site"].where(rows.index > 0)).to_csv(tmp_path / "gap.csv", index=False)
    assert "400 rows" in noted("gap", tmp_path / "gap.csv")  # the column is not the plan's
    rows[rows["site"] < "m"].to_csv(tmp_path / "two.csv", index=False)
    assert "column 'site' names 'cairo' and 'lima'." in noted("two", tmp_path / "two.csv")


def test_it_overwrites_nothing(hospitals: Path) -> None:
    message = refusal("example", "hospitals", hospitals)
    assert "is not empty" in message
