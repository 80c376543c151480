"""What a run has recorded so far, and the trace that it makes."""

from __future__ import annotations

import hashlib
import threading
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from walklearn import __version__
from walklearn.simulation.arguments import updates_per_iteration
from walklearn.simulation.batches import Batch, Seen, Setting
from walklearn.simulation.trace import Trace
from walklearn.simulation.trace_files import ERRORS
from walklearn.updates.gossip_sgd import Gossip, GossipSetting, SynchronousGossip
from walklearn.updates.random_streams import Owner, Streams, generators
from walklearn.updates.update import Sgd, Update
from walklearn.updates.walk_sgd import WalkSetting
from walklearn.walks import Jumping, Walk, Weighted
from walklearn.walks.disclosure import mechanism_of, published

if TYPE_CHECKING:
    from tqdm import tqdm

    from walklearn.privacy.model_noise import ModelNoise

Array = NDArray[Any]

# Uniform numbers drawn at a time: large enough to spread the cost of a call, small enough
# for the second-level cache, and no power of 2, or those of all tokens fall on the same few of its
# lines.
BLOCK_NUMBERS = 66_560
# Numbers of the models that are copied before they are looked at.
COPIED_NUMBERS = 1_000_000


@dataclass(eq=False)
class Recording:
    """What has been recorded so far. Batches write to lines of their own."""

    setting: Setting
    iterations_at: NDArray[np.int64]
    seeds: list[np.random.SeedSequence]
    gaps: bool | int = True
    owner: Owner = "replicate"

    def __post_init__(self) -> None:
        problem, shape = self.setting.problem, (len(self.seeds), len(self.iterations_at))
        self.stop = threading.Event()
        self.lock = threading.Lock()
        self.optimum = problem.solution
        self.errors = {name: np.full(shape, np.nan) for name in ERRORS}
        self.messages = np.zeros(shape, dtype=np.int64)
        self.questions = np.zeros(shape, dtype=np.int64)
        self.models = np.zeros((len(self.seeds), problem.size))
        self.averages = np.zeros((len(self.seeds), problem.size))
        self.visits = np.zeros(problem.nodes, dtype=np.int64)
        self.records_done = np.zeros(len(self.seeds), dtype=np.int64)
        per_node = (len(self.seeds), problem.nodes)
        walk, noise = _walk_and_noise(self.setting)
        self.outside = np.zeros(len(self.seeds), dtype=np.int64)
        releases = walk is not None and mechanism_of(walk) is not None
        self.released = np.zeros(per_node) if releases else None
        self.contributions = None if noise is None else np.zeros(per_node, dtype=np.int64)

    def streams_of(self, seed: np.random.SeedSequence) -> Streams:
        """A replicate's random numbers, with a stream for each node if it has its own."""
        nodes = self.setting.problem.nodes if self.owner == "node" else None
        return generators(seed, nodes)

    def run(self, batch_class: Any, first: int, last: int, bar: tqdm[Any]) -> None:
        """Run replicates `first` to `last` from start to end, or until they are stopped."""
        streams = [self.streams_of(seed) for seed in self.seeds[first:last]]
        batch: Batch = batch_class(self.setting, streams)
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

    def _record(self, batch: Batch, seen: Seen, records: slice, lines: slice) -> None:
        optimum = self.optimum
        self.messages[lines, records] = seen.messages.T
        self.questions[lines, records] = seen.questions.T
        both = (("", seen.models, self.models), ("average_", seen.averages, self.averages))
        with np.errstate(over="ignore", invalid="ignore"):  # a diverging run is no error
            for prefix, models, kept in both:
                if optimum.unique:
                    apart = models - optimum.model  # `norm` would make three more arrays of it
                    distances = np.sqrt(np.einsum("...a,...a->...", apart, apart)).mean(axis=2)
                    self.errors[prefix + "distance"][lines, records] = distances.T
                if self.gaps is not False:
                    looked_at = models if self.gaps is True else self._spread(models)
                    values = batch.values(looked_at).mean(axis=2)
                    self.errors[prefix + "gap"][lines, records] = values.T - optimum.value
                kept[lines] = models[-1].mean(axis=1)
        if self.released is not None and batch.released is not None:
            self.released[lines] = batch.released
            self.outside[lines] = batch.outside
        if self.contributions is not None and batch.contributions is not None:
            self.contributions[lines] = batch.contributions
        self.records_done[lines] = records.stop

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


