"""How long does one wait? Each figure is the median of fresh processes.

    python -m benchmarks.startup

The empty interpreter is measured too, since every other figure contains it. The first
simulation is measured with a warm cache of machine code, as in every process but the first
after an installation.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import subprocess
import sys
import time

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


def median_seconds(runs: int, *arguments: str) -> tuple[float, int]:
    """The median time of `python …`, after one run that fills the caches; and its exit code."""
    command = [sys.executable, *arguments]
    code = subprocess.run(command, capture_output=True, check=False).returncode
    seconds = []
    for _ in range(runs):
        before = time.perf_counter()
        subprocess.run(command, capture_output=True, check=False)
        seconds.append(time.perf_counter() - before)
    return statistics.median(seconds), code


def _show(what: str, seconds: float, note: str = "") -> None:
    print(f"{what:<42} {seconds:6.3f} s  {note}".rstrip())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=5, help="processes for each figure")
    runs = parser.parse_args().runs

    _show("python, empty", median_seconds(runs, "-c", "pass")[0])
    for what, code in (("import walklearn", IMPORT), ("... and graphs, walks, Problem", NAMES)):
        seconds, imported = median_seconds(runs, "-c", code)
        _show(what, seconds, "NUMBA IS IMPORTED" if imported else "without numba")
    seconds, failed = median_seconds(runs, "-c", SIMULATION)
    _show("first simulation, warm cache", seconds, "FAILED" if failed else "")
    if importlib.util.find_spec("walklearn.cli") is None:
        print("walklearn --help: skipped, there is no command line yet")
        return
    call = "import sys; from walklearn.cli import main; sys.argv = ['walklearn', '--help']; main()"
    seconds, failed = median_seconds(runs, "-c", call)
    _show("walklearn --help", seconds, "FAILED" if failed else "")


if __name__ == "__main__":
    main()
