"""How far does it reach? From 100 to 10,000,000 nodes, and from 10 to 10,000 features.

    python -m benchmarks.scale            # about 4 minutes and 3 GB
    python -m benchmarks.scale --quick    # the small sizes

An Erdős–Rényi graph of mean degree 20, the paper's two Gaussians with one row per node, the
weighted walk. Every size has a process of its own, so that its memory is its own peak, taken
before the diagnosis, which needs the matrix of the walk beside all else. "Build" is graph, rows and
`Problem`; the first simulation, of one token without gaps, contains all that is found out once
for a problem (w*, L_i, digests) and loads the compiled code; hops a second are those of a second
simulation of the same. A time is the lesser of the clock's and the process's own: on a busy
machine the clock counts what others do. The table is also written to benchmarks/build/scale.md,
with a plot, scale.png.
"""

from __future__ import annotations

import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.measurement import Measurement, main

BUILD = Path(__file__).parent / "build"
DEGREE = 20
HOPS = 5_000_000
MAX_TO_DIAGNOSE = (
    1_000_000  # at ten times that, the matrix of the walk and its twins would take 9.6 GB
)
NODES = (100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
FEATURES = (10, 100, 1_000, 10_000)
FEW_NODES = 1_000  # for the sizes with many features
UNITS = {"build": "s", "first simulation": "s", "hops": "1/s", "memory": "MB", "diagnose": "s"}
# Of the largest graph: (target, whether it is the least).
TARGETS: dict[str, tuple[float | None, bool]]
TARGETS = {"build": (30.0, False), "first simulation": (10.0, False), "hops": (1e6, True),
           "memory": (8000.0, False)}  # fmt: skip
NO_TARGET = (None, False)


def seconds_of(work: Callable[[], Any]) -> tuple[Any, float]:
    """What comes out, and how long it took."""
    clock, own = time.perf_counter(), time.process_time()
    result = work()
    return result, min(time.perf_counter() - clock, time.process_time() - own)


def measure(nodes: int, features: int, hops: int) -> dict[str, float]:
    """All figures of one size, in this process."""
    import walklearn as wl

    def build() -> tuple[Any, Any]:
        chance = min(0.3, DEGREE / nodes)
        graph = wl.graphs.erdos_renyi(nodes, chance, seed=1, connected="largest")
        X, y = wl.datasets.two_gaussians(len(graph), dimension=features, variance=10.0, seed=1)
        return graph, wl.Problem(X, y, penalty=1.0, domain=wl.domains.Ball(10.0))

    def simulate() -> Any:
        length = wl.PowerStep(10.0 / float(problem.smoothness_constants.mean()), 0.75)
        return wl.simulate(problem, graph, walk, steps=hops, step_size=length, seed=1, gaps=False,
                           progress=False)  # fmt: skip

    walk = wl.walks.Weighted()
    (graph, problem), built = seconds_of(build)
    _, first = seconds_of(simulate)
    _, second = seconds_of(simulate)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000  # Linux: KB
    diagnosed = math.nan
    if nodes <= MAX_TO_DIAGNOSE:
        _, diagnosed = seconds_of(lambda: wl.theory.diagnose(graph, problem, walk))
    return {"build": built, "first simulation": first, "hops": hops / second, "memory": memory,
            "diagnose": diagnosed}  # fmt: skip


def measured_alone(nodes: int, features: int, hops: int) -> dict[str, float]:
    """The same in a process of its own."""
    call = (
        f"import json; from benchmarks import scale; figures = scale.measure{nodes, features, hops}"
    )
    command = [sys.executable, "-c", f"{call}; print(json.dumps(figures))"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def measurements(quick: bool) -> Iterator[Measurement]:
    by_nodes = [(nodes, FEATURES[0]) for nodes in (NODES[:2] if quick else NODES)]
    by_features = [(FEW_NODES, features) for features in (FEATURES[:2] if quick else FEATURES)]
    measured: dict[tuple[int, int], dict[str, float]] = {}
    for size in dict.fromkeys(by_nodes + by_features):
        hops = 10_000 if quick else HOPS if size[1] <= 100 else HOPS // 10
        measured[size] = measured_alone(*size, hops)
        for name, value in measured[size].items():
            target, at_least = TARGETS.get(name, NO_TARGET) if size[0] == NODES[-1] else NO_TARGET
            note = "not tried: the matrix of the walk is too large" if math.isnan(value) else ""
            what = f"N = {size[0]:,}, d = {size[1]:,}: {name}"
            yield Measurement(what, value, UNITS[name], target, at_least, note)
    BUILD.mkdir(exist_ok=True)
    (BUILD / "scale.md").write_text("\n".join(lines(measured)) + "\n")
    draw({"nodes": by_nodes, "features": by_features}, measured)


def lines(measured: dict[tuple[int, int], dict[str, float]]) -> Iterator[str]:
    """A table with a line for each size."""
    yield "|          N |      d | build s | first run s |    hops/s | memory MB | diagnose s |"
    yield "|-----------:|-------:|--------:|------------:|----------:|----------:|-----------:|"
    for (nodes, features), of in measured.items():
        diagnose = "–" if math.isnan(of["diagnose"]) else f"{of['diagnose']:.2f}"
        yield (
            f"| {nodes:>10,} | {features:>6,} | {of['build']:>7.2f} | "
            f"{of['first simulation']:>11.2f} | {of['hops']:>9,.0f} | {of['memory']:>9,.0f} | "
            f"{diagnose:>10} |"
        )


def draw(
    sizes: dict[str, list[tuple[int, int]]], measured: dict[tuple[int, int], dict[str, float]]
) -> None:
    """Each figure over the nodes (left) and over the features (right)."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(3, 2, figsize=(8, 9), sharex="col", sharey="row")
    kinds = {"s": "seconds", "1/s": "hops a second", "MB": "memory, MB"}
    for column, (along, cases) in enumerate(sizes.items()):
        for panel, (unit, label) in zip(panels[:, column], kinds.items(), strict=True):
            for name in (name for name in UNITS if UNITS[name] == unit):
                places = [case[column] for case in cases]
                panel.loglog(places, [measured[case][name] for case in cases], "o-", label=name)
            panel.grid(alpha=0.3)
            panel.set_ylabel("" if column else label)
        panels[-1, column].set_xlabel(along)
    panels[0, 0].legend()
    figure.tight_layout()
    figure.savefig(BUILD / "scale.png", dpi=120)


if __name__ == "__main__":
    main(measurements, __doc__)
