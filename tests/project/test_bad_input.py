"""Bad input gets one clear error at the edge: what was wrong, where, and what to do."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import walklearn as wl
from tests.running import invoke
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
    from walklearn.simulation.reference_batches import ReferenceWalks
    from walklearn.streams import generators
    from walklearn.visit import Setting

    settings = [Setting(p, walks.Uniform(), updates.Saga()) for p in (PROBLEM, problem)]
    streams = [generators(np.random.SeedSequence(1))]
    begun = ReferenceWalks(settings[0], RING, streams)
    begun.advance(5)
    return ReferenceWalks(settings[1], RING, streams, begun.positions, begun.states)


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


def with_value(value: float) -> np.ndarray:
    rows = X.copy()
    rows[1, 2] = value
    return rows


def allot(row_length: float | None = 5.4, rows: int | None = 500, **given: Any) -> object:
    facts = wl.PublicFacts(nodes=20, rows=rows, features=30, row_length=row_length)
    return wl.privacy.allot(wl.PrivacySettings(3.0, 1e-5, **given), facts, losses.Logistic())


def invite(line: str) -> Any:
    from walklearn.node import Invite

    return Invite.decode(line)


def book(content: bytes) -> Any:
    from walklearn.node import Book

    return Book.decode(content, "0" * 64)


CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "more noise than can be counted": (
        lambda: wl.privacy.ModelNoise(1.0, 1e30, 1).draw(1), r"ask for a larger epsilon or delta"),
    # who takes part in a network
    "half an invite": (lambda: invite("walklearn1:alice@host:1/abc"), r"copy the whole line again"),
    "no invite": (lambda: invite("alice"), r"begins with \"walklearn1:\".*`walklearn node invite`"),
    "no book": (lambda: book(b"{}"), r"not a book of participants, or damaged"),
    "a long book": (lambda: book(bytes(2_000_000)), r"2000000 bytes, at most are 1000000"),
    # what a total (ε, δ) needs
    "ε without public scales": (lambda: allot(row_length=None), r"typical centre and spread"),
    "ε without the number of rows": (lambda: allot(rows=None), r"public number of rows"),
    "noise below the budget": (lambda: allot(noise_multiplier=1.0), r"cannot meet ε = 3.*Raise it"),
    "a cap above the budget": (
        lambda: allot(noise_multiplier=9.0, max_contributions=99),
        r"cannot meet ε = 3.*lower max_contributions",
    ),
    # graphs
    "disconnected": (lambda: graphs.from_edges([(0, 1), (2, 3)]), r"2 pieces.*largest"),
    "a seed that is a word": (lambda: graphs.erdos_renyi(9, 0.9, seed="a"), r"seed must.*got 'a'"),  # type: ignore[arg-type]
    "a negative seed of a graph": (lambda: graphs.watts_strogatz(9, 2, 0.1, seed=-1), r"seed must"),
    "NaN in a matrix": (lambda: graphs.as_graph(np.full((3, 3), np.nan)), r"has NaN.*put 0"),
    "edges by name": (
        lambda: graphs.from_edges([("a", "b")]),  # type: ignore[list-item]
        r"whole numbers from 0, got \['a', 'b'\].*from_networkx.*graphs.read_edge_list"),
    "edges with weights": (
        lambda: graphs.from_edges([(0, 1, 2.0)]), r"pairs .*got \[0.0, 1.0, 2.0\]; weights are"),
    "isolated node": (lambda: graphs.from_edges([(0, 1)], nodes=3), r"without any neigh.*node 2"),
    "self-loop": (lambda: graphs.from_edges([(0, 1), (1, 1)]), r"\(1, 1\)|node 1"),
    "disconnected draw": (lambda: graphs.erdos_renyi(50, 0.01, seed=1), r'connected="largest"'),
    "no nodes": (lambda: graphs.ring(0), r"at least 1"),
    "numbered from 1": (lambda: graphs.from_edges([(1, 2), (2, 3)]), r"from 0.*begin at 1"),
    # rows
    "NaN": (lambda: wl.Problem(with_value(np.nan), Y), r"row 1 .*NaN or infinite"),
    "infinity": (lambda: wl.Problem(with_value(np.inf), Y), r"row 1 .*NaN or infinite"),
    "rows beyond double precision": (
        lambda: wl.Problem(1e160 * np.asarray(X), Y, penalty=1.0).solution,
        r"X has a value of size .*e\+16.*divide it by a large number",
    ),
    "NaN target": (lambda: wl.Problem(X, [1, np.nan, 1]), r"row 1 .*NaN or infinite"),
    "lengths differ": (lambda: wl.Problem(X, [1.0, -1.0]), r"X has 3 rows, y has shape \(2,\)"),
    "one-dimensional X": (lambda: wl.Problem([1.0, 2.0], [1.0, 1.0]), r"shape \(rows, features\)"),
    "no rows": (lambda: wl.Problem(np.empty((0, 2)), []), r"shape \(rows, features\)"),
    "text in X": (lambda: wl.Problem([["a"]], [1.0]), r"X must hold numbers.*'a'"),
    "text in y": (lambda: wl.Problem(X, ["a", "b", "a"]), r"y must hold numbers.*'a'.*unique"),
    # labels
    "labels 0 and 1": (lambda: wl.Problem(X, [0, 1, 1]), r"-1 and \+1, but row 0 has label 0"),
    "hinge labels": (
        lambda: wl.Problem(X, [1, 2, 1], loss=losses.SquaredHinge()), r"row 1 has label 2"),
    "class -1": (lambda: wl.Problem(X, Y, loss=losses.Softmax()), r"row 1 has label -1"),
    "class 1.5": (lambda: wl.Problem(X, [0, 1, 1.5], loss=losses.Softmax()), r"label 1.5"),
    "class 3 of 3": (lambda: wl.Problem(X, [0, 1, 3], loss=losses.Softmax(3)), r"0\.\.2"),
    # nodes
    "node without rows": (lambda: wl.Problem(X, Y, node_of_row=[0, 2, 2]), r"node 1 has no rows"),
    "negative weight": (
        lambda: wl.Problem(X, Y, sample_weight=[1, 1, -2]),
        r"row 2 has weight -2",
    ),
    "a weight for some rows": (
        lambda: wl.Problem(X, Y, sample_weight=[1, 1]),
        r"one weight per row: there are 3 rows",
    ),
    "more nodes than rows": (lambda: wl.Problem(X, Y, nodes=5), r"node 3 has no rows \(2 such"),
    "owner out of range": (
        lambda: wl.Problem(X, Y, node_of_row=[0, 1, 7], nodes=3), r"row 2 belongs to node 7"),
    "owners too few": (lambda: wl.Problem(X, Y, node_of_row=[0, 1]), r"3 rows, node_of_row"),
    "negative owner": (lambda: wl.Problem(X, Y, node_of_row=[0, -1, 1]), r"0, 1, …, N-1"),
    "graph of another size": (lambda: simulate(graph=graphs.ring(4)), r"4 nodes, .* has 3"),
    # settings
    "negative penalty": (lambda: wl.Problem(X, Y, penalty=-1.0), r"penalty.*at least 0"),
    "a class of losses": (lambda: fit(loss=losses.Logistic), r"the class Logistic: write Logistic"),
    "a class of walks": (lambda: fit(walk=walks.Uniform), r"the class Uniform: write Uniform\(\)"),
    "a class of updates": (lambda: fit(update=updates.Saga), r"the class Saga: write Saga\(\)"),
    "a class of mechanisms": (
        lambda: wl.privacy.calibrate(
            wl.privacy.Gaussian, epsilon=1, delta=1e-5, bounds=(1, 2)),  # type: ignore[arg-type]
        r"a mechanism is asked for by its name: write 'gaussian'"),
    "words for a regressor": (
        lambda: wl.RandomWalkRegressor().fit(X, np.array(["1", "yes", "no"])),
        r"row 1 of y is the text 'yes', and a regressor predicts numbers: for classes"),
    "a schema of too few columns": (
        lambda: fit(epsilon=1.0, delta=1e-5, schema=wl.tables.Schema.typical([0, 0], [1, 1])),
        r"scale of every column, and the schema declares none of 'x2': add"),
    "a kind of penalty": (lambda: wl.Problem(X, Y, penalty="l2"), r"factor of ½.*got 'l2'"),  # type: ignore[arg-type]
    "a kind of an estimator's penalty": (lambda: fit(penalty="l2"), r"factor of ½.*got 'l2'"),
    "no penalty of an estimator": (lambda: fit(penalty=None), r"factor of ½.*got None"),
    "unknown aggregate": (lambda: wl.Problem(X, Y, aggregate="total"), r'"sum", "mean"'),
    "half precision": (lambda: wl.Problem(X, Y, dtype=np.float16), r"float64 or float32"),
    "no radius": (lambda: wl.domains.Ball(0.0), r"positive finite radius"),
    "box inside out": (lambda: wl.domains.Box(1.0, -1.0), r"low < high"),
    "Huber threshold": (lambda: losses.Huber(0.0), r"positive threshold"),
    "one class": (lambda: losses.Softmax(1), r"at least 2 classes"),
    "no minimiser": (lambda: wl.Problem(X, Y).solution, r"no minimiser.*positive penalty"),
    # walks
    "zero importance": (lambda: walks.Weighted([1.0, 0.0, 1.0]), r"positive.*node 1 has"),
    "NaN importance": (lambda: walks.Weighted([1.0, np.nan, 1.0]), r"positive.*node 1 has"),
    "importance of another size": (
        lambda: simulate(walks.Weighted([1.0, 2.0])), r"3 nodes, importance has shape \(2,\)"),
    "L_i = 0": (
        lambda: simulate(walks.Weighted(), objective=wl.Problem(
            np.diag([1.0, 0.0, 1.0]), Y, domain=wl.domains.Ball(1.0))), r"node 1 has 0\."),
    "laziness 1": (lambda: walks.Uniform(laziness=1.0), r"laziness must be in \[0, 1\)"),
    "jump probability": (lambda: walks.Jumping(probability=1.0), r"in \(0, 1\)"),
    "history": (lambda: walks.HistoryDriven(alpha=-1.0), r"alpha must be a number of at least 0"),
    "jump length": (lambda: walks.Jumping(longest=0), r"longest must be at least 1"),
    # steps
    "negative step": (lambda: wl.PowerStep(-1.0), r"constant c must be positive"),
    "infinite step": (lambda: wl.ConstantStep(np.inf), r"constant c must be positive"),
    "negative exponent": (lambda: wl.PowerStep(1.0, -0.5), r"exponent q must be at least 0"),
    # simulate
    "zero steps": (lambda: simulate(steps=0), r"steps must be a whole number of at least 1"),
    "half a step": (lambda: simulate(steps=1.5), r"steps must be a whole number"),
    "zero replicates": (lambda: simulate(replicates=0), r"replicates must be"),
    "zero rows a visit": (lambda: simulate(batch=0), r"batch must be"),
    "zero cores": (lambda: simulate(cores=0), r"cores must be"),
    "zero records": (lambda: simulate(records=0), r"records must be at least 1"),
    "record past the end": (lambda: simulate(records=[5, 11]), r"between 1 and steps = 10"),
    "records that are not whole": (lambda: simulate(records=[1.7, 2.2]), r"whole number"),
    "steps that are True": (lambda: simulate(steps=True), r"steps must be a whole number"),
    "gaps of no node": (lambda: simulate(gaps=0), r"gaps must be True, False or a whole number"),
    "streams of nobody": (lambda: simulate(streams="nodes"), r'"replicate" or "node"'),
    "a mean by guess": (lambda: simulate(mean_importance="a"), r'"exact" or "estimated"'),
    "nodes of gossip": (
        lambda: simulate(wl.AsynchronousGossip(), streams="node"), r"a token that walks"),
    "a graph without nodes": (lambda: graphs.as_graph("ring"), r"needs a number of nodes"),
    "a graph that is none": (lambda: graphs.as_graph("rnig", 3), r"Did you mean 'ring'"),
    "fewer rows than there are": (lambda: wl.Problem(X, Y, total_rows=2), r"at least the 3"),
    "half a gap": (lambda: simulate(gaps=0.5), r"gaps must be True, False or a whole number"),
    "negative seed": (lambda: simulate(seed=-1), r"seed must be a whole number of at least 0"),
    "a generator as seed": (
        lambda: simulate(seed=np.random.default_rng(1)), r"seed must be a whole number"),
    "a loss without a kernel": (
        lambda: simulate(objective=wl.Problem(X, Y, loss=Halved(), penalty=1.0), engine="compiled"),
        r"Halved\(.*\) has no kernel"),
    "a domain without a kernel": (
        lambda: simulate(objective=wl.Problem(X, Y, domain=Orthant(1.0)), engine="compiled"),
        r"Orthant\(.*\) has no kernel"),
    "a walk without a kernel": (
        lambda: simulate(Stay(), engine="compiled"), r'Stay\(\) has no kernel.*engine="reference"'),
    "an update without a kernel": (
        lambda: remember(Still(), engine="compiled"), r'Still\(\) has no kernel.*"reference"'),
    "unknown engine": (lambda: simulate(engine="quantum"), r'"compiled", "reference" or None'),
    "tracking parts of gradients": (
        lambda: wl.simulate(PROBLEM, RING, wl.GradientTracking(), steps=10, batch=1,
                            step_size=wl.ConstantStep(0.1)),
        r"gradient tracking .* all rows",
    ),
    "lonely gossip": (
        lambda: simulate(wl.AsynchronousGossip(), graph=graphs.ring(1),
                         objective=wl.Problem([[1.0]], [1.0], penalty=1.0)), r"at least 2 nodes"),
    # data
    "too many nodes": (lambda: wl.datasets.split_evenly(3, 4), r"4 nodes a row: there are 3"),
    # updates
    "unknown update": (lambda: remember("sagaa"), r"'sagaa', did you mean 'saga'"),
    "a step for memory": (
        lambda: remember(step_size=wl.PowerStep(0.1)),
        r"short for update=updates.Sgd.*nothing to Saga\(\)",
    ),
    "a falling step": (lambda: updates.Saga(wl.PowerStep(0.1)), r"Saga takes a ConstantStep"),  # type: ignore[arg-type]
    "a negative step": (lambda: updates.Saga(-1.0), r"must be positive"),  # type: ignore[arg-type]
    "gossip with memory": (
        lambda: remember(method=wl.AsynchronousGossip()),
        r"Saga\(\) needs a token, and gossip has none.*Pass step_size",
    ),
    "memory and released constants": (
        lambda: remember(
            method=walks.Weighted(privacy=wl.privacy.ClampedGamma(20.0, (1.0, 60.0)))
        ),
        r"Saga\(\) makes the release of L_i useless.*Use updates.Sgd",
    ),
    "memory and a mean importance": (
        lambda: remember(mean_importance="estimated"),
        r"does not scale gradients",
    ),
    "unknown update of an estimator": (
        lambda: fit(update="sagaa"), r"'sagaa', did you mean 'saga'"),
    "no update of an estimator": (
        lambda: fit(update=3), r"update must be \"auto\", one of .*saga.* updates.Saga\(\), got 3"),
    "a step for an estimator's memory": (
        lambda: fit(update="saga", step_size=0.1),
        r"nothing to update='saga': leave it out, or give the update its own"),
    "an average of an estimator's memory": (
        lambda: fit(update="saga", average="tail"), r"average='tail' is for the paper's update"),
    "an estimator's memory and ε": (
        lambda: fit(update="saga", epsilon=3.0, delta=1e-5, row_length=1.0),
        r"stores gradients and curvature.*Leave update at \"auto\""),
    "ε for numbers without the target's scale": (
        lambda: wl.RandomWalkRegressor(epsilon=3.0, delta=1e-5, row_length=1.0).fit(X, Y),
        r"public centre and spread of the target.*Pass target_centre.*target_spread"),
    "noise by hand for numbers without the target's scale": (
        lambda: wl.RandomWalkRegressor(model_privacy=wl.privacy.ModelNoise(1.0, 9.0, 5)).fit(X, Y),
        r"model_privacy .* public centre and spread of the target.*Pass target_centre"),
    "unknown update of a plan": (
        lambda: plan(update='"sagaa"'), r'line 8: update is "sagaa".*did you mean "saga"\?'),
    "an update that nodes do not have": (lambda: plan(update='"newton"'), r"update.*newton"),
    "a step for a plan's memory": (
        lambda: plan(update='"saga"', step_size="{ constant = 0.1 }"),
        r"step_size must be left out: saga finds its own"),
    "memory of a wider problem": (
        lambda: hand_over(wl.Problem(np.eye(3, 5), Y, penalty=1.0)),
        r"Saga\(\): array 'model' has <f8 of shape \(3,\), expected <f8 of shape \(5,\)"),
    "negative variance": (lambda: wl.datasets.two_gaussians(3, variance=-1.0), r"variance"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_value_errors(case: str) -> None:
    call, message = CASES[case]
    with pytest.raises(ValueError, match=f"(?s){message}"):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simulate(3.0), r"must be a walk such as walks.Weighted\(\)"),
        (lambda: simulate(walks.Uniform), r"got the class Uniform: write Uniform\(\)"),
        (lambda: simulate(objective=[[0.1234567] * 99]), r"a list that begins with \[\[0.1.{,60}$"),
        (lambda: remember(updates.Saga), r"got the class Saga: write Saga\(\)"),
        (lambda: wl.Problem(X, Y, loss=losses.Logistic), r"the class Logistic: write Logistic"),
        (lambda: walks.Jumping(walks.Uniform), r"the class Uniform: write Uniform"),
        (lambda: wl.theory.diagnose(PROBLEM, RING, walks.Uniform()), r"diagnose\(graph, problem"),
        (lambda: wl.theory.diagnose(RING, PROBLEM, walks.Uniform), r"the class Uniform: write"),
        (lambda: wl.plots.visits(3), r"a run such as simulate returns, or a graph .*got 3"),
        (lambda: wl.plots.convergence([3]), r"must be runs such as simulate returns, got 3"),
        (lambda: wl.plots.convergence(3), r"must be runs such as simulate returns, got 3"),
        (lambda: simulate(step_size=0.1), r"PowerStep or a ConstantStep"),
        (lambda: simulate(graph=graphs.to_networkx(RING)), r"networkx.*graphs.as_graph"),
        (lambda: remember(3.0), r"such as updates.Saga\(\).*got 3.0"),
        (
            lambda: simulate(step_size=None, method=wl.AsynchronousGossip()),
            r"needs step_size=PowerStep\(…\) here.*AsynchronousGossip.* makes SGD steps",
        ),
        (lambda: simulate(update="sgd", step_size=None), r"needs step_size=PowerStep"),
        (lambda: simulate(privacy=1.0), r"such as privacy.ModelNoise\(...\), got 1.0"),
        (lambda: simulate(objective=(X, Y)), r"must be a walklearn.Problem"),
        (lambda: wl.Problem(X, Y, loss="logistic"), r"losses.Logistic\(\)"),
        (lambda: wl.Problem(X, Y, domain=10.0), r"domains.Ball\(10.0\)"),
        (lambda: wl.Problem(X, Y, domain=Orthant(1.0)).solution, r"optimum over .* is not known"),
        (lambda: walks.Weighted().stationary(RING), r"needs the objective"),
        (lambda: wl.theory.diagnose(RING, PROBLEM, wl.AsynchronousGossip()), r"about walks"),
        (lambda: walks.NonBacktracking().transition_matrix(RING), r"previous one too"),
        (lambda: walks.Independent().transition_matrix(RING), r"stationary law"),
    ],
)
def test_type_errors(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


@pytest.mark.parametrize(
    ("options", "capability"),
    [({"batch": 1}, "is_exact"), ({"step_size": None, "update": "saga"}, "linear_rows")],
)
def test_what_noise_on_the_model_excludes(options: dict[str, Any], capability: str) -> None:
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
    "gaps": "a,b,y\n1,,0\n2,,1\n",
    "one": "a,b,y\n1,2,1\n2,1,1\n",
    "commas": "a;b;y\n" + "".join(f"{i},5;{2 * i},1;{i % 2}\n" for i in range(60)),
}
TYPED: dict[str, tuple[str, str]] = {
    "labels that training does not know": (
        "train rows.csv --target y --test signs.csv --out m",
        r"signs.csv: column 'y' has '-1' in 1 of 2 rows.*knows '0' and '1' only"),
    "words where numbers are predicted": (
        "train rows.csv --target a --drop y --task regression --test words.csv --out m",
        r"words.csv: column 'a' is text.*predicts numbers"),
    "the target owns the rows": (
        "train rows.csv --target y --node-column y --out m", r"both.*another column"),
    "advice on a target that owns the rows": (
        "advise rows.csv --target y --node-column y", r"both.*another column"),
    "the target is dropped": ("train rows.csv --target y --drop y --out m", r"cannot be dropped"),
    "categories of the owner": (
        "train rows.csv --target y --node-column a --categories a=1,2,3,4,5,6 --out m",
        r"categories were declared for 'a', which is not a column that is learnt from"),
    "the owner is dropped": (
        "train rows.csv --target y --node-column a --drop a --out m", r"cannot be dropped"),
    "two ways to test": (
        "train rows.csv --target y --test rows.csv --test-fraction 0.5 --out m", r"give one"),
    "advice on what the file says": (
        "advise rows.csv --target y --nodes 7", r"--nodes says what rows.csv says itself"),
    "a model in the way and a wrong column": (
        "train rows.csv --target z --out model",
        r"no column 'z'.*Also: model already holds a model: choose another place, or.*--force"),
    "a model in the way and a wrong penalty": (
        "train rows.csv --target y --penalty nan --out model",
        r"penalty must be.*got nan.*Also: model already holds a model"),
    "a model in the way and a loss of numbers": (
        "train rows.csv --target y --loss huber --out model",
        r"no such loss for a classifier: choose logistic, squared.*got 'huber'\.\s+Also: m"),
    "no task under privacy": (
        "train rows.csv --target y --epsilon 3 --delta 1e-5 --feature-bound 1 --out m",
        r"--task is missing.*pass --task classification or --task regression"),
    "a model in the way and no privacy": (
        "train rows.csv --target y --epsilon 3 --delta 2 --feature-bound 1 "
        "--task classification --out model",
        r"delta.*got 2.*Also: model already holds"),
    "a negative penalty": ("train rows.csv --target y --penalty -1 --out m", r"'--penalty'.*>=0"),
    "a negative step": ("train rows.csv --target y --step-constant -1 --out m", r"'--step-c.*>0"),
    "a model in the way": ("train rows.csv --target y --out model", r"overwrite it \(--force"),
    "a file in the way and no model": ("export nothing rows.onnx", r"there is no nothing"),
    "a name for two columns": ("train twice.csv --target y --out m", r"name of columns 1 and 2"),
    "an empty column": ("train gaps.csv --target y --out m", r"column 'b': the value is missing"),
    "a single class": (
        "train one.csv --target y --out m", r"'y' is 1 in every row.*the right column"),
    "commas in numbers": ("train commas.csv --target y --out m", r"holds numbers with a comma"),
}  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("typed")
    for name, content in ROWS.items():
        (folder / f"{name}.csv").write_text(content)
    model = wl.Model([1.0, 0.0], [1.0, 0.0], kind="classifier", loss="logistic",
                     columns=["a", "b"], classes=[0, 1], target="y")  # fmt: skip
    model.save(folder / "model")
    return folder


@pytest.mark.parametrize("case", TYPED)
def test_what_is_typed_by_mistake(case: str, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files)
    command, message = TYPED[case]
    result = invoke(*command.split())
    assert result.exit_code == 2, result.output
    assert re.search(f"(?s){message}", result.stderr), result.stderr
    assert not Path("m").exists()


def test_what_may_be_a_mistake_is_noted(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files)
    lines = [f"s{i % 25},{i},{i % 8},{3},{i % 3},{i % 2}" for i in range(60)]
    Path("doubtful.csv").write_text("\n".join(["place,number,site,same,b,y", *lines]))
    said = "train doubtful.csv --target y --steps 10 --seed 1 --out doubtful --json"
    notes = " ".join(json.loads(invoke(*said.split()).stdout)["notes"])
    for part in (
        "'place' is text, of which 25 features were made", "--node-column place",
        "'site' is taken as a number", "--node-column site",
        "'number' is another whole number in every row", "'same' is 3 in every row",
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
        ("Hospital ID", "", ["'Hospital ID' is taken as a number", "--node-column 'Hospital ID'"]),
        ("site-id", "", ["'site-id' is taken as a number"]),
        ("Clinic_codes", "", ["'Clinic_codes' is taken as a number"]),
        ("site", "--node-column near", ["'site' is taken as a number", "take --node-column site"]),
        ("site", "--node-column site", []),
        ("place", "--node-column size", ["column size holds numbers such as 0.5, as a measur"]),
        ("place", "--node-column row", ["--node-column row has 60 different values in 60 rows"]),
    ],
)
def test_columns_that_may_name_owners_or_do_not_are_noted(
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


def test_a_walk_of_ones_own_runs_on_the_reference() -> None:
    assert simulate(Stay(), engine="reference").messages.max() == 0
