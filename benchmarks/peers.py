"""Updates per second of walklearn and of its peers, on one job, one after the other.

    python -m benchmarks.peers                    # installs the peers, measures, prints a table
    python -m benchmarks.peers --markdown         # the table of peers.md
    python -m benchmarks.peers --environments DIR # keep the peers' environments for the next run

Each peer runs in a virtual environment of its own, with one thread; `peers.md` says what is not
like for like. A contestant is a script of `peer_jobs`: it reads the job, works for `--seconds`
and prints how many updates it made, in what time, and the models it ended with.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import walklearn as wl

JOBS = Path(__file__).parent / "peer_jobs"
NODES, PENALTY, CONSTANT = 100, 0.1, 0.05
DIMENSIONS = (10, 50)


class Contestant(NamedTuple):
    """A script, what it needs installed, and which Python it asks for."""

    name: str
    script: str
    arguments: tuple[str, ...] = ()
    installs: tuple[tuple[str, ...], ...] = ()  # one pip call each; empty: this environment
    python: str | None = None


# gossipy imports torchvision for data sets that nobody asks for here. A torchvision without its
# matching torch build fails on import from 0.16 on; 0.15.2 doesn't, and is not used further.
GOSSIPY = (
    ("torch==2.13.0",),
    ("--no-deps", "torchvision==0.15.2"),
    ("--no-deps", "gossipy-dfl"),
    ("numpy", "pandas", "scikit-learn", "scipy", "networkx", "rich", "requests", "matplotlib"),
)
CONTESTANTS = (
    Contestant("walklearn, 32 walks at once", "walklearn_job", ("walk", "32")),
    Contestant("walklearn, one walk", "walklearn_job", ("walk", "1")),
    Contestant("walklearn, asynchronous gossip", "walklearn_job", ("gossip", "1")),
    Contestant("walk in plain NumPy", "numpy_walk"),
    Contestant("walk with SGDClassifier.partial_fit", "sklearn_walk", (), (("scikit-learn",),)),
    Contestant("decent-bench, ATC", "decent_bench_job", (), (("decent-bench",),), "3.13"),
    Contestant("gossipy, MERGE_UPDATE", "gossipy_job", (), GOSSIPY),
)


class Result(NamedTuple):
    """A contestant at one dimension; `note` where it could not run."""

    name: str
    dimension: int
    updates_per_second: float
    accuracy: float
    note: str = ""


def write_job(dimension: int, path: Path) -> tuple[wl.Graph, wl.Problem]:
    """Two rows per node, one of each class: decent-bench takes no node with one class only."""
    graph = wl.graphs.erdos_renyi(NODES, 0.3, seed=1, connected="retry")
    generator = np.random.default_rng(1)
    y = np.tile([1.0, -1.0], NODES)
    X = generator.normal(y[:, None] * 0.5, 1.0, (2 * NODES, dimension))
    owner = np.repeat(np.arange(NODES), 2)
    problem = wl.Problem(X, y, node_of_row=owner, penalty=PENALTY, objective="node-mean")
    np.savez(path, X=X, y=y, indptr=graph.indptr, indices=graph.indices, penalty=PENALTY,
             constant=CONSTANT)  # fmt: skip
    return graph, problem


def environment_of(contestant: Contestant, folder: Path) -> str:
    """The Python to run it with: this one, or a fresh environment's with the peer installed."""
    if not contestant.installs:
        return sys.executable
    home = folder / contestant.script
    python = home / "bin" / "python"
    ready = home / "ready"
    if not ready.exists():
        shutil.rmtree(home, ignore_errors=True)
        subprocess.run([_interpreter(contestant.python), "-m", "venv", home], check=True)
        for packages in contestant.installs:
            print(f"installing {' '.join(packages)} …", file=sys.stderr)
            command = [python, "-m", "pip", "install", "--quiet", *packages]
            subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        ready.touch()
    return str(python)


