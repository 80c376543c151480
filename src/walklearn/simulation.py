"""`simulate`: many replicates of one method, on all cores, recorded as a `Trace`.

>>> import walklearn as wl
>>> X, y = wl.datasets.two_gaussians(20, dimension=2, seed=1)
>>> problem = wl.Problem(X, y, penalty=1.0, domain=wl.domains.Ball(5.0))
>>> run = simulate(problem, wl.graphs.ring(20), wl.walks.Uniform(laziness=0.1), steps=1000,
...                step_size=wl.PowerStep(0.05), replicates=2, seed=1)
>>> run.updates[-1], run.messages.shape
(np.int64(1000), (2, 200))
"""

from __future__ import annotations

import hashlib
import threading
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from walklearn import __version__
from walklearn.batches import (
    LARGEST_BATCH,
    Batch,
    CompiledGossip,
    CompiledWalks,
    ReferenceGossip,
    ReferenceWalks,
    Setting,
    Streams,
    has_compiled_twin,
)
from walklearn.gossip_sgd import AsynchronousGossip, Gossip, GossipSetting, SynchronousGossip
from walklearn.graphs import Graph
from walklearn.problem import Problem
from walklearn.progress import progress_bar, stop_on_interrupt
from walklearn.step_sizes import ConstantStep, PowerStep, StepSize
from walklearn.trace import Trace
from walklearn.trace_files import ERRORS
from walklearn.walk_sgd import WalkSetting
from walklearn.walks import (
    Independent,
    Jumping,
    NonBacktracking,
    ReleasedWeighted,
    Simple,
    Uniform,
    Walk,
    Weighted,
)

if TYPE_CHECKING:
    from tqdm import tqdm

    from walklearn.privacy.mechanisms import Mechanism
    from walklearn.privacy.model_noise import ModelNoise

Array = NDArray[Any]
Seed = int | np.random.SeedSequence | None
Engine = Literal["compiled", "reference"]

# Uniform numbers drawn at a time: large enough to spread the cost of a call, small enough
# for the second-level cache.
BLOCK_NUMBERS = 32_768
_WRAPPERS = (Independent, Jumping, NonBacktracking)
MOST_RELEASED = 4_000_000  # released numbers, with their tables, that a batch holds


def simulate(
    problem: Problem,
    graph: Graph,
    method: Walk | Gossip,
    *,
    steps: int,
    step_size: StepSize,
    replicates: int = 1,
    seed: Seed = None,
    records: int | ArrayLike = 200,
    batch: int | None = None,
    model_privacy: ModelNoise | None = None,
    gaps: bool | int = True,
    cores: int | None = None,
    progress: bool | None = None,
    engine: Engine = "compiled",
) -> Trace:
    """Run a walk or gossip `replicates` times and record its errors and its cost.

    steps: SGD updates. Gossip makes 2 (asynchronous) or N (synchronous) in an iteration; the
    number of iterations is rounded up, so that methods compare at equal work.
    records: how many log-spaced records, or the update counts to record at.
    batch: rows of the node that an update looks at; all by default.
    model_privacy: clipping, noise and a cap on what each node's rows add to the model.
    gaps: False leaves f(w) − f* out, which takes a pass over all rows for every record and
    model, most of the time where rows are many. Gossip has a model per node: a number stands
    for the mean over that many nodes, spread evenly, instead of all.
    seed: the same seed gives the same numbers for any number of cores; None draws one from
    the operating system and keeps it in the trace's spec.
    cores: how many to use; all by default.
    progress: a bar; by default in a terminal or a notebook, silent when piped.
    engine: "compiled", or "reference" for the readable twin, a thousand times slower.

    Ctrl-C stops early and keeps what is done: the finished replicates, or if there are none
    the records that all replicates under way have reached (a model that is already past the
    last of them is NaN); `Trace.complete` is then False.
    """
    _check(problem, graph, method, steps, step_size, replicates, batch, cores, engine)
    if model_privacy is not None:
        _check_protectable(method, model_privacy)
    iterations_at = _iterations_at(method, graph, steps, records)
    setting: Setting = (
        WalkSetting(problem, graph, method, step_size, batch, model_privacy)
        if isinstance(method, Walk)
        else GossipSetting(problem, graph, method, step_size, batch)
    )
    root = _root(seed)
    recording = _Recording(setting, iterations_at, _streams(root, replicates), gaps)
    _warm_up(setting, engine)
    bar = progress_bar(progress, replicates * int(iterations_at[-1]), repr(method))
    with bar, stop_on_interrupt(recording.stop):
        _run_batches(recording, _batch_class(setting, engine), cores, bar)
    kept = recording.kept()
    return _trace(recording, kept, root)


