"""The most likely mistakes of a newcomer: every answer says what happened, where, and what to do.

Each is made as a new user would make it, through the command line or the API, and nothing is
left behind by it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

import walklearn as wl
from tests.running import invoke

PRIVATE = "--epsilon 3 --delta 0.03 --feature-bound 8 --task classification"
CONSTANTS = f"{PRIVATE} --walk weighted --model 'in the clear'"


class Mistake(NamedTuple):
    """A command, and what its answer must say; `where` may be nothing where it goes without."""

    command: str
    what: str
    where: str
    what_to_do: str


SHELL = {
    "a misspelt command": Mistake(
        "trian people.csv --target label --out m", r"No such command", r"'trian'", r"'train'"),
    "a misspelt file": Mistake(
        "train poeple.csv --target label --out m", r"does not exist", r"poeple\.csv",
        r"did you mean 'people\.csv'"),
    "a spreadsheet": Mistake(
        "train people.xlsx --target label --out m", r"what kind of file", r"people\.xlsx",
        r"save the data as one of these"),
    "no target": Mistake(
        "train people.csv --out m", r"which column is to be predicted", r"people\.csv",
        r"--target.*'label'"),
    "a misspelt target": Mistake(
        "train people.csv --target lable --out m", r"no column 'lable'", r"people\.csv",
        r"did you mean 'label'"),
    "a target that never changes": Mistake(
        "train people.csv --target country --out m", r"in every row", r"'country'",
        r"Is it the right column"),
    "a target of names": Mistake(
        "train people.csv --target name --out m", r"120 different values", r"'name'",
        r"Is it the right column"),
    "regression of words": Mistake(
        "train people.csv --target label --task regression --out m", r"is text", r"'label'",
        r"--task classification"),
    "a column of names": Mistake(
        "train people.csv --target label --out m", r"text with 120 different values", r"'name'",
        r"Leave the column out"),
    "a letter among numbers": Mistake(
        "train letter.csv --target label --out m", r"'abc' is not a number",
        r"letter\.csv, row 17 \(line 18\), column 'age'", r"Correct it, or .*--text age"),
    "a missing value": Mistake(
        "train missing.csv --target label --out m", r"the value is missing",
        r"missing\.csv, row 17 \(line 18\), column 'age'", r"Fill it in"),
    "a comma too many": Mistake(
        "train ragged.csv --target label --out m", r"has 4 cells, the header has 3",
        r"ragged\.csv, row 2 \(line 3\)", r"quotes"),
    "another separator": Mistake(
        "train spaces.csv --target label --out m", r"no column 'label'", r"spaces\.csv",
        r"'age label'"),
    "pandas' index": Mistake(
        "train index.csv --target label --out m", r"column 1 has no name", r"index\.csv",
        r"index=False"),
    "rows without a header": Mistake(
        "train headless.csv --target label --out m", r"it is data", r"headless\.csv",
        r"Put a line with names above"),
    "a graph in pieces": Mistake(
        "train rows.csv --target label --node-column site --graph pieces.txt --out m",
        r"not connected.*2 pieces", r"pieces\.txt.*'4' to '5'", r"add edges"),
    "edges numbered from 1": Mistake(
        "train rows.csv --target label --node-column site --graph from1.txt --out m",
        r"count nodes from 0 and the edges from 1", r"rows\.csv, row \d+ .*from1\.txt",
        r"Let both do the same"),
    "edges with other names": Mistake(
        "train rows.csv --target label --node-column site --graph names.txt --out m",
        r"has no edge in names\.txt", r"rows\.csv, row 1 ", r"must use the same names"),
    "edges with a word too many": Mistake(
        "train rows.csv --target label --node-column site --graph weights.txt --out m",
        r"expected two nodes", r"weights\.txt, line 1", r'such as "oslo rome"'),
    "a public graph in pieces": Mistake(
        "train rows.csv --target label --drop site --graph pieces.txt --out m",
        r"not connected: it has 2 pieces", r"", r"keep its largest piece only"),
    "a graph with an edge from a node to itself": Mistake(
        "train rows.csv --target label --drop site --graph loop.txt --out m",
        r"^Note: loop\.txt: 1 line joins a node to itself", r"10 nodes", r"--node-column"),
    "numbers with a decimal comma": Mistake(
        "train comma.csv --target label --out m", r"numbers with a comma, such as '36,5'",
        r"comma\.csv: column 'temperature'", r"36\.5"),
    "a graph that does not fit the rows": Mistake(
        "train rows.csv --target label --drop site --graph edges.txt --out m",
        r"10 nodes and there are 120 rows", r"edges\.txt", r"--node-column"),
    "a misspelt graph": Mistake(
        "train rows.csv --target label --graph rign --out m", r"neither a family", r"'rign'",
        r"Did you mean 'ring'"),
    "epsilon without delta": Mistake(
        "train rows.csv --target label --epsilon 3 --feature-bound 8 --out m",
        r"without --delta", r"--epsilon", r"such as --epsilon 3 --delta 1e-5"),
    "privacy without a bound": Mistake(
        "train rows.csv --target label --epsilon 3 --delta 0.03 --out m",
        r"public scale of every column", r"'age'", r"--scale age=50,20 .*--feature-bound"),
    "an epsilon and noise by hand": Mistake(
        f"train rows.csv --target label {PRIVATE} --model-noise 3 1e-5 1 5 --out m",
        r"is the total for everything", r"", r"Leave out epsilon and delta, or"),
    "privacy with categories from the data": Mistake(
        f"train cities.csv --target label {PRIVATE} --out m",
        r"must not be taken from the data", r"'city'", r"--categories city=.*--drop city"),
    "a privacy target out of reach": Mistake(
        f"train rows.csv --target label {CONSTANTS} --mechanism gamma --out m",
        r"no noise level gives delta <= 0\.03", r"bounds [\d.]+", r"use clamped-gamma"),
    "steps that are too long": Mistake(
        "train rows.csv --target label --loss squared-hinge --step-constant 1e6 --steps 2000 "
        "--out m", r"diverged to infinity", r"", r"Use a smaller step"),
    "a model in the way": Mistake(
        "train rows.csv --target label --out there", r"already holds a model", r"there",
        r"--force"),
    "a file in the way": Mistake(
        "train rows.csv --target label --out rows.csv --force", r"never overwritten", r"rows\.csv",
        r"choose another place"),
    "a model inside a file": Mistake(
        "train rows.csv --target label --out rows.csv/model", r"rows\.csv is a file, not a dir",
        r"rows\.csv", r"nothing can be put into it"),
    "predictions inside a file": Mistake(
        "predict there rows.csv --out rows.csv/p.csv", r"rows\.csv is a file, not a directory",
        r"rows\.csv", r"nothing can be put into it"),
    "predicting without a model": Mistake(
        "predict m rows.csv", r"there is no m", r"m", r"walklearn train"),
    "model and data swapped": Mistake(
        "predict rows.csv there", r"is not a model", r"rows\.csv",
        r"a model is a directory that holds"),
    "predicting from other columns": Mistake(
        "predict there letter.csv", r"no column 'income'", r"letter\.csv",
        r"The model needs 'age' and 'income'"),
    "predictions in a directory that is not there": Mistake(
        "predict there rows.csv --out no/p.csv", r"there is no directory no\.", r"",
        r"mkdir -p no"),
    "a schema in a directory that is not there": Mistake(
        "schema rows.csv --target label --out no/s.toml", r"there is no directory no\.", r"",
        r"mkdir -p no"),
    "a schema inside a file": Mistake(
        "schema rows.csv --target label --out rows.csv/s.toml", r"rows\.csv is a file, not a dir",
        r"", r"nothing can be put into it"),
    "predictions as Parquet": Mistake(
        "predict there rows.csv --out p.parquet", r"predictions are written as CSV", r"p\.parquet",
        r"end it in \.csv"),
    "probabilities of numbers": Mistake(
        "predict numbers rows.csv --proba", r"not probabilities", r"'squared'",
        r"use the labels or scores"),
    "a category that the model does not know": Mistake(
        "predict cities strange.csv", r"'rome' is not among its categories",
        r"strange\.csv, row 3 \(line 4\), column 'city'",
        r"did you mean 'Rome'.*leave such rows out.*declare it when training"),
    "advice without the number of nodes": Mistake(
        "advise --graph ring", r"needs a number of nodes", r"'ring'", r"--nodes"),
    "a network of another size than its graph": Mistake(
        "up --nodes 4 --graph edges.txt --out m", r"--nodes is 4", r"edges\.txt has 10 nodes",
        r"pass --nodes 10, or leave it out"),
    "advice on another size than the graph's": Mistake(
        "advise --nodes 4 --graph edges.txt", r"--nodes is 4", r"edges\.txt has 10 nodes",
        r"pass --nodes 10"),
    "a network with a negative epsilon": Mistake(
        "up --walk weighted --epsilon -1 --delta 1e-5 --out m", r"-1\.0 is not in the range",
        r"'--epsilon'", r"x>0"),
    "a network with a privacy that nodes cannot keep": Mistake(
        "up --walk weighted --epsilon 3 --delta 0 --out m", r"--delta must be a finite number",
        r"--delta", r"greater than 0 and less than 1"),
    "an export of unknown kind": Mistake(
        "export there model.pkl", r"what to write", r"model\.pkl", r"\.onnx .*or \.joblib"),
}  # fmt: skip


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a newcomer has: some files, some of them wrong, and two models."""
    folder = tmp_path_factory.mktemp("home")
    generator = np.random.default_rng(0)
    age = generator.uniform(20, 80, 120).round(1)
    rows = pd.DataFrame({"age": age, "income": generator.normal(40, 10, 120).round(1)})
    rows["site"] = np.arange(120) % 10
    rows["label"] = np.where(age + generator.normal(0, 5, 120) > 50, "yes", "no")
    rows.to_csv(folder / "rows.csv", index=False)
    cities = rows.drop(columns=["site", "income"])
    cities["city"] = np.tile(["Oslo", "Rome"], 60)
    cities.to_csv(folder / "cities.csv", index=False)
    cities.replace({"city": {"Rome": "rome"}}).iloc[[0, 2, 1]].to_csv(
        folder / "strange.csv", index=False
    )
    cities.assign(name=[f"person {k}" for k in range(120)], country="Norway").to_csv(
        folder / "people.csv", index=False
    )
    (folder / "people.xlsx").write_bytes(b"PK\x03\x04")
    for name, value in (("letter", "abc"), ("missing", "")):
        broken = cities[["age", "label"]].astype({"age": object})
        broken.loc[16, "age"] = value
        broken.to_csv(folder / f"{name}.csv", index=False)
    cities[["age", "label"]].to_csv(folder / "spaces.csv", index=False, sep=" ")
    cities.to_csv(folder / "index.csv")
    rows[["age", "income"]].to_csv(folder / "headless.csv", index=False, header=False)
    (folder / "ragged.csv").write_text("age,income,label\n30,1,no\n31,1,000,yes\n")
    ring = [(k, (k + 1) % 10) for k in range(10)]
    for name, lines in {
        "edges": [f"{i} {j}" for i, j in ring],
        "from1": [f"{i + 1} {j + 1}" for i, j in ring],
        "pieces": [f"{i} {j}" for i, j in ring if i not in (4, 9)],
        "weights": [f"{i} {j} heavy" for i, j in ring],
        "loop": [*(f"{i} {j}" for i, j in ring), "3 3"],
        "names": ["oslo rome", "rome bern"],
    }.items():
        (folder / f"{name}.txt").write_text("\n".join(lines))
    cities.assign(temperature=np.tile(["36,5", "37,0", "38,5"], 40)).to_csv(
        folder / "comma.csv", index=False, sep=";"
    )
    for data, target, drop, out in (
        ("rows.csv", "label", "site", "there"),
        ("cities.csv", "label", "age", "cities"),
        ("rows.csv", "income", "site", "numbers"),
    ):
        command = f"train {folder / data} --target {target} --drop {drop} --steps 100 --out "
        result = invoke(*command.split(), folder / out)
        assert result.exit_code == 0, result.output
    return folder


