"""Small runs whose results are saved: simulations, estimators and a network in memory.

Calls whose arguments may be renamed are in the helpers at the top. A case is a function of the
engine, under a name that does not depend on how the code spells things.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import walklearn as wl
from tests.golden.saved import MAX_LISTED, TOLERANCE, Floats, Result
from walklearn import domains, losses, privacy, updates, walks

BOTH_ENGINES = ("reference", "compiled")


class Case(NamedTuple):
    """A run, the engines to run it on, and the tolerance of its models."""

    run: Callable[[str], Result]
    engines: tuple[str, ...] = BOTH_ENGINES
    tolerance: float = TOLERANCE


# ── calls whose arguments may be renamed ─────────────────────────────────────────────────────────


def make_problem(X: Any, y: Any, aggregate: str = "sum", **options: Any) -> wl.Problem:
    return wl.Problem(X, y, aggregate=aggregate, **options)


def simulate(problem: Any, graph: Any, method: Any, noise: Any = None, **options: Any) -> wl.Trace:
    return wl.simulate(problem, graph, method, privacy=noise, progress=False, **options)


def curves(trace: wl.Trace) -> dict[str, Floats]:
    names = ("distance", "average_distance", "gap", "average_gap")
    return {name: getattr(trace, name) for name in names}


# ── results ──────────────────────────────────────────────────────────────────────────────────────


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def whole(numbers: Any) -> Any:
    """Whole numbers as lists, or as a digest if they are many."""
    array = np.asarray(numbers, dtype=np.int64)
    return array.tolist() if array.size <= MAX_LISTED else digest(array.tobytes())


def thinned(models: Any) -> Floats:
    """At most 64 numbers of each model, evenly spread, and the model's length."""
    flat = np.asarray(models, dtype=np.float64)
    flat = flat.reshape(len(flat), -1)
    columns = np.unique(np.linspace(0, flat.shape[1] - 1, MAX_LISTED).astype(int))
    return np.column_stack([flat[:, columns], np.linalg.norm(flat, axis=1)])


def ledger_numbers(ledger: Any, delta: float = 1e-5) -> list[Any]:
    """Unit, budget, totals, and the numbers of each release: its mechanism and its times."""
    content = ledger.to_dict()
    releases = []
    for release in content["releases"]:
        mechanism = release["mechanism"]
        values = mechanism.values() if isinstance(mechanism, dict) else ()
        flat = np.hstack([v for v in values if not isinstance(v, str) and v is not None] or [[]])
        releases.append([sorted(map(float, flat)), whole(release["times"])])
    node, epsilon = ledger.largest_total(delta)
    totals = [epsilon, privacy.compose(ledger.charges(node)).delta(1.0), ledger.total(0, delta)]
    # The last digit of a composition depends on how many threads share its sums.
    totals = [node, *(float(f"{total:.12g}") for total in totals)]
    return [ledger.unit, ledger.simulated, content["budget"], totals, sorted(releases, key=str)]


def trace_result(trace: wl.Trace) -> Result:
    exact = {
        "updates": whole(trace.updates),
        "messages": whole(trace.messages),
        "bytes": whole(trace.bytes),
        "announcements": [int(trace.announcements), int(trace.announcement_bytes)],
    }
    for name in ("visits", "questions", "contributions"):
        if getattr(trace, name) is not None:
            exact[name] = whole(getattr(trace, name))
    if trace.privacy:
        exact["ledger"] = ledger_numbers(trace.ledger[0])
    close = {"models": thinned(trace.models), "averages": thinned(trace.averages), **curves(trace)}
    if trace.released is not None:
        close["released"] = thinned(trace.released)
    return Result(exact, close)


# ── parts of the grid ────────────────────────────────────────────────────────────────────────────

