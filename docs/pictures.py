"""Draws the pictures of these pages anew: `python docs/pictures.py [directory]`.

Each function makes one file, with all its settings in sight. Step constants are tuned for each
method on other seeds than those shown.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import walklearn as wl
from walklearn.updates.step_choice import best_step

HERE = Path(__file__).parent / "pictures"
DOTS_PER_INCH = 110


def walk(folder: Path, steps: int = 60) -> None:
    """A token that learns on twelve nodes, in motion."""
    graph = wl.graphs.watts_strogatz(12, 4, 0.2, seed=3)
    X, y = wl.datasets.two_gaussians(12, dimension=2, variance=1.0, seed=1)
    problem = wl.Problem(X, y, penalty=1.0, domain=wl.domains.Ball(3.0))
    path, step_size = folder / "walk.gif", wl.PowerStep(0.1)
    wl.plots.animate(problem, graph, wl.walks.Uniform(), path,
                    step_size=step_size, steps=steps, seed=2, frames_per_second=6)  # fmt: skip


def visits(folder: Path) -> None:
    """Who is visited how often: the simple walk prefers hubs, the uniform one nobody."""
    graph = wl.graphs.barabasi_albert(40, 2, seed=1)
    X, y = wl.datasets.two_gaussians(40, dimension=2, seed=1)
    problem = wl.Problem(X, y, penalty=1.0)
    figure = Figure(figsize=(10.0, 4.4), layout="constrained")
    settings = (
        ("simple walk: any neighbour", wl.walks.Simple()),
        ("uniform walk: a hub often says no", wl.walks.Uniform()),
    )
    for axes, (title, method) in zip(figure.subplots(1, 2), settings, strict=True):
        run = wl.simulate(problem, graph, method, steps=20_000, step_size=wl.PowerStep(0.01),
                          replicates=8, seed=1, records=2, progress=False)  # fmt: skip
        wl.plots.visits(graph, run.visits, ax=axes)
        figure.axes[-1].set_ylabel("visits / equal share")
        axes.set_title(title)
    figure.savefig(folder / "visits.png", dpi=DOTS_PER_INCH)


def weighting(folder: Path) -> None:
    """Where weighting pays and where not: rows of very different size, with and without noise."""
    graph = wl.graphs.erdos_renyi(100, 0.3, seed=1)
    methods = {
        "uniform walk": wl.walks.Uniform(),
        "weighted walk": wl.walks.Weighted(),
        "uniform walk, steps by 1/L": wl.walks.Uniform(normalise=True),
    }
    figure = Figure(figsize=(10.0, 4.2), layout="constrained")
    for axes, noise in zip(figure.subplots(1, 2), (0.0, 0.1), strict=True):
        X, y = wl.datasets.heterogeneous_rows(100, dimension=10, noise=noise, seed=1)
        problem = wl.Problem(X, y, loss=wl.losses.Squared(), aggregate="mean")
        runs = []
        for label, method in methods.items():
            step = tuned(problem, graph, method, steps=10_000)
            run = wl.simulate(problem, graph, method, steps=10_000, step_size=step,
                              replicates=16, seed=2, progress=False)  # fmt: skip
            runs.append(replace(run, label=label))
        wl.plots.convergence(runs, metric="distance", ax=axes)
        axes.set_title("one model fits every row" if noise == 0 else f"label noise {noise:g}")
    figure.savefig(folder / "weighting.png", dpi=DOTS_PER_INCH)


def tuned(problem: wl.Problem, graph: wl.Graph, walk: wl.walks.Walk, steps: int) -> Any:
    """The constant step with the least median error at the end, on seeds of its own."""
    largest = 2.0 / wl.theory.diagnose(graph, problem, walk).effective_smoothness
    candidates = [wl.ConstantStep(largest * factor) for factor in np.geomspace(1e-3, 1.0, 13)]
    errors = [
        np.median(wl.simulate(problem, graph, walk, steps=steps, step_size=step, replicates=8,
                              seed=1, records=1, progress=False).distance[:, -1])
        for step in candidates
    ]  # fmt: skip
    return best_step(candidates, errors)


def entrapment(folder: Path) -> None:
    """How long a token stays at each node when importances differ much."""
    graph = wl.graphs.erdos_renyi(100, 0.1, seed=1)
    X, y = wl.datasets.heterogeneous_rows(100, dimension=10, seed=1)
    problem = wl.Problem(X, y, loss=wl.losses.Squared(), aggregate="mean")
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    wl.plots.entrapment(graph, wl.walks.Weighted(), problem, ax=figure.subplots())
    figure.savefig(folder / "entrapment.png", dpi=DOTS_PER_INCH)


def privacy(folder: Path) -> None:
    """What is left of a released value, for every mechanism, in a narrow and a wide range."""
    figure = Figure(figsize=(10.0, 4.2), layout="constrained")
    for axes, bounds in zip(figure.subplots(1, 2, sharey=True), ((1, 2), (1, 50)), strict=True):
        wl.plots.privacy_tradeoff(bounds=bounds, delta=0.03, ax=axes)
    figure.savefig(folder / "privacy.png", dpi=DOTS_PER_INCH)


def attack(folder: Path) -> None:
    """What an observer of the tokens makes of each node's row, unprotected and protected."""
    graph = wl.graphs.erdos_renyi(50, 0.16, seed=1, connected="retry")
    X, y = wl.datasets.two_gaussians(50, dimension=10, seed=1)
    problem = wl.Problem(X, y, penalty=1.0, aggregate="mean")
    noise = wl.privacy.ModelNoise.calibrate(epsilon=3.0, delta=1e-3, clip=1.0, max_contributions=20)
    figure = Figure(figsize=(6.6, 3.4), layout="constrained")
    axes = figure.subplots()
    for label, protection, colour, marker in (
        ("model in the clear", None, "#D55E00", "o"),
        ("model with noise, ε = 3", noise, "#0072B2", "s"),
    ):
        found = wl.attack(
            problem, graph, wl.walks.Uniform(), wl.PowerStep(0.1), 2000, protection, 1
        )
        axes.plot(found.nodes, found.cosines, marker, color=colour, markersize=5, label=label)
    axes.axhline(found.by_chance, color="grey", linestyle=":", label="a guess by chance (median)")
    axes.set(xlabel="node", ylabel="|cosine| of guess and row", ylim=(0.0, 1.05))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="center", bbox_to_anchor=(0.5, 0.8))
    figure.savefig(folder / "attack.png", dpi=DOTS_PER_INCH)


PICTURES = (walk, visits, weighting, entrapment, privacy, attack)


def main(folder: Path = HERE) -> None:
    """Draw all of them into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for draw in PICTURES:
        draw(folder)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