@pytest.mark.filterwarnings("default")  # as for users, who are to see notes instead
@pytest.mark.parametrize("name", SHELL)
def test_mistakes_in_the_shell(name: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mistake = SHELL[name]
    monkeypatch.chdir(home)
    before = {path: path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file()}
    result = invoke(*shlex.split(mistake.command))
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    answer = result.stderr
    assert "Traceback" not in answer
    for part in (mistake.what, mistake.where, mistake.what_to_do):
        assert re.search(part, answer, re.DOTALL), f"{part!r} is not in: {answer}"
    after = {path: path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file()}
    assert after == before


def test_notes_of_a_run_that_is_no_mistake_but_surprises(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Separable classes without a penalty, rows too few or too long: it runs, and says so."""
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(1).normal(size=(40, 5))
    X[:, 0] += np.sign(X[:, 0])  # a gap between the classes
    y = (X[:, 0] > 0).astype(int)
    table = pd.DataFrame(X, columns=list("abcde")).assign(y=y)
    table.to_csv("apart.csv", index=False)
    for options, note in (
        ("--penalty 0 --max-steps 20000", r"separated by a hyperplane.*positive penalty"),
        ("--steps 100", r"40 rows are few for 5 features.*--test-fraction 0\.2"),
        ("--epsilon 3 --delta 0.03 --feature-bound 0.5 --steps 100 --task classification",
         r"4\d of 40 rows were longer than the feature bound 0\.5.*--scale"),
        ("--graph ring --update sgd --steps 100", r"never mixes\. Pass --laziness 0\.1"),
        ("--graph ring --steps 100", r"rows are few"),  # with memory it arrives all the same
        ("--max-steps 1000 --tol 0", r"gradient, .* Raise max_steps or tol"),
        ("--update sgd --max-steps 1000 --tol 0", r"loss was .*Raise max_steps or tol"),
    ):  # fmt: skip
        command = f"train apart.csv --target y --seed 1 {options} --out m --force"
        result = invoke(*command.split())
        assert result.exit_code == 0, result.output
        text = " ".join(result.stderr.split())
        assert re.search(note, text), text
        assert ("never mixes" in text) == ("ring --update sgd" in options)


@pytest.mark.filterwarnings("default")
def test_numbers_whose_squares_are_infinite_are_trained_on_without_a_word_of_numpy(
    home: Path, tmp_path: Path
) -> None:
    rows = pd.read_csv(home / "rows.csv").drop(columns="site")
    rows.assign(income=rows["income"] * 1e160).to_csv(tmp_path / "large.csv", index=False)
    train = ("train", tmp_path / "large.csv", "--target")
    result = invoke(*train, "label", "--steps", 100, "--out", tmp_path / "m")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    result = invoke(*train, "income", "--drop", "label", "--out", tmp_path / "n")
    assert result.exit_code == 2
    assert re.match(r"Error: y has a value of size .*: divide it by", result.stderr, re.DOTALL)


X = np.random.default_rng(0).normal(size=(20, 3))
Y = np.where(X[:, 0] > 0, "yes", "no")
API: dict[str, tuple[Callable[[], Any], str]] = {
    "words where numbers should be": (
        lambda: wl.Problem(X, Y), r"could not convert|labels"),
    "labels 0 and 1": (
        lambda: wl.Problem(X, (Y == "yes").astype(float)),
        r"takes labels -1 and \+1, but row \d+ has label 0.*Map your two classes"),
    "a missing value": (
        lambda: wl.RandomWalkClassifier().fit(np.where(X > 1, np.nan, X), Y), r"NaN"),
    "one class": (
        lambda: wl.RandomWalkClassifier().fit(X, np.full(20, "yes")),
        r"at least 2 classes.*1 class"),
    "a graph of another size": (
        lambda: wl.RandomWalkClassifier(graph=wl.graphs.ring(5)).fit(X, Y),
        r"20 rows for the 5 nodes.*nodes="),
    "epsilon alone": (
        lambda: wl.RandomWalkClassifier(epsilon=3.0).fit(X, Y),
        r"needs delta"),
    "no minimiser": (
        lambda: wl.simulate(
            wl.Problem(X, np.where(Y == "yes", 1.0, -1.0)), wl.graphs.ring(20),
            wl.walks.Uniform(), steps=10, step_size=wl.PowerStep(0.1)),
        r"can be separated.*penalty"),
    "a disconnected graph": (
        lambda: wl.graphs.from_edges([(0, 1), (2, 3)]), r"not connected.*connected=\"largest\""),
    "a disconnected graph for a fit": (
        lambda: wl.RandomWalkClassifier(graph=np.eye(20)[::-1]).fit(X, Y),
        r"not connected.*Add edges.*graphs.as_graph"),
    "values whose squares are infinite": (
        lambda: wl.RandomWalkClassifier(standardise=False).fit(1e160 * np.asarray(X), Y),
        r"X has a value of size .*e\+16.*divide it by"),
    "targets whose squares are infinite": (
        lambda: wl.RandomWalkRegressor().fit(X, np.linspace(0.0, 1e160, 20)),
        r"y has a value of size .*e\+159.*divide it by"),
    "a model that is not there": (lambda: wl.Model.load("nowhere"), r"there is no nowhere"),
}  # fmt: skip


@pytest.mark.parametrize("name", API)
def test_mistakes_in_python(name: str) -> None:
    call, message = API[name]
    with pytest.raises(ValueError, match=f"(?s){message}"):
        call()
