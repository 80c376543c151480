"""`walklearn train` and `advise`, from a file on disk to a model and its predictions."""

from __future__ import annotations

import errno
import json
import re
import shlex
import tracemalloc
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import walklearn as wl
from tests.running import invoke, invoke_ok, refusal
from walklearn.cli import main
from walklearn.cli.data_options import task_of
from walklearn.cli.user_errors import report_user_errors
from walklearn.models import Model
from walklearn.privacy import Claim

TASK = ("--task", "classification")
PRIVATE = ("--epsilon", "3", "--delta", "1e-5", *TASK)
MODEL_NOISE = ("--model-noise", "3", "1e-5", "1", "10")
CONSTANTS = ("--epsilon", "3", "--delta", "0.03", "--model", "in the clear", *TASK)
SCALES = ("--scale", "age=55,20", "--scale", "income=40000,12000")


def train(data: Path, *arguments: str | Path) -> dict[str, Any]:
    """Train with a seed and give the facts."""
    result = invoke_ok("train", data, "--seed", "1", "--json", *arguments)
    facts = json.loads(result.stdout)
    assert isinstance(facts, dict)
    return facts


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with rows of 20 sites, and their network."""
    folder = tmp_path_factory.mktemp("data")
    generator = np.random.default_rng(1)
    size = 400
    table = pd.DataFrame(
        {
            "age": generator.uniform(20.0, 90.0, size),
            "income": generator.normal(40_000.0, 12_000.0, size),
            "city": generator.choice(["Oslo", "Rome"], size),
            "site": generator.integers(0, 20, size),
        }
    )
    score = (table["age"] - 55) / 10 + (table["income"] - 40_000) / 12_000
    score += np.where(table["city"] == "Rome", 2.0, -2.0)
    noisy = score + generator.normal(0.0, 0.5, size)
    table["label"] = np.where(noisy > 0, "yes", "no")
    table["grade"] = np.clip(np.floor(noisy / 3) + 1, 0, 2).astype(int)
    table["score"] = 10.0 + 3.0 * noisy
    table.to_csv(folder / "data.csv", index=False)
    table.to_parquet(folder / "data.parquet")
    graph = wl.graphs.erdos_renyi(20, 0.3, seed=2)
    np.savetxt(folder / "edges.txt", graph.edges(), fmt="%d")
    return folder


NETWORK = ("--node-column", "site", "--graph")
REST = {
    "label": ("--drop", "grade", "--drop", "score"),
    "grade": ("--drop", "label", "--drop", "score"),
    "score": ("--drop", "label", "--drop", "grade"),
}


def sites(place: Path, target: str = "label") -> tuple[str | Path, ...]:
    """Return the options that train on the rows of 20 sites, on their network."""
    return place / "data.csv", "--target", target, *NETWORK, place / "edges.txt", *REST[target]


@pytest.mark.parametrize(
    ("target", "kind", "least"),
    [("label", "classifier", 0.9), ("grade", "classifier", 0.75), ("score", "regressor", 0.9)],
)
def test_train_predict_and_test(
    place: Path, tmp_path: Path, target: str, kind: str, least: float
) -> None:
    facts = train(*sites(place, target), "--test-fraction", "0.25", "--out", tmp_path / "model")
    assert facts["kind"] == kind
    details = facts["private_to_the_owner"]
    assert details["rows"] == 300
    assert (facts["training"]["nodes"], facts["training"]["features"]) == (20, 4)
    assert details["test_score"]["rows"] == 100
    assert details["test_score"]["value"] > least
    if kind == "classifier":
        assert details["test_score"]["value"] > details["test_score"]["baseline"] + 0.2
    result = invoke_ok("predict", tmp_path / "model", place / "data.parquet")
    predicted = pd.read_csv(place / "data.csv")[target]
    found = result.stdout.splitlines()[1:]
    if kind == "classifier":
        assert np.mean(np.array(found) == predicted.astype(str)) > least
    model = Model.load(tmp_path / "model")
    assert model.details["test_score"] == details["test_score"]
    assert model.updates == facts["updates"]


def test_same_seed_same_model_whatever_the_file_format(place: Path, tmp_path: Path) -> None:
    for name in ("csv", "parquet"):
        train(
            place / f"data.{name}", "--target", "label", *NETWORK, place / "edges.txt",
            *REST["label"], "--steps", "2000", "--out", tmp_path / name,
        )  # fmt: skip
    one, other = (Model.load(tmp_path / name) for name in ("csv", "parquet"))
    np.testing.assert_array_equal(one.average, other.average)


def test_defaults_are_those_of_the_estimators() -> None:
    command = main.get_command(click.Context(main), "train")
    assert command is not None
    shell = command.make_context("train", ["data.csv", "--out", "m"]).params
    python = wl.RandomWalkClassifier().get_params()
    shared = shell.keys() & python.keys()
    assert {"graph", "walk", "penalty", "tol", "mechanism", "epsilon", "max_steps"} <= shared
    assert {name: shell[name] for name in shared} == {name: python[name] for name in shared}


@pytest.mark.parametrize("walk", ["oldest-first", "tour"])
def test_covering_walks_by_name(place: Path, tmp_path: Path, walk: str) -> None:
    asked = (*sites(place), "--walk", walk, "--out", tmp_path / "model")
    assert train(*asked)["walk"] == {"oldest-first": "OldestFirst()", "tour": "Tour()"}[walk]
    assert "no laziness" in refusal("train", *asked, "--force", "--laziness", 0.1)


def test_the_output_for_people(place: Path, tmp_path: Path) -> None:
    result = invoke_ok(
        "train", place / "data.csv", "--target", "label", *REST["label"], "--drop", "site",
        "--walk", "uniform", "--steps", "3000", "--out", tmp_path / "model",
    )  # fmt: skip
    for part in (
        "A classifier of 'label'", "400 rows of 4 features on 400 nodes", "accuracy 0.",
        "ε = ∞", "walklearn predict",
    ):  # fmt: skip
        assert part in result.stdout, part
    assert "\x1b" not in result.stdout
    report = (tmp_path / "model" / "report.md").read_text(encoding="utf-8")
    assert "city=Rome" in report
    assert "training score: accuracy" in report


def test_the_claim_is_exact(place: Path, tmp_path: Path) -> None:
    asked = (*sites(place), *PRIVATE, *SCALES, "--categories", "city=Oslo,Rome,Bern", "--out")
    facts = train(*asked, tmp_path / "model")
    privacy = facts["privacy"]
    assert privacy["simulated"] is True  # it has a seed
    assert (privacy["private"], privacy["epsilon"], privacy["protected"]) == (False, None, [])
    assert privacy["claim_without_seed"] == Claim(3.0, 1e-5, "rows").to_dict()
    assert privacy["not_protected"][0].startswith("No privacy claim")
    report = (tmp_path / "model" / "report.md").read_text(encoding="utf-8")
    assert "- claim: ε = ∞" in report
    assert "ε = 3" not in report
    assert {"rows", "loss", "training_score"}.isdisjoint(facts["training"])
    model = Model.load(tmp_path / "model")
    assert model.encoding.feature_names == ("age", "income", "city=Oslo", "city=Rome", "city=Bern")
    assert model.encoding.columns[0].centre == 55.0
    ledger = wl.privacy.Ledger.from_dict(dict(model.ledger))
    assert ledger.largest_total(1e-5)[1] <= 3.0
    assert facts["private_to_the_owner"]["training_score"]["value"] > 0.8
    result = invoke_ok("train", *asked, tmp_path / "real", "--json")
    real = json.loads(result.stdout)["privacy"]
    assert (real["epsilon"], real["delta"], real["unit"]) == (3.0, 1e-5, "rows")
    assert real["simulated"] is False
    assert not any("ε = ∞" in sentence for sentence in real["not_protected"])
    assert not wl.privacy.Ledger.from_dict(dict(Model.load(tmp_path / "real").ledger)).simulated


@pytest.mark.parametrize("asked", [PRIVATE[:4], CONSTANTS[:6], MODEL_NOISE])
@pytest.mark.parametrize("largest", [5, 5.5])
def test_under_privacy_the_task_must_be_passed(
    tmp_path: Path, asked: tuple[str, ...], largest: float
) -> None:
    targets = [3, 4, 5] * 20 + [largest]
    rows = "".join(f"{at % 7},{target}\n" for at, target in enumerate(targets))
    (tmp_path / "rows.csv").write_text(f"x,y\n{rows}")
    message = refusal(
        "train", tmp_path / "rows.csv", "--target", "y", "--scale", "x=3,2", *asked,
        "--out", tmp_path / "model",
    )  # fmt: skip
    assert "--task classification or --task regression" in message
    assert not (tmp_path / "model").exists()
    if asked != MODEL_NOISE:
        message = refusal(
            "advise", tmp_path / "rows.csv", "--target", "y", "--scale", "x=3,2", *asked
        )
        assert "--task classification or --task regression" in message


def test_public_facts_are_listed(place: Path, tmp_path: Path) -> None:
    asked = (
        *sites(place),
        *PRIVATE,
        *SCALES,
        "--categories",
        "city=Oslo,Rome,Bern",
        "--steps",
        "100",
    )
    listed = train(*asked, "--out", tmp_path / "json")["privacy"]["taken_to_be_public"]
    shown = invoke("train", *asked, "--seed", "1", "--out", tmp_path / "text").stdout
    text = " ".join(shown.replace("\n  - ", " ").split())
    for fact in (
        "20 nodes", "the node of each row", "the number of rows of each node", "of the token",
        "The task: classification.", "no, yes.", "'label'", "age (centre 55, spread 20)",
        "income (centre 40000, spread 12000)", "city (categories Oslo, Rome, Bern)",
        "typical length of a row", "The settings: loss, penalty, walk, step size",
    ):  # fmt: skip
        assert any(fact in each for each in listed), fact
        assert fact in text, fact


def test_the_directory_of_a_private_model_can_be_published(place: Path, tmp_path: Path) -> None:
    """From an exact loss and all rows but one, the loss of that row follows."""
    asked = (*sites(place), "--drop", "city", *SCALES, "--test-fraction", "0.2", "--steps", "100")
    own = (*MODEL_NOISE, *TASK)
    for name, options in (("total", PRIVATE), ("own", own), ("constants", CONSTANTS)):
        result = invoke_ok("train", *asked, *options, "--verbose", "--out", tmp_path / name)
        assert "accuracy" in result.stdout
        pair = {"own": "ε = 3 at δ = 1e-05 for everything", "constants": "(3, 0.03) of this"}
        assert pair.get(name, pair["own"]) in " ".join(result.stdout.split())
        publishable = "you can publish it" in " ".join(result.stdout.split())
        assert publishable == (name != "constants")  # for there the model is in the clear
        for path in (tmp_path / name).iterdir():
            assert not re.search(rb"accuracy 0|_score|\"loss\": [0-9]", path.read_bytes())
        details = Model.load(tmp_path / name).details
        assert {"loss", "training_score", "test_score"}.isdisjoint(details)
    result = invoke(
        "train", *asked, *PRIVATE, "--seed", "1", "--verbose", "--out", tmp_path / "seeded"
    )
    text = " ".join(result.stdout.split())
    assert "publish it" not in text  # noise from a seed protects nobody
    assert "Not protected: - No privacy claim" in text
    assert "\nProtected" not in result.stdout
    result = invoke("train", *asked, "--out", tmp_path / "clear")
    assert "publish it" not in " ".join(result.stdout.split())
    assert "training_score" in Model.load(tmp_path / "clear").details


def test_a_model_that_learnt_nothing_is_noted(place: Path, tmp_path: Path) -> None:
    asked = (*sites(place), "--drop", "city", *SCALES, "--delta", "1e-5", *TASK)
    poor = train(*asked, "--epsilon", "0.001", "--protect", "node", "--out", tmp_path / "poor")
    (loud,) = [note for note in poor["private_to_the_owner"]["notes"] if "HARDLY" in note]
    for help in ("--scale", "more rows", "fewer columns", "a larger ε", "--protect rows"):
        assert help in loud
    good = train(*asked, "--epsilon", "5", "--out", tmp_path / "good")
    assert not any("HARDLY" in note for note in good["private_to_the_owner"]["notes"])
    alone = (
        place / "data.csv", "--target", "label", *REST["label"], "--drop", "city", "--drop", "site",
        *SCALES, *PRIVATE, "--protect", "node", "--out", tmp_path / "alone",
    )  # fmt: skip
    single = train(*alone)
    assert any("--protect node" in note for note in single["private_to_the_owner"]["notes"])
    assert "notes" not in {*poor, *good, *single}  # they were computed from the rows


def test_nothing_of_the_encoding_comes_from_private_data(place: Path, tmp_path: Path) -> None:
    arguments = ("train", *sites(place), "--feature-bound", "8", "--out", tmp_path / "model")
    for asked in (PRIVATE, CONSTANTS, ("--model-noise", "3", "0.001", "1", "10")):
        message = refusal(*arguments, *asked)
        assert "categories of 'city'" in message
        assert "--categories city=" in message
        assert "Oslo" not in message
    assert not (tmp_path / "model").exists()


def test_the_model_can_be_protected(place: Path, tmp_path: Path) -> None:
    facts = train(
        *sites(place),
        "--drop", "city", "--range", "age=0,100", "--range", "income=0,100000", "--walk", "uniform",
        "--model-noise", "5", "0.001", "1", "20", "--steps", "400", *TASK,
        "--out", tmp_path / "model",
    )  # fmt: skip
    assert facts["privacy"]["claim_without_seed"] == Claim(5.0, 0.001, "rows").to_dict()
    assert not any("the model" in sentence for sentence in facts["privacy"]["not_protected"])


def test_sites_may_have_names(tmp_path: Path) -> None:
    generator = np.random.default_rng(2)
    X = generator.normal(size=(60, 2))
    table = pd.DataFrame(X, columns=["a", "b"]).assign(y=np.sign(X @ [1.0, -1.0]).astype(int))
    table["site"] = np.tile(["oslo", "rome", "bern"], 20)
    table.to_csv(tmp_path / "d.csv", index=False)
    (tmp_path / "e.csv").write_text("from,to\noslo,rome\nrome,bern\nbern,kiel\n")
    result = invoke_ok(
        "train", tmp_path / "d.csv", "--target", "y", "--node-column", "site", "--graph",
        tmp_path / "e.csv", "--out", tmp_path / "model", "--seed", "1", "--steps", "5000",
    )  # fmt: skip
    assert "60 rows of 2 features on 4 nodes with 3 edges" in result.stdout
    assert "1 of 4 nodes" in result.stderr


@pytest.mark.parametrize("suffix", ["npz", "svmlight"])
def test_files_without_names(tmp_path: Path, suffix: str) -> None:
    from sklearn.datasets import dump_svmlight_file

    X = np.random.default_rng(5).normal(size=(50, 3))
    y = np.where(X @ [1.0, 2.0, 0.0] > 0, 1, -1)
    for name, rows in (("data", slice(None)), ("new", slice(0, 10))):
        path = tmp_path / f"{name}.{suffix}"
        if suffix == "npz":
            np.savez(path, X=X[rows], y=y[rows])
        else:
            dump_svmlight_file(X[rows], y[rows], str(path), zero_based=False)
    train(tmp_path / f"data.{suffix}", "--out", tmp_path / "model", "--steps", "5000")
    result = invoke_ok("predict", tmp_path / "model", tmp_path / f"new.{suffix}")
    assert result.stdout.split()[0] == "y"
    assert np.mean(np.array(result.stdout.split()[1:], dtype=int) == y[:10]) >= 0.9


def test_svmlight_stays_sparse_from_file_to_model(tmp_path: Path) -> None:
    """4,000 rows of 50,000 features would take 1.6 GB with their zeros: here a quarter."""
    lines = [f"{1 - 2 * (i % 2)} {1 + i % 2}:1 {i + 3}:0.5" for i in range(4000)]
    lines[0] += " 50000:0.1"
    (tmp_path / "data.svm").write_text("\n".join(lines))
    tracemalloc.start()
    facts = train(
        tmp_path / "data.svm", "--out", tmp_path / "model", "--steps", "5000", "--batch", "4",
        "--test-fraction", "0.2", "--drop", "x7",
    )  # fmt: skip
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4e8
    assert facts["training"]["features"] == 49_999
    assert facts["private_to_the_owner"]["test_score"]["value"] == 1.0
    result = invoke_ok("predict", tmp_path / "model", tmp_path / "data.svm")
    assert "accuracy 1" in result.stderr


def test_a_run_that_is_interrupted_writes_nothing(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from walklearn import RandomWalkClassifier

    def interrupt(*arguments: object, **settings: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(RandomWalkClassifier, "run", interrupt)
    result = invoke("train", place / "data.csv", "--target", "label", "--out", tmp_path / "model")
    assert result.exit_code == 130
    assert list(tmp_path.iterdir()) == []


def test_a_test_file_is_encoded_as_the_training_was(place: Path, tmp_path: Path) -> None:
    pd.read_csv(place / "data.csv").query("city == 'Rome'").to_csv(tmp_path / "r.csv", index=False)
    facts = train(
        place / "data.csv", "--target", "label", *REST["label"], "--drop", "site", "--steps",
        "5000", "--test", tmp_path / "r.csv", "--out", tmp_path / "model",
    )  # fmt: skip
    assert facts["training"]["features"] == 4
    assert facts["private_to_the_owner"]["test_score"]["value"] > 0.85


def test_advise_from_the_shell(place: Path, tmp_path: Path) -> None:
    said = ("--graph", place / "edges.txt", *CONSTANTS, "--feature-bound", "8", "--rows", "400")
    result = invoke_ok("advise", *said, "--verbose")
    for part in ("ε = ∞", "From public facts only.", "uniform", "laplace", "constant", "Reasons:"):
        assert part in result.stdout, part
    (tmp_path / "schema.toml").write_text("[age]\nspread = 20\n[income]\nspread = 12000\n")
    public = ("--rows", "400", "--schema", tmp_path / "schema.toml")
    result = invoke_ok("advise", "--graph", place / "edges.txt", *PRIVATE, *public)
    assert "ε = 3 at δ = 1e-05 for everything" in result.stdout
    # Followed, it keeps its word.
    command = followed_from(result.stdout)
    followed = train(*sites(place), "--drop", "city", *command, "--out", tmp_path / "followed")
    assert followed["privacy"]["claim_without_seed"]["epsilon"] == 3.0
    ledger = wl.privacy.Ledger.from_dict(dict(Model.load(tmp_path / "followed").ledger))
    assert ledger.largest_total(1e-5)[1] <= 3.0
    result = invoke_ok("advise", *sites(place), "--feature-bound", "8", "--json")
    content = json.loads(result.stdout)
    assert (content["walk"], content["update"]) == ("tour", "finito")
    result = invoke_ok(
        "advise", place / "data.csv", "--target", "grade", *NETWORK, "ring", *REST["grade"],
        "--drop", "city", *CONSTANTS, "--feature-bound", "8", "--laziness", "0.1",
    )  # fmt: skip
    command = followed_from(result.stdout)
    trained = train(place / "data.csv", *command, "--steps", "100", "--out", tmp_path / "m")
    assert trained["walk"] == "Uniform(laziness=0.1)"
    assert trained["privacy"]["epsilon"] is None


def test_a_declared_target_is_not_a_feature(tmp_path: Path) -> None:
    schema, rows = tmp_path / "schema.toml", tmp_path / "rows.csv"
    schema.write_text('[a]\nspread = 1\n[b]\nspread = 1\n[y]\ncategories = ["no", "yes"]\n')
    table = pd.DataFrame(np.random.default_rng(1).normal(size=(60, 2)), columns=["a", "b"])
    table.assign(y=np.where(table["a"] > 0, "yes", "no")).to_csv(rows, index=False)
    asked = ("advise", "--graph", "complete", *PRIVATE, "--schema", schema, "--json")
    public = (*asked, "--nodes", "60", "--rows", "60")
    for command in (
        (*public, "--target", "y"), (*public, "--target", "y", "--features", 2),
        (*asked[:1], rows, *asked[1:], "--target", "y"),
    ):  # fmt: skip
        result = invoke_ok(*command)
        assert json.loads(result.stdout)["features"] == 2
        assert result.stderr == ""
    assert "pass --target" in " ".join(invoke_ok(*public).stderr.split())
    assert "--features is 2, and the schema declares 4" in refusal(*public, "--features", 2)
    plan = ("plan", "new", "--schema", schema, "--target", "y", "--classes", "no,yes", "--nodes")
    result = invoke_ok(*plan, 6, "--rows", 60, "--out", tmp_path / "plan.toml")
    assert "from 2 columns" in result.stdout


@pytest.mark.parametrize("asked", [(), (*PRIVATE, "--scale", "*=0,1")])
def test_training_gives_a_reason_for_each_choice(tmp_path: Path, asked: tuple[str, ...]) -> None:
    table = pd.DataFrame(np.random.default_rng(1).normal(size=(90, 31))).add_prefix("column_")
    table["y"] = np.where(table["column_0"] > 0, "yes", "no")
    table.to_csv(tmp_path / "wide.csv", index=False)
    command = ("train", tmp_path / "wide.csv", "--target", "y", *asked, "--seed", "1", "--out")
    text = " ".join(invoke_ok(*command, tmp_path / "text", "--verbose").stdout.split())
    reasons = json.loads(invoke_ok(*command, tmp_path / "json", "--json").stdout)["reasons"]
    assert len(reasons) == 9
    for reason in reasons:
        assert f"- {reason}" in text, reason
    assert reasons[0] not in invoke_ok(*command, tmp_path / "short").stdout


@pytest.mark.parametrize("asked", [(), ("--feature-bound", "8"), (*PRIVATE, *SCALES), CONSTANTS])
def test_values_in_a_file_do_not_affect_the_advice(
    place: Path, tmp_path: Path, asked: tuple[str, ...]
) -> None:
    table = pd.read_csv(place / "data.csv")
    table["age"], table["income"] = 20.0 + table["age"] / 7.0, table["income"][::-1].to_numpy() ** 2
    table["label"] = table["label"].to_numpy()[::-1]
    table.to_csv(tmp_path / "other.csv", index=False)
    bound = ("--feature-bound", "8") if asked == CONSTANTS else ()
    outputs = [
        invoke(
            "advise", data, "--target", "label", *NETWORK, place / "edges.txt", *REST["label"],
            "--drop", "city", *asked, *bound, "--json",
        )
        for data in (place / "data.csv", tmp_path / "other.csv")
    ]  # fmt: skip
    assert [output.exit_code for output in outputs] == [0, 0], outputs[0].output
    assert outputs[0].stdout == outputs[1].stdout


def followed_from(output: str) -> list[str]:
    """The options of the command that advice ends with, as a shell would pass them."""
    return shlex.split(output.splitlines()[-1].partition("train ... ")[2])


def test_advice_from_public_facts_is_followed_to_the_letter(place: Path, tmp_path: Path) -> None:
    rest = ("--target", "label", "--node-column", "site", *REST["label"], "--drop", "city")
    for name, said in (
        ("clear", (*CONSTANTS, "--feature-bound", "8")),
        ("others", (*PRIVATE, "--features", "2", "--scale", "*=0,1")),
        ("named", (*PRIVATE, "--features", "2", "--scale", "*=55,20", *SCALES[2:])),
    ):
        result = invoke_ok("advise", "--graph", place / "edges.txt", *said, "--rows", "400")
        command = followed_from(result.stdout)
        trained = train(place / "data.csv", *rest, *command, "--out", tmp_path / name)
        claimed = None if name == "clear" else 3.0
        privacy = trained["privacy"]
        assert privacy.get("claim_without_seed", privacy)["epsilon"] == claimed


def test_advice_under_privacy_needs_the_number_of_rows(place: Path) -> None:
    for asked in ((*PRIVATE, "--features", "4"), CONSTANTS):
        message = refusal("advise", "--graph", place / "edges.txt", *asked, "--feature-bound", "8")
        assert "--rows 5000" in message


def test_advice_counts_classes_and_refuses_what_training_refuses() -> None:
    said = ("advise", "--graph", "ring", "--nodes", "20", "--rows", "5000", "--features", "10")
    content = json.loads(invoke(*said, "--classes", "5", "--json").stdout)
    assert content["loss"] == "Softmax(classes=5)"
    message = refusal(*said, "--classes", "5", "--task", "regression")
    assert "--classes" in message
    invoke_ok(*said, *PRIVATE, "--row-length", "2", "--total-rows", "5000")


@pytest.mark.parametrize("walk", ["weighted", "uniform"])
def test_a_graph_with_two_sides_is_noted_whatever_the_walk(
    place: Path, tmp_path: Path, walk: str
) -> None:
    (tmp_path / "ring.txt").write_text("".join(f"{k} {(k + 1) % 20}\n" for k in range(20)))
    trained = train(
        place / "data.csv", "--target", "label", *NETWORK, tmp_path / "ring.txt", *REST["label"],
        "--drop", "city", "--walk", walk, "--step-constant", "0.1", "--steps", "100",
        "--out", tmp_path / "m",
    )  # fmt: skip
    assert any("--laziness" in note for note in trained["notes"]) == (walk == "uniform")


def test_columns_that_are_entirely_cut_off_are_named(place: Path, tmp_path: Path) -> None:
    facts = train(
        *sites(place),
        "--drop", "city", *PRIVATE, "--scale", "age=0,0.1", "--scale", "income=40000,12000",
        "--steps", "100", "--out", tmp_path / "m",
    )  # fmt: skip
    (note,) = [each for each in facts["private_to_the_owner"]["notes"] if "cut off" in each]
    assert "'age'" in note
    assert "'income'" not in note


def test_a_mini_batch_under_privacy_is_an_error_of_the_user(place: Path, tmp_path: Path) -> None:
    message = refusal(
        "train", *sites(place), "--drop", "city", *PRIVATE, *SCALES, "--batch", "5", "--out",
        tmp_path / "m",
    )  # fmt: skip
    assert "Missing in" in message


def test_the_task_is_guessed_and_can_be_passed() -> None:
    numbers = np.arange(60)
    assert task_of(np.array([0, 1, 1]), "y", "auto") == "classification"
    assert task_of(numbers % 5, "y", "auto") == "classification"
    assert task_of(numbers, "y", "auto") == "regression"
    assert task_of(numbers % 5, "y", "regression") == "regression"
    assert task_of(numbers / 7, "y", "auto") == "regression"
    with pytest.raises(ValueError, match=r"'y' .*60 .*60 rows.*--task regression"):
        task_of(numbers, "y", "classification")
    with pytest.raises(ValueError, match=r"'y' .*'a'.*--task classification"):
        task_of(np.array(["a", "b"]), "y", "regression")
    with pytest.raises(ValueError, match="'y' is 1 "):
        task_of(np.ones(3, dtype=int), "y", "auto")


def test_an_unprotected_model_has_an_infinite_epsilon(place: Path, tmp_path: Path) -> None:
    common = ("--target", "label", *NETWORK, place / "edges.txt", *REST["label"], "--drop", "city")
    asked = (*common, *SCALES, *CONSTANTS, "--steps", "100", "--out")
    facts = train(place / "data.csv", *asked, tmp_path / "model")
    assert facts["privacy"]["epsilon"] is None
    assert facts["walk"].startswith("Weighted(privacy=Laplace")
    report = (tmp_path / "model" / "report.md").read_text(encoding="utf-8")
    assert "- claim: ε = ∞" in report
    assert "in the clear, as requested" in report


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        ("--epsilon -2 --delta 0.1 --walk uniform", r"epsilon .*-2\.0"),
        ("--epsilon 2 --delta 7 --walk uniform", r"delta .*7\.0"),
        ("--model-noise 3 1e-3 1 2.5 --walk uniform", r"--model-noise: TIMES.*2\.5"),
        ("--model-noise 3 1e-3 1 20 --walk weighted", r"weighted walk .*Weighted\(privacy=\."),
        ("--model-noise 3 1e-3 1 20 --epsilon 3 --delta 1e-5", "epsilon .*model_privacy, --"),
        ("--epsilon 2", "--epsilon needs --delta"),
        ("--epsilon 2 --delta 0", "model .*delta = 0"),
    ],
)
def test_privacy_that_cannot_be_is_refused(
    place: Path, tmp_path: Path, options: str, pattern: str
) -> None:
    message = refusal(
        "train", *sites(place), "--drop", "city", "--feature-bound", "8", *TASK, *options.split(),
        "--out", tmp_path / "model",
    )  # fmt: skip
    assert re.search(pattern, message)
    assert not (tmp_path / "model").exists()


def test_advice_from_public_facts_takes_edges_of_names(place: Path, tmp_path: Path) -> None:
    edges = [line.split() for line in (place / "edges.txt").read_text().splitlines()]
    named = tmp_path / "named.txt"
    named.write_text("".join(f"site-{one:>02} site-{other:>02}\n" for one, other in edges))
    asked = (*PRIVATE, "--feature-bound", "8", "--features", "4", "--rows", "400", "--json")
    by_name = invoke("advise", "--graph", named, *asked)
    by_number = invoke("advise", "--graph", place / "edges.txt", *asked)
    assert by_name.exit_code == by_number.exit_code == 0, by_name.output
    assert json.loads(by_name.stdout) == json.loads(by_number.stdout)


def test_a_closed_pipe_is_no_error_of_the_user() -> None:
    """As in `walklearn advise … | head`."""

    @click.command()
    @report_user_errors()
    def talk() -> None:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    result = CliRunner().invoke(talk, [])
    assert (result.exit_code, result.output) == (1, "")
