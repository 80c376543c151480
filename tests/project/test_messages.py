"""Messages that users meet most, word for word, and other mistakes by the names in their answers.

Each mistake is made as a new user would make it, through the command line or the API, and leaves
nothing behind. This is the one place that quotes messages; other tests match the names and
values in them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import walklearn as wl
from tests.project.test_bad_input import Stay, X, Y, fit, plan, remember, simulate
from tests.running import invoke
from walklearn import graphs, losses, walks
from walklearn.node import Invite

PRIVATE = "--epsilon 3 --delta 0.03 --feature-bound 8 --task classification"
CONSTANTS = f"{PRIVATE} --walk weighted --model 'in the clear'"

# Situation: command, and all that follows "Error:", with single spaces.
SHELL: dict[str, tuple[str, str]] = {
    "a misspelt command": (
        "trian people.csv --target label --out m",
        "No such command 'trian', did you mean 'train'?"),
    "a misspelt file": (
        "train poeple.csv --target label --out m",
        "poeple.csv does not exist, did you mean 'people.csv'?"),
    "a spreadsheet": (
        "train people.xlsx --target label --out m",
        "people.xlsx has an unknown suffix. Save the data as .csv, .tsv, .txt, .parquet, .npz, "
        ".svmlight, .libsvm, .svm or .csv.gz."),
    "no target": (
        "train people.csv --out m",
        "--target is missing. Pass the column to predict; the columns of people.csv are 'age', "
        "'label', 'city', 'name' and 'country'."),
    "a misspelt target": (
        "train people.csv --target lable --out m",
        "people.csv has no column 'lable', did you mean 'label'? Its columns are 'age', 'label', "
        "'city', 'name' and 'country'."),
    "a target that never changes": (
        "train people.csv --target country --out m",
        "the target 'country' is Norway in every row. Choose another target."),
    "a target of names": (
        "train people.csv --target name --out m",
        "the target 'name' has 120 different values in 120 rows, too many for classes. Choose "
        "another target."),
    "regression of words": (
        "train people.csv --target label --task regression --out m",
        "the target 'label' is text, such as 'no', and regression predicts numbers. Use --task "
        "classification, or choose another target."),
    "a column of names": (
        "train people.csv --target label --out m",
        "people.csv: column 'name' is text with 120 different values in 120 rows, such as 'person "
        "0', 'person 1' and 118 others: these are names or numbers, not categories. Leave the "
        "column out (--drop name), or write numbers as 1234.5."),
    "a letter among numbers": (
        "train letter.csv --target label --out m",
        "letter.csv, row 17 (line 18), column 'age': 'abc' is not a number, as others in this "
        "column are (1 such row). Correct it, or if the column is text, declare it (--text age)."),
    "a missing value": (
        "train missing.csv --target label --out m",
        "missing.csv, row 17 (line 18), column 'age': the value is missing (1 such row in this "
        "column). Fill it in, or leave the row out."),
    "a comma too many": (
        "train ragged.csv --target label --out m",
        "ragged.csv, row 2 (line 3) has 4 cells, the header has 3: '31,1,000,yes'. Put a cell "
        "that contains the separator in quotes, and give every column a cell."),
    "pandas' index": (
        "train index.csv --target label --out m",
        "index.csv: column 1 has no name in the first line. If pandas wrote the file, write it "
        "with to_csv(..., index=False)."),
    "rows without a header": (
        "train headless.csv --target label --out m",
        "headless.csv: the first line should name the columns, but it is data: '58.2,48.4'. Put a "
        "line with names above it."),
    "a graph in pieces": (
        "train rows.csv --target label --node-column site --graph pieces.txt --out m",
        "pieces.txt: the graph is not connected: it has 2 components, the largest with 5 of 10 "
        "nodes. No path leads from node '0' to '5', '6', '7', '8' and '9'. Add edges, or leave out "
        "the rows and edges of some nodes."),
    "edges numbered from 1": (
        "train rows.csv --target label --node-column site --graph from1.txt --out m",
        "rows.csv, row 1 (line 2): node '0' owns this row and is not in from1.txt, whose nodes "
        "are 1 to 10. Rows number the nodes from 0, and edges from 1. Use the same numbers in "
        "both."),
    "edges with other names": (
        "train rows.csv --target label --node-column site --graph names.txt --out m",
        "rows.csv, row 1 (line 2): node '0' owns this row and is not in names.txt, whose nodes "
        "are 'bern', 'oslo' and 'rome'. Rows and edges must use the same names."),
    "edges with a word too many": (
        "train rows.csv --target label --node-column site --graph weights.txt --out m",
        'weights.txt, line 1: expected two nodes, such as "oslo rome" or "oslo,rome" (names with '
        "spaces need a comma or a tab between them), got '0 1 heavy'."),
    "numbers with a decimal comma": (
        "train comma.csv --target label --out m",
        "comma.csv: column 'temperature' has numbers with a comma, such as '36,5'. Write them "
        "with a point, as 36.5 or 1234.5, or leave the column out (--drop temperature)."),
    "a graph that does not fit the rows": (
        "train rows.csv --target label --drop site --graph edges.txt --out m",
        "edges.txt has 10 nodes, and there are 120 rows. Pass --node-column, the column that names "
        "the node that owns a row, or a graph with a node for each row (--graph erdos-renyi)."),
    "a misspelt graph": (
        "train rows.csv --target label --graph rign --out m",
        "'rign' is neither a family of graphs nor an existing file. Did you mean 'ring'? The "
        "families are ring, star, complete, grid, torus, hypercube, barbell, erdos-renyi, "
        "geometric, random-regular, watts-strogatz, barabasi-albert. A file has an edge such as "
        '"3 7" on each line.'),
    "epsilon without delta": (
        "train rows.csv --target label --epsilon 3 --feature-bound 8 --out m",
        "--epsilon needs --delta. Pass both, such as --epsilon 3 --delta 1e-5."),
    "privacy without a bound": (
        "train rows.csv --target label --epsilon 3 --delta 0.03 --out m",
        "privacy needs a public scale of 'age', 'income' and 'site', and one from the data would "
        "leak. Declare it, such as --scale age=50,20 (typical centre and spread; '*' for all "
        "columns), as a --range, or in a --schema file (`walklearn schema` writes a template); or "
        "pass --feature-bound."),
    "privacy with categories from the data": (
        f"train cities.csv --target label {PRIVATE} --out m",
        "privacy needs public categories of 'city', and those in the data would leak. Declare all "
        "possible ones, such as --categories city=a,b,c or in a --schema file; or leave the column "
        "out with --drop city, or use it as --node-column city."),
    "a privacy target out of reach": (
        f"train rows.csv --target label {CONSTANTS} --mechanism gamma --out m",
        "no noise level gives delta <= 0.03 at epsilon = 3 for bounds 0.251..16.251: the floor is "
        "0.879. Narrow the bounds to at most 0.251..0.578, raise epsilon above 219, or use "
        "clamped-gamma."),
    "steps that are too long": (
        "train rows.csv --target label --loss squared-hinge --step-constant 1e6 --steps 2000 "
        "--out m",
        "the model diverged to infinity: the steps are too long. Use a smaller step or none, or a "
        "bounded domain (in Python: domain=domains.Ball(10.0))."),
    "a model in the way": (
        "train rows.csv --target label --out there",
        "there already holds a model. Choose another path, or overwrite it with --force (in "
        "Python: save(..., overwrite=True))."),
    "a file in the way": (
        "train rows.csv --target label --out rows.csv --force",
        "rows.csv exists and is not a model, so it is never overwritten. Choose another path."),
    "a model inside a file": (
        "train rows.csv --target label --out rows.csv/model",
        "rows.csv is a file, not a directory. Choose another path."),
    "predicting without a model": (
        "predict m rows.csv",
        "m does not exist. `walklearn train ... --out m` makes it."),
    "model and data swapped": (
        "predict rows.csv there",
        "rows.csv is not a model. A model is a directory with model.json, weights.npz, "
        "ledger.json, report.md."),
    "predicting from other columns": (
        "predict there letter.csv",
        "letter.csv has no column 'income'. Its columns are 'age' and 'label'."),
    "predictions in a directory that is not there": (
        "predict there rows.csv --out no/p.csv",
        "the directory no does not exist. Make it first: mkdir -p no"),
    "a category that the model does not know": (
        "predict cities strange.csv",
        "strange.csv, row 3 (line 4), column 'city': 'rome' is not among its categories, did you "
        "mean 'Rome'? They are 'Oslo' and 'Rome': leave such rows out, or declare it when "
        "training (--categories, or a schema)."),
    "advice without the number of nodes": (
        "advise --graph ring",
        "the graph 'ring' needs a number of nodes (nodes, --nodes)."),
    "a network of another size than its graph": (
        "up --nodes 4 --graph edges.txt --out m",
        "--nodes is 4, and edges.txt has 10 nodes. Pass --nodes 10, or leave it out."),
    "an export of unknown kind": (
        "export there model.pkl",
        "model.pkl has an unknown suffix. Use .onnx (ONNX) or .joblib (a scikit-learn estimator)."),
}  # fmt: skip

# Command: names and values in its answer.
NAMED: dict[str, tuple[str, ...]] = {
    "train spaces.csv --target label --out m": ("spaces.csv", "'label'", "'age label'"),
    "train rows.csv --target label --drop site --graph pieces.txt --out m": ("5 of 10 nodes",),
    "train rows.csv --target label --drop site --graph loop.txt --out m": (
        "Note: loop.txt: left out 1 edge", "10 nodes", "--node-column"),
    f"train rows.csv --target label {PRIVATE} --model-noise 3 1e-5 1 5 --out m": (
        "epsilon", "--model-noise"),
    "predict there rows.csv --out rows.csv/p.csv": ("rows.csv is a file",),
    "schema rows.csv --target label --out rows.csv/s.toml": ("rows.csv is a file",),
    "schema rows.csv --target label --out no/s.toml": ("mkdir -p no",),
    "predict there rows.csv --out p.parquet": ("p.parquet", ".csv"),
    "predict numbers rows.csv --proba": ("'squared'", "logistic"),
    "advise --nodes 4 --graph edges.txt": ("--nodes is 4", "edges.txt", "--nodes 10"),
    "up --walk weighted --epsilon -1 --delta 1e-5 --out m": ("'--epsilon'", "-1.0", "x>0"),
    "up --walk weighted --epsilon 3 --delta 0 --out m": ("--delta", "0.0"),
}  # fmt: skip


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of a new user, some of them wrong, and three models."""
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