GRAPH = wl.graphs.barabasi_albert(12, 2, seed=3)
GRAPHS = {
    "ring": wl.graphs.ring(12),
    "star": wl.graphs.star(12),
    "complete": wl.graphs.complete(12),
    "grid": wl.graphs.grid(3, 4),
    "random": wl.graphs.erdos_renyi(12, 0.4, seed=4, connected="retry"),
}
IMPORTANCE = np.linspace(1.0, 9.0, 12)
GAMMA = privacy.ClampedGamma(20.0, (1.0, 60.0))
LAPLACE = privacy.TruncatedLaplace(9.0, 20.0, (1.0, 60.0))
WALKS: dict[str, Any] = {
    "simple": walks.Simple(),
    "simple corrected lazy": walks.Simple(reweight="degree", laziness=0.3),
    "uniform": walks.Uniform(),
    "uniform normalised lazy": walks.Uniform(normalise=True, laziness=0.9),
    "weighted": walks.Weighted(),
    "weighted given lazy": walks.Weighted(IMPORTANCE, laziness=0.05),
    "non-backtracking": walks.NonBacktracking(),
    "non-backtracking weighted": walks.NonBacktracking(walks.Weighted(laziness=0.2)),
    "jumping": walks.Jumping(),
    "jumping far": walks.Jumping(
        walks.Uniform(laziness=0.1), probability=0.4, stop_probability=0.2, max_hops=6
    ),
    "independent": walks.Independent(),
    "independent weighted": walks.Independent(walks.Weighted()),
    "history-driven": walks.HistoryDriven(),
    "history-driven weighted": walks.HistoryDriven(walks.Weighted(laziness=0.2), alpha=3.0),
}
GOSSIP: dict[str, Any] = {
    "asynchronous gossip": wl.AsynchronousGossip(),
    "asynchronous gossip uncorrected": wl.AsynchronousGossip(corrected=False),
    "synchronous gossip": wl.SynchronousGossip(),
    "gradient tracking": wl.GradientTracking(),
    "gradient tracking lazy": wl.GradientTracking(lazy=True),
}
METHODS = WALKS | GOSSIP
LOSSES: dict[str, Any] = {
    "logistic": losses.Logistic(),
    "squared": losses.Squared(),
    "huber": losses.Huber(0.3),
    "squared hinge": losses.SquaredHinge(),
    "softmax": losses.Softmax(),
}
DOMAINS: dict[str, Any] = {
    "everywhere": domains.Everywhere(),
    "ball": domains.Ball(0.4),
    "box": domains.Box(-0.2, 0.3),
}
SAGA: dict[str, Any] = {"saga": updates.Saga(), "saga given step": updates.Saga(0.01)}
AGGREGATES = ("sum", "mean", "node-mean")
NODE_NOISE = privacy.ModelNoise(clip=2.0, noise_multiplier=0.5, max_contributions=7, protect="node")
ROW_NOISE = privacy.ModelNoise(clip=0.7, noise_multiplier=0.5, max_contributions=7)


@cache
def problem_of(
    loss: str = "logistic",
    domain: str = "ball",
    rows: int = 12,
    columns: int = 4,
    nodes: int = 12,
    is_sparse: bool = False,
    weights: bool = False,
    penalty: float = 0.5,
    aggregate: str = "sum",
    dtype: Any = np.float64,
) -> wl.Problem:
    """Rows with normal entries, the first of each node in order, the others anywhere."""
    generator = np.random.default_rng(7)
    X: Any = generator.standard_normal((rows, columns))
    random = generator.random(rows)
    y = np.arange(rows) % 3 if loss == "softmax" else np.where(random < 0.5, -1.0, 1.0)
    owners = np.r_[np.arange(nodes), generator.integers(0, nodes, rows - nodes)]
    if is_sparse:
        X = sparse.csr_array(np.where(np.abs(X) < 0.5, 0.0, X))
    options: dict[str, Any] = {}
    if weights:
        options["sample_weight"] = np.linspace(0.1, 2.0, rows)
    return make_problem(X, y, aggregate, loss=LOSSES[loss], penalty=penalty, dtype=dtype,
                        domain=DOMAINS[domain], node_of_row=owners, **options)  # fmt: skip


