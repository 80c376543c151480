"""The runner: it advances batches from record to record, and makes the trace."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from walklearn import __version__
from walklearn.arrays import Array, sha256_of
from walklearn.graphs import Graph
from walklearn.objectives import Problem
from walklearn.objectives.linear.optimum import Optimum
from walklearn.objectives.objective import Objective
from walklearn.privacy.model_noise import ModelNoise
from walklearn.simulation.arguments import iterations_at
from walklearn.simulation.averaging import GossipSetting
from walklearn.simulation.batches import Batch, Schedule, Snapshot, WalkBatch, value_of
from walklearn.simulation.trace import Trace, check_metric_names
from walklearn.simulation.trace_files import ERRORS
from walklearn.streams import Owner, generators, replicate_seed
from walklearn.visit import Setting
from walklearn.walks import Walk
from walklearn.walks.disclosure import describe_privacy
from walklearn.walks.markov import known_stationary, stationary_or_nan
from walklearn.walks.walk import draw_walk

if TYPE_CHECKING:
    from tqdm import tqdm

# Uniform numbers drawn at a time: large enough to spread the cost of a call, small enough
# for the second-level cache. A power of 2 would map all tokens to a few of its lines.
BLOCK_NUMBERS = 66_560
COPIED_NUMBERS = 1_000_000  # numbers of models that are copied before they are evaluated


class Runner:
    """Runs batches of replicates and stores their records, one line per replicate."""

    def __init__(
        self,
        setting: Setting | GossipSetting,
        graph: Graph,
        steps: int,
        records: int | ArrayLike,
        root: np.random.SeedSequence,
        replicates: int,
        gaps: bool | int,
        owner: Owner,
        mean: str,
        schedule: Schedule,
    ) -> None:
        self.setting, self.graph, self.root, self.schedule = setting, graph, root, schedule
        self.gaps, self.owner, self.mean = gaps, owner, mean
        self.method: Any = setting.walk if isinstance(setting, Setting) else setting.gossip
        self.per_iteration, self.sent_length = 1, 0
        self.batch_setting: Any = setting
        if isinstance(setting, GossipSetting):
            self.per_iteration = setting.gossip.updates_per_iteration(graph)
            self.sent_length = setting.gossip.sent_length
        elif not (setting.walk.is_private or setting.walk.has_random_announcements):
            drawn_walk = draw_walk(setting.walk, graph, setting.objective, None)
            changes: Any = {"walk": drawn_walk.bind(graph, setting.objective, mean)}
            self.batch_setting = replace(setting, **changes)  # shared by all replicates
        self.iterations_at = iterations_at(self.per_iteration, steps, records)
        self.seeds = seeds = [replicate_seed(root, number) for number in range(replicates)]
        objective, shape = setting.objective, (replicates, len(self.iterations_at))
        self.stop, self.lock = threading.Event(), threading.Lock()
        self.optimum = solution_of(objective)
        self.messages, self.questions = np.zeros((2, *shape), dtype=np.int64)
        self.times = np.zeros(shape)
        self.models, self.averages = np.zeros((2, len(seeds), objective.size))
        self.visits = np.zeros(objective.nodes, dtype=np.int64)
        self.records_done = np.zeros(len(seeds), dtype=np.int64)
        self.replicate_arrays: dict[str, Array] = {}  # other arrays, with one line per replicate
        self.metric_names: set[str] = set()
        own_metrics = self._checked_metrics(objective.start) if gaps is not False else {}
        check_metric_names(own_metrics)
        reserved = [
            name
            for name in own_metrics
            if name in ("value", *ERRORS) or name.startswith("average_")
        ]
        if reserved:
            raise ValueError(
                f"a metric cannot be named {reserved[0]!r}: every trace has a metric of that name."
            )
        names = (*(("distance", "gap") if self.optimum else ("value",)), *own_metrics)
        self.metrics = {
            prefix + name: np.full(shape, np.nan) for name in names for prefix in ("", "average_")
        }

    def _checked_metrics(self, w: Array) -> Mapping[str, float]:
        """Return the metrics that the objective defines, checked."""
        metrics: Mapping[str, float] = self.setting.objective.metrics(w)
        has_fixed_names = isinstance(metrics, Mapping) and set(metrics) == (
            self.metric_names or set(metrics)
        )
        if not has_fixed_names or any(
            np.ndim(number) or number is None for number in metrics.values()
        ):
            raise TypeError(
                f"metrics of {self.setting.objective!r} must return a dict of numbers, always with "
                f"the same names, got {metrics!r}."
            )
        self.metric_names = set(metrics)
        return metrics

    def run(self, batch_class: Any, first: int, last: int, bar: tqdm[Any]) -> None:
        """Run replicates `first` to `last` from start to end, or until they are stopped."""
        setting, objective, lines = self.setting, self.setting.objective, slice(first, last)
        nodes = objective.nodes if self.owner == "node" else None
        streams = [generators(seed, nodes, setting.tokens) for seed in self.seeds[lines]]
        batch: Batch = batch_class(
            self.batch_setting, self.graph, streams, mean=self.mean, schedule=self.schedule
        )
        if isinstance(batch, WalkBatch):
            self._store_walk_results([each.walk for each in batch.settings], lines)
        numbers_per_iteration = objective.size if setting.privacy.adds_noise else self.per_iteration
        block = max(1, BLOCK_NUMBERS // (len(streams) * max(setting.draws, numbers_per_iteration)))
        max_records = max(1, COPIED_NUMBERS // batch.models.size)
        iterations_at, record = self.iterations_at, 0
        while record < len(iterations_at) and not self.stop.is_set():
            start = batch.iterations
            end = min(
                start + block, int(iterations_at[min(record + max_records, len(iterations_at)) - 1])
            )
            next_record = int(np.searchsorted(iterations_at, end, side="right"))
            snapshot = batch.advance(end - start, iterations_at[record:next_record] - start)
            if snapshot is not None:
                self._record(batch, snapshot, slice(record, next_record), lines)
            record = next_record
            with self.lock:
                bar.update((end - start) * len(streams))
        if record == len(iterations_at):
            with self.lock:
                self.visits += batch.visits

    def _store(self, lines: slice, **arrays: Any) -> None:
        """Store arrays with a line for each replicate of a batch; None is left out."""
        for name, array in arrays.items():
            if array is None:
                continue
            with self.lock:
                if name not in self.replicate_arrays:
                    shape = (len(self.seeds), *np.shape(array)[1:])
                    self.replicate_arrays[name] = np.zeros(shape, np.asarray(array).dtype)
            self.replicate_arrays[name][lines] = array

    def _store_walk_results(self, walks: list[Walk], lines: slice) -> None:
        """Store the releases and stationary distributions that differ between replicates."""
        self.sent_length, inner = walks[0].sent_length, [walk.innermost for walk in walks]
        if inner[0].release is not None:
            self._store(lines, released=[walk.release for walk in inner])
            self._store(lines, out_of_bounds=[walk.out_of_bounds for walk in inner])
        if self.batch_setting is self.setting and not walks[0].slow_stationary:
            problem = (self.graph, self.setting.objective)
            self._store(lines, stationary=[stationary_or_nan(walk, *problem) for walk in walks])

    def _record(self, batch: Batch, snapshot: Snapshot, records: slice, lines: slice) -> None:
        self.messages[lines, records] = snapshot.messages.T
        self.questions[lines, records] = snapshot.questions.T
        self.times[lines, records] = snapshot.times.T
        with np.errstate(over="ignore", invalid="ignore"):  # a diverging run is no error
            for prefix, models, last in (
                ("", snapshot.models, self.models),
                ("average_", snapshot.averages, self.averages),
            ):
                final = models[-1].mean(axis=1)
                for number, (name, values) in enumerate(self._metrics_of(batch, models)):
                    line = values.mean(axis=2)
                    if self.setting.tokens > 1 and name in ("value", *ERRORS):  # the worst token's
                        line, worst = values.max(axis=2), values[-1].argmax(axis=1)
                        final = models[-1, np.arange(len(final)), worst] if number == 0 else final
                    self.metrics[prefix + name][lines, records] = line.T
                last[lines] = final
        self._store(lines, contributions=batch.contributions)
        self.records_done[lines] = records.stop

    def _metrics_of(self, batch: Batch, models: Array) -> Iterator[tuple[str, Array]]:
        """Yield the metrics of models, each by its name, shape (records, replicates, holders)."""
        optimum, objective = self.optimum, self.setting.objective
        if optimum is not None and optimum.unique:
            differences = models - optimum.model  # `norm` would allocate three more arrays
            yield "distance", np.sqrt(np.einsum("...a,...a->...", differences, differences))
        if self.gaps is False:
            return
        if self.gaps is not True and self.setting.tokens == 1:  # evenly spaced holders
            holders = models.shape[2]
            count = min(int(self.gaps), holders)
            models = models[:, :, np.arange(count) * holders // count]
        values = batch.values(models)
        yield ("value", values) if optimum is None else ("gap", values - optimum.value)
        if type(objective).metrics is not Objective.metrics:
            rows = [self._checked_metrics(w) for w in models.reshape(-1, models.shape[-1])]
            for name in rows[0]:
                numbers = np.array([row[name] for row in rows], dtype=np.float64)
                yield name, numbers.reshape(models.shape[:-1])

    def _complete_part(self) -> tuple[NDArray[np.intp], int]:
        """Return the replicates and the number of records to keep: all, unless interrupted."""
        complete = np.flatnonzero(self.records_done == len(self.iterations_at))
        if complete.size:
            return complete, len(self.iterations_at)
        started = np.flatnonzero(self.records_done > 0)
        if not started.size:
            raise KeyboardInterrupt
        return started, int(self.records_done[started].min())

    def trace(self) -> Trace:
        """Return the trace of all complete replicates and records."""
        lines, records = self._complete_part()
        setting, objective, graph = self.setting, self.setting.objective, self.graph
        is_complete = len(lines) == len(self.seeds) and records == len(self.iterations_at)
        self._warn(lines, records, is_complete)
        arrays = {name: each[lines] for name, each in self.replicate_arrays.items()}
        announcements = 2 * graph.edge_count if self.sent_length else 0
        specs = objective.parameters
        shape = (len(lines), *(specs[0].shape if len(specs) == 1 else (objective.size,)))
        # The models at the last kept record are lost for replicates that are past it.
        is_past = (self.records_done[lines] > records)[:, None]
        models, averages = (
            np.where(is_past, np.nan, each[lines]).reshape(shape)
            for each in (self.models, self.averages)
        )
        # A subclass may have changed clipping or noise: then no privacy is claimed.
        privacy = setting.privacy
        noise = privacy if isinstance(privacy, ModelNoise) and privacy.is_compiled else None
        walk = setting.walk if isinstance(setting, Setting) else None
        out_of_bounds = arrays.get("out_of_bounds", np.zeros(len(lines), int)).tolist()
        return Trace(
            label=", ".join(filter(None, (repr(self.method), setting.update.label))),
            spec=self._spec(),
            updates=self.iterations_at[:records] * self.per_iteration,
            messages=self.messages[lines, :records],
            time=self.times[lines, :records],
            message_bytes=self.batch_setting.message_bytes,
            questions=self.questions[lines, :records] if self.questions.any() else None,
            metrics={name: each[lines, :records] for name, each in self.metrics.items()},
            models=models,
            averages=averages,
            visits=self.visits if is_complete else None,
            degrees=graph.degrees,
            expected_visits=self._expected_visits(lines),
            announcements=announcements,
            announcement_bytes=announcements * self.sent_length * 8,
            complete=is_complete,
            released=arrays.get("released"),
            contributions=arrays.get("contributions"),
            privacy=describe_privacy(walk, noise, objective.nodes, out_of_bounds),
        )

    def _expected_visits(self, lines: Array) -> Array | None:
        """Return the long-run share of the updates of each node; None if unknown or slow."""
        setting = self.setting
        if isinstance(setting, GossipSetting):
            return setting.gossip.update_rates(setting.graph)
        if setting.walk.slow_stationary:
            return None
        if "stationary" in self.replicate_arrays:
            return np.asarray(self.replicate_arrays["stationary"][lines].mean(axis=0))
        return known_stationary(self.batch_setting.walk, self.graph, setting.objective)

    def _spec(self) -> dict[str, Any]:
        """Return the inputs of the run as plain values."""
        setting, graph, method = self.setting, self.graph, self.method
        objective, entropy, update = setting.objective, self.root.entropy, setting.update
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
            "tokens": setting.tokens,
            "node_bytes": update.node_bytes(objective, setting.tokens),
            "batch": objective.draws or None,
            "steps": int(self.iterations_at[-1]) * self.per_iteration,
            "replicates": len(self.seeds),
            "mean_importance": self.mean if isinstance(setting, Setting) else None,
            "streams": self.owner,
            "hop_time": self.schedule.hop,
            "visit_time": self.schedule.visit,
            "seed": list(entropy) if isinstance(entropy, list | tuple) else entropy,
            "spawn_key": list(self.root.spawn_key),
            "optimum_value": None if self.optimum is None else self.optimum.value,
        }

    def _warn(self, lines: Array, records: int, is_complete: bool) -> None:
        messages = []
        if not is_complete:
            messages.append(
                f"interrupted: kept {len(lines)} of {len(self.seeds)} replicates, "
                f"{records} of {len(self.iterations_at)} records."
            )
        if self.optimum is not None and not self.optimum.unique:
            messages.append(
                "the minimiser is not unique, so distances are NaN; the gaps f(w) - f* are valid. "
                "A positive penalty makes it unique."
            )
        if diverged := int((~np.isfinite(self.models[lines]).all(axis=1)).sum()):
            messages.append(
                f"{diverged} of {len(lines)} replicates ended with numbers that are not finite. "
                "The steps are too long, or a gradient is not finite. Use a smaller step "
                "constant, or a bounded domain such as domains.Ball(10.0)."
            )
        for message in messages:
            warnings.warn(message, stacklevel=4)


def solution_of(objective: Any) -> Optimum | None:
    """Return the minimiser, its value and whether it is unique; None if it is not known."""
    if isinstance(objective, Problem) and type(objective).optimum is Problem.optimum:
        return objective.solution
    if not hasattr(objective, "optimum"):
        return None
    model = np.asarray(objective.optimum(), dtype=np.float64).reshape(-1)
    if model.size != objective.size:
        raise ValueError(f"optimum() has {model.size} numbers, and a model has {objective.size}.")
    return Optimum(model, value_of(objective, model), unique=True)
