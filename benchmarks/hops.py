"""How fast is a hop? walklearn beside a C loop, a NumPy loop and the memory itself.

    python -m benchmarks.hops               all sizes, a few minutes
    python -m benchmarks.hops --quick       a quarter of the hops, fewer rounds
    python -m benchmarks.hops --markdown    the tables for benchmarks/README.md

Every contestant does the same hops on the same problem, the same graph and the same arrays;
before anything is timed, `verify_*` hold the C and NumPy loops against walklearn. Then they
take turns, round by round, so that a busy neighbour hits all of them, and the best round of
each counts. The clock is that of the thread, which stands still while another process has the
core; a neighbour in the shared cache still shows. Only ratios have targets, and nothing fails
when one is missed.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import math
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import walklearn as wl
from walklearn.simulation.batches import Batch
from walklearn.simulation.compiled_batches import LARGEST_BATCH, CompiledGossip, CompiledWalks
from walklearn.simulation.recording import BLOCK_NUMBERS
from walklearn.updates.gossip_sgd import GossipSetting
from walklearn.updates.random_streams import Streams
from walklearn.updates.sgd import start, update
from walklearn.updates.walk_sgd import WalkSetting

Array = NDArray[Any]
Run = Callable[[int], object]  # do that many hops

SOURCE = Path(__file__).with_name("hop.c")
COMPILE = ("gcc", "-O3", "-march=native", "-ffast-math", "-fPIC")
RADIUS = 10.0
SEED = 2024


class Size(NamedTuple):
    """N nodes with a row of d features each, on an Erdős–Rényi graph of that mean degree."""

    nodes: int
    dimension: int
    degree: int
    hops: int  # in one turn of one contestant
    numpy: bool = False
    gossip: bool = False


SIZES = (
    Size(100, 10, 30, 640_000, numpy=True, gossip=True),
    Size(100, 50, 30, 480_000, numpy=True, gossip=True),
    Size(100, 784, 30, 64_000),
    Size(10_000, 50, 20, 320_000, gossip=True),
    Size(1_000_000, 10, 20, 192_000),
    Size(1_000_000, 100, 20, 96_000),
)


# ------------------------------------------------------------------ the C loop


class CSetting(ctypes.Structure):
    """`Setting` of hop.c."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("indptr", "indices", "score", "scale")),
        *((name, ctypes.c_void_p) for name in ("rows", "targets", "weights")),
        ("dimension", ctypes.c_int64),
        *((name, ctypes.c_double) for name in ("penalty", "radius", "constant", "exponent")),
    )


class CToken(ctypes.Structure):
    """`Token` of hop.c."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("model", "sum", "visits")),
        ("step_size_sum", ctypes.c_double),
        *((name, ctypes.c_int64) for name in ("node", "updates", "messages", "projections")),
        ("random", ctypes.c_uint64 * 4),
    )


def compile_c(folder: Path) -> ctypes.CDLL:
    """Build hop.c there and load it."""
    if shutil.which(COMPILE[0]) is None:
        sys.exit("benchmarks.hops needs gcc to build the C loop it compares with; install gcc.")
    built, library = folder / "hop.o", folder / "hop.so"
    subprocess.run([*COMPILE, "-c", str(SOURCE), "-o", str(built)], check=True)
    subprocess.run(["gcc", "-shared", str(built), "-lm", "-o", str(library)], check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.walk.restype = None
    loaded.walk.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    loaded.gather.restype = ctypes.c_double
    loaded.gather.argtypes = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
    return loaded


class CWalk:
    """One token in C, on walklearn's own arrays."""

    def __init__(self, library: ctypes.CDLL, setting: WalkSetting, seed: int) -> None:
        problem, graph, generator = setting.problem, setting.graph, np.random.default_rng(seed)
        node, self.model = start(problem, generator)
        self.sum = np.zeros_like(self.model)
        self.visits = np.zeros(problem.node_count, dtype=np.int64)
        self._walk = library.walk
        self._arrays = {  # also keeps them alive
            "indptr": _of_type(graph.indptr, np.int32),
            "indices": _of_type(graph.indices, np.int32),
            "score": _of_type(setting.score, np.float64),
            "scale": _of_type(setting.scale, np.float64),
            "rows": _of_type(problem.X, np.float64),
            "targets": _of_type(problem.y, np.float64),
            "weights": _of_type(problem.row_weights, np.float64),
        }
        self._setting = CSetting(
            **{name: array.ctypes.data for name, array in self._arrays.items()},
            dimension=problem.dimension,
            penalty=problem.penalty,
            radius=problem.domain.radius,
            constant=setting.step_size.constant,
            exponent=setting.step_size.exponent,
        )
        self.token = CToken(
            model=self.model.ctypes.data,
            sum=self.sum.ctypes.data,
            visits=self.visits.ctypes.data,
            node=node,
            random=tuple(int(n) for n in generator.integers(1, 2**63, 4)),
        )

    def run(self, hops: int) -> None:
        """Go on by that many hops."""
        self._walk(ctypes.byref(self._setting), ctypes.byref(self.token), hops)

    @property
    def average(self) -> Array:
        """The average that the weighted sum is for."""
        return self.sum / self.token.step_size_sum