@cache
def large_graph(nodes: int) -> wl.Graph:
    return wl.graphs.barabasi_albert(nodes, 2, seed=3)


@cache
def relays() -> wl.Problem:
    """Four rows on three of twelve nodes."""
    return make_problem(np.eye(4), [1.0, -1.0, 1.0, 1.0], penalty=0.3, domain=domains.Ball(1.0),
                        node_of_row=[0, 3, 3, 7], nodes=12, empty_nodes="relay")  # fmt: skip


@cache
def uneven_rows() -> wl.Problem:
    """Rows of very different length: the curvature has to double on the way."""
    generator = np.random.default_rng(1)
    X = generator.standard_normal((12, 3)) * np.exp(2.0 * generator.standard_normal((12, 1)))
    return make_problem(X, generator.standard_normal(12), loss=losses.Squared(), penalty=0.1)


@cache
def rows_on_a_ring() -> wl.Problem:
    generator = np.random.default_rng(1)
    X, y = generator.standard_normal((60, 3)), generator.standard_normal(60)
    return make_problem(X, y, "mean", loss=losses.Huber(0.5), penalty=0.1)


def one_row() -> wl.Problem:
    return make_problem([[1.0, 2.0]], [1.0], penalty=1.0)


# ── simulations ──────────────────────────────────────────────────────────────────────────────────

CASES: dict[str, Case] = {}


def add(
    name: str,
    problem: Callable[[], wl.Problem],
    method: Any,
    *,
    graph: Callable[[], wl.Graph] = lambda: GRAPH,
    tolerance: float = TOLERANCE,
    **options: Any,
) -> None:
    """Add a simulation; `problem` and `graph` are made when it runs."""
    options = {"steps": 150, "replicates": 3, "records": 6, "seed": 5} | options
    if "update" not in options:
        options.setdefault("step_size", wl.PowerStep(0.05, 0.75))

    def run(engine: str) -> Result:
        return trace_result(simulate(problem(), graph(), method, engine=engine, **options))

    assert name not in CASES, name
    CASES[name] = Case(run, tolerance=tolerance)


def add_path(name: str, method: Any, hops: int = 60, **options: Any) -> None:
    """Add the path of one token: runs of 1, 2, … updates differ by one visit."""

    def run(engine: str) -> Result:
        before, path = np.zeros(12, dtype=np.int64), []
        for steps in range(1, hops + 1):
            trace = simulate(problem_of(), GRAPH, method, steps=steps, records=1, seed=5, cores=1,
                             step_size=wl.PowerStep(0.05, 0.75), gaps=False, engine=engine,
                             **options)  # fmt: skip
            assert trace.visits is not None
            path.append(int(np.argmax(trace.visits - before)))
            before = trace.visits
        return Result({"path": path})

    CASES[name] = Case(run)


def add_walks() -> None:
    for name, method in METHODS.items():
        add(f"method, {name}", problem_of, method)
    for name, walk in WALKS.items():
        add_path(f"path, {name}", walk)
        long = partial(problem_of, columns=48)
        add(f"long rows, {name}", long, walk)
        add(f"long rows, node streams, {name}", long, walk, streams="node")
    for name, graph in GRAPHS.items():
        for kind in ("uniform", "weighted", "non-backtracking", "history-driven"):
            add(f"graph {name}, {kind}", problem_of, WALKS[kind], graph=lambda graph=graph: graph)
    for kind in ("uniform", "weighted", "non-backtracking", "jumping", "history-driven"):
        for nodes, columns in ((20_000, 8), (3_000, 48)):  # more than the cache holds
            large = partial(problem_of, rows=nodes, columns=columns, nodes=nodes)
            add(f"rows in memory, {columns} columns, {kind}", large, WALKS[kind], steps=60,
                graph=partial(large_graph, nodes))  # fmt: skip
    steps: dict[str, Any] = {"step_size": wl.ConstantStep(0.1), "steps": 50}
    for kind in ("weighted", "jumping", "non-backtracking", "history-driven"):
        add(f"one node, {kind}", one_row, WALKS[kind], graph=lambda: wl.graphs.complete(1), **steps)


