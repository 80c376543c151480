"""`walklearn train` and the owner's record: who is charged, when, and what is printed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.running import invoke, invoke_ok, refusal
from walklearn import RandomWalkClassifier
from walklearn.cli import main
from walklearn.fitting import training
from walklearn.models import Model
from walklearn.privacy import OwnerRecord
from walklearn.privacy.accounting.owner_record import RowSet
from walklearn.privacy.mechanisms import Laplace
from walklearn.tables import read_table
from walklearn.tables.row_marks import table_blocks

SCALE = ("--scale", "*=0,1")
PRIVATE = ("--epsilon", "3", "--delta", "1e-5", "--task", "classification", *SCALE)
OWN_NOISE = ("--model-noise", "3", "1e-5", "1", "10", "--task", "classification", *SCALE)
CONSTANTS = (*PRIVATE, "--model", "in the clear", "--walk", "weighted", "--protect", "node")
PLAN = """
name = "both"
nodes = 2
rows = 30
features = ["a", "b"]
target = "y"
classes = ["no", "yes"]
loss = "logistic"
step_size = { constant = 0.5, exponent = 0.51 }
updates = 40
[privacy]
epsilon = 3.0
delta = 1e-5
clip = 1.0
max_contributions = 20
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(30, 2))
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": np.where(X[:, 0] > 0, "yes", "no")})
    table.to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path / "rows.csv"


def train(data: Path, *options: str) -> dict[str, Any]:
    common = ("--target", "y", "--steps", "60", "--force", "--json")
    result = invoke_ok("train", data, *common, "--out", data.parent / "model", *options)
    facts: dict[str, Any] = json.loads(result.stdout)
    return facts


def recorded(data: Path) -> tuple[int, int]:
    """Return the numbers of private and of unprotected runs on these rows."""
    record = OwnerRecord()
    if not record.path.exists():
        return 0, 0
    total = record.total_of(record.mark(table_blocks(read_table(data))))
    return total.private_runs, total.unprotected_runs


def test_three_private_runs_at_3_print_5_66(data: Path) -> None:
    for runs, expected in ((1, 3.0), (2, 4.4634), (3, 5.6558)):
        facts = train(data, *PRIVATE)
        assert facts["privacy"]["epsilon"] == 3.0  # this run's claim
        total = facts["private_to_the_owner"]["total"]
        assert total["epsilon"] == pytest.approx(expected, abs=1e-3)
        assert (total["private_runs"], total["delta"], total["unit"]) == (runs, 1e-5, "rows")
    out = data.parent / "model"
    shown = invoke("train", data, "--target", "y", "--steps", "60", *PRIVATE, "--force", "--out",
                   out)  # fmt: skip
    assert "this fit alone" in " ".join(shown.stdout.split())
    lines = shown.stdout.splitlines()
    at = next(at for at, line in enumerate(lines) if line.startswith("Not protected: "))
    assert lines[at - 1].startswith(
        "All runs on any of these rows: 4 private runs, in total ε = 6.7"
    )
    assert lines[at - 1].endswith(" at δ = 1e-05 for one row (upper bound)")
    # That rows came back is nothing to publish.
    assert "all runs" not in (out / "report.md").read_text(encoding="utf-8")
    assert "total" not in json.dumps(Model.load(out).details)


def test_an_unprotected_run_is_recorded_as_such(data: Path) -> None:
    train(data, *PRIVATE)
    for runs in (1, 2):
        results = train(data)["private_to_the_owner"]
        assert results["total"]["unprotected_runs"] == runs
        assert results["total"]["private_runs"] == 1
        assert results["all_runs"].startswith("1 private run, in total ε = 3 at δ = 1e-05")
        assert results["all_runs"].endswith(f"; {runs} unprotected run{'s' if runs > 1 else ''}")
    assert train(data, *CONSTANTS)["private_to_the_owner"]["total"]["unprotected_runs"] == 3


@pytest.mark.parametrize("options", [PRIVATE, CONSTANTS, OWN_NOISE])
def test_a_run_with_seeded_noise_is_not_charged(data: Path, options: tuple[str, ...]) -> None:
    facts = train(data, "--seed", "1", *options)
    assert "total" not in facts["private_to_the_owner"]
    assert recorded(data) == (0, 0)
    statement = facts["privacy"]["not_protected"][0]
    assert statement.startswith("No privacy claim")
    shown = invoke("train", data, "--target", "y", "--steps", "60", "--seed", "1", *options,
                   "--out", data.parent / "shown")  # fmt: skip
    assert "No privacy claim" in shown.stdout


