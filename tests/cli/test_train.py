"""`walklearn train` and `advise`, from a file on disk to a model and its predictions."""

from __future__ import annotations

import errno
import json
import tracemalloc
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import walklearn as wl
from tests.running import invoke
from walklearn.cli import main
from walklearn.cli.bad_input import plainly
from walklearn.cli.data_options import task_of
from walklearn.model import Model

PRIVATE = ("--epsilon", "3", "--delta", "0.03")


def train(data: Path, *arguments: str | Path) -> dict[str, Any]:
    """Train with a seed and give the facts."""
    result = invoke("train", data, "--seed", "1", "--json", *arguments)
    assert result.exit_code == 0, result.output
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


@pytest.mark.parametrize(
    ("target", "kind", "least"),
    [("label", "classifier", 0.9), ("grade", "classifier", 0.75), ("score", "regressor", 0.9)],
)
def test_train_predict_and_test(
    place: Path, tmp_path: Path, target: str, kind: str, least: float
) -> None:
    facts = train(
        place / "data.csv", "--target", target, *NETWORK, place / "edges.txt", *REST[target],
        "--test-fraction", "0.25", "--out", tmp_path / "model",
    )  # fmt: skip
    assert facts["kind"] == kind
    details = facts["training"]
    assert (details["rows"], details["nodes"], details["features"]) == (300, 20, 4)
    assert details["test_score"]["rows"] == 100
    assert details["test_score"]["value"] > least
    if kind == "classifier":
        assert details["test_score"]["value"] > details["test_score"]["baseline"] + 0.2
    result = invoke("predict", tmp_path / "model", place / "data.parquet")
    assert result.exit_code == 0, result.output
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