def add_problems() -> None:
    for method in ("weighted", "asynchronous gossip", "gradient tracking"):
        for loss, domain in itertools.product(LOSSES, DOMAINS):
            add(f"{loss}, {domain}, {method}", partial(problem_of, loss, domain), METHODS[method])
        add(f"relays, {method}", relays, METHODS[method])
        add(f"single precision, {method}", partial(problem_of, dtype=np.float32), METHODS[method],
            tolerance=2e-4)  # fmt: skip
    for method in ("jumping", "asynchronous gossip", "synchronous gossip"):
        for batch in (None, 1, 3):
            many = partial(problem_of, rows=40)
            add(f"40 rows, batch {batch}, {method}", many, METHODS[method], batch=batch)
    for aggregate in AGGREGATES:
        add(f"aggregate {aggregate}", partial(problem_of, rows=30, aggregate=aggregate),
            walks.Weighted())  # fmt: skip


def add_sparse() -> None:
    for loss, domain, batch in itertools.product(LOSSES, DOMAINS, (None, 2)):
        add(f"sparse, {loss}, {domain}, batch {batch}",
            partial(problem_of, loss, domain, rows=40, columns=9, is_sparse=True, penalty=0.1),
            walks.Weighted(), batch=batch)  # fmt: skip
    few = partial(problem_of, columns=9, is_sparse=True, domain="everywhere")
    add("sparse, long walk", few, walks.Uniform(), steps=3000, step_size=wl.ConstantStep(0.1))
    add("sparse, step that removes the model", few, walks.Uniform(),
        step_size=wl.ConstantStep(2.0))  # fmt: skip
    for method in ("asynchronous gossip", "synchronous gossip"):
        add(f"sparse, {method}", few, METHODS[method])
    for noise, unit in ((ROW_NOISE, "rows"), (NODE_NOISE, "node")):
        add(f"sparse, noise for {unit}", partial(problem_of, rows=40, is_sparse=True),
            walks.Uniform(), noise=noise, streams="node")  # fmt: skip


def add_private() -> None:
    kinds: dict[str, Any] = {
        "weighted": lambda walk: walk,
        "non-backtracking": walks.NonBacktracking,
        "jumping": walks.Jumping,
        "independent": walks.Independent,
        "history-driven": walks.HistoryDriven,
    }
    for (kind, wrap), reweight in itertools.product(kinds.items(), ("released", "as-printed")):
        add(f"released importance, {kind}, {reweight}", problem_of,
            wrap(walks.Weighted(privacy=GAMMA, reweight=reweight)))  # fmt: skip
    public = walks.Weighted(IMPORTANCE, public=True)
    many = partial(problem_of, rows=40)
    for kind, walk in {**WALKS, "weighted": public}.items():
        if kind in ("uniform", "non-backtracking", "weighted"):
            add(f"noise for nodes, {kind}", problem_of, walk, noise=NODE_NOISE)
            for batch in (None, 2):
                add(f"noise for nodes, 40 rows, batch {batch}, {kind}", many, walk, batch=batch,
                    noise=NODE_NOISE)  # fmt: skip
    for loss, aggregate in itertools.product(LOSSES, AGGREGATES):
        weighted = partial(problem_of, loss, rows=40, aggregate=aggregate, weights=True)
        add(f"noise for rows, {loss}, {aggregate}", weighted, walks.Uniform(), noise=ROW_NOISE)
    for loss in LOSSES:
        add(f"noise for rows, {loss}, node streams",
            partial(problem_of, loss, rows=40, weights=True), public, noise=ROW_NOISE,
            streams="node", mean_importance="estimated")  # fmt: skip


