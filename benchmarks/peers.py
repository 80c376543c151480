"""Updates per second of walklearn and of its peers, on one job, one after the other.

    python -m benchmarks.peers           installs the peers, measures
    python -m benchmarks.peers --quick   without those that would have to be installed

Each peer runs in a virtual environment of its own, kept in the folder for temporary files for the
next time, with one thread; `peers.md` says what is not like for like. A contestant is a script of
`peer_jobs`: it reads the job, works for so many seconds of its core and prints how many updates it
made, in what time, and the models it ended with.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import walklearn as wl
from benchmarks.measurement import Measurement, main

JOBS = Path(__file__).parent / "peer_jobs"
ENVIRONMENTS = Path(tempfile.gettempdir(), "walklearn-peers")
NODES, PENALTY, CONSTANT = 100, 0.1, 0.05
ROWS, DIMENSIONS = (2, 1), (10, 50)


class Contestant(NamedTuple):
    """A script, what it needs installed, which Python it asks for, what it is compared with.

    target: how many times its speed walklearn's 32 walks should have, with two rows per node.
    """

    name: str
    script: str
    arguments: tuple[str, ...] = ()
    installs: tuple[tuple[str, ...], ...] = ()  # one pip call each; empty: this environment
    python: str | None = None
    target: float | None = None
    rows: tuple[int, ...] = ROWS  # of a node, that it can do


# gossipy imports torchvision for data sets that nobody asks for here. A torchvision without its
# matching torch build fails on import from 0.16 on; 0.15.2 doesn't, and is not used further.
GOSSIPY = (
    ("torch==2.13.0",),
    ("--no-deps", "torchvision==0.15.2"),
    ("--no-deps", "gossipy-dfl"),
    ("numpy", "pandas", "scikit-learn", "scipy", "networkx", "rich", "requests", "matplotlib"),
    ("dill",),
)
FASTEST = Contestant("walklearn, 32 walks at once", "walklearn_job", ("walk", "32"))
OTHERS = (
    Contestant("walklearn, one walk", "walklearn_job", ("walk", "1")),
    Contestant("walklearn, asynchronous gossip", "walklearn_job", ("gossip", "1")),
    Contestant("walk in plain NumPy", "numpy_walk", target=40.0),
    Contestant("walk with SGDClassifier.partial_fit", "sklearn_walk", target=5000.0),
    Contestant("decent-bench, ATC", "decent_bench_job", (), (("decent-bench",),), "3.13", 1000.0,
               rows=(2,)),  # it takes no node with one class only
    Contestant("gossipy, MERGE_UPDATE", "gossipy_job", (), GOSSIPY),
)  # fmt: skip


class Turn(NamedTuple):
    """What a contestant did; `note` where it could not run."""

    updates_per_second: float
    accuracy: float
    note: str = ""


def write_job(rows: int, dimension: int, path: Path) -> None:
    """Two rows per node, one of each class; or one, of either class."""
    graph = wl.graphs.erdos_renyi(NODES, 0.3, seed=1, connected="retry")
    generator = np.random.default_rng(1)
    y = np.resize([1.0, -1.0], rows * NODES)
    X = generator.normal(y[:, None] * 0.5, 1.0, (rows * NODES, dimension))
    np.savez(path, X=X, y=y, indptr=graph.indptr, indices=graph.indices, penalty=PENALTY,
             constant=CONSTANT)  # fmt: skip


def environment_of(contestant: Contestant) -> str:
    """The Python to run it with: this one, or a fresh environment's with the peer installed."""
    if not contestant.installs:
        return sys.executable
    home = ENVIRONMENTS / contestant.script
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
                          check=False, timeout=120 + 40 * seconds)  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


def accuracy(models: Any, job: Path) -> float:
    """The mean over models of the share of rows on the right side."""
    data = np.load(job)
    sides = np.sign(np.atleast_2d(models) @ data["X"].T)
    return float((sides == data["y"]).mean())


def turn_of(contestant: Contestant, job: Path, seconds: float) -> Turn:
    try:
        answer = run(contestant, environment_of(contestant), job, seconds)
    except (LookupError, RuntimeError, subprocess.SubprocessError) as error:
        return Turn(math.nan, math.nan, str(error))
    return Turn(answer["updates"] / answer["seconds"], accuracy(answer["models"], job))


def best_turns(job: Path, contestants: list[Contestant], rounds: int, seconds: float) -> list[Turn]:
    """They take turns in each round; the best turn of each counts, and who fails is out."""
    best = [Turn(0.0, 0.0)] * len(contestants)
    for _ in range(rounds):
        for place, contestant in enumerate(contestants):
            if not best[place].note:
                turn = turn_of(contestant, job, seconds)
                better = turn.note or turn.updates_per_second > best[place].updates_per_second
                best[place] = turn if better else best[place]
    return best


def measurements(quick: bool) -> Iterator[Measurement]:
    rounds, seconds = (1, 0.2) if quick else (3, 2.0)
    for rows in ROWS:
        others = [each for each in OTHERS if rows in each.rows and not (quick and each.installs)]
        for dimension in DIMENSIONS[: 1 if quick else None]:
            with tempfile.TemporaryDirectory() as folder:
                job = Path(folder, "job.npz")
                write_job(rows, dimension, job)
                first, *turns = best_turns(job, [FASTEST, *others], rounds, seconds)
            speed, where = first.updates_per_second, f"{rows} rows per node, d={dimension}"
            yield Measurement(f"{FASTEST.name}, {where}", speed, "1/s", note=first.note)
            for contestant, turn in zip(others, turns, strict=True):
                note = turn.note or (
                    f"{turn.updates_per_second:,.0f} updates per second, accuracy "
                    f"{turn.accuracy:.3f} against {first.accuracy:.3f}"
                )
                yield Measurement(f"32 walks / {contestant.name}, {where}",
                                  speed / turn.updates_per_second, "times",
                                  contestant.target if rows == 2 else None, True, note)  # fmt: skip


if __name__ == "__main__":
    main(measurements, __doc__)