def _of_type(array: Array, dtype: Any) -> Array:
    """The very array, once it is known to be what hop.c reads."""
    if array.dtype != dtype or not array.flags.c_contiguous:
        raise TypeError(f"hop.c reads {np.dtype(dtype)} arrays, got {array.dtype}")
    return array


# ------------------------------------------------------------------ the NumPy loop


class NumpyWalk:
    """One token in plain Python and NumPy, written with care.

    Scalars live in lists, which Python reads faster than arrays; random numbers and step
    sizes come in blocks; every array operation writes in place.
    """

    BLOCK = 8192

    def __init__(self, setting: WalkSetting, generator: np.random.Generator) -> None:
        problem, graph = setting.problem, setting.graph
        self.setting, self.generator = setting, generator
        self.node, self.model = start(problem, generator)
        self.sum = np.zeros_like(self.model)
        self.updates = self.messages = 0
        self.visits = [0] * problem.node_count
        self.rows, self.targets = list(problem.X), problem.y.tolist()
        self.weights = problem.row_weights.tolist()
        self.score, self.scale = setting.score.tolist(), setting.scale.tolist()
        self.neighbours = [graph.neighbours(i).tolist() for i in range(graph.node_count)]

    def run(self, hops: int) -> None:
        """Go on by that many hops."""
        while hops > 0:
            count = min(hops, self.BLOCK)
            numbers = np.arange(self.updates + 1, self.updates + count + 1)
            gammas = self.setting.step_size(numbers).tolist()
            self._hops(gammas, self.generator.random(count).tolist())
            self.updates += count
            hops -= count

    def _hops(self, gammas: list[float], uniforms: list[float]) -> None:
        i, w, total, messages = self.node, self.model, self.sum, 0
        rows, targets, weights = self.rows, self.targets, self.weights
        score, scale, neighbours, visits = self.score, self.scale, self.neighbours, self.visits
        penalty, radius = self.setting.problem.penalty, self.setting.problem.domain.radius
        squared_radius, scratch = radius * radius, np.empty_like(w)
        dot, multiply, add, subtract, exp = w.dot, np.multiply, np.add, np.subtract, math.exp
        for gamma, u in zip(gammas, uniforms, strict=True):
            visits[i] += 1
            x, y = rows[i], targets[i]
            margin = y * float(dot(x))
            slope = -y / (1.0 + exp(margin)) if margin < 700.0 else 0.0
            step = gamma * scale[i]
            multiply(w, gamma, scratch)
            add(total, scratch, total)
            multiply(w, 1.0 - step * penalty, w)
            multiply(x, step * weights[i] * slope, scratch)
            subtract(w, scratch, w)
            squared_norm = float(dot(w))
            if squared_norm > squared_radius:
                multiply(w, radius / math.sqrt(squared_norm), w)
            nearby = neighbours[i]
            stretched = u * len(nearby)
            place = int(stretched)
            j = nearby[place]
            if (stretched - place) * score[i] <= score[j]:
                i = j
                messages += 1
        self.node = i
        self.messages += messages