def add_network_options() -> None:
    private = walks.Weighted(privacy=GAMMA)
    for name, walk in {
        "simple corrected": walks.Simple(reweight="degree"),
        "uniform": walks.Uniform(),
        "weighted lazy": walks.Weighted(laziness=0.1),
        "released": private,
        "released, jumping": walks.Jumping(private),
    }.items():
        add(f"estimated mean, {name}", problem_of, walk, mean_importance="estimated")
        if "jumping" not in name:
            add(f"estimated mean, node streams, {name}", problem_of, walk, streams="node",
                mean_importance="estimated")  # fmt: skip
    for name, walk in {
        "released, lazy": walks.Weighted(privacy=GAMMA, laziness=0.1),
        "released by Laplace": walks.Weighted(privacy=LAPLACE),
        **{kind: WALKS[kind] for kind in (
            "uniform", "non-backtracking", "jumping", "independent", "history-driven"
        )},
    }.items():  # fmt: skip
        add(f"node streams, {name}", problem_of, walk, streams="node")
        add(f"node streams, batch 2, {name}", partial(problem_of, rows=40), walk, streams="node",
            batch=2)  # fmt: skip
    add("as a network", partial(problem_of, rows=40), private, noise=NODE_NOISE, batch=3,
        streams="node", mean_importance="estimated")  # fmt: skip


def add_memory() -> None:
    for update, rule in SAGA.items():
        for loss, domain in itertools.product(LOSSES, DOMAINS):
            add(f"{update}, {loss}, {domain}", partial(problem_of, loss, domain), walks.Simple(),
                update=rule)  # fmt: skip
            if loss in ("logistic", "softmax"):
                add(f"{update}, {loss}, {domain}, 40 rows, batch 3",
                    partial(problem_of, loss, domain, rows=40), walks.Simple(), update=rule,
                    batch=3)  # fmt: skip
        for loss, batch in itertools.product(("squared", "softmax"), (None, 1, 3)):
            add(f"{update}, {loss}, mean of 40 rows, batch {batch}",
                partial(problem_of, loss, rows=40, aggregate="mean"), walks.Simple(), update=rule,
                batch=batch)  # fmt: skip
        for kind in ("weighted", "non-backtracking", "jumping", "history-driven"):
            for columns, streams in itertools.product((4, 48), ("replicate", "node")):
                add(f"{update}, {columns} columns, {streams} streams, {kind}",
                    partial(problem_of, columns=columns), WALKS[kind], update=rule,
                    streams=streams)  # fmt: skip
            for nodes, columns in ((20_000, 8), (3_000, 48)):
                large = partial(problem_of, rows=nodes, columns=columns, nodes=nodes)
                add(f"{update}, rows in memory, {columns} columns, {kind}", large, WALKS[kind],
                    graph=partial(large_graph, nodes), steps=60, update=rule)  # fmt: skip
        for loss, penalty in itertools.product(list(LOSSES)[:4], (0.001, 0.5)):
            add(f"{update}, a sparse row per node, {loss}, penalty {penalty}",
                partial(problem_of, loss, "everywhere", is_sparse=True, penalty=penalty),
                walks.Simple(), update=rule)  # fmt: skip
        for loss, batch in itertools.product(("logistic", "softmax"), (None, 2)):
            add(f"{update}, 40 sparse rows, {loss}, batch {batch}",
                partial(problem_of, loss, rows=40, is_sparse=True), walks.Simple(), update=rule,
                batch=batch)  # fmt: skip
        add(f"{update}, relays", relays, walks.Weighted(), update=rule)
        add(f"{update}, lazy, 40 rows, node streams, batch 2", partial(problem_of, rows=40),
            walks.Uniform(laziness=0.3), update=rule, streams="node", batch=2)  # fmt: skip
        for rows in (12, 40):
            add(f"{update}, single precision, {rows} rows",
                partial(problem_of, rows=rows, dtype=np.float32), walks.Simple(), update=rule,
                tolerance=2e-4)  # fmt: skip
    add("saga, uneven rows", uneven_rows, walks.Uniform(laziness=0.8), update=updates.Saga(),
        steps=400)  # fmt: skip
    add("saga, ring of 60", rows_on_a_ring, walks.Uniform(), update=updates.Saga(), steps=2000,
        graph=lambda: wl.graphs.ring(60), replicates=1)  # fmt: skip
    decaying = partial(problem_of, is_sparse=True, domain="everywhere", penalty=2.0)
    for step in (0.05, 0.5):
        add(f"saga, sparse, step {step}", decaying, walks.Simple(), update=updates.Saga(step),
            steps=400)  # fmt: skip
    add("saga, long walk on sparse rows", decaying, walks.Uniform(), update=updates.Saga(),
        steps=3000, replicates=1)  # fmt: skip