def test_what_is_told_to_people(place: Path, tmp_path: Path) -> None:
    result = invoke(
        "train", place / "data.csv", "--target", "label", *REST["label"], "--drop", "site",
        "--walk", "uniform", "--steps", "3000", "--out", tmp_path / "model",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    for part in (
        "A classifier of 'label'", "400 rows of 4 features on 400 nodes", "accuracy 0.",
        "The model is not protected", "walklearn predict",
    ):  # fmt: skip
        assert part in result.stdout, part
    assert "\x1b" not in result.stdout
    report = (tmp_path / "model" / "report.md").read_text(encoding="utf-8")
    assert "city=Rome" in report
    assert "training score: accuracy" in report


def test_privacy_is_told_exactly(place: Path, tmp_path: Path) -> None:
    facts = train(
        place / "data.csv", "--target", "label", *NETWORK, place / "edges.txt", *REST["label"],
        *PRIVATE, "--range", "age=0,100", "--range", "income=0,100000",
        "--categories", "city=Oslo,Rome,Bern", "--out", tmp_path / "model",
    )  # fmt: skip
    privacy = facts["privacy"]
    assert privacy["simulated"] is True  # it has a seed
    assert any("protects nobody" in sentence for sentence in privacy["not_protected"])
    assert any("model is not protected" in sentence for sentence in privacy["not_protected"])
    # Two numbers in -1..1 and a category: ‖x‖ ≤ √3, declared and therefore public.
    assert "(feature bound 1.73205)" in privacy["protected"][0]
    model = Model.load(tmp_path / "model")
    assert model.encoding.feature_names == (
        "age", "income", "city=Oslo", "city=Rome", "city=Bern",
    )  # fmt: skip
    assert model.encoding.columns[0].centre == 50.0
    ledger = wl.privacy.Ledger.from_dict(dict(model.ledger))
    (release,) = [each for each in ledger.charges(0) if each.what == "importance"]
    assert release.mechanism is not None
    assert release.mechanism.epsilon(0.03) <= 3.0
    without = invoke(
        "train", place / "data.csv", "--target", "label", *NETWORK, place / "edges.txt",
        *REST["label"], *PRIVATE, "--feature-bound", "8", "--drop", "city", "--json",
        "--out", tmp_path / "other",
    )  # fmt: skip
    assert without.exit_code == 0, without.output
    facts = json.loads(without.stdout)
    assert facts["privacy"]["simulated"] is False
    assert any("longer than the feature bound 8" in note for note in facts["notes"])


def test_nothing_of_the_encoding_comes_from_private_data(place: Path, tmp_path: Path) -> None:
    arguments = (
        "train", place / "data.csv", "--target", "label", *NETWORK, place / "edges.txt",
        *REST["label"], "--feature-bound", "8", "--out", tmp_path / "model",
    )  # fmt: skip
    for asked in (PRIVATE, ("--model-noise", "3", "0.001", "1", "10", "--walk", "uniform")):
        result = invoke(*arguments, *asked)
        assert result.exit_code == 2
        assert "categories of 'city' must not be taken from the data" in result.stderr
        assert "--categories city=" in result.stderr
        assert "Oslo" not in result.stderr
    assert not (tmp_path / "model").exists()


def test_the_model_can_be_protected(place: Path, tmp_path: Path) -> None:
    facts = train(
        place / "data.csv", "--target", "label", *NETWORK, place / "edges.txt", *REST["label"],
        "--drop", "city", "--range", "age=0,100", "--range", "income=0,100000", "--walk", "uniform",
        "--model-noise", "5", "0.001", "1", "20", "--steps", "400", "--out", tmp_path / "model",
    )  # fmt: skip
    assert any("add to the model" in sentence for sentence in facts["privacy"]["protected"])
    assert not any("model is not" in sentence for sentence in facts["privacy"]["not_protected"])


def test_a_uniform_walk_spends_nothing(place: Path, tmp_path: Path) -> None:
    facts = train(
        place / "data.csv", "--target", "label", *NETWORK, place / "edges.txt", *REST["label"],
        *PRIVATE, "--feature-bound", "3", "--drop", "city", "--walk", "uniform", "--steps", "500",
        "--out", tmp_path / "model",
    )  # fmt: skip
    assert "Nothing of ε was spent" in facts["privacy"]["protected"][0]
    assert Model.load(tmp_path / "model").ledger["releases"] == [
        {"what": "model", "mechanism": "in the clear", "times": 1}
    ]


def test_sites_may_have_names(tmp_path: Path) -> None:
    generator = np.random.default_rng(2)
    X = generator.normal(size=(60, 2))
    table = pd.DataFrame(X, columns=["a", "b"]).assign(y=np.sign(X @ [1.0, -1.0]).astype(int))
    table["site"] = np.tile(["oslo", "rome", "bern"], 20)
    table.to_csv(tmp_path / "d.csv", index=False)
    (tmp_path / "e.csv").write_text("from,to\noslo,rome\nrome,bern\nbern,kiel\n")
    result = invoke(
        "train", tmp_path / "d.csv", "--target", "y", "--node-column", "site", "--graph",
        tmp_path / "e.csv", "--out", tmp_path / "model", "--seed", "1", "--steps", "5000",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "60 rows of 2 features on 4 nodes with 3 edges" in result.stdout
    assert "1 of 4 nodes own no rows" in result.stderr


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
    result = invoke("predict", tmp_path / "model", tmp_path / f"new.{suffix}")
    assert result.exit_code == 0, result.output
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
    assert facts["training"]["test_score"]["value"] == 1.0
    result = invoke("predict", tmp_path / "model", tmp_path / "data.svm")
    assert result.exit_code == 0, result.output
    assert "accuracy 1" in result.stderr


def test_a_run_that_is_interrupted_writes_nothing(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from walklearn import RandomWalkClassifier

    def interrupt(*arguments: object, **settings: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(RandomWalkClassifier, "fit", interrupt)
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
    assert facts["training"]["test_score"]["value"] > 0.85


def test_advise_from_the_shell(place: Path, tmp_path: Path) -> None:
    result = invoke("advise", "--graph", place / "edges.txt", *PRIVATE, "--feature-bound", "8")
    assert result.exit_code == 0, result.output
    for part in ("no data were looked at", "uniform", "laplace", "constant", "Because:"):
        assert part in result.stdout, part
    result = invoke(
        "advise", place / "data.csv", "--target", "label", *NETWORK, place / "edges.txt",
        *REST["label"], "--steps", "500", "--replicates", "3", "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["mode"] == "simulation"
    assert found["private"] is False
    assert {each["name"] for each in found["candidates"]} == {"uniform", "weighted, in the clear"}
    result = invoke(
        "advise", place / "data.csv", "--target", "grade", *NETWORK, "ring", *REST["grade"],
        "--drop", "city", *PRIVATE, "--feature-bound", "8", "--steps", "500", "--replicates", "3",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "not private" in result.stdout
    assert "Laziness 0.1" in result.stdout
    command = result.stdout.splitlines()[-1].partition("train ... ")[2].split()
    assert command[:2] == ["--walk", "uniform"]
    trained = train(
        place / "data.csv", "--target", "grade", *NETWORK, "ring", *REST["grade"], "--drop", "city",
        *PRIVATE, "--feature-bound", "8", "--steps", "100", *command, "--out", tmp_path / "m",
    )  # fmt: skip
    assert trained["walk"] == "Uniform(laziness=0.1)"


def test_the_task_is_guessed_and_can_be_said() -> None:
    numbers = np.arange(60)
    assert task_of(np.array([0, 1, 1]), "y", "auto") == "classification"
    assert task_of(numbers % 5, "y", "auto") == "classification"
    assert task_of(numbers, "y", "auto") == "regression"
    assert task_of(numbers % 5, "y", "regression") == "regression"
    assert task_of(numbers / 7, "y", "auto") == "regression"
    with pytest.raises(ValueError, match=r"60 different values in 60 rows.*--task regression"):
        task_of(numbers, "y", "classification")
    with pytest.raises(ValueError, match=r"is text, such as 'a'"):
        task_of(np.array(["a", "b"]), "y", "regression")
    with pytest.raises(ValueError, match=r"'y' is 1 in every row.*right column"):
        task_of(np.ones(3, dtype=int), "y", "auto")


def test_no_epsilon_is_told_where_nothing_was_released(place: Path, tmp_path: Path) -> None:
    ranges = ("--range", "age=0,100", "--range", "income=0,100000", "--drop", "city")
    common = ("--target", "label", *NETWORK, place / "edges.txt", *REST["label"], *ranges)
    asked = (*common, *PRIVATE, "--steps", "100")
    facts = train(place / "data.csv", *asked, "--walk", "uniform", "--out", tmp_path / "uniform")
    assert facts["privacy"]["epsilon_of_constants"] is None
    assert "epsilon" not in (tmp_path / "uniform" / "report.md").read_text(encoding="utf-8")
    facts = train(place / "data.csv", *asked, "--out", tmp_path / "weighted")
    assert facts["privacy"]["epsilon_of_constants"] == 3.0
    assert facts["privacy"]["delta_of_constants"] == 0.03


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--epsilon -2 --delta 0.1 --walk uniform", "epsilon must be a number of at least 0"),
        ("--epsilon 2 --delta 7 --walk uniform", "delta must be in [0, 1), got 7"),
        ("--model-noise 3 1e-3 1 2.5 --walk uniform", "whole number of at least 1, got 2.5"),
        ("--model-noise 3 1e-3 1 20", "Pass --epsilon and --delta too, or --walk uniform."),
    ],
)
def test_privacy_that_cannot_be_is_refused(
    place: Path, tmp_path: Path, options: str, message: str
) -> None:
    result = invoke(
        "train", place / "data.csv", "--target", "label", *NETWORK, place / "edges.txt",
        *REST["label"], "--drop", "city", "--feature-bound", "8", *options.split(),
        "--out", tmp_path / "model",
    )  # fmt: skip
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert not (tmp_path / "model").exists()


def test_advice_from_public_facts_takes_edges_of_names(place: Path, tmp_path: Path) -> None:
    edges = [line.split() for line in (place / "edges.txt").read_text().splitlines()]
    named = tmp_path / "named.txt"
    named.write_text("".join(f"site-{one:>02} site-{other:>02}\n" for one, other in edges))
    asked = ("--epsilon", "3", "--delta", "0.03", "--feature-bound", "8", "--json")
    by_name = invoke("advise", "--graph", named, *asked)
    by_number = invoke("advise", "--graph", place / "edges.txt", *asked)
    assert by_name.exit_code == by_number.exit_code == 0, by_name.output
    assert json.loads(by_name.stdout) == json.loads(by_number.stdout)


def test_a_reader_that_has_seen_enough_is_no_mistake() -> None:
    """As in `walklearn advise … | head`."""

    @click.command()
    @plainly
    def talk() -> None:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    result = CliRunner().invoke(talk, [])
    assert (result.exit_code, result.output) == (1, "")