# ------------------------------------------------------------------ the same work?


def verify_update(library: ctypes.CDLL, setting: WalkSetting, hops: int = 300) -> None:
    """Hop by hop, C must do what walklearn's reference update does, and go to a neighbour."""
    c = CWalk(library, setting, SEED)
    total = np.zeros_like(c.model)
    for k in range(1, hops + 1):
        i, gamma = int(c.token.node), setting.step_size(k)
        total += gamma * c.model
        expected, _ = update(setting.problem, i, c.model.copy(), gamma, setting.scale[i])
        c.run(1)
        np.testing.assert_allclose(c.model, expected, rtol=1e-9, atol=1e-9 * RADIUS)
        np.testing.assert_allclose(c.sum, total, rtol=1e-9, atol=1e-9 * RADIUS)
        if c.token.node != i and c.token.node not in setting.graph.neighbours(i):
            raise AssertionError(f"the C loop went from {i} to {c.token.node}, no neighbour")


def verify_law(library: ctypes.CDLL, setting: WalkSetting, hops: int, replicates: int = 64) -> str:
    """C and walklearn must visit by the same law, and come as near to the optimum.

    Both are compared to within 5 standard errors, taken from independent replicates.
    """
    ours = [_walklearn(setting, [g]) for g in _generators(replicates)]
    theirs = [CWalk(library, setting, SEED + r) for r in range(replicates)]
    for batch, c in zip(ours, theirs, strict=True):
        _advance(batch, hops)
        c.run(hops)
    optimum = setting.problem.optimum.model
    stationary = setting.walk.stationary(setting.graph, setting.problem)
    expected_moves = setting.walk.acceptance_rate(setting.graph, setting.problem)

    visits = np.array([[b.visits for b in ours], [c.visits for c in theirs]]) / hops
    moves = np.array([[b.messages[0] for b in ours], [c.token.messages for c in theirs]]) / hops
    averages = np.array([[b.averages[0, 0] for b in ours], [c.average for c in theirs]])
    models = np.array([[b.models[0, 0] for b in ours], [c.model for c in theirs]])
    distances, last_distances = (np.linalg.norm(w - optimum, axis=2) for w in (averages, models))
    for observed, expected in ((visits, stationary), (moves, expected_moves)):
        for lines in observed:
            _agree(lines - expected)
    _agree(distances[0] - distances[1])
    _agree(last_distances[0] - last_distances[1])
    ours_mean, theirs_mean = distances.mean(axis=1)
    error = float((distances[0] - distances[1]).std(ddof=1)) / math.sqrt(replicates)
    projected = sum(c.token.projections for c in theirs)
    return (
        f"the same walk: mean distance of the average to w* {ours_mean:.3f} (walklearn) and "
        f"{theirs_mean:.3f} (C), standard error {error:.3f}; C projected {projected} times"
    )


def _agree(differences: Array) -> None:
    """Fail if a mean over the first axis is more than 5 standard errors from 0."""
    error = differences.std(axis=0, ddof=1) / math.sqrt(len(differences))
    if np.any(np.abs(differences.mean(axis=0)) > 5.0 * error):
        raise AssertionError("the C loop and walklearn do not run the same walk")