# ── estimators ───────────────────────────────────────────────────────────────────────────────────


@cache
def table(rows: int = 400, columns: int = 6) -> tuple[Floats, Floats, Any]:
    """Features, a number to predict, and the owner of each row."""
    generator = np.random.default_rng(11)
    X = generator.standard_normal((rows, columns)) * np.arange(1.0, columns + 1.0)
    y = X @ np.linspace(-1.0, 1.0, columns) + 2.0 * generator.standard_normal(rows) + 5.0
    return X, y, generator.integers(0, 20, rows)


def fit_result(model: Any) -> Result:
    exact = {
        "updates": int(np.max(model.n_iter_)),
        "messages": whole(model.trace_.messages),
        "bytes": whole(model.trace_.bytes),
        "ledger": ledger_numbers(model.ledger_),
    }
    coefficients = np.atleast_2d(model.coef_)
    close = {
        "coefficients": coefficients,
        "intercept": np.atleast_1d(model.intercept_),
        "averages": thinned(np.atleast_2d(model.average_)),
    }
    return Result(exact, close)


def add_fit(name: str, kind: str, owners: bool = True, scale: float = 1.0, **options: Any) -> None:
    """Add the fit of an estimator; `kind` is classes, many classes, sparse classes or numbers."""

    def run(_: str) -> Result:
        X, y, nodes = table()
        rows: Any = scale * X
        estimator: Any = wl.RandomWalkRegressor if kind == "numbers" else wl.RandomWalkClassifier
        targets: Any = y
        if kind == "many classes":
            targets = np.digitize(y, [2.0, 8.0])
        elif kind != "numbers":
            targets = (y > 5.0).astype(int)
        if kind == "sparse classes":
            rows = sparse.csr_array(np.where(np.abs(rows) < 1.0, 0.0, rows))
        model = estimator(random_state=0, **options)
        return fit_result(model.fit(rows, targets, nodes=nodes if owners else None))

    CASES[f"fit, {name}"] = Case(run, ("",))


def add_fits() -> None:
    total: dict[str, Any] = {"epsilon": 3.0, "delta": 1e-5, "row_length": 10.0}
    target: dict[str, Any] = {"target_centre": 5.0, "target_spread": 10.0}
    saga: dict[str, Any] = {"update": "saga", "walk": "uniform"}
    for kind in ("classes", "many classes", "sparse classes", "numbers"):
        for name, options in (("defaults", {}), ("saga", saga)):
            add_fit(f"{name}, {kind}", kind, **options)
            add_fit(f"{name}, a row per node, {kind}", kind, owners=False, **options)
        add_fit(f"sgd, {kind}", kind, update="sgd", steps=2000)
    add_fit("weighted sgd, batch", "classes", update="sgd", walk="weighted", batch=3, steps=2000)
    add_fit("saga, batch", "classes", batch=5, steps=2000)
    add_fit("saga, ball", "classes", domain=domains.Ball(1.0), steps=2000, **saga)
    add_fit("huber", "numbers", loss="huber", steps=2000, **saga)
    for kind, more in (("classes", {}), ("many classes", {}), ("numbers", target)):
        add_fit(f"private, {kind}", kind, **total, **more)
    add_fit("private, node", "classes", protect="node", **total)
    add_fit("private, weighted", "classes", walk="weighted", feature_bound=8.0, **total)
    add_fit("private, model in the clear", "classes", epsilon=3.0, delta=0.03, feature_bound=8.0,
            model="in the clear", steps=2000)  # fmt: skip


