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

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import ArrayLike

from walklearn.files.progress import progress_bar, stop_on_interrupt
from walklearn.graphs import Graph
from walklearn.problem import Problem
from walklearn.simulation.arguments import (
    Seed,
    check_engine,
    check_model_privacy,
    check_network_options,
    check_run,
    check_update,
    gaps_of,
    gossip_step,
    iterations_at,
    root_of,
)
from walklearn.simulation.batches import Batch, Setting
from walklearn.simulation.compiled_batches import LARGEST_BATCH, CompiledGossip
from walklearn.simulation.compiled_memory import compiled_class
from walklearn.simulation.recording import Recording, trace_of
from walklearn.simulation.reference_batches import ReferenceGossip, ReferenceWalks
from walklearn.simulation.threads import on_threads, usable_cores
from walklearn.simulation.trace import Trace
from walklearn.updates.gossip_sgd import Gossip, GossipSetting
from walklearn.updates.random_streams import Owner, replicate_seed
from walklearn.updates.step_sizes import StepSize
from walklearn.updates.update import Remembering, Update, as_update
from walklearn.updates.walk_sgd import MeanImportance, WalkSetting
from walklearn.walks import Walk

if TYPE_CHECKING:
    from tqdm import tqdm

    from walklearn.privacy.model_noise import ModelNoise

Engine = Literal["compiled", "reference"]

MOST_RELEASED = 4_000_000  # released numbers, with their tables, that a batch holds
MOST_STREAMS = 200_000  # streams of nodes that a batch holds, at 2 KB each


def simulate(
    problem: Problem,
    graph: Graph,
    method: Walk | Gossip,
    *,
    steps: int,
    step_size: StepSize | None = None,
    update: Update | None = None,
    replicates: int = 1,
    seed: Seed = None,
    records: int | ArrayLike = 200,
    batch: int | None = None,
    model_privacy: ModelNoise | None = None,
    mean_importance: MeanImportance = "exact",
    streams: Owner = "replicate",
    gaps: bool | int = True,
    cores: int | None = None,
    progress: bool | None = None,
    engine: Engine = "compiled",
) -> Trace:
    """Run a walk or gossip `replicates` times and record its errors and its cost.

    Ctrl-C stops early and keeps what is done: the finished replicates, or if there are none
    the records that all replicates under way have reached (a model that is already past the
    last of them is NaN); `Trace.complete` is then False.

    Parameters
    ----------
    problem
        What is minimised.
    graph
        Who can talk to whom.
    method
        A walk, or a gossip algorithm.
    steps
        How many updates to make. Gossip makes 2 (asynchronous) or N (synchronous) in an
        iteration; the number of iterations is rounded up, so that methods compare at equal
        work.
    step_size
        The γ_k of the paper's update, short for update=updates.Sgd(step_size).
    update
        What a visit of a walk does: updates.Sgd(step_size), or updates.Saga(), which has memory
        and under which the walk only chooses the next node. Saga carries no average, nor does
        Sgd(step_size, average=False): what the trace calls averages are then the models.
    replicates
        How many independent runs to make.
    seed
        The same seed gives the same numbers for any number of cores; None draws one from the
        operating system and keeps it in the trace's spec.
    records
        How many log-spaced records, or the update counts to record at.
    batch
        How many of a node's rows an update looks at; all by default.
    model_privacy
        Clipping, noise and a cap on what each node's rows add to the model.
    mean_importance
        The mean L̄ (or R̄) that a weighted walk scales its gradients by: "exact", or
        "estimated" as a token does that knows only whom it visited, k / Σ 1/L_i over its k
        visits.
    streams
        "replicate", or "node": every node draws from a random stream of its own, as in a
        network (`random_streams` says which numbers in which order).
    gaps
        False leaves f(w) − f* out, which takes a pass over all rows for every record and model,
        most of the time where rows are many. Gossip has a model per node: a number stands for
        the mean over that many nodes, spread evenly, instead of all.
    cores
        How many cores to use; all by default.
    progress
        Whether to show a bar; by default in a terminal or a notebook, and not when piped.
    engine
        "compiled", or "reference" for the readable twin, which is a thousand times slower.

    Returns
    -------
    Trace
        The errors and costs of all replicates.

    Examples
    --------
    >>> import walklearn as wl
    >>> X, y = wl.datasets.two_gaussians(30, dimension=3, seed=1)
    >>> problem = wl.Problem(X, y, penalty=1.0)
    >>> run = wl.simulate(problem, wl.graphs.ring(30), wl.walks.Simple(),
    ...                   update=wl.updates.Saga(), steps=20_000, seed=1)
    >>> bool(run.gap[0, -1] < 1e-9)
    True
    """
    chosen = as_update(update, step_size)
    check_run(problem, graph, method, steps, replicates, batch, cores, engine)
    if model_privacy is not None:
        check_model_privacy(method, model_privacy)
    check_network_options(method, mean_importance, streams)
    check_update(problem, method, chosen, model_privacy is not None, mean_importance)
    check_engine(problem, method, chosen, engine)
    records_at = iterations_at(method, graph, steps, records)
    setting: Setting = (
        WalkSetting(problem, graph, method, chosen, batch, model_privacy, mean_importance)
        if isinstance(method, Walk)
        else GossipSetting(problem, graph, method, gossip_step(chosen), batch)
    )
    root = root_of(seed)
    seeds = [replicate_seed(root, replicate) for replicate in range(replicates)]
    recording = Recording(setting, records_at, seeds, gaps_of(gaps), streams)
    bar = progress_bar(progress, replicates * int(records_at[-1]), repr(method))
    with bar, stop_on_interrupt(recording.stop):
        _run_batches(recording, _batch_class(setting, engine), cores, bar)
    kept = recording.kept()
    return trace_of(recording, kept, root)


def _run_batches(recording: Recording, batch_class: Any, cores: int | None, bar: tqdm[Any]) -> None:
    """Run the batches on threads, which share the data and the compiled code."""
    count, workers = len(recording.seeds), cores or usable_cores()
    size = min(_largest_batch(recording), -(-count // workers))
    calls = [
        partial(recording.run, batch_class, first, min(first + size, count), bar)
        for first in range(0, count, size)
    ]
    on_threads(workers, calls, recording.stop.set)


def _largest_batch(recording: Recording) -> int:
    """The most replicates of a batch; gossip gains nothing from sharing one, and needs memory.

    A private walk has a table of its own for each replicate, and so do streams of nodes and
    updates with memory.
    """
    setting, nodes = recording.setting, recording.setting.graph.node_count
    if not isinstance(setting, WalkSetting):
        return 1
    if recording.owner == "node":
        return max(1, min(LARGEST_BATCH, MOST_STREAMS // nodes))
    if setting.walk.is_private or isinstance(setting.update, Remembering):
        nodes = max(nodes, setting.problem.row_count)
        return max(1, min(LARGEST_BATCH, MOST_RELEASED // nodes))
    return LARGEST_BATCH


def _batch_class(setting: Setting, engine: Engine) -> type[Batch]:
    if not isinstance(setting, WalkSetting):
        return CompiledGossip if engine == "compiled" else ReferenceGossip
    return compiled_class(setting.update) if engine == "compiled" else ReferenceWalks
