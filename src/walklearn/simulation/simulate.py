"""`simulate`: many replicates of one method, on all cores, recorded as a `Trace`."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from walklearn.checks import check_whole
from walklearn.graphs import Graph
from walklearn.objectives import Objective, Problem
from walklearn.privacy.protection import Protection
from walklearn.progress import progress_bar, stop_on_interrupt
from walklearn.simulation import arguments
from walklearn.simulation.averaging import Gossip
from walklearn.simulation.compiled_batches import LARGEST_BATCH
from walklearn.simulation.cores import usable_cores
from walklearn.simulation.engines import batch_class_of
from walklearn.simulation.runner import Runner
from walklearn.simulation.trace import Trace
from walklearn.streams import Owner
from walklearn.updates.step_sizes import StepSize
from walklearn.updates.update import Update
from walklearn.visit import Setting
from walklearn.walks import Walk

if TYPE_CHECKING:
    from tqdm import tqdm

Engine = Literal["compiled", "reference"]
MeanImportance = Literal["exact", "estimated"]

MAX_BATCH_NUMBERS = (
    4_000_000  # the numbers that a batch stores per node or row, in all its replicates
)
STREAM_NUMBERS = 20  # a node's stream, of 2 KB, counts as this many of them
SHORT_RUN_NUMBERS = 1_500_000  # a run that reads fewer numbers of rows uses one core


def simulate(
    objective: Objective,
    graph: Graph,
    method: Walk | Gossip | str,
    *,
    steps: int,
    step_size: StepSize | None = None,
    update: Update | str | None = None,
    replicates: int = 1,
    seed: arguments.Seed = None,
    records: int | ArrayLike = 200,
    batch: int | None = None,
    privacy: Protection | None = None,
    mean_importance: MeanImportance = "exact",
    streams: Owner = "replicate",
    tokens: int = 1,
    hop_time: float = 1.0,
    visit_time: float = 0.0,
    gaps: bool | int = True,
    cores: int | None = None,
    progress: bool | None = None,
    engine: Engine | None = None,
) -> Trace:
    """Run replicates of a walk or of gossip, and record their errors and costs.

    Ctrl-C stops early. The trace then has `complete` False and holds the finished replicates. If
    there are none, it holds the records that all running replicates have reached, and models past
    the last of these records are NaN.

    Parameters
    ----------
    objective, graph
        A `Problem` or an `Objective` of your own, and the communication graph.
    method
        A walk, a gossip algorithm, or the name of one, such as "uniform".
    steps
        The number of updates. Every visit counts, also one of weight 0 or without budget. Gossip
        makes 2 (asynchronous) or N (synchronous) updates per iteration, and rounds up.
    step_size
        The γ_k of the paper's update; short for update=updates.Sgd(step_size).
    update
        The update of a visit, or its name. Without `update` and `step_size` it is `updates.Saga()`
        if that is possible. Updates without an average have models in place of averages in the
        trace.
    replicates
        The number of independent runs.
    seed
        The same seed gives the same numbers for any number of cores. None takes one from the
        operating system; the trace's spec records it.
    records, batch
        The number of log-spaced records, or the update counts to record at; and the number of rows
        of a node that a gradient uses, by default all of them.
    privacy
        A protection such as `privacy.ModelNoise`: clipping, noise and a cap on the contributions of
        each node's rows to the model.
    mean_importance
        The mean L̄ (or R̄) that scales the gradients of a weighted walk: "exact", or "estimated" by
        the token from the k nodes that it has visited, k / Σ 1/L_i.
    streams
        "replicate", or "node" if each node draws from its own random stream, as in a network.
    tokens
        The number of tokens, which share the updates. More than one need an update that lets them
        share a sum, such as updates.Finito(). They start at nodes that are evenly spread over the
        node numbers. Errors are those of the worst token, messages those of all.
    hop_time, visit_time
        The time that a message takes, a question and an answer as well, and the time of an update;
        `Trace.time` counts both. Several tokens move at the same time, and a node updates one at a
        time, in the order in which they arrive.
    gaps
        False omits f(w) − f*, which takes most of the time if there are many rows. For gossip,
        which has one model per node, a number is the number of nodes in the mean.
    cores, progress
        The number of cores, all by default, and True to show a bar; by default in a terminal or a
        notebook.
    engine
        "compiled", or "reference" for the readable version, which is a thousand times slower. By
        default the reference runs only if a part has no kernel, with a warning.

    Returns
    -------
    Trace
        The errors and costs of all replicates.

    Examples
    --------
    >>> import walklearn as wl
    >>> X, y = wl.datasets.two_gaussians(30, dimension=3, seed=1)
    >>> run = wl.simulate(wl.Problem(X, y, penalty=1.0), wl.graphs.ring(30), wl.walks.Simple(),
    ...                   update=wl.updates.Saga(), steps=20_000, seed=1)
    >>> bool(run.gap[0, -1] < 1e-9)
    True
    """
    method = arguments.method_of(method)
    check_whole("replicates", replicates)
    check_whole("steps", steps)
    check_whole("cores", 1 if cores is None else cores)
    checked_update = arguments.update_of(update, step_size)
    setting = arguments.setting_of(
        objective, graph, method, checked_update, privacy, steps, batch, tokens
    )
    arguments.check_network_options(setting, mean_importance, streams)
    schedule = arguments.schedule_of(hop_time, visit_time, steps, setting.tokens)
    batch_class = batch_class_of(setting, engine, progress)
    gaps = bool(gaps) if isinstance(gaps, bool | np.bool_) else check_whole("gaps", gaps)
    runner = Runner(
        setting, graph, steps, records, arguments.root_of(seed), replicates, gaps, streams,
        mean_importance, schedule,
    )  # fmt: skip
    bar = progress_bar(progress, replicates * int(runner.iterations_at[-1]), repr(method))
    with bar, stop_on_interrupt(runner.stop):
        _run_batches(runner, batch_class, cores, bar)
    return runner.trace()


def _run_batches(runner: Runner, batch_class: Any, cores: int | None, bar: tqdm[Any]) -> None:
    """Run the batches on threads; compiled code releases the interpreter's lock.

    If one fails, or on Ctrl-C, the others stop at their next record.
    """
    count, iterations_at, size = len(runner.seeds), runner.iterations_at, runner.models.shape[1]
    # Each batch has its own fixed cost: a short run on one core is faster than on two.
    objective = runner.setting.objective
    rows = objective.row_count if isinstance(objective, Problem) else SHORT_RUN_NUMBERS
    rows_per_visit = max(1, rows // runner.graph.node_count)
    is_short = (
        count * size * (iterations_at[-1] * rows_per_visit + len(iterations_at) * rows)
        < SHORT_RUN_NUMBERS
    )
    workers = cores or (1 if is_short else usable_cores())
    batch_size = min(_max_batch_size(runner), -(-count // workers))
    starts = iter(range(0, count, batch_size))  # shared by all threads: each takes the next batch

    def run_next_batches() -> None:
        try:
            for first in starts:
                runner.run(batch_class, first, min(first + batch_size, count), bar)
        except BaseException:
            list(starts)  # exhaust it, to stop the other threads
            runner.stop.set()
            raise

    # This thread works too. Otherwise a new thread might start on the core that it still occupies.
    with ThreadPoolExecutor(max(1, workers - 1)) as pool:
        futures = [
            pool.submit(run_next_batches) for _ in range(min(workers, -(-count // batch_size)) - 1)
        ]
        run_next_batches()
        for future in futures:
            future.result()


def _max_batch_size(runner: Runner) -> int:
    """Return the largest number of replicates of a batch; for gossip it is 1.

    Private walks, walks and updates with memory and streams of nodes need a table per replicate.
    """
    setting, nodes = runner.setting, runner.graph.node_count
    if not isinstance(setting, Setting):
        return 1
    objective, (walk_specs, update_specs, _) = setting.objective, setting.node_specs(0)
    numbers = STREAM_NUMBERS * nodes if runner.owner == "node" else 1
    has_state = bool(walk_specs or update_specs)
    if setting.walk.is_private or setting.walk.has_random_announcements or has_state:
        vectors = [spec for spec in update_specs if spec.shape[-1:] >= (objective.size,)]
        per_node = sum(math.prod(spec.shape) for spec in vectors)
        rows = objective.row_count if isinstance(objective, Problem) else 0
        numbers = max(numbers, rows, nodes, nodes * per_node)
    return max(1, min(LARGEST_BATCH, MAX_BATCH_NUMBERS // numbers))