def verify_numpy(setting: WalkSetting, hops: int = 20_000) -> None:
    """From the same stream the NumPy loop must give walklearn's numbers."""
    ours = _walklearn(setting, [np.random.default_rng(SEED)])
    theirs = NumpyWalk(setting, np.random.default_rng(SEED))
    _advance(ours, hops)
    theirs.run(hops)
    np.testing.assert_array_equal(ours.visits, theirs.visits)
    np.testing.assert_allclose(theirs.model, ours.models[0, 0], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(theirs.sum, ours._tokens.sums, rtol=1e-7, atol=1e-9)


# ------------------------------------------------------------------ the race


def _generators(count: int) -> list[np.random.Generator]:
    return [np.random.default_rng(seed) for seed in np.random.SeedSequence(SEED).spawn(count)]


def _streams(walks: list[np.random.Generator]) -> list[Streams]:
    return [Streams(walk, np.random.default_rng(SEED)) for walk in walks]  # no noise is drawn


def _walklearn(setting: WalkSetting, generators: list[np.random.Generator]) -> CompiledWalks:
    return CompiledWalks(setting, _streams(generators))


def _advance(batch: Batch, iterations: int) -> None:
    """In blocks, as `simulate` does."""
    block = max(1, BLOCK_NUMBERS // (len(batch.streams) * batch.setting.draws))
    while iterations > 0:
        count = min(block, iterations)
        batch.advance(count)
        iterations -= count


def make_setting(size: Size) -> WalkSetting:
    """The paper's logistic problem under the weighted walk."""
    X, y = wl.datasets.two_gaussians(size.nodes, size.dimension, variance=10.0, seed=SEED)
    problem = wl.Problem(X, y, penalty=1.0, domain=wl.domains.Ball(RADIUS))
    probability = size.degree / (size.nodes - 1)
    graph = wl.graphs.erdos_renyi(size.nodes, probability, seed=SEED, connected="retry")
    step_size = wl.PowerStep(10.0 / float(problem.smoothness.mean()), 0.75)
    return WalkSetting(problem, graph, wl.walks.Weighted(), step_size)


@dataclass
class Contestant:
    """What runs, and its own count of what it has done: it is credited with that alone."""

    run: Run
    done: Callable[[], int]
    share: float = 1.0  # of the hops of a turn, for the slow ones
    prepare: Run | None = None  # off the clock
    best_seconds: float = math.inf

    def turn(self, hops: int) -> None:
        """Run against the clock, and keep the time if it is the best so far."""
        count = max(1, int(hops * self.share))
        if self.prepare:
            self.prepare(count)
        done, clock = self.done(), time.thread_time()
        self.run(count)
        seconds = time.thread_time() - clock
        self.best_seconds = min(self.best_seconds, seconds / (self.done() - done))

    @property
    def nanoseconds(self) -> float:
        """Per hop, in the best turn."""
        return 1e9 * self.best_seconds


def contestants(
    library: ctypes.CDLL, setting: WalkSetting, size: Size, c: CWalk
) -> dict[str, Contestant]:
    one = _walklearn(setting, _generators(1))
    many = _walklearn(setting, _generators(LARGEST_BATCH))
    gather = Gather(library, setting.problem.X)
    race = {
        "C": Contestant(c.run, lambda: c.token.updates),
        "one": Contestant(lambda count: _advance(one, count), lambda: one.iterations),
        "batch": Contestant(
            lambda count: _advance(many, max(1, count // LARGEST_BATCH)),
            lambda: many.iterations * LARGEST_BATCH,
        ),
        "gather": Contestant(gather.run, lambda: gather.done, prepare=gather.prepare),
    }
    if size.numpy:
        loop = NumpyWalk(setting, np.random.default_rng(SEED))
        race["numpy"] = Contestant(loop.run, lambda: loop.updates, share=0.02)
    if size.gossip:
        gossip_setting = GossipSetting(
            setting.problem, setting.graph, wl.AsynchronousGossip(), setting.step_size
        )
        gossip = CompiledGossip(gossip_setting, _streams(_generators(1)))
        race["gossip"] = Contestant(
            lambda count: _advance(gossip, count), lambda: gossip.iterations, share=0.5
        )
    return race


class Gather:
    """Random rows, new ones for every turn: the same again would come from the cache."""

    def __init__(self, library: ctypes.CDLL, rows: Array) -> None:
        self._gather, self._rows, self.done = library.gather, rows, 0
        self._generator = np.random.default_rng(SEED)

    def prepare(self, count: int) -> None:
        """Draw the rows of the next turn."""
        self._which = self._generator.integers(0, len(self._rows), count, dtype=np.int32)

    def run(self, count: int) -> None:
        """Read them."""
        rows, which = self._rows, self._which
        self._gather(rows.ctypes.data, rows.shape[1], which.ctypes.data, count)
        self.done += count


class Result(NamedTuple):
    """The best nanoseconds per hop (gossip: per iteration) of each contestant."""

    size: Size
    nanoseconds: dict[str, float]
    projected: float  # the share of the hops that left the ball


def measure(library: ctypes.CDLL, size: Size, rounds: int) -> Result:
    setting = make_setting(size)
    verify_update(library, setting)
    if size.nodes == 100 and size.dimension <= 50:
        _note(f"  {verify_law(library, setting, hops=20_000)}")
    if size.numpy:
        verify_numpy(setting)
    c = CWalk(library, setting, SEED)
    race = contestants(library, setting, size, c)
    for contestant in race.values():  # load the machine code, pass the start, fill the caches
        contestant.turn(max(1, size.hops // 20))
        contestant.best_seconds = math.inf
    before = c.token.projections, c.token.updates
    for _ in range(rounds):
        for contestant in race.values():
            contestant.turn(size.hops)
    hits, hops = c.token.projections - before[0], c.token.updates - before[1]
    nanoseconds = {name: contestant.nanoseconds for name, contestant in race.items()}
    return Result(size, nanoseconds, hits / hops)


# ------------------------------------------------------------------ what it says


class Ratio(NamedTuple):
    """A ratio of a result, its target and the way it should go."""

    name: str
    of: Callable[[dict[str, float]], float | None]
    target: Callable[[Size], float | None]
    at_least: bool

    def cell(self, result: Result) -> str:
        """The ratio with its target, for a table."""
        value, target = self.of(result.nanoseconds), self.target(result.size)
        if value is None:
            return ""
        text = f"{value:.2f}" if value < 20 else f"{value:.0f}"
        if target is None:
            return text
        met = value >= target if self.at_least else value <= target
        sign = "≥" if self.at_least else "≤"
        return f"{text} ({sign} {target:g}{'' if met else ', missed'})"


def _over(name: str, below: str, factor: float = 1.0) -> Callable[[dict[str, float]], float | None]:
    return lambda ns: ns[name] / (factor * ns[below]) if name in ns else None


def _in_cache(size: Size) -> bool:
    return size.nodes < 1_000_000


def _last(size: Size) -> bool:
    return (size.nodes, size.dimension) == (SIZES[-1].nodes, SIZES[-1].dimension)


RATIOS = (
    Ratio("C / one token", _over("C", "one"), lambda s: 0.9 if _in_cache(s) else None, True),
    Ratio("C / batch", _over("C", "batch"), lambda s: 1.3 if _in_cache(s) else 1.8, True),
    Ratio("batch / gather", _over("batch", "gather"), lambda s: 2.5 if _last(s) else None, False),
    Ratio(
        "NumPy / one token",
        _over("numpy", "one"),
        lambda s: 50 if s.dimension == 10 else None,
        True,
    ),
    Ratio("gossip / 2 batch", _over("gossip", "batch", 2.0), lambda s: 2.5, False),
)
COLUMNS = ("C", "one", "batch", "gather", "numpy", "gossip")
HEADINGS = ("C loop", "one token", "batch of 32", "gather", "NumPy loop", "gossip (2 updates)")


def nanosecond_lines(results: list[Result]) -> Iterator[tuple[str, ...]]:
    yield ("N", "d", "degree", *HEADINGS)
    for result in results:
        size, ns = result.size, result.nanoseconds
        cells = (f"{ns[name]:.1f}" if name in ns else "" for name in COLUMNS)
        yield (f"{size.nodes:,}", str(size.dimension), str(size.degree), *cells)


def ratio_lines(results: list[Result]) -> Iterator[tuple[str, ...]]:
    yield ("N", "d", *(ratio.name for ratio in RATIOS))
    for result in results:
        size = result.size
        cells = (ratio.cell(result) for ratio in RATIOS)
        yield (f"{size.nodes:,}", str(size.dimension), *cells)


def table(lines: Iterator[tuple[str, ...]], markdown: bool) -> str:
    grid = list(lines)
    widths = [max(len(line[c]) for line in grid) for c in range(len(grid[0]))]
    left, between, right = ("| ", " | ", " |") if markdown else ("", "  ", "")
    text = [
        left + between.join(cell.rjust(w) for cell, w in zip(line, widths, strict=True)) + right
        for line in grid
    ]
    if markdown:
        text.insert(1, "|" + "|".join("-" * (w + 1) + ":" for w in widths) + "|")
    return "\n".join(text)


def machine() -> Iterator[str]:
    """Where and with what this was measured."""
    import numba

    yield f"CPU: {_cpu_model()}, {os.cpu_count()} cores; caches {_caches()}"
    yield (
        f"Python {platform.python_version()}, NumPy {np.__version__}, numba {numba.__version__}, "
        f"{_first_line('gcc', '--version')}, {platform.system()} {platform.release()}"
    )
    folder = str(Path(wl.__file__).parent)  # of what is measured, wherever that is
    commit = _first_line("git", "-C", folder, "rev-parse", "--short", "HEAD") or "none"
    changed = " with changes" if _first_line("git", "-C", folder, "status", "--short", ".") else ""
    files = sorted(Path(folder, "simulation", "compiled").glob("*.py"))
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:8]
    yield (
        f"{time.strftime('%Y-%m-%d')}, walklearn {wl.__version__}, commit {commit}{changed}, "
        f"kernels {digest}"
    )


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    facts = dict(line.split(":", 1) for line in lines if ":" in line)
    facts = {key.strip(): value.strip() for key, value in facts.items()}
    family = f"family {facts.get('cpu family')} model {facts.get('model')}"
    return f"{facts.get('model name', 'unknown')} ({family})"


def _caches() -> str:
    found = []
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = (
            (folder / name).read_text().strip() for name in ("level", "type", "size")
        )
        if kind != "Instruction":
            found.append(f"L{level} {size}")
    return ", ".join(found) or "unknown"


def _first_line(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return next(iter(done.stdout.splitlines()), "")


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a quarter of the hops, 5 rounds")
    parser.add_argument("--markdown", action="store_true", help="tables for README.md")
    parser.add_argument("--rounds", type=int, help="turns of each contestant; the best counts")
    parser.add_argument("--only", metavar="N,d", help="one of the sizes, such as 100,10")
    options = parser.parse_args()
    rounds = options.rounds or (5 if options.quick else 25)
    wanted = [s for s in SIZES if options.only in (None, f"{s.nodes},{s.dimension}")]
    if not wanted:
        parser.error(f"--only must be one of {[f'{s.nodes},{s.dimension}' for s in SIZES]}")

    results = []
    with tempfile.TemporaryDirectory() as folder:
        library = compile_c(Path(folder))
        for size in wanted:
            _note(f"N = {size.nodes:,}, d = {size.dimension}")
            turn = size._replace(hops=size.hops // 4) if options.quick else size
            result = measure(library, turn, rounds)
            results.append(result._replace(size=size))

    print("\n".join(f"- {line}" for line in machine()))
    most = max(result.projected for result in results)
    print(f"- best of {rounds} interleaved rounds; at most {most:.2g} of the hops left the ball\n")
    print("Nanoseconds per hop (gossip: per iteration)\n")
    print(table(nanosecond_lines(results), options.markdown))
    print("\nRatios, and their targets\n")
    print(table(ratio_lines(results), options.markdown))


if __name__ == "__main__":
    main()