# ── a network in memory ──────────────────────────────────────────────────────────────────────────

PLAN = """
name = "golden"
nodes = 8
features = ["a", "b", "c"]
target = "y"
classes = ["no", "yes"]
loss = "logistic"
penalty = 1.0
domain = { ball = 3.0 }
updates = 300
"""
SGD_STEPS = "step_size = { constant = 0.02, exponent = 0.75 }\n"
MEAN_OF_ROWS = 'aggregate = "mean"\nrows = 15\n'  # a key of plans that may be renamed
RELEASED = (
    "walk = 'weighted'\n[privacy]\nprotect = 'node'\nmodel = 'in the clear'\n"
    "mechanism = 'clamped-gamma'\nepsilon = 3.0\ndelta = 0.05\nbounds = [1.0, 40.0]\n"
)
NETWORKS = {
    "sgd": SGD_STEPS,
    "sgd, batch 2": SGD_STEPS + "batch = 2\n",
    "sgd, simple lazy": SGD_STEPS + 'walk = "simple"\nlaziness = 0.2\n',
    "sgd, mean of rows": SGD_STEPS + MEAN_OF_ROWS,
    "sgd, released": SGD_STEPS + RELEASED,
    "sgd, noise": SGD_STEPS,
    "saga": 'update = "saga"\n',
    "saga, batch 2": 'update = "saga"\nbatch = 2\n',
    "saga, mean of rows": 'update = "saga"\n' + MEAN_OF_ROWS,
}

TOKENS = {  # one of each network, as it was on the wire
    "sgd": (
        "0801126808011240303030303030303030303030303030303030303030303030303030303030303030303030"
        "303030303030303030303030303030303030303030303030303030321a203030303030303030303030303030"
        "30303030303030303030303030303030303020111809201b39488f929cb147bd3f410000000000003b402a18"
        "3094de27fa46d23f1220a12ebb6bd63f3f46b264b38f963f3218e2734851adef953fd28c22f1093795bf4c1c"
        "90ca23d0853f"
    ),
    "saga": (
        "0801126808011240303030303030303030303030303030303030303030303030303030303030303030303030"
        "303030303030303030303030303030303030303030303030303030321a203030303030303030303030303030"
        "30303030303030303030303030303030303020111809201b52460a2030303030303030303030303030303030"
        "30303030303030303030303030303031110000000000002040190000000000005540210000000000f8924029"
        "cf9939cf34a63b402a18979157a10621d03f5730ab07af01cd3f82a3d380c75892bf32005a18f60fc2baf47c"
        "2440760e779fdd531240b9956480f80e0540"
    ),
}


def token_result(name: str) -> Result:
    """Read a token from the bytes of the wire and write it again."""
    from walklearn.node.agreement.plan import Plan
    from walklearn.node.protocol.tokens import Limits, decode_token, encode_token

    content = bytes.fromhex(TOKENS[name])
    limits = Limits.of_plan(Plan.from_text(PLAN + NETWORKS[name]))
    again = encode_token(decode_token(content, limits))
    return Result({"read and written": again.hex()})