def test_a_seeded_run_without_noise_is_recorded_as_unprotected(data: Path) -> None:
    train(data, "--seed", "3")
    total = train(data, *PRIVATE)["private_to_the_owner"]["total"]
    assert (total["private_runs"], total["unprotected_runs"]) == (1, 1)


def test_estimators_charge_nothing(data: Path) -> None:
    table = pd.read_csv(data)
    model = RandomWalkClassifier(epsilon=3.0, delta=1e-5, row_length=2.0, steps=30)
    model.fit(table[["a", "b"]], table["y"])
    assert not OwnerRecord().path.exists()
    # Those who want it charge the fit themselves, and the rows of the file are the same.
    OwnerRecord().charge(table[["b", "a"]], table["y"], model.ledger_)
    assert recorded(data) == (1, 0)


@pytest.mark.parametrize("options", [PRIVATE, CONSTANTS])
def test_a_run_that_is_interrupted_or_fails_stays_charged(
    data: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    """It is on disk before the first draw: of a constant, or of the noise on the model."""
    seen: list[tuple[int, int]] = []

    def stop(*_: object, **__: object) -> None:
        seen.append(recorded(data))
        raise KeyboardInterrupt if len(seen) == 1 else RuntimeError

    expected = (1, 0) if options is PRIVATE else (0, 1)
    for runs in (1, 2):
        with monkeypatch.context() as patch:
            patch.setattr(training, "run_walk", stop)
            patch.setattr(Laplace, "release", stop)
            result = invoke("train", data, "--target", "y", *options, "--out", data.parent / "out")
        assert result.exit_code != 0
        assert recorded(data) == (runs * expected[0], runs * expected[1])
    assert seen[0] == expected


def test_a_private_run_without_a_usable_record_draws_nothing(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (data.parent / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(data.parent / "file"))
    asked = ("train", data, "--target", "y", "--steps", "60", "--out", data.parent / "model")
    with monkeypatch.context() as patch:
        patch.setattr(training, "run_walk", lambda *_: pytest.fail("noise was drawn"))
        result = invoke(*asked, *PRIVATE)
    assert (result.exit_code, (data.parent / "model").exists()) == (2, False)
    assert "XDG_STATE_HOME" in result.stderr
    # An unprotected run claims nothing, so it continues.
    result = invoke_ok(*asked, "--json")
    assert any("was not recorded" in note for note in json.loads(result.stdout)["notes"])


def test_a_damaged_record_stops_a_private_run(data: Path) -> None:
    train(data, *PRIVATE)
    OwnerRecord().path.write_bytes(1000 * b"x")
    message = refusal("train", data, "--target", "y", *PRIVATE, "--out", data.parent / "other")
    assert "backup" in message


def test_bad_input_is_not_charged(data: Path) -> None:
    for options in ((*PRIVATE, "--penalty", "-1"), (*PRIVATE, "--epsilon", "-3"),
                    (*PRIVATE, "--drop", "nothing")):  # fmt: skip
        refusal("train", data, "--target", "y", *options, "--out", data.parent / "other")
    assert recorded(data) == (0, 0)


def test_rows_that_are_tested_on_are_charged_too(data: Path) -> None:
    for _ in range(2):
        train(data, *PRIVATE, "--test-fraction", "0.5")
    header, *rows = data.read_text().splitlines()
    one = data.parent / "one.csv"
    for row in rows:
        one.write_text(f"{header}\n{row}\n")
        assert recorded(one) == (2, 0)


def test_a_row_is_recognised_without_the_column_that_names_its_node(data: Path) -> None:
    """A site's own file need not say which site it is."""
    table = pd.read_csv(data)
    site = table.assign(site=np.where(np.arange(30) < 10, "oslo", "lima"))
    site.to_csv(data.parent / "sites.csv", index=False)
    train(data.parent / "sites.csv", *PRIVATE, "--node-column", "site", "--graph", "complete")
    ours = data.parent / "oslo.csv"
    for rows in (site[:10], site[:10].drop(columns="site")):
        rows.to_csv(ours, index=False)
        assert recorded(ours) == (1, 0)
    plan = data.parent / "plan.toml"
    plan.write_text(PLAN)
    init = invoke_ok("node", "init", data.parent / "oslo", "--plan", plan, "--data", ours,
                  "--listen", "127.0.0.1:7447", "--json")  # fmt: skip
    assert json.loads(init.stdout)["total"]["private_runs"] == 2
    site[:10].drop(columns=["site", "b"]).to_csv(ours, index=False)
    assert recorded(ours) == (0, 0)


def test_a_file_that_is_rewritten_after_it_was_read_is_charged_as_it_was_read(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, real = data.read_text(), OwnerRecord.mark

    def rewrite(record: OwnerRecord, blocks: Any) -> RowSet:
        data.write_text("a,b,y\n1,2,yes\n")
        return real(record, blocks)

    with monkeypatch.context() as patch:
        patch.setattr(OwnerRecord, "mark", rewrite)
        train(data, *PRIVATE)
    assert recorded(data) == (0, 0)
    data.write_text(before)
    assert recorded(data) == (1, 0)


def test_columns_that_are_not_used_may_hold_anything(data: Path) -> None:
    table = pd.read_csv(data).assign(when=pd.Timestamp("2020-01-01"), note=None)
    table.to_csv(data.parent / "more.csv", index=False)
    table.to_parquet(data.parent / "more.parquet")
    for name in ("more.csv", "more.parquet"):
        train(data.parent / name, *PRIVATE, "--drop", "when", "--drop", "note")
    assert recorded(data.parent / "more.csv") == recorded(data.parent / "more.parquet") == (2, 0)


def test_two_runs_at_the_same_time_are_both_charged(data: Path) -> None:
    command = [sys.executable, "-m", main.__module__, "train", str(data), "--target", "y",
               "--steps", "60", *PRIVATE, "--out"]  # fmt: skip
    both = [subprocess.Popen([*command, str(data.parent / name)]) for name in ("one", "two")]
    assert [process.wait(120) for process in both] == [0, 0]
    assert recorded(data) == (2, 0)
    # A network on one of the rows would count with them.
    one = data.parent / "one.csv"
    one.write_text("\n".join(data.read_text().splitlines()[:2]) + "\n")
    assert recorded(one) == (2, 0)


def resume(data: Path) -> None:
    """Continue the training in the folder `model`, as if it had been interrupted."""
    out = data.parent / "model"
    Model.load(out).with_details({"interrupted": True}).save(out, overwrite=True)
    invoke_ok("train", data, "--target", "y", "--steps", "90", "--out", out, "--resume")


def test_a_resumed_training_is_not_a_second_run(data: Path) -> None:
    train(data)
    resume(data)
    assert recorded(data) == (0, 1)


def test_a_training_that_is_resumed_on_other_rows_is_charged(data: Path) -> None:
    train(data)
    header, *rows = data.read_text().splitlines()
    data.write_text("\n".join([header, *rows[:-1], rows[0]]) + "\n")  # as many rows, one is new
    resume(data)
    assert recorded(data) == (0, 2)


def test_a_resumed_training_that_was_not_recorded_is_charged(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(data))  # a file, so that there can be no record
        train(data)
    train(data, *PRIVATE, "--out", str(data.parent / "private"))
    resume(data)
    assert recorded(data) == (1, 1)


def test_a_record_that_breaks_during_the_training_does_not_cost_the_model(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = training.run_walk

    def broken(*arguments: Any) -> Any:
        OwnerRecord().path.write_bytes(1000 * b"x")
        return real(*arguments)

    monkeypatch.setattr(training, "run_walk", broken)
    facts = train(data, *PRIVATE)
    assert "total" not in facts["private_to_the_owner"]
    assert any("is unknown" in note for note in facts["private_to_the_owner"]["notes"])
    assert Model.load(data.parent / "model").updates == 60


def test_the_cost_is_printed_before_it_is_charged(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that cannot be charged draws nothing, and its cost was on the screen by then."""
    monkeypatch.setenv("XDG_STATE_HOME", str(data))  # a file, so that there can be no record
    out = data.parent / "model"
    ratio, draws, epsilon = "Noise-to-signal ratio", "exact numbers of noise takes", "ε = 12 offers"
    for weak, parts in (
        (("--epsilon", "12", *PRIVATE[2:]), (ratio, draws, epsilon)),
        (("--model-noise", "12", *OWN_NOISE[2:], "--walk", "uniform"), (draws, epsilon)),
    ):
        message = refusal("train", data, "--target", "y", "--out", out, *weak)
        assert not out.exists()
        printed = message
        for part in parts:
            assert printed.count(part) == 1
            assert printed.index(part) < printed.index("the owner's record")