def _walk_and_noise(setting: Setting) -> tuple[Walk | None, ModelNoise | None]:
    """What walks, and what protects the model; neither where it is gossip."""
    if isinstance(setting, WalkSetting):
        return setting.walk, setting.model_noise
    return None, None


def trace_of(recording: Recording, kept: Any, root: np.random.SeedSequence) -> Trace:
    """The trace of the replicates and records that are kept."""
    lines, records = kept
    setting, problem = recording.setting, recording.setting.problem
    walk, noise = _walk_and_noise(setting)
    update = _update_of(setting)
    method = setting.walk if isinstance(setting, WalkSetting) else setting.gossip
    complete = len(lines) == len(recording.seeds) and records == len(recording.iterations_at)
    _warn(recording, lines, records, complete)
    per_iteration = updates_per_iteration(method, setting.graph)
    announcements = 2 * setting.graph.edge_count if method.announced_numbers else 0
    errors = {name: error[lines, :records] for name, error in recording.errors.items()}
    shape = (len(lines), *problem.model_shape)
    return Trace(
        label=repr(method) if isinstance(update, Sgd) else f"{method!r}, {update!r}",
        spec=_spec(recording, method, root),
        updates=recording.iterations_at[:records] * per_iteration,
        messages=recording.messages[lines, :records],
        message_bytes=_message_bytes(setting),
        questions=recording.questions[lines, :records] if recording.questions.any() else None,
        models=recording.models_at(recording.models, lines, records).reshape(shape),
        averages=recording.models_at(recording.averages, lines, records).reshape(shape),
        visits=recording.visits if complete else None,
        degrees=setting.graph.degrees,
        law=_law(recording, lines),
        announcements=announcements,
        announcement_bytes=announcements * method.announced_numbers * 8,
        complete=complete,
        released=None if recording.released is None else recording.released[lines],
        contributions=None if recording.contributions is None else recording.contributions[lines],
        privacy=published(walk, noise, problem.nodes, recording.outside[lines].tolist()),
        metrics=errors,
    )


def _law(recording: Recording, lines: Array) -> Array | None:
    """The share of the updates that each node has in the long run, if that is quickly found."""
    setting = recording.setting
    if isinstance(setting, GossipSetting):
        return setting.gossip.update_rates(setting.graph)
    if recording.released is not None:  # each replicate has a release, and so a law, of its own
        drawn = recording.released[lines]
        return np.asarray((drawn / drawn.sum(axis=1, keepdims=True)).mean(axis=0))
    if isinstance(setting.walk, Jumping):  # its law may take longer than the run
        return None
    return setting.walk.stationary(setting.graph, setting.problem)


def _update_of(setting: Setting) -> Update:
    """What a visit does; what both do when two gossip."""
    return setting.update if isinstance(setting, WalkSetting) else Sgd(setting.step_size)


def _message_bytes(setting: Setting) -> int:
    """The bytes of a message: a token, or as many vectors as gossip sends."""
    if isinstance(setting, WalkSetting):
        return setting.update.token_bytes(setting.problem)
    return setting.problem.model_bytes * setting.gossip.vectors


def _spec(
    recording: Recording, method: Walk | Gossip, root: np.random.SeedSequence
) -> dict[str, Any]:
    setting = recording.setting
    entropy, update = root.entropy, _update_of(setting)
    return {
        "walklearn": __version__,
        "problem": setting.problem.describe(),
        "graph": repr(setting.graph),
        "graph_sha256": _digest(setting.graph.indptr, setting.graph.indices),
        "method": repr(method),
        "importance_sha256": _importance_digest(method),
        "update": repr(update),
        "step_size": None if update.step_size is None else repr(update.step_size),
        "node_bytes": int(update.node_bytes(setting.problem).max()),
        "batch": setting.batch,
        "steps": int(recording.iterations_at[-1]) * updates_per_iteration(method, setting.graph),
        "replicates": len(recording.seeds),
        "mean_importance": (setting.mean_importance if isinstance(setting, WalkSetting) else None),
        "streams": recording.owner,
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


def _warn(recording: Recording, lines: Array, records: int, complete: bool) -> None:
    if not complete:
        warnings.warn(
            f"interrupted: kept {len(lines)} of {len(recording.seeds)} replicates, "
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


def _work(setting: Setting) -> int:
    """How much an iteration draws and does, in numbers."""
    synchronous = isinstance(setting, GossipSetting) and isinstance(
        setting.gossip, SynchronousGossip
    )
    noised = isinstance(setting, WalkSetting) and setting.model_noise is not None
    most = setting.graph.node_count if synchronous else setting.problem.size if noised else 1
    return max(setting.draws, most)