def disk_digests(nodes: Any) -> dict[str, str]:
    """Digest of each column of the nodes' records as they are on the disk, and of the tables."""
    import sqlite3
    import tempfile
    from pathlib import Path

    from walklearn.node.disk.store import Store

    columns: dict[str, list[Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, node in enumerate(nodes):
            path = Path(folder, f"{number}.sqlite")
            with Store.create(path, node.learner.limits) as store:
                store.commit(node.written)
            with sqlite3.connect(path) as connection:
                rows = connection.execute("SELECT * FROM record")
                names = [column[0] for column in rows.description]
                for name, value in zip(names, rows.fetchone(), strict=True):
                    columns.setdefault(f"disk {name}", []).append(value)
                tables = connection.execute("SELECT name FROM sqlite_master ORDER BY name")
                schema = [
                    (name, connection.execute(f"PRAGMA table_info({name})").fetchall())
                    for (name,) in tables
                ]
            connection.close()
    columns["disk tables"] = schema
    return {name: digest(repr(values).encode()) for name, values in columns.items()}


def network_result(name: str) -> Result:
    """Run a network to its end; digest what is on the wire, and twice what is on the disk."""
    from tests.node import memory_network
    from walklearn.node.agreement.plan import Plan
    from walklearn.node.disk.creation import ledger_of
    from walklearn.node.disk.store import Release
    from walklearn.node.protocol.learner import Learner
    from walklearn.privacy.mechanisms.description import describe
    from walklearn.streams import generators, replicate_seed

    memory_network.EPOCHS = itertools.count(1)
    plan = Plan.from_text(PLAN + NETWORKS[name])
    noise = privacy.ModelNoise(clip=1.0, noise_multiplier=0.5, max_contributions=20,
                               protect="node") if "noise" in name else None  # fmt: skip
    graph = wl.graphs.erdos_renyi(8, 0.4, seed=2)
    owners = np.repeat(np.arange(8), [1, 2, 3, 1, 4, 1, 2, 1])
    X, y = wl.datasets.two_gaussians(15, dimension=3, variance=4.0, seed=7)
    streams = generators(replicate_seed(np.random.SeedSequence(5), 0), 8)
    mechanism = plan.mechanism
    learners = []
    for node in range(8):
        learner = partial(Learner.of_plan, plan, X[owners == node], y[owners == node], noise=noise)
        released = None
        if mechanism is not None:
            released = float(mechanism.release(learner().smoothness, streams.of(node).walk))
        learners.append(learner(importance=released))

    sent: dict[str, list[Any]] = {"path": [], "tokens": [], "sizes": [], "other messages": []}

    class Recorded(memory_network.MemoryNetwork):
        def deliver(self, call: Any, crash_after: int | None = None) -> None:
            if call.sort.__name__ == "SendToken" and call.way is memory_network.Way.ASKED:
                sent["path"].append(self.nodes.index(call.callee))
                sent["tokens"].append(digest(call.content)[:8])
                sent["sizes"].append(len(call.content))
            else:
                sent["other messages"].append(digest(call.content))
            super().deliver(call, crash_after)

    network = Recorded(learners, graph, streams)
    network.run(lambda: network.connected)
    network.start_walk(network.nodes[2], np.array([0.5, -0.5, 0.25]))
    network.run(lambda: len(sent["path"]) >= 20)
    halfway = disk_digests(network.nodes)
    network.run(lambda: network.finished)
    final = network.nodes[0].state.record.final
    assert final is not None
    release = Release(
        mechanism=None if mechanism is None else describe(mechanism),
        noise=None if noise is None else describe(noise),
        may_contribute=learners[0].may_contribute,
    )
    exact = {
        "path": sent["path"],
        "tokens on the wire": sent["tokens"],
        "sizes of tokens": sent["sizes"],
        "other messages": [
            len(sent["other messages"]), digest(json.dumps(sent["other messages"]).encode())
        ],
        "visits": [node.drawn for node in network.nodes],
        "contributions": [node.state.record.contributions for node in network.nodes],
        "final token": digest(final.encoded),
        "size of the final token": len(final.encoded),
        "ledger": ledger_numbers(ledger_of(plan, release)),
        **{f"{column}, halfway": value for column, value in halfway.items()},
        **{f"{column}, at the end": v for column, v in disk_digests(network.nodes).items()},
    }  # fmt: skip
    models = [node.state.record.final.model for node in network.nodes]
    return Result(exact, {"models": np.array(models), "average": np.array([final.average])})


def add_networks() -> None:
    for name in NETWORKS:
        CASES[f"network, {name}"] = Case(lambda _, name=name: network_result(name), ("",))
    for name in TOKENS:
        CASES[f"token, {name}"] = Case(lambda _, name=name: token_result(name), ("",))


add_walks()
add_problems()
add_sparse()
add_private()
add_network_options()
add_memory()
add_fits()
add_networks()
