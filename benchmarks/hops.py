"""How fast is a hop? walklearn beside C loops, a NumPy loop and the memory itself.

    python -m benchmarks.hops           all sizes, about five minutes
    python -m benchmarks.hops --quick   small sizes, few rounds

Every contestant does the same hops on the same problem, the same graph and the same arrays;
before anything is timed, `same_work` holds the C and NumPy loops against walklearn. Then they take
turns (`race`). Only ratios have targets.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

import walklearn as wl
from benchmarks.c_loops import CWalk, Gather, c_library, has_compiler
from benchmarks.measurement import Measurement, main
from benchmarks.numpy_loop import NumpyWalk
from benchmarks.race import Contestant, race
from benchmarks.same_work import (
    SEED,
    advance,
    batch_of,
    generators,
    streams_of,
    verify_law,
    verify_numpy,
    verify_update,
)
from walklearn.simulation.averaging import GossipSetting
from walklearn.simulation.compiled_batches import LARGEST_BATCH, CompiledGossip
from walklearn.visit import Setting

BALL, BOX = wl.domains.Ball(10.0), wl.domains.Box(-10.0, 10.0)


class Size(NamedTuple):
    """N nodes with rows of d features, on an Erdős–Rényi graph of that mean degree."""

    nodes: int
    rows: int  # of a node
    dimension: int
    degree: int
    hops: int  # in one turn of one contestant
    batch: int | None = None  # rows of a visit; None: all
    classes: int = 1  # more than one: softmax
    numpy: bool = False
    gossip: bool = False

    def __str__(self) -> str:
        rows = f"{self.batch} of {self.rows}" if self.batch else f"{self.rows}"
        width = f"{self.dimension}×{self.classes}" if self.classes > 1 else f"{self.dimension}"
        return f"N={self.nodes:,}, rows {rows}, d={width}"


ONE_ROW = (
    Size(100, 1, 10, 30, 640_000, numpy=True, gossip=True),
    Size(100, 1, 50, 30, 480_000, numpy=True, gossip=True),
    Size(100, 1, 784, 30, 64_000),
    Size(10_000, 1, 50, 20, 320_000, gossip=True),
    Size(1_000_000, 1, 10, 20, 192_000),
    Size(1_000_000, 1, 100, 20, 96_000),
)
MORE_ROWS = (
    Size(100, 2, 10, 30, 480_000),
    Size(100, 10, 50, 30, 64_000),
    Size(100, 100, 50, 30, 6_400),
    Size(1_000, 500, 100, 30, 9_600, batch=32),
    Size(100, 1, 64, 30, 96_000, classes=10),
)


def make_setting(size: Size, domain: wl.domains.Domain = BALL) -> tuple[Setting, wl.Graph]:
    """The paper's logistic problem under the weighted walk, with more rows or classes if asked."""
    total = size.nodes * size.rows
    X, y = wl.datasets.two_gaussians(total, size.dimension, variance=10.0, seed=SEED)
    loss: wl.losses.Loss = wl.losses.Logistic()
    if size.classes > 1:
        y = np.random.default_rng(SEED).integers(0, size.classes, total).astype(float)
        loss = wl.losses.Softmax(size.classes)
    owner = np.repeat(np.arange(size.nodes), size.rows)
    problem = wl.Problem(X, y, loss=loss, node_of_row=owner, penalty=1.0, domain=domain)
    probability = size.degree / (size.nodes - 1)
    graph = wl.graphs.erdos_renyi(size.nodes, probability, seed=SEED, connected="retry")
    step_size = wl.PowerStep(10.0 / float(problem.smoothness_constants.mean()), 0.75)
    if size.batch is not None:
        problem = problem.with_batch(size.batch)
    return Setting(problem, wl.walks.Weighted(), wl.updates.Sgd(step_size)), graph


