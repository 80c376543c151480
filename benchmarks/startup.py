"""How long does one wait? Each figure is the best of a few fresh processes.

    python -m benchmarks.startup

The empty interpreter is measured too, since every other figure contains it. The first simulation
and `walklearn train` are measured with a warm cache of machine code, as in every process but the
first after an installation. Only an idle machine gives figures to hold against the targets.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measurement import Measurement, main

IMPORT = "import sys, walklearn; sys.exit('numba' in sys.modules)"
NAMES = (
    "import sys, walklearn as wl; wl.Problem, wl.graphs, wl.walks; sys.exit('numba' in sys.modules)"
)
SIMULATION = """
import walklearn as wl
graph = wl.graphs.erdos_renyi(100, 0.3, seed=1)
X, y = wl.datasets.two_gaussians(100, dimension=10, variance=10.0, seed=1)
problem = wl.Problem(X, y, penalty=1.0, domain=wl.domains.Ball(10.0))
wl.simulate(problem, graph, wl.walks.Weighted(), steps=10_000,
            step_size=wl.PowerStep(0.001, 0.75), replicates=4, seed=1, progress=False)
"""
COMMAND = ("-c", "from walklearn.cli import main; main()")


def seconds_of(runs: int, *arguments: str) -> float:
    """The shortest time of `python …`, after one run that fills the caches and must succeed."""
    command = [sys.executable, *arguments]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    seconds = []
    for _ in range(runs):
        before = time.perf_counter()
        subprocess.run(command, capture_output=True, check=True)
        seconds.append(time.perf_counter() - before)
    return min(seconds)


def write_rows(path: Path, rows: int = 1000, features: int = 10) -> None:
    """A table for `walklearn train`."""
    import numpy as np

    import walklearn as wl

    X, y = wl.datasets.two_gaussians(rows, dimension=features, variance=10.0, seed=1)
    names = ",".join([*(f"x{i}" for i in range(features)), "y"])
    np.savetxt(path, np.column_stack([X, y]), delimiter=",", header=names, comments="", fmt="%.6g")


def measurements(quick: bool) -> Iterator[Measurement]:
    runs = 1 if quick else 7
    yield Measurement("python, empty", seconds_of(runs, "-c", "pass"), "s")
    yield Measurement("import walklearn", seconds_of(runs, "-c", IMPORT), "s", note="without numba")
    yield Measurement("… and graphs, walks, Problem", seconds_of(runs, "-c", NAMES), "s",
                      note="without numba")  # fmt: skip
    yield Measurement("walklearn --help", seconds_of(runs, *COMMAND, "--help"), "s")
    simulation = seconds_of(runs, "-c", SIMULATION)
    yield Measurement("first simulation in a process", simulation, "s", 1.0, note="warm cache")
    with tempfile.TemporaryDirectory() as folder:
        rows, model = Path(folder, "rows.csv"), Path(folder, "model")
        write_rows(rows)
        train = ("train", str(rows), "--target", "y", "--out", str(model), "--force")
        seconds = seconds_of(runs, *COMMAND, *train)
    yield Measurement("walklearn train on 1,000 rows", seconds, "s", 3.0, note="warm cache")


if __name__ == "__main__":
    main(measurements, __doc__)