@dataclass(eq=False)
class _Recording:
    """What has been recorded so far. Batches write to lines of their own."""

    setting: Setting
    iterations_at: NDArray[np.int64]
    streams: list[np.random.SeedSequence]
    gaps: bool | int = True

    def __post_init__(self) -> None:
        problem, shape = self.setting.problem, (len(self.streams), len(self.iterations_at))
        self.stop = threading.Event()
        self.lock = threading.Lock()
        self.optimum = problem.optimum
        self.errors = {name: np.full(shape, np.nan) for name in ERRORS}
        self.messages = np.zeros(shape, dtype=np.int64)
        self.models = np.zeros((len(self.streams), problem.size))
        self.averages = np.zeros((len(self.streams), problem.size))
        self.visits = np.zeros(problem.node_count, dtype=np.int64)
        self.records_done = np.zeros(len(self.streams), dtype=np.int64)
        per_node = (len(self.streams), problem.node_count)
        walk, noise = (
            (self.setting.walk, self.setting.model_noise)
            if isinstance(self.setting, WalkSetting)
            else (None, None)
        )
        self.outside = np.zeros(len(self.streams), dtype=np.int64)
        releases = walk is not None and _mechanism(walk.innermost) is not None
        self.released = np.zeros(per_node) if releases else None
        self.contributions = None if noise is None else np.zeros(per_node, dtype=np.int64)

    def run(self, batch_class: Any, first: int, last: int, bar: tqdm[Any]) -> None:
        """Take replicates first to last from the start to the end, or to the stop."""
        streams = [generators(seed) for seed in self.streams[first:last]]
        batch: Batch = batch_class(self.setting, streams)
        block = max(1, BLOCK_NUMBERS // (len(streams) * max(1, _work(self.setting))))
        for record, target in enumerate(self.iterations_at):
            while batch.iterations < target:
                if self.stop.is_set():
                    return
                count = min(block, int(target) - batch.iterations)
                batch.advance(count)
                with self.lock:
                    bar.update(count * len(streams))
            self._record(batch, record, slice(first, last))
        with self.lock:
            self.visits += batch.visits

    def _record(self, batch: Batch, record: int, lines: slice) -> None:
        optimum = self.optimum
        self.messages[lines, record] = batch.messages
        for prefix, models in (("", batch.models), ("average_", batch.averages)):
            with np.errstate(over="ignore", invalid="ignore"):  # a diverging run is no error
                distances = np.linalg.norm(models - optimum.model, axis=2).mean(axis=1)
            self.errors[prefix + "distance"][lines, record] = (
                distances if optimum.unique else np.nan
            )
            if self.gaps is not False:
                looked_at = models[:, self._looked_at(models.shape[1])]
                with np.errstate(over="ignore", invalid="ignore"):
                    values = batch.values(looked_at).mean(axis=1)
                self.errors[prefix + "gap"][lines, record] = values - optimum.value
        self.models[lines] = batch.models.mean(axis=1)
        self.averages[lines] = batch.averages.mean(axis=1)
        if self.released is not None and batch.released is not None:
            self.released[lines] = batch.released
            self.outside[lines] = batch.outside
        if self.contributions is not None and batch.contributions is not None:
            self.contributions[lines] = batch.contributions
        self.records_done[lines] = record + 1

    def _looked_at(self, holders: int) -> NDArray[np.intp]:
        """The holders of a model whose gaps are averaged: all, or some spread evenly."""
        count = holders if self.gaps is True else min(int(self.gaps), holders)
        return np.arange(count) * holders // count

    def models_at(self, models: Array, lines: Array, records: int) -> Array:
        """The models of the kept replicates, NaN for one that is past the last kept record."""
        past = self.records_done[lines] > records
        return np.where(past[:, None], np.nan, models[lines])

    def kept(self) -> tuple[NDArray[np.intp], int]:
        """Which replicates are kept, and how many records: all, unless it was interrupted."""
        complete = np.flatnonzero(self.records_done == len(self.iterations_at))
        if complete.size:
            return complete, len(self.iterations_at)
        begun = np.flatnonzero(self.records_done > 0)
        if not begun.size:
            raise KeyboardInterrupt
        return begun, int(self.records_done[begun].min())


def _run_batches(
    recording: _Recording, batch_class: Any, cores: int | None, bar: tqdm[Any]
) -> None:
    """Threads share the data and the compiled code, which runs outside the interpreter lock."""
    from joblib import Parallel, cpu_count, delayed

    count, workers = len(recording.streams), cores or cpu_count()
    size = min(_largest_batch(recording.setting), -(-count // workers))
    Parallel(n_jobs=workers, prefer="threads")(
        delayed(recording.run)(batch_class, first, min(first + size, count), bar)
        for first in range(0, count, size)
    )


def _largest_batch(setting: Setting) -> int:
    """Gossip gains nothing from sharing a batch, and needs memory for every node's model.

    A private walk has a table of its own for each replicate.
    """
    if not isinstance(setting, WalkSetting):
        return 1
    if setting.walk.is_private:
        return max(1, min(LARGEST_BATCH, MOST_RELEASED // setting.graph.node_count))
    return LARGEST_BATCH


def _trace(recording: _Recording, kept: Any, root: np.random.SeedSequence) -> Trace:
    lines, records = kept
    setting, problem = recording.setting, recording.setting.problem
    method = setting.walk if isinstance(setting, WalkSetting) else setting.gossip
    complete = len(lines) == len(recording.streams) and records == len(recording.iterations_at)
    _warn(recording, lines, records, complete)
    per_iteration = _updates_per_iteration(method, setting.graph)
    announcements = 2 * setting.graph.edge_count if method.announced_numbers else 0
    errors = {name: error[lines, :records] for name, error in recording.errors.items()}
    shape = (len(lines), *problem.model_shape)
    return Trace(
        label=repr(method),
        spec=_spec(recording, method, root),
        updates=recording.iterations_at[:records] * per_iteration,
        messages=recording.messages[lines, :records],
        message_bytes=problem.model_bytes,
        models=recording.models_at(recording.models, lines, records).reshape(shape),
        averages=recording.models_at(recording.averages, lines, records).reshape(shape),
        visits=recording.visits if complete else None,
        announcements=announcements,
        announcement_bytes=announcements * method.announced_numbers * 8,
        complete=complete,
        released=None if recording.released is None else recording.released[lines],
        contributions=None if recording.contributions is None else recording.contributions[lines],
        privacy=_published(recording, lines),
        **errors,
    )


def _published(recording: _Recording, lines: Array) -> dict[str, Any]:
    """What neighbours get to see, and what protects it."""
    setting = recording.setting
    walk = setting.walk.innermost if isinstance(setting, WalkSetting) else None
    noise = setting.model_noise if isinstance(setting, WalkSetting) else None
    published: dict[str, Any] = {"nodes": setting.problem.node_count}
    published["model"] = "in the clear" if noise is None else _described(noise)
    if isinstance(walk, Weighted):
        mechanism = _mechanism(walk)
        if mechanism is not None:
            published["importance"] = _described(mechanism)
            published["reweight"] = walk.reweight
            published["outside"] = recording.outside[lines].tolist()
        elif not walk.public:
            published["importance"] = "in the clear"
    return published


def _described(mechanism: Mechanism | ModelNoise) -> dict[str, Any]:
    from walklearn.privacy.ledger import describe  # slow to import, and only needed here

    return describe(mechanism)


def _mechanism(walk: Walk) -> Mechanism | None:
    """What releases, or has released, the importance that the walk follows."""
    if isinstance(walk, ReleasedWeighted):
        return walk.mechanism
    return walk.privacy if isinstance(walk, Weighted) else None


def _spec(
    recording: _Recording, method: Walk | Gossip, root: np.random.SeedSequence
) -> dict[str, Any]:
    setting = recording.setting
    entropy = root.entropy
    return {
        "walklearn": __version__,
        "problem": setting.problem.describe(),
        "graph": repr(setting.graph),
        "graph_sha256": _digest(setting.graph.indptr, setting.graph.indices),
        "method": repr(method),
        "importance_sha256": _importance_digest(method),
        "step_size": repr(setting.step_size),
        "batch": setting.batch,
        "steps": int(recording.iterations_at[-1]) * _updates_per_iteration(method, setting.graph),
        "replicates": len(recording.streams),
        "seed": list(entropy) if isinstance(entropy, list | tuple) else entropy,
        "spawn_key": list(root.spawn_key),
        "optimum_value": recording.optimum.value,
    }


def _digest(*arrays: Array) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _importance_digest(method: Walk | Gossip) -> str | None:
    walk = method.innermost if isinstance(method, Walk) else None
    if not isinstance(walk, Weighted) or walk.importance is None:
        return None
    return _digest(walk.importance)


def _warn(recording: _Recording, lines: Array, records: int, complete: bool) -> None:
    if not complete:
        warnings.warn(
            f"interrupted: kept {len(lines)} of {len(recording.streams)} replicates, "
            f"{records} of {len(recording.iterations_at)} records.",
            stacklevel=4,
        )
    if not recording.optimum.unique:
        warnings.warn(
            "the minimiser is not unique, so distances are NaN; the gaps f(w) - f* are right. "
            "A positive penalty makes it unique.",
            stacklevel=4,
        )
    diverged = int((~np.isfinite(recording.models[lines]).all(axis=1)).sum())
    if diverged:
        warnings.warn(
            f"{diverged} of {len(lines)} replicates diverged to infinity: the steps are too long. "
            "Take a smaller step constant, or a bounded domain such as domains.Ball(10.0).",
            stacklevel=4,
        )


def _root(seed: Seed) -> np.random.SeedSequence:
    if isinstance(seed, np.random.SeedSequence):
        return seed
    if seed is not None and (not _is_count(seed) or seed < 0):
        raise ValueError(
            f"seed must be a whole number of at least 0, a SeedSequence or None, got {seed!r}."
        )
    return np.random.SeedSequence(None if seed is None else int(seed))


def _is_count(number: object) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool)


def _streams(root: np.random.SeedSequence, replicates: int) -> list[np.random.SeedSequence]:
    """Replicate r's stream depends on the seed and r alone, however often the root was used."""
    return [
        np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, replicate))
        for replicate in range(replicates)
    ]


def generators(seed: np.random.SeedSequence) -> Streams:
    """A replicate's streams: the walk's, and a separate one for the noise on the model."""
    noise = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, 1))
    return Streams(
        walk=np.random.Generator(np.random.PCG64(seed)),
        noise=np.random.Generator(np.random.PCG64(noise)),
    )