def batched(setting: Setting, graph: wl.Graph, tokens: int = LARGEST_BATCH) -> Contestant:
    """A batch of walklearn's, advanced in blocks as `simulate` does."""
    batch = batch_of(setting, graph, generators(tokens))
    return Contestant(
        lambda hops: advance(batch, max(1, hops // tokens)), lambda: batch.iterations * tokens
    )


def simulated(setting: Setting, graph: wl.Graph, replicates: int = LARGEST_BATCH) -> Contestant:
    """Calls of `simulate` without gaps, with its 200 records, from the start each time."""
    done = 0

    def run(hops: int) -> None:
        nonlocal done
        steps = max(1, hops // replicates)
        wl.simulate(
            setting.objective, graph, setting.walk, steps=steps, update=setting.update,
            replicates=replicates, seed=SEED, gaps=False, cores=1, progress=False,
        )  # fmt: skip
        done += steps * replicates

    return Contestant(run, lambda: done, share=10.0)  # long enough for its fixed costs to vanish


def called(setting: Setting, graph: wl.Graph, walk: wl.walks.Walk) -> Contestant:
    """Calls of `simulate` with one token and all defaults."""
    done = 0

    def run(hops: int) -> None:
        nonlocal done
        problem, update = setting.objective, setting.update
        wl.simulate(problem, graph, walk, steps=hops, update=update, seed=SEED)
        done += hops

    return Contestant(run, lambda: done)


def in_c(walk: CWalk) -> Contestant:
    return Contestant(walk.run, lambda: walk.token.updates)


def one_row_rows(library: ctypes.CDLL, size: Size, rounds: int) -> Iterator[Measurement]:
    """One row per node: a token alone, a batch, gossip; against C, NumPy and the memory."""
    setting, graph = make_setting(size)
    verify_update(library, setting, graph)
    if size.nodes == 100 and size.dimension <= 50:
        verify_law(library, setting, graph, hops=20_000)
    gather = Gather(library, setting.objective.X, SEED)
    contestants = {
        "C": in_c(CWalk(library, setting, graph, SEED)),
        "one": batched(setting, graph, tokens=1),
        "batch": batched(setting, graph),
        "gather": Contestant(gather.run, lambda: gather.done, prepare=gather.prepare),
    }
    if size.numpy:
        verify_numpy(setting, graph)
        loop = NumpyWalk(setting, graph, np.random.default_rng(SEED))
        contestants["numpy"] = Contestant(loop.run, lambda: loop.updates, share=0.02)
    if size.gossip:
        gossip = CompiledGossip(
            GossipSetting(setting.objective, graph, wl.AsynchronousGossip(), setting.update),
            graph,
            streams_of(generators(1)),
        )
        contestants["gossip"] = Contestant(
            lambda count: advance(gossip, count), lambda: gossip.iterations, share=0.5
        )
    ns = race(contestants, size.hops, rounds)
    near, last = size.nodes < 1_000_000, size == ONE_ROW[-1]
    times = "{0:.1f} and {1:.1f} ns"
    yield Measurement(f"C / one token, {size}", ns["C"] / ns["one"], "times", 0.9 if near else None,
                      True, times.format(ns["C"], ns["one"]))  # fmt: skip
    yield Measurement(f"C / batch of 32, {size}", ns["C"] / ns["batch"], "times",
                      1.3 if near else 1.8, True, times.format(ns["C"], ns["batch"]))  # fmt: skip
    yield Measurement(f"batch / gather, {size}", ns["batch"] / ns["gather"], "times",
                      2.5 if last else None,
                      note=times.format(ns["batch"], ns["gather"]))  # fmt: skip
    if size.numpy:
        yield Measurement(f"NumPy / one token, {size}", ns["numpy"] / ns["one"], "times",
                          50 if size.dimension == 10 else None, True,
                          times.format(ns["numpy"], ns["one"]))  # fmt: skip
    if size.gossip:
        yield Measurement(f"gossip / two updates of a batch, {size}",
                          ns["gossip"] / (2 * ns["batch"]), "times", 2.5, False,
                          times.format(ns["gossip"], 2 * ns["batch"]), ns["gossip"])  # fmt: skip


def more_rows_rows(library: ctypes.CDLL, size: Size, rounds: int) -> Iterator[Measurement]:
    """Many rows, mini-batches, classes: a batch and a whole call of `simulate` against C."""
    setting, graph = make_setting(size)
    verify_update(library, setting, graph)
    contestants = {
        "C": in_c(CWalk(library, setting, graph, SEED)),
        "batch": batched(setting, graph),
        "simulate": simulated(setting, graph),
    }
    ns = race(contestants, size.hops, rounds)
    for name, what in (("batch", "batch of 32"), ("simulate", "simulate without gaps")):
        yield Measurement(f"{what} / C, {size}", ns[name] / ns["C"], "times", 1.3,
                          note=f"{ns[name]:.0f} and {ns['C']:.0f} ns")  # fmt: skip


def kinds_rows(size: Size, rounds: int) -> Iterator[Measurement]:
    """Other walks and domains against the Metropolis hop in a ball."""
    setting, graph = make_setting(size)
    settings = {
        "ball": setting,
        "Box": make_setting(size, BOX)[0],
        "NonBacktracking": replace(setting, walk=wl.walks.NonBacktracking(setting.walk)),
        "Jumping": replace(setting, walk=wl.walks.Jumping(setting.walk)),
    }
    ns = race({name: batched(each, graph) for name, each in settings.items()}, size.hops, rounds)
    for name in list(settings)[1:]:
        yield Measurement(f"{name} / Metropolis in a ball, {size}", ns[name] / ns["ball"], "times",
                          1.5, note=f"{ns[name]:.1f} and {ns['ball']:.1f} ns",
                          own_time=ns[name])  # fmt: skip


def covering_rows(size: Size, rounds: int) -> Iterator[Measurement]:
    """Calls of `simulate` as users make them: covering walks and gap weights beside `Uniform`."""
    setting, graph = make_setting(size)
    walks = {
        "Uniform": wl.walks.Uniform(),
        "OldestFirst": wl.walks.OldestFirst(),
        "Tour": wl.walks.Tour(),
        "Simple with gap weights": wl.walks.Simple(reweight="gap"),
    }
    ns = race(
        {name: called(setting, graph, walk) for name, walk in walks.items()}, size.hops, rounds
    )
    for name in list(walks)[1:]:
        yield Measurement(f"simulate with {name} / with Uniform, {size}", ns[name] / ns["Uniform"],
                          "times", 3.0 if name == "OldestFirst" else None,
                          note=f"{ns[name]:.1f} and {ns['Uniform']:.1f} ns",
                          own_time=ns[name])  # fmt: skip


def measurements(quick: bool) -> Iterator[Measurement]:
    rounds = 2 if quick else 25
    yield from kinds_rows(_turn(ONE_ROW[0], quick), rounds)
    yield from covering_rows(_turn(ONE_ROW[0], quick), rounds)
    if not has_compiler():
        yield Measurement("hops against C", math.nan, "times", note="needs gcc, which is not here")
        return
    with c_library() as library:
        for size in MORE_ROWS:
            yield from more_rows_rows(library, _turn(size, quick), rounds)
        for size in ONE_ROW[: 2 if quick else None]:
            yield from one_row_rows(library, _turn(size, quick), rounds)


def _turn(size: Size, quick: bool) -> Size:
    return size._replace(hops=size.hops // 10) if quick else size


if __name__ == "__main__":
    main(measurements, __doc__)
