"""How long does one wait? Each figure is the best of a few fresh processes.

    python -m benchmarks.startup

What no edit here can take away is measured too: the empty interpreter, Numba and scikit-learn by
themselves. The first simulation and `walklearn train` are measured with a warm cache of machine
code, as in every process but the first after an installation; and all with compiled modules, as an
installation has them, whatever PYTHONDONTWRITEBYTECODE says: without, each process would compile
walklearn's modules anew, a quarter of a second. Only an idle machine gives figures to hold against
the targets; on a busy one processor time comes nearer to them.
"""

from __future__ import annotations

import os
import resource
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


def seconds_of(runs: int, *arguments: str) -> tuple[float, float]:
    """The shortest time of `python …` on the clock and on processors.

    After one run that fills the caches and must succeed.
    """
    command = [sys.executable, *arguments]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env=environment)
    clock, processors = [], []
    for _ in range(runs):
        before, worked = time.perf_counter(), _worked()
        subprocess.run(command, capture_output=True, check=True, env=environment)
        clock.append(time.perf_counter() - before)
        processors.append(_worked() - worked)
    return min(clock), min(processors)


def _worked() -> float:
    """Processor time of all processes that were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def write_rows(path: Path, rows: int = 1000, features: int = 10) -> None:
    """A table for `walklearn train`."""
    import numpy as np

    import walklearn as wl

    X, y = wl.datasets.two_gaussians(rows, dimension=features, variance=10.0, seed=1)
    names = ",".join([*(f"x{i}" for i in range(features)), "y"])
    np.savetxt(path, np.column_stack([X, y]), delimiter=",", header=names, comments="", fmt="%.6g")


def measurements(quick: bool) -> Iterator[Measurement]:
    runs = 1 if quick else 7

    def measured(
        what: str, *arguments: str, target: float | None = None, note: str = ""
    ) -> Measurement:
        seconds, worked = seconds_of(runs, *arguments)
        note = f"processors {worked:.2f} s{note}"
        return Measurement(what, seconds, "s", target, note=note, own_time=worked)

    def alone(statement: str) -> str:
        return f"; `{statement}` alone {seconds_of(runs, '-c', statement)[1]:.2f} s"

    yield measured("python, empty", "-c", "pass")
    yield measured("import walklearn", "-c", IMPORT, note="; without numba")
    yield measured("… and graphs, walks, Problem", "-c", NAMES, note="; without numba")
    yield measured("walklearn --help", *COMMAND, "--help")
    yield measured("first simulation in a process", "-c", SIMULATION, target=1.0,
                   note=alone("import numba"))  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder  # not to the user's record of runs
        rows, model = Path(folder, "rows.csv"), Path(folder, "model")
        write_rows(rows)
        train = ("train", str(rows), "--target", "y", "--out", str(model), "--force")
        yield measured("walklearn train on 1,000 rows", *COMMAND, *train, target=3.0,
                       note=alone("import sklearn.base"))  # fmt: skip


if __name__ == "__main__":
    main(measurements, __doc__)