@pytest.mark.filterwarnings("default")  # as for users, who see notes instead
@pytest.mark.parametrize("mistake", [*SHELL, *NAMED])
def test_mistakes_in_the_shell(mistake: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command, message = SHELL.get(mistake, (mistake, ""))
    monkeypatch.chdir(home)
    before = {path: path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file()}
    result = invoke(*shlex.split(command))
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    answer = " ".join(result.stderr.split())
    assert "Traceback" not in answer
    if message:
        assert answer.rpartition("Error: ")[2] == message
    assert all(name in answer for name in NAMED.get(mistake, ())), answer
    after = {path: path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file()}
    assert after == before


def test_notes_of_a_run_that_is_no_mistake_but_surprises(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Separable classes without a penalty, rows too few or too long: it runs, and says so."""
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(1).normal(size=(40, 5))
    rows[:, 0] += np.sign(rows[:, 0])  # a gap between the classes
    y = (rows[:, 0] > 0).astype(int)
    table = pd.DataFrame(rows, columns=list("abcde")).assign(y=y)
    table.to_csv("apart.csv", index=False)
    for options, note in (
        ("--penalty 0 --max-steps 20000", r"separated by a hyperplane.*positive penalty"),
        ("--steps 100", r"40 rows are few for 5 features.*--test-fraction 0\.2"),
        ("--epsilon 3 --delta 0.03 --feature-bound 0.5 --steps 100 --task classification",
         r"4\d of 40 rows were longer than the feature bound 0\.5.*--scale"),
        ("--graph ring --update sgd --steps 100", r"never mixes.*\(--laziness 0\.1\)"),
        ("--graph ring --steps 100", r"rows are few"),  # with memory it arrives all the same
        ("--max-steps 1000 --tol 0", r"gradient norm is .* Raise max_steps or tol"),
        ("--update sgd --max-steps 1000 --tol 0", r"loss is .*Raise max_steps or tol"),
    ):  # fmt: skip
        command = f"train apart.csv --target y --seed 1 {options} --out m --force"
        result = invoke(*command.split())
        assert result.exit_code == 0, result.output
        text = " ".join(result.stderr.split())
        assert re.search(note, text), text
        assert ("never mixes" in text) == ("ring --update sgd" in options)


@pytest.mark.filterwarnings("default")
def test_numbers_with_infinite_squares_cause_no_warnings_of_numpy(
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


# Situation: call, and its message.
API: dict[str, tuple[Callable[[], Any], str]] = {
    "disconnected": (
        lambda: graphs.from_edges([(0, 1), (2, 3)]),
        "the graph is not connected: it has 2 components, the largest with 2 of 4 nodes. No path "
        "leads from node 0 to 2 and 3. Add edges, or keep its largest component only (in "
        'Python: graphs.as_graph or graphs.from_edges with connected="largest").'),
    "edges by name": (
        lambda: graphs.from_edges([("a", "b")]),  # type: ignore[list-item]
        "edges must be pairs (i, j) of whole numbers from 0, got ['a', 'b']. For nodes with names "
        "use graphs.from_networkx(networkx.Graph(edges)), or a file and graphs.read_edge_list."),
    "NaN": (
        lambda: wl.Problem(np.where(X > 0, np.nan, X), Y),
        "row 0 has a value that is NaN or infinite (3 such rows in all). Drop these rows or fill "
        "the values in first."),
    "lengths differ": (
        lambda: wl.Problem(X, [1.0, -1.0]),
        "y must have one entry for each of the 3 rows of X, got shape (2,)."),
    "text in y": (
        lambda: wl.Problem(X, ["a", "b", "a"]),
        "y must hold numbers: could not convert string to float: 'a'. Number your classes first, "
        "for example names, y = np.unique(label, return_inverse=True); RandomWalkClassifier takes "
        "any labels."),
    "labels 0 and 1": (
        lambda: wl.Problem(X, [0, 1, 1]),
        "Logistic takes labels -1 and +1, but row 0 has label 0. Map your two classes first, for "
        "example y = np.where(label == positive_label, 1.0, -1.0), or use Softmax for classes "
        "0..K-1."),
    "node without rows": (
        lambda: wl.Problem(X, Y, node_of_row=[0, 2, 2]),
        "node 1 has no rows (1 such node in all; rows of weight 0 do not count). Give it rows, or "
        'pass empty_nodes="relay" to let such nodes only forward the token.'),
    "graph of another size": (
        lambda: simulate(graph=graphs.ring(4)),
        "the graph has 4 nodes, but the objective has 3. Use a graph with 3 nodes, or spread the "
        'rows over 4 nodes with node_of_row=…, or pass nodes=4 and empty_nodes="relay".'),
    "a class of walks": (
        lambda: fit(walk=walks.Uniform),
        "walk must be one of auto, simple, uniform, oldest-first, tour, weighted, or a walk such "
        "as walks.Weighted(), got the class Uniform: write Uniform()."),
    "words for a regressor": (
        lambda: wl.RandomWalkRegressor().fit(X, np.array(["1", "yes", "no"])),
        "row 1 of y is the text 'yes', and a regressor predicts numbers. Use "
        "RandomWalkClassifier for classes."),
    "a schema of too few columns": (
        lambda: fit(epsilon=1.0, delta=1e-5, schema=wl.tables.Schema.typical([0, 0], [1, 1])),
        "epsilon = 1 needs a public scale of every column, and the schema declares none of 'x2'. "
        "Add a centre and spread, or a range, known without looking at the rows ('*' stands for "
        "all other columns)."),
    "a kind of penalty": (
        lambda: wl.Problem(X, Y, penalty="l2"),  # type: ignore[arg-type]
        "penalty must be a finite number of at least 0, got 'l2'."),
    "no minimiser": (
        lambda: wl.Problem(X, Y).solution,
        "the objective has no minimiser: the classes can be separated by a hyperplane, there is "
        "no penalty and the domain is unbounded, so the loss keeps decreasing as the model "
        "grows. Use a positive penalty or a bounded domain (in Python: "
        "domain=domains.Ball(10.0))."),
    "laziness 1": (
        lambda: walks.Uniform(laziness=1.0),
        "laziness must be a finite number of at least 0 and less than 1, got 1.0."),
    "zero steps": (
        lambda: simulate(steps=0),
        "steps must be a whole number of at least 1, got 0."),
    "negative seed": (
        lambda: simulate(seed=-1),
        "seed must be a whole number of at least 0, a SeedSequence or None, got -1."),
    "a walk without a kernel": (
        lambda: simulate(Stay(), engine="compiled"),
        'Stay() has no kernel. Pass engine="reference".'),
    "a step for memory": (
        lambda: remember(step_size=wl.PowerStep(0.1)),
        "step_size= stands for update=updates.Sgd(step_size), so Saga() does not use it. Leave it "
        "out. Saga finds its step itself, or takes one as Saga(0.1)."),
    "half an invite": (
        lambda: Invite.decode("walklearn1:alice@host:1/abc"),
        "the invite is incomplete or was changed on its way (its checksum does not fit): copy the "
        "whole line again."),
    "no invite": (
        lambda: Invite.decode("alice"),
        'an invite is one line that begins with "walklearn1:", as `walklearn node invite` prints '
        "it; this begins with 'alice'."),
    "unknown update of a plan": (
        lambda: plan(update='"sagaa"'),
        'plan, line 8: update is "sagaa", which is not known; did you mean "saga"? Choose one of '
        "sgd, saga."),
    "ε without the number of rows": (
        lambda: wl.privacy.plan_budget(
            wl.PrivacySettings(3.0, 1e-5), wl.PublicFacts(20, None, 30, 5.4), losses.Logistic()),
        'protect="rows" needs the public number of rows of all nodes together (rows).'),
    "one class": (
        lambda: wl.RandomWalkClassifier().fit(X, np.full(3, "yes")),
        "a classifier needs at least 2 classes, y has 1 class: ['yes']."),
    "epsilon alone": (
        lambda: fit(epsilon=3.0),
        "epsilon = 3 needs delta: privacy is a pair. Pass delta, which should be small beside "
        "1 / (number of rows), such as 1e-5."),
    "a total without public facts": (
        lambda: fit(epsilon=3.0, delta=1e-5),
        "epsilon = 3 needs public facts about the rows; numbers computed from the rows would "
        "leak. Declare typical values of the columns by schema={'*': {'centre': 0, 'spread': 1}}; "
        "or, if rows are in such units, pass row_length, their typical length; or "
        "feature_bound, a length that rows are shortened to."),
    "a total without a public scale of targets": (
        lambda: wl.RandomWalkRegressor(epsilon=3.0, delta=1e-5, row_length=1.0).fit(X, Y),
        "epsilon for regression needs a public centre and spread of the target, because the "
        "noise is for targets of spread 1. Pass target_centre, a typical target, and "
        "target_spread, the typical deviation from it, both known without looking at the rows."),
    "other protection in a later call": (
        lambda: fit(steps=3, walk="weighted").set_params(epsilon=3.0, delta=1e-5, row_length=1.0)
        .partial_fit(X, Y),
        "the protection and its public facts must be the same in every "
        "call. Keep those of the first call, or start with a new estimator."),
}  # fmt: skip


@pytest.mark.parametrize("mistake", API)
def test_mistakes_in_python(mistake: str) -> None:
    call, message = API[mistake]
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        call()
    assert str(caught.value) == message
