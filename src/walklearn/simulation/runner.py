"""What a run has recorded so far, and the trace that it makes."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from walklearn import __version__
from walklearn.arrays import Array, sha256_of
from walklearn.graphs import Graph
from walklearn.objectives import Problem
from walklearn.objectives.linear.optimum import Optimum
from walklearn.objectives.objective import Objective
from walklearn.privacy.model_noise import ModelNoise
from walklearn.privacy.protection import CONTRIBUTIONS
from walklearn.simulation.arguments import updates_per_iteration
from walklearn.simulation.averaging import GossipSetting
from walklearn.simulation.batches import Batch, Snapshot, WalkBatch
from walklearn.simulation.trace import Trace, check_metric_names
from walklearn.simulation.trace_files import ERRORS
from walklearn.streams import Owner, generators
from walklearn.visit import Setting
from walklearn.walks import Walk
from walklearn.walks.disclosure import mechanism_of, published
from walklearn.walks.markov import known_stationary, stationary_or_nan
from walklearn.walks.walk import draw_walk

if TYPE_CHECKING:
    from tqdm import tqdm

# Uniform numbers drawn at a time: large enough to spread the cost of a call, small enough
# for the second-level cache, and no power of 2, or those of all tokens fall on the same few of its
# lines.
BLOCK_NUMBERS = 66_560
# Numbers of the models that are copied before they are looked at.
COPIED_NUMBERS = 1_000_000


@dataclass(eq=False)
class Recording:
    """What has been recorded so far. Batches write to lines of their own."""

    setting: Setting | GossipSetting
    graph: Graph
    iterations_at: NDArray[np.int64]
    seeds: list[np.random.SeedSequence]
    gaps: bool | int = True
    owner: Owner = "replicate"
    mean: str = "exact"

    def __post_init__(self) -> None:
        problem, shape = self.setting.objective, (len(self.seeds), len(self.iterations_at))
        self.stop = threading.Event()
        self.lock = threading.Lock()
        self.optimum = solution_of(problem)
        self.metrics: dict[str, Array] = {}
        self.own_names: set[str] = set()
        self.messages = np.zeros(shape, dtype=np.int64)
        self.questions = np.zeros(shape, dtype=np.int64)
        self.models = np.zeros((len(self.seeds), problem.size))
        self.averages = np.zeros((len(self.seeds), problem.size))
        self.visits = np.zeros(problem.nodes, dtype=np.int64)
        self.records_done = np.zeros(len(self.seeds), dtype=np.int64)
        per_node = (len(self.seeds), problem.nodes)
        walk = self.setting.walk if isinstance(self.setting, Setting) else None
        self.method: Any = walk if isinstance(self.setting, Setting) else self.setting.gossip
        self.out_of_bounds = np.zeros(len(self.seeds), dtype=np.int64)
        releases = walk is not None and mechanism_of(walk) is not None
        self.released = np.zeros(per_node) if releases else None
        counted = CONTRIBUTIONS in self.setting.privacy.node_arrays(problem)
        self.contributions = np.zeros(per_node, dtype=np.int64) if counted else None
        self.numbers_sent = 0
        # Each replicate has its own stationary distribution if it draws its own announcements.
        self.laws: Array | None = None
        self.begun: Any = self.setting  # of the batches: a walk that all share is bound once
        if walk is not None and (walk.is_private or walk.draws_announcements):
            self.laws = None if walk.slow_stationary else np.full(per_node, np.nan)
        elif walk is not None:
            drawn = draw_walk(walk, self.graph, problem, None)
            bound: Any = {"walk": drawn.bind(self.graph, problem, self.mean)}
            self.begun = replace(self.setting, **bound)
        known = ("distance", "gap") if self.optimum else ("value",)
        own = self._own_metrics(problem.start) if self.gaps is not False else {}
        check_metric_names(own)
        taken = [name for name in own if name in ("value", *ERRORS) or name.startswith("average_")]
        if taken:
            raise ValueError(f"a metric cannot be named {taken[0]!r}: records have it already.")
        for name in (*known, *own):
            self._series(name)
            self._series("average_" + name)

    def _own_metrics(self, w: Array) -> Mapping[str, float]:
        """Return the metrics that the objective defines, checked."""
        own: Mapping[str, float] = self.setting.objective.metrics(w)
        is_dict = isinstance(own, Mapping) and set(own) == (self.own_names or set(own))
        if not is_dict or any(np.ndim(number) or number is None for number in own.values()):
            raise TypeError(
                f"metrics of {self.setting.objective!r} must return a dict of numbers, always with "
                f"the same names, got {own!r}."
            )
        self.own_names = set(own)
        return own

    def _series(self, name: str) -> Array:
        """The records of a metric, NaN until they are made."""
        shape = (len(self.seeds), len(self.iterations_at))
        return self.metrics.setdefault(name, np.full(shape, np.nan))

    def run(self, batch_class: Any, first: int, last: int, bar: tqdm[Any]) -> None:
        """Run replicates `first` to `last` from start to end, or until they are stopped."""
        nodes = self.setting.objective.nodes if self.owner == "node" else None
        streams = [generators(seed, nodes) for seed in self.seeds[first:last]]
        options = {"mean": self.mean} if isinstance(self.setting, Setting) else {}
        batch: Batch = batch_class(self.begun, self.graph, streams, **options)
        if isinstance(batch, WalkBatch):
            self.numbers_sent = batch.setting.walk.numbers_sent
            if self.laws is not None:
                self.laws[first:last] = [
                    stationary_or_nan(each.walk, self.graph, self.setting.objective)
                    for each in batch.settings
                ]
        block = max(1, BLOCK_NUMBERS // (len(streams) * max(1, _work(self.setting))))
        at_once = max(1, COPIED_NUMBERS // batch.models.size)
        marks, record = self.iterations_at, 0
        while record < len(marks):
            if self.stop.is_set():
                return
            begun = batch.iterations
            end = min(begun + block, int(marks[min(record + at_once, len(marks)) - 1]))
            following = int(np.searchsorted(marks, end, side="right"))
            seen = batch.advance(end - begun, marks[record:following] - begun)
            if seen is not None:
                self._record(batch, seen, slice(record, following), slice(first, last))
            record = following
            with self.lock:
                bar.update((end - begun) * len(streams))
        with self.lock:
            self.visits += batch.visits

    def _record(self, batch: Batch, seen: Snapshot, records: slice, lines: slice) -> None:
        self.messages[lines, records] = seen.messages.T
        self.questions[lines, records] = seen.questions.T
        both = (("", seen.models, self.models), ("average_", seen.averages, self.averages))
        with np.errstate(over="ignore", invalid="ignore"):  # a diverging run is no error
            for prefix, models, kept in both:
                for name, values in self._measured(batch, models):
                    self._series(prefix + name)[lines, records] = values.mean(axis=2).T
                kept[lines] = models[-1].mean(axis=1)
        if self.released is not None and batch.released is not None:
            self.released[lines] = batch.released
            self.out_of_bounds[lines] = batch.out_of_bounds
        if self.contributions is not None and batch.contributions is not None:
            self.contributions[lines] = batch.contributions
        self.records_done[lines] = records.stop

    def _measured(self, batch: Batch, models: Array) -> Iterator[tuple[str, Array]]:
        """Yield the metrics of models, each by its name, shape (records, replicates, holders)."""
        optimum = self.optimum
        if optimum is not None and optimum.unique:
            apart = models - optimum.model  # `norm` would make three more arrays of it
            yield "distance", np.sqrt(np.einsum("...a,...a->...", apart, apart))
        if self.gaps is False:
            return
        inspected = models if self.gaps is True else self._spread(models)
        values = batch.values(inspected)
        yield ("value", values) if optimum is None else ("gap", values - optimum.value)
        objective = self.setting.objective
        if type(objective).metrics is not Objective.metrics:
            flat = inspected.reshape(-1, inspected.shape[-1])
            rows = [self._own_metrics(w) for w in flat]
            for name in rows[0]:
                numbers = np.array([row[name] for row in rows], dtype=np.float64)
                yield name, numbers.reshape(inspected.shape[:-1])

    def _spread(self, models: Array) -> Array:
        """The models whose gaps are averaged: those of some holders, spread evenly."""
        holders = models.shape[2]
        count = min(int(self.gaps), holders)
        return models[:, :, np.arange(count) * holders // count]

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


def solution_of(objective: Any) -> Optimum | None:
    """Return the minimiser, its value and whether it is unique; None if it is not known."""
    if isinstance(objective, Problem) and type(objective).optimum is Problem.optimum:
        return objective.solution
    if not hasattr(objective, "optimum"):
        return None
    model = np.asarray(objective.optimum(), dtype=np.float64).reshape(-1)
    if model.size != objective.size:
        raise ValueError(f"optimum() has {model.size} numbers, and a model has {objective.size}.")
    value = objective.value(model)
    if value is None or np.ndim(value):
        raise TypeError(f"value of {objective!r} must return a number, got {value!r}.")
    return Optimum(model, float(value), unique=True)


def trace_of(recording: Recording, kept: Any, root: np.random.SeedSequence) -> Trace:
    """Return the trace of the replicates and records that are kept."""
    lines, records = kept
    setting, objective, graph = recording.setting, recording.setting.objective, recording.graph
    method, privacy = recording.method, setting.privacy
    complete = len(lines) == len(recording.seeds) and records == len(recording.iterations_at)
    _warn(recording, lines, records, complete)
    per_iteration = updates_per_iteration(method, graph)
    walk = method if isinstance(method, Walk) else None
    numbers = method.announced_numbers if walk is None else recording.numbers_sent
    announcements = 2 * graph.edge_count if numbers else 0
    specs = objective.parameters
    shape = (len(lines), *(specs[0].shape if len(specs) == 1 else (objective.size,)))
    # Nothing is claimed for a protection whose clipping or noise a subclass has changed.
    noise = privacy if isinstance(privacy, ModelNoise) and privacy.is_compiled else None
    return Trace(
        label=", ".join(filter(None, (repr(method), setting.update.label))),
        spec=_spec(recording, root),
        updates=recording.iterations_at[:records] * per_iteration,
        messages=recording.messages[lines, :records],
        message_bytes=recording.begun.message_bytes,
        questions=recording.questions[lines, :records] if recording.questions.any() else None,
        metrics={name: each[lines, :records] for name, each in recording.metrics.items()},
        models=recording.models_at(recording.models, lines, records).reshape(shape),
        averages=recording.models_at(recording.averages, lines, records).reshape(shape),
        visits=recording.visits if complete else None,
        degrees=graph.degrees,
        expected_visits=_law(recording, lines),
        announcements=announcements,
        announcement_bytes=announcements * numbers * 8,
        complete=complete,
        released=None if recording.released is None else recording.released[lines],
        contributions=None if recording.contributions is None else recording.contributions[lines],
        privacy=published(walk, noise, objective.nodes, recording.out_of_bounds[lines].tolist()),
    )


def _law(recording: Recording, lines: Array) -> Array | None:
    """Return the long-run share of the updates of each node, if it is known and quickly found."""
    setting = recording.setting
    if isinstance(setting, GossipSetting):
        return setting.gossip.update_rates(setting.graph)
    if setting.walk.slow_stationary:
        return None
    if recording.laws is not None:
        return np.asarray(recording.laws[lines].mean(axis=0))
    return known_stationary(recording.begun.walk, recording.graph, setting.objective)


def _spec(recording: Recording, root: np.random.SeedSequence) -> dict[str, Any]:
    setting, graph, method = recording.setting, recording.graph, recording.method
    objective, entropy, update = setting.objective, root.entropy, setting.update
    step_size = getattr(update, "step_size", None)
    importance = getattr(getattr(method, "innermost", None), "importance", None)
    sizes = {"objective": repr(objective), "nodes": objective.nodes, "size": objective.size}
    return {
        "walklearn": __version__,
        "problem": objective.describe() if isinstance(objective, Problem) else sizes,
        "graph": repr(graph),
        "graph_sha256": sha256_of(graph.indptr, graph.indices),
        "method": repr(method),
        "importance_sha256": None if importance is None else sha256_of(importance),
        "update": repr(update),
        "step_size": None if step_size is None else repr(step_size),
        "node_bytes": update.node_bytes(objective),
        "batch": objective.draws or None,
        "steps": int(recording.iterations_at[-1]) * updates_per_iteration(method, graph),
        "replicates": len(recording.seeds),
        "mean_importance": recording.mean if isinstance(setting, Setting) else None,
        "streams": recording.owner,
        "seed": list(entropy) if isinstance(entropy, list | tuple) else entropy,
        "spawn_key": list(root.spawn_key),
        "optimum_value": None if recording.optimum is None else recording.optimum.value,
    }


def _warn(recording: Recording, lines: Array, records: int, complete: bool) -> None:
    if not complete:
        warnings.warn(
            f"interrupted: kept {len(lines)} of {len(recording.seeds)} replicates, "
            f"{records} of {len(recording.iterations_at)} records.",
            stacklevel=4,
        )
    if recording.optimum is not None and not recording.optimum.unique:
        warnings.warn(
            "the minimiser is not unique, so distances are NaN; the gaps f(w) - f* are right. "
            "A positive penalty makes it unique.",
            stacklevel=4,
        )
    diverged = int((~np.isfinite(recording.models[lines]).all(axis=1)).sum())
    if diverged:
        warnings.warn(
            f"{diverged} of {len(lines)} replicates ended with numbers that are not finite. The "
            "steps are too long, or a gradient is not finite. Use a smaller step constant, or a "
            "bounded domain such as domains.Ball(10.0).",
            stacklevel=4,
        )


def _work(setting: Setting | GossipSetting) -> int:
    """Return how much an iteration draws and computes, in numbers."""
    objective = setting.objective
    if isinstance(setting, GossipSetting):
        synchronous = setting.gossip.updates_per_iteration(setting.graph) > 2
        return max(setting.draws, objective.nodes if synchronous else 1)
    return max(setting.draws, objective.size if setting.privacy.adds_noise else 1)
