"""What does it cost to record, and do two cores do the work of two?

    python -m benchmarks.recording

A default run of `simulate` (200 records, with the gaps f(w) − f*) against the same with
gaps=False, in turns and in process time, best of a few. What two cores bring, and how long a short
call takes, are measured by the clock on the wall: they mean something on an idle machine only.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import walklearn as wl
from benchmarks.measurement import Measurement, main
from walklearn.simulation.averaging import Gossip

SEED = 2024


class Job(NamedTuple):
    """The paper's problem on an Erdős–Rényi graph, under the weighted walk or gossip."""

    nodes: int
    dimension: int
    degree: int
    steps: int
    replicates: int

    def __str__(self) -> str:
        return f"N={self.nodes:,}, d={self.dimension}, {self.steps:,} steps × {self.replicates}"

    def call(self, method: wl.Walk | Gossip) -> Callable[..., Any]:
        """`simulate` on this job."""
        X, y = wl.datasets.two_gaussians(self.nodes, self.dimension, variance=10.0, seed=SEED)
        problem = wl.Problem(X, y, penalty=1.0, domain=wl.domains.Ball(10.0))
        graph = wl.graphs.erdos_renyi(
            self.nodes, self.degree / (self.nodes - 1), seed=SEED, connected="retry"
        )
        step_size = wl.PowerStep(10.0 / float(problem.smoothness_constants.mean()), 0.75)
        return partial(
            wl.simulate, problem, graph, method, steps=self.steps, step_size=step_size,
            replicates=self.replicates, seed=SEED, progress=False,
        )  # fmt: skip


LARGE = Job(10_000, 50, 20, 500_000, 64)
GOSSIP = Job(100, 10, 30, 500_000, 4)
CORES = Job(100, 10, 30, 500_000, 2)
SHORT = Job(100, 10, 30, 10_000, 4)


def best(clock: Callable[[], float], rounds: int, *calls: Callable[[], object]) -> list[float]:
    """The shortest time of each, in turns."""
    for call in calls:  # loads the machine code, finds w*
        call()
    seconds = [float("inf")] * len(calls)
    for _ in range(rounds):
        for place, call in enumerate(calls):
            begun = clock()
            call()
            seconds[place] = min(seconds[place], clock() - begun)
    return seconds


def gaps_row(
    job: Job, method: wl.Walk | Gossip, target: float, rounds: int
) -> Iterator[Measurement]:
    run = job.call(method)
    with_gaps, without = best(
        time.process_time, rounds, partial(run, cores=1), partial(run, cores=1, gaps=False)
    )
    yield Measurement(
        f"default run / gaps=False, {type(method).__name__}, {job}", with_gaps / without, "times",
        target, note=f"{with_gaps:.2f} and {without:.2f} s of one core", own_time=with_gaps,
    )  # fmt: skip


def cores_row(job: Job, rounds: int) -> Iterator[Measurement]:
    """Half of the walks, on one core, take the time that two cores could come down to."""
    walk = wl.walks.Weighted()
    run, half = job.call(walk), job._replace(replicates=job.replicates // 2).call(walk)
    calls = partial(run, cores=1), partial(run, cores=2), partial(half, cores=1)
    one, two, least = best(time.perf_counter, rounds, *calls)
    note = f"{1e3 * one:.0f} and {1e3 * two:.0f} ms; half of them on one core {1e3 * least:.0f}; "
    note += f"{os.getloadavg()[0]:.1f} processes at work"
    what = f"two cores' speed over one's, {job}"
    yield Measurement(what, one / two, "times", 1.7, True, note, own_time=two)


def measurements(quick: bool) -> Iterator[Measurement]:
    rounds = 1 if quick else 5
    large = LARGE._replace(nodes=1000, steps=5_000, replicates=8) if quick else LARGE
    gossip, cores = (
        job._replace(steps=job.steps // (100 if quick else 1)) for job in (GOSSIP, CORES)
    )
    short = SHORT.call(wl.walks.Weighted())
    (seconds,) = best(time.perf_counter, 4 * rounds, short)
    yield Measurement(f"a warm default call, {SHORT}", 1e3 * seconds, "ms", 30.0)
    yield from gaps_row(gossip, wl.AsynchronousGossip(), 2.0, rounds)
    yield from cores_row(cores, 3 * rounds)
    yield from cores_row(cores._replace(replicates=8), 3 * rounds)
    yield from gaps_row(large, wl.walks.Weighted(), 1.8, 1 if quick else 3)


if __name__ == "__main__":
    main(measurements, __doc__)