def _iterations_at(
    method: Walk | Gossip, graph: Graph, steps: int, records: int | ArrayLike
) -> NDArray[np.int64]:
    """The iterations to record after, strictly increasing, the last one reaching `steps`."""
    per_iteration = _updates_per_iteration(method, graph)
    last = -(-steps // per_iteration)
    if not _is_count(records):
        wanted = np.asarray(records)
        whole = wanted.ndim == 1 and wanted.size and np.issubdtype(wanted.dtype, np.integer)
        if not whole or wanted.min() < 1 or wanted.max() > steps:
            raise ValueError(
                "records must be a whole number, or a list of update counts between 1 and steps = "
                f"{steps}."
            )
        return np.unique(-(-wanted.astype(np.int64) // per_iteration))
    number = int(cast(int, records))
    if number < 1:
        raise ValueError(f"records must be at least 1, got {number}.")
    count = min(number, last)
    spaced = np.rint(np.geomspace(1, last, count)) if count > 1 else np.array([last])
    # Where the logarithm is finer than whole numbers, count up one by one.
    return np.maximum(spaced, np.minimum(np.arange(1, count + 1), last)).astype(np.int64)


def _updates_per_iteration(method: Walk | Gossip, graph: Graph) -> int:
    return 1 if isinstance(method, Walk) else method.updates_per_iteration(graph)


def _work(setting: Setting) -> int:
    """How much an iteration draws and does, in numbers."""
    synchronous = isinstance(setting, GossipSetting) and isinstance(
        setting.gossip, SynchronousGossip
    )
    return max(setting.draws, setting.graph.node_count if synchronous else 1)


def _batch_class(setting: Setting, engine: Engine) -> type[Batch]:
    walks = isinstance(setting, WalkSetting)
    if engine == "compiled":
        return CompiledWalks if walks else CompiledGossip
    return ReferenceWalks if walks else ReferenceGossip


def _warm_up(setting: Setting, engine: Engine) -> None:
    """Compile or load the machine code once, before threads ask for it all at once."""
    if engine == "compiled":
        batch = _batch_class(setting, engine)(setting, [generators(np.random.SeedSequence(0))])
        batch.advance(1)
        batch.values(batch.models)
        batch.values(batch.averages)


def _check_protectable(method: Walk | Gossip, noise: ModelNoise) -> None:
    """Noise on the model protects nothing that leaks by another way: refuse to claim it.

    Only walks are let through whose steps are known to depend on the rows in no other way.
    """
    from walklearn.privacy.model_noise import ModelNoise

    if not isinstance(noise, ModelNoise):
        raise TypeError(f"model_privacy must be a privacy.ModelNoise, got {noise!r}.")
    if not isinstance(method, Walk):
        raise ValueError("model_privacy is for walks; gossip shows every node's model.")
    walk = method.innermost
    known = (Simple, Uniform, Weighted, ReleasedWeighted)
    if type(walk) not in known or type(method) not in (*known, *_WRAPPERS):
        raise ValueError(f"no privacy can be claimed for {method!r}, which is not known here.")
    if isinstance(walk, Weighted) and _mechanism(walk) is None and not walk.public:
        raise ValueError(
            "Weighted() tells the neighbours its importance in the clear, so noise on the model "
            "would protect nothing. Pass Weighted(privacy=...), use Uniform(), or say "
            "Weighted(importance, public=True) if the importance depends on no node's rows."
        )
    if isinstance(walk, Weighted) and walk.reweight == "as-printed":
        raise ValueError(
            'reweight="as-printed" scales every step by the true L_i, which the model then shows. '
            'Use reweight="released" with model_privacy.'
        )
    if isinstance(walk, Uniform) and walk.normalise:
        raise ValueError(
            "Uniform(normalise=True) scales every step by the true L_i, which the model then "
            "shows. Use Uniform() with model_privacy."
        )


def _check(
    problem: Problem,
    graph: Graph,
    method: Walk | Gossip,
    steps: int,
    step_size: StepSize,
    replicates: int,
    batch: int | None,
    cores: int | None,
    engine: str,
) -> None:
    if not isinstance(method, Walk | AsynchronousGossip | SynchronousGossip):
        raise TypeError(
            f"the method must be a walk such as walks.Weighted(), or AsynchronousGossip() or "
            f"SynchronousGossip(), got {method!r}."
        )
    if not isinstance(step_size, PowerStep | ConstantStep):
        raise TypeError(f"step_size must be a PowerStep or a ConstantStep, got {step_size!r}.")
    if graph.node_count != problem.node_count:
        raise ValueError(
            f"the graph has {graph.node_count} nodes, but the problem has {problem.node_count}. "
            'Give every node rows (node_of_row=…), or pass empty_nodes="relay" and nodes=….'
        )
    if not isinstance(method, Walk) and graph.node_count == 1:
        raise ValueError("gossip needs at least 2 nodes; on one node use walks.Uniform().")
    counts = {"steps": steps, "replicates": replicates, "batch": batch, "cores": cores}
    for name, count in counts.items():
        if count is not None and (not _is_count(count) or count < 1):
            raise ValueError(f"{name} must be a whole number of at least 1, got {count!r}.")
    if engine not in ("compiled", "reference"):
        raise ValueError(f'engine must be "compiled" or "reference", got {engine!r}.')
    for part in (problem.loss, method) if engine == "compiled" else ():
        if not has_compiled_twin(part):
            raise ValueError(f'{type(part).__name__} is not compiled; pass engine="reference".')
