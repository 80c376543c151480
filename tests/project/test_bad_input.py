"""Bad input gets one clear error at the edge: what was wrong, where, and what to do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import walklearn as wl
from tests.running import invoke, refusal
from walklearn import domains, graphs, losses, updates, walks

X, Y = np.eye(3), np.array([1.0, -1.0, 1.0])
RING = graphs.ring(3)
PROBLEM = wl.Problem(X, Y, penalty=1.0)


def remember(update: Any = None, **changes: Any) -> wl.Trace:
    """A run with memory, whose update says itself what the step is."""
    options: dict[str, Any] = {"step_size": None, "update": update or updates.Saga(), **changes}
    return simulate(**options)


def simulate(method: Any = None, **changes: Any) -> wl.Trace:
    options = {"objective": PROBLEM, "graph": RING, "steps": 10, "step_size": wl.PowerStep(0.1)}
    return wl.simulate(method=method or walks.Uniform(), **{**options, **changes})


def fit(**options: Any) -> Any:
    return wl.RandomWalkClassifier(**options).fit(X, Y)


def plan(**changes: str) -> Any:
    """A plan of nodes, from the content of its file."""
    from walklearn.node import Plan

    keys = {
        "name": '"a"',
        "nodes": "3",
        "features": '["age"]',
        "target": '"ill"',
        "classes": '["no", "yes"]',
        "loss": '"logistic"',
        "updates": "1000",
        **changes,
    }
    return Plan.from_text("\n".join(f"{name} = {value}" for name, value in keys.items()))


def hand_over(problem: wl.Problem) -> Any:
    """A walk that goes on, on another problem, with what token and nodes remember."""
    from walklearn.simulation.batches import ReferenceWalks
    from walklearn.streams import generators
    from walklearn.visit import Setting

    settings = [Setting(p, walks.Uniform(), updates.Saga()) for p in (PROBLEM, problem)]
    streams = [generators(np.random.SeedSequence(1))]
    begun = ReferenceWalks(settings[0], RING, streams)
    begun.advance(5)
    return ReferenceWalks(settings[1], RING, streams, begun.positions)


class Stay(walks.Uniform):
    def hop(self, view: Any, *_: Any) -> walks.Hop:
        return walks.Hop(view.node, 0)


class Orthant(domains.Ball):
    """A domain that only the reference knows."""

    def project(self, model: np.ndarray) -> np.ndarray:
        return super().project(np.maximum(model, 0.0))


class Still(updates.Update):
    def visit(self, context: Any, token: Any, state: Any) -> updates.VisitResult:
        return updates.VisitResult(token)


class Halved(losses.Squared):
    def value(self, scores: Any, targets: Any) -> Any:
        return 0.5 * super().value(scores, targets)


def plan_budget(row_length: float | None = 5.4, **given: Any) -> object:
    facts = wl.PublicFacts(nodes=20, rows=500, features=30, row_length=row_length)
    return wl.privacy.plan_budget(wl.PrivacySettings(3.0, 1e-5, **given), facts, losses.Logistic())


def roster(content: bytes) -> Any:
    from walklearn.node import Roster

    return Roster.decode(content, "0" * 64)


CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "no roster": (lambda: roster(b"{}"), "damaged"),
    "a long roster": (lambda: roster(bytes(2_000_000)), "2000000 bytes"),
    "ε without public scales": (
        lambda: plan_budget(row_length=None), "epsilon .*centre and spread.*length"),
    "noise below the budget": (
        lambda: plan_budget(noise_multiplier=1.0), "noise_multiplier = 1 .*ε = 3 "),
    "a cap above the budget": (
        lambda: plan_budget(noise_multiplier=9.0, max_contributions=99),
        "noise_multiplier = 9 .*ε = 3 .*99 .*max_contributions"),
    "a seed that is a word": (
        lambda: graphs.erdos_renyi(9, 0.9, seed="a"), "seed .*'a'"),  # type: ignore[arg-type]
    "a negative seed of a graph": (lambda: graphs.watts_strogatz(9, 2, 0.1, seed=-1), "seed .*-1"),
    "NaN in a matrix": (lambda: graphs.as_graph(np.full((3, 3), np.nan)), "NaN"),
    "isolated node": (lambda: graphs.from_edges([(0, 1)], nodes=3), "node 0 to 2"),
    "disconnected draw": (
        lambda: graphs.erdos_renyi(50, 0.01, seed=1),
        '38 components.*node 6 to 0, 1, .*connected="largest"'),
    "numbered from 1": (lambda: graphs.from_edges([(1, 2), (2, 3)]), "begin at 1"),
    "rows beyond double precision": (
        lambda: wl.Problem(1e160 * np.asarray(X), Y, penalty=1.0).solution, r"X .*1e\+160"),
    "text in X": (lambda: wl.Problem([["a"]], [1.0]), "X .*'a'"),
    "hinge labels": (
        lambda: wl.Problem(X, [1, 2, 1], loss=losses.SquaredHinge()),
        r"SquaredHinge .*row 1 .* 2\."),
    "class -1": (lambda: wl.Problem(X, Y, loss=losses.Softmax()), "Softmax .*row 1 .*-1"),
    "class 1.5": (
        lambda: wl.Problem(X, [0, 1, 1.5], loss=losses.Softmax()), r"Softmax .*row 2 .*1\.5"),
    "class 3 of 3": (
        lambda: wl.Problem(X, [0, 1, 3], loss=losses.Softmax(3)), r"Softmax .*0\.\.2 .*3\."),
    "negative weight": (
        lambda: wl.Problem(X, Y, sample_weight=[1, 1, -2]), "sample_weight .*row 2 .*-2"),
    "a weight for some rows": (
        lambda: wl.Problem(X, Y, sample_weight=[1, 1]), r"sample_weight .*3 rows.*\(2,\)"),
    "a class of losses": (lambda: fit(loss=losses.Logistic), r"class Logistic: .*Logistic\(\)"),
    "a class of updates": (lambda: fit(update=updates.Saga), r"class Saga: .*Saga\(\)"),
    "a class of mechanisms": (
        lambda: wl.privacy.calibrate(
            wl.privacy.Gaussian, epsilon=1, delta=1e-5, bounds=(1, 2)),
        "'gaussian'"),
    "no penalty of an estimator": (lambda: fit(penalty=None), "penalty .*None"),
    "half precision": (lambda: wl.Problem(X, Y, dtype=np.float16), "dtype .*float16"),
    "no radius": (lambda: wl.domains.Ball(0.0), r"radius .*Ball.*0\.0"),
    "box inside out": (lambda: wl.domains.Box(1.0, -1.0), "low < high"),
    "Huber threshold": (lambda: losses.Huber(0.0), r"threshold .*Huber.*0\.0"),
    "one class": (lambda: losses.Softmax(1), r"Softmax .*1\."),
    "zero importance": (lambda: walks.Weighted([1.0, 0.0, 1.0]), "importance .*node 1 has 0"),
    "NaN importance": (lambda: walks.Weighted([1.0, np.nan, 1.0]), "importance .*node 1 has nan"),
    "importance of another size": (
        lambda: simulate(walks.Weighted([1.0, 2.0])), r"importance .*3 nodes.*\(2,\)"),
    "L_i = 0": (
        lambda: simulate(walks.Weighted(), objective=wl.Problem(
            np.diag([1.0, 0.0, 1.0]), Y, domain=wl.domains.Ball(1.0))),
        "importance .*node 1 has 0"),
    "jump probability": (lambda: walks.Jumping(probability=1.0), "probability .*less than 1"),
    "history": (lambda: walks.HistoryDriven(alpha=-1.0), r"alpha .*-1\.0"),
    "jump length": (lambda: walks.Jumping(max_hops=0), "max_hops .* 0"),
    "negative step": (lambda: wl.PowerStep(-1.0), r"constant c .*-1\.0"),
    "infinite step": (lambda: wl.ConstantStep(np.inf), "constant c .*inf"),
    "negative exponent": (lambda: wl.PowerStep(1.0, -0.5), r"exponent q .*-0\.5"),
    "half a step": (lambda: simulate(steps=1.5), r"steps .*1\.5"),
    "zero replicates": (lambda: simulate(replicates=0), "replicates .* 0"),
    "zero rows a visit": (lambda: simulate(batch=0), "batch .* 0"),
    "no tokens": (lambda: simulate(tokens=0), "tokens .* 0"),
    "tokens of plain SGD": (lambda: simulate(tokens=4), r"4 tokens of Sgd.*Finito\(\)"),
    "tokens of gossip": (
        lambda: simulate(wl.AsynchronousGossip(), tokens=2), r"tokens=2 .*AsynchronousGossip\("),
    "tokens without time": (
        lambda: remember(wl.updates.Finito(), tokens=2, hop_time=0.0), "hop_time and visit_time"),
    "negative hop time": (lambda: simulate(hop_time=-1.0), r"hop_time .*0, got -1"),
    "excessive hop time": (lambda: simulate(hop_time=1e307), r"hop_time .*at most 1e\+100"),
    "infinite visit time": (lambda: simulate(visit_time=np.inf), "visit_time .*inf"),
    "zero cores": (lambda: simulate(cores=0), "cores .* 0"),
    "zero records": (lambda: simulate(records=0), "records .* 0"),
    "record past the end": (lambda: simulate(records=[5, 11]), "records .*steps = 10"),
    "records that are not whole": (lambda: simulate(records=[1.7, 2.2]), "records .*steps = 10"),
    "steps that are True": (lambda: simulate(steps=True), "steps .*True"),
    "gaps of no node": (lambda: simulate(gaps=0), "gaps .* 0"),
    "streams of nobody": (lambda: simulate(streams="nodes"), 'streams .*"replicate" or "node"'),
    "a mean by guess": (
        lambda: simulate(mean_importance="a"), 'mean_importance .*"exact" or "estimated"'),
    "nodes of gossip": (
        lambda: simulate(wl.AsynchronousGossip(), streams="node"),
        'streams="node" .*AsynchronousGossip'),
    "half a gap": (lambda: simulate(gaps=0.5), r"gaps .*0\.5"),
    "a generator as seed": (lambda: simulate(seed=np.random.default_rng(1)), "seed .*Generator"),
    "a loss without a kernel": (
        lambda: simulate(objective=wl.Problem(X, Y, loss=Halved(), penalty=1.0), engine="compiled"),
        r"Halved\(.*\) has no kernel"),
    "a domain without a kernel": (
        lambda: simulate(objective=wl.Problem(X, Y, domain=Orthant(1.0)), engine="compiled"),
        r"Orthant\(.*\) has no kernel"),
    "an update without a kernel": (
        lambda: remember(Still(), engine="compiled"), r"Still\(\) has no kernel"),
    "unknown engine": (
        lambda: simulate(engine="quantum"), 'engine .*"compiled", "reference" or None'),
    "tracking parts of gradients": (
        lambda: wl.simulate(PROBLEM, RING, wl.GradientTracking(), steps=10, batch=1,
                            step_size=wl.ConstantStep(0.1)),
        "gradient tracking .*batch"),
    "lonely gossip": (
        lambda: simulate(wl.AsynchronousGossip(), graph=graphs.ring(1),
                         objective=wl.Problem([[1.0]], [1.0], penalty=1.0)),
        "gossip .*2 nodes"),
    "too many nodes": (lambda: wl.datasets.split_evenly(3, 4), "4 nodes .*3 rows"),
    "a falling step": (
        lambda: updates.Saga(wl.PowerStep(0.1)),  # type: ignore[arg-type]
        "Saga .*ConstantStep.*PowerStep"),
    "a negative step": (
        lambda: updates.Saga(-1.0), r"constant c .*-1\.0"),  # type: ignore[arg-type]
    "gossip with memory": (
        lambda: remember(method=wl.AsynchronousGossip()), r"Saga\(\) .*gossip.*step_size"),
    "memory and released constants": (
        lambda: remember(
            method=walks.Weighted(privacy=wl.privacy.ClampedGamma(20.0, (1.0, 60.0)))
        ),
        r"Saga\(\) .*release of L_i .*updates\.Sgd"),
    "memory and a mean importance": (
        lambda: remember(mean_importance="estimated"), "mean_importance"),
    "unknown update of an estimator": (lambda: fit(update="sagaa"), "'sagaa', .*'saga'"),
    "no update of an estimator": (lambda: fit(update=3), 'update .*"auto", .*saga.*got 3'),
    "a step for an estimator's memory": (
        lambda: fit(update="saga", step_size=0.1), "step_size.*update='saga'"),
    "an average of an estimator's memory": (
        lambda: fit(update="saga", average="tail"), "average='tail'"),
    "an estimator's memory and ε": (
        lambda: fit(update="saga", epsilon=3.0, delta=1e-5, row_length=1.0), 'update .*"auto"'),
    "ε for numbers without the target's scale": (
        lambda: wl.RandomWalkRegressor(epsilon=3.0, delta=1e-5, row_length=1.0).fit(X, Y),
        "target_centre.*target_spread"),
    "noise by hand for numbers without the target's scale": (
        lambda: wl.RandomWalkRegressor(model_privacy=wl.privacy.ModelNoise(1.0, 9.0, 5)).fit(X, Y),
        "model_privacy .*target_centre"),
    "an update that nodes do not have": (lambda: plan(update='"newton"'), "update .*newton"),
    "a step for a plan's memory": (
        lambda: plan(update='"saga"', step_size="{ constant = 0.1 }"), "step_size .*saga"),
    "memory of a wider problem": (
        lambda: hand_over(wl.Problem(np.eye(3, 5), Y, penalty=1.0)),
        r"Saga\(\): array 'model' .*\(3,\).*\(5,\)"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_value_errors(case: str) -> None:
    call, message = CASES[case]
    with pytest.raises(ValueError, match=f"(?s){message}"):
        call()


MISTAKEN_TYPES: list[tuple[Callable[[], Any], str]] = [
    (lambda: simulate(walks.Uniform), r"class Uniform: .*Uniform\(\)"),
    (lambda: simulate(objective=[[0.1234567] * 99]), r"\[\[0.1.{,60}$"),
    (lambda: remember(updates.Saga), r"class Saga: .*Saga\(\)"),
    (lambda: wl.Problem(X, Y, loss=losses.Logistic), r"class Logistic: .*Logistic\(\)"),
    (lambda: walks.Jumping(walks.Uniform), r"class Uniform: .*Uniform\(\)"),
    (lambda: wl.theory.diagnose(PROBLEM, RING, walks.Uniform()), r"diagnose\(graph, problem"),
    (lambda: wl.theory.diagnose(RING, PROBLEM, walks.Uniform), r"class Uniform: .*Uniform\(\)"),
    (lambda: wl.plots.visits(3), "visits .*got 3"),
    (lambda: wl.plots.convergence([3]), "traces .*got 3"),
    (lambda: wl.plots.convergence(3), "traces .*got 3"),
    (lambda: simulate(graph=graphs.to_networkx(RING)), r"networkx.*graphs\.as_graph"),
    (lambda: remember(3.0), r"updates\.Saga\(\).*got 3\.0"),
    (
        lambda: simulate(step_size=None, method=wl.AsynchronousGossip()),
        r"step_size=PowerStep\(…\).*AsynchronousGossip",
    ),
    (lambda: simulate(update="sgd", step_size=None), "step_size=PowerStep"),
    (lambda: simulate(privacy=1.0), r"privacy\.ModelNoise\(...\), got 1\.0"),
    (lambda: simulate(objective=(X, Y)), r"walklearn\.Problem"),
    (lambda: wl.Problem(X, Y, domain=10.0), r"domains\.Ball\(10\.0\)"),
    (lambda: wl.Problem(X, Y, domain=Orthant(1.0)).solution, r"Orthant\(radius=1\.0\)"),
    (lambda: walks.Weighted().stationary(RING), r"Weighted\(\) needs the objective"),
    (lambda: wl.theory.diagnose(RING, PROBLEM, wl.AsynchronousGossip()), "AsynchronousGossip"),
    (lambda: walks.NonBacktracking().transition_matrix(RING), r"NonBacktracking.*Uniform\(\)"),
    (lambda: walks.Independent().transition_matrix(RING), "Independent"),
]


@pytest.mark.parametrize(("call", "message"), MISTAKEN_TYPES)
def test_type_errors(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


@pytest.mark.parametrize(
    ("options", "capability"),
    [({"batch": 1}, "is_exact"), ({"step_size": None, "update": "saga"}, "linear_rows")],
)
def test_parts_that_noise_on_the_model_excludes(options: dict[str, Any], capability: str) -> None:
    with pytest.raises(wl.CapabilityError) as caught:
        simulate(privacy=wl.privacy.ModelNoise(1.0, 1.0, 5), **options)
    assert caught.value.capability == capability
    assert caught.value.remedy


# What people type, on files that look right: "exit code 0 and a model" would be the trap.
ROWS = {
    "rows": "a,b,y\n1,2,0\n2,1,1\n3,5,0\n4,3,1\n5,4,0\n6,8,1\n",
    "signs": "a,b,y\n1,2,-1\n2,1,1\n",
    "words": "a,b,y\nhigh,2,1\nlow,1,0\n",
    "twice": "a,a,y\n1,2,0\n2,1,1\n",
}
TYPED: dict[str, tuple[str, ...]] = {
    "labels that training does not know": (
        "train rows.csv --target y --test signs.csv --out m",
        "signs.csv", "'-1' in 1 of 2", "'0' and '1'"),
    "words where numbers are predicted": (
        "train rows.csv --target a --drop y --task regression --test words.csv --out m",
        "words.csv", "'a'", "'high'"),
    "the target owns the rows": ("train rows.csv --target y --node-column y --out m", "'y'"),
    "advice on a target that owns the rows": ("advise rows.csv --target y --node-column y", "'y'"),
    "the target is dropped": ("train rows.csv --target y --drop y --out m", "'y'", "predicted"),
    "categories of the owner": (
        "train rows.csv --target y --node-column a --categories a=1,2,3,4,5,6 --out m",
        "'a'", "categories"),
    "the owner is dropped": (
        "train rows.csv --target y --node-column a --drop a --out m", "'a'", "owns"),
    "two ways to test": (
        "train rows.csv --target y --test rows.csv --test-fraction 0.5 --out m",
        "--test ", "--test-fraction"),
    "advice on what the file says": ("advise rows.csv --target y --nodes 7", "--nodes", "rows.csv"),
    "a wrong penalty": ("train rows.csv --target y --penalty nan --out m", "penalty", "nan"),
    "a loss of numbers": ("train rows.csv --target y --loss huber --out m", "logistic", "'huber'"),
    "a negative penalty": ("train rows.csv --target y --penalty -1 --out m", "'--penalty'", ">=0"),
    "a negative step": (
        "train rows.csv --target y --step-constant -1 --out m", "'--step-constant'", ">0"),
    "a file in the way and no model": ("export nothing rows.onnx", "nothing does not"),
    "a name for two columns": (
        "train twice.csv --target y --out m", "twice.csv", "'a'", "columns 1 and 2"),
}  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("typed")
    for name, content in ROWS.items():
        (folder / f"{name}.csv").write_text(content)
    model = wl.Model([1.0, 0.0], [1.0, 0.0], loss="logistic",
                     columns=["a", "b"], classes=[0, 1], target="y")  # fmt: skip
    model.save(folder / "model")
    return folder


@pytest.mark.parametrize("case", TYPED)
def test_mistakes_on_the_command_line(
    case: str, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    command, *names = TYPED[case]
    message = refusal(*command.split())
    assert all(name in message for name in names), message
    assert not Path("m").exists()


def test_possible_mistakes_are_noted(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files)
    lines = [f"s{i % 25},{i},{i % 8},{3},{i % 3},{i % 2}" for i in range(60)]
    Path("doubtful.csv").write_text("\n".join(["place,number,site,same,b,y", *lines]))
    command = "train doubtful.csv --target y --steps 10 --seed 1 --out doubtful --json"
    notes = " ".join(json.loads(invoke(*command.split()).stdout)["notes"])
    for part in (
        "'place' is text", "25 features", "--node-column place",
        "'site' is used as", "--node-column site",
        "'number' looks like", "'same' is 3 in every row",
    ):  # fmt: skip
        assert part in notes, notes
    assert "'b'" not in notes
    result = invoke("predict", "model", "signs.csv")
    assert result.stdout == "y\n1\n1\n"
    assert "accuracy" not in result.stderr
    assert "has '-1' in 1 of 2 rows" in result.stderr


@pytest.mark.parametrize(
    ("header", "options", "notes"),
    [
        ("Hospital ID", "", ["'Hospital ID' is used", "--node-column 'Hospital ID'"]),
        ("site-id", "", ["'site-id' is used"]),
        ("Clinic_codes", "", ["'Clinic_codes' is used"]),
        ("site", "--node-column near", ["'site' is used", "pass --node-column site"]),
        ("site", "--node-column site", []),
        ("place", "--node-column size", ["--node-column size looks like a measurement", "0.5"]),
        ("place", "--node-column row", ["row looks like", "60 different values"]),
    ],
)
def test_columns_that_may_name_owners_are_noted(
    header: str, options: str, notes: list[str], tmp_path: Path
) -> None:
    lines = [f"{i % 8},{i % 5 + 0.5},{i % 4},r{i},{i % 2}" for i in range(60)]
    (tmp_path / "rows.csv").write_text("\n".join([f"{header},size,near,row,y", *lines]))
    keep = "" if options.endswith("row") else "--drop row"
    said = f"{options} {keep} --target y --steps 10 --seed 1 --json --out".split()
    result = invoke("train", tmp_path / "rows.csv", *said, tmp_path / "m")
    found = [each for each in json.loads(result.stdout)["notes"] if "few for" not in each]
    assert len(found) == bool(notes), found
    assert all(note in found[0] for note in notes), found


@pytest.mark.parametrize("exponent", [0.3, 0.5, 1.0, 2.0])
def test_exponent_outside_the_theorems_warns(exponent: float) -> None:
    with pytest.warns(UserWarning, match=r"0\.5 < q < 1"):
        wl.PowerStep(1.0, exponent)


def test_specs_cannot_be_changed() -> None:
    for spec, name in ((PROBLEM, "penalty"), (RING, "indptr"), (walks.Weighted(), "laziness")):
        with pytest.raises(AttributeError):
            setattr(spec, name, 1.0)
    for array in (PROBLEM.X, PROBLEM.y, RING.indices):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_numpy_numbers_are_numbers() -> None:
    plain = simulate(steps=10, seed=3, records=5, replicates=2)
    numpy = simulate(
        steps=np.int64(10), seed=np.int64(3), records=np.int64(5), replicates=np.int64(2)
    )
    assert plain == numpy


def test_a_user_defined_walk_runs_on_the_reference() -> None:
    assert simulate(Stay(), engine="reference").messages.max() == 0