def _interpreter(version: str | None) -> str:
    """A Python of at least that version: this one, one on the PATH, or one of pyenv's."""
    if version is None or sys.version_info >= tuple(map(int, version.split("."))):
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [shutil.which(f"python{version}"), *sorted(pyenv.glob(f"{version}.*/bin/python"))]
    for candidate in filter(None, candidates):
        if subprocess.run([candidate, "-c", ""], capture_output=True, check=False).returncode == 0:
            return str(candidate)
    raise LookupError(f"needs Python {version}, which was not found")


def run(contestant: Contestant, python: str, job: Path, seconds: float) -> dict[str, Any]:
    """What the script printed; one thread each, since walks and gossip are compared per core."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    command = [python, JOBS / f"{contestant.script}.py", job, str(seconds), *contestant.arguments]
    done = subprocess.run(command, env=os.environ | threads, capture_output=True, text=True,
                          check=False, timeout=60 + 20 * seconds)  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


def accuracy(models: Any, job: Path) -> float:
    """The mean over models of the share of rows on the right side."""
    data = np.load(job)
    sides = np.sign(np.atleast_2d(models) @ data["X"].T)
    return float((sides == data["y"]).mean())


def measure(dimension: int, rounds: int, seconds: float, folder: Path) -> list[Result]:
    """Contestants take turns in each round; the best turn of each counts."""
    job = folder / f"job-{dimension}.npz"
    _, problem = write_job(dimension, job)
    best: dict[str, Result] = {
        "best linear model": Result("best linear model", dimension, np.nan,
                                    accuracy(problem.optimum.model, job)),
    }  # fmt: skip
    for _ in range(rounds):
        for contestant in CONTESTANTS:
            result = _turn(contestant, dimension, job, seconds, folder)
            known = best.get(contestant.name)
            if known is None or known.updates_per_second < result.updates_per_second:
                best[contestant.name] = result
    return list(best.values())


def _turn(
    contestant: Contestant, dimension: int, job: Path, seconds: float, folder: Path
) -> Result:
    try:
        python = environment_of(contestant, folder)
        answer = run(contestant, python, job, seconds)
    except (LookupError, RuntimeError, subprocess.SubprocessError) as error:
        print(f"{contestant.name}: {error}", file=sys.stderr)
        return Result(contestant.name, dimension, np.nan, np.nan, str(error))
    speed = answer["updates"] / answer["seconds"]
    return Result(contestant.name, dimension, speed, accuracy(answer["models"], job))


def table(results: list[Result]) -> str:
    """A line per contestant and dimension; the ratio is that of walklearn's 32 walks to it."""
    lines = ["| d | contestant | updates per second | walklearn's 32 walks / it | accuracy |",
             "|--:|---|--:|--:|--:|"]  # fmt: skip
    fastest = {r.dimension: r.updates_per_second for r in results if r.name == CONTESTANTS[0].name}
    for result in results:
        speed, ratio = f"{result.updates_per_second:,.0f}", ""
        if np.isfinite(result.updates_per_second):
            ratio = f"{fastest[result.dimension] / result.updates_per_second:,.1f}"
        else:
            speed = result.note or "–"
        lines.append(
            f"| {result.dimension} | {result.name} | {speed} | {ratio} | {result.accuracy:.3f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="of work in each turn")
    parser.add_argument("--environments", type=Path, help="where peers are installed and kept")
    parser.add_argument("--markdown", action="store_true", help="with the machine, for peers.md")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = chosen.environments or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        results = [
            result
            for dimension in DIMENSIONS
            for result in measure(dimension, chosen.rounds, chosen.seconds, folder)
        ]
    if chosen.markdown:
        print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, "
              f"Python {platform.python_version()}, {date.today()}, walklearn {wl.__version__}, "
              f"best of {chosen.rounds} turns of {chosen.seconds:g} s\n")  # fmt: skip
    print(table(results))


if __name__ == "__main__":
    main()
