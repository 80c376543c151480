"""A moving picture of a token that learns on a small graph.

Left: the graph, with the token as a ring, its last hops as a trail, and nodes that darken with
their visits. Right: the error ‖w − w*‖ so far, with the rest of the curve in a faint colour. The
film runs the reference engine step by step.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from walklearn.checks import check_whole
from walklearn.files.atomic_write import atomic_write
from walklearn.graphs import Graph, spring_layout
from walklearn.plots.axes import COLOURS, FloatArray, plain_ticks, style_axes
from walklearn.plots.visited_graph import draw_graph
from walklearn.streams import draw_start
from walklearn.updates.sgd import Sgd
from walklearn.visit import Setting, Walker, init_token
from walklearn.walks.walk import draw_walk
from walklearn.wording import plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from walklearn.objectives import Problem
    from walklearn.updates.step_sizes import StepSize
    from walklearn.walks import Walk

_TRAIL = 6  # hops
_CURVE_COLOUR, _TOKEN_COLOUR = COLOURS[0], COLOURS[1]


def animate(
    problem: Problem,
    graph: Graph,
    walk: Walk,
    path: str | Path,
    *,
    step_size: StepSize,
    steps: int = 100,
    seed: int | None = None,
    frames_per_second: int = 12,
) -> Path:
    """Write a film of a token that learns: a GIF, or an HTML page with a slider.

    There is a frame for each update. A page contains all its frames and needs no internet access.

    Parameters
    ----------
    problem
        The objective.
    graph
        Communication graph.
    walk
        The walk, which chooses the next node.
    path
        The file to write, ending in .gif or .html.
    step_size
        The step γ_k of the k-th update.
    steps
        The number of updates.
    seed
        A number makes the film reproducible.
    frames_per_second
        The speed of the film.

    Returns
    -------
    Path
        The path written.

    Examples
    --------
    >>> import tempfile
    >>> import walklearn as wl
    >>> X, y = wl.datasets.two_gaussians(8, dimension=2, seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     film = animate(wl.Problem(X, y, penalty=1.0), wl.graphs.ring(8), wl.walks.Uniform(),
    ...                    Path(folder, "walk.gif"), step_size=wl.PowerStep(0.1), steps=3, seed=1)
    ...     film.name, film.stat().st_size > 0
    ('walk.gif', True)
    """
    target = Path(path)
    if target.suffix not in {".gif", ".html"}:
        raise ValueError(f"{target} must end in .gif or .html.")
    check_whole("steps", steps)
    from matplotlib import rc_context
    from matplotlib.animation import FuncAnimation
    from matplotlib.figure import Figure

    nodes, errors = _walk(Setting(problem, walk, Sgd(step_size)), graph, steps, seed)
    figure = Figure(figsize=(9.6, 4.2), layout="constrained")
    picture = _Picture(figure, graph, nodes, errors)
    picture.show(0)
    figure.draw_without_rendering()  # computes the layout once instead of for each frame
    figure.set_layout_engine("none")
    film = FuncAnimation(figure, picture.show, frames=steps + 1, blit=False)
    with rc_context({"animation.embed_limit": 200.0}):  # MB; the page is written or the call fails
        atomic_write(target, _encode(film, target.suffix, frames_per_second))
    return target


def _walk(
    setting: Setting, graph: Graph, steps: int, seed: int | None
) -> tuple[NDArray[np.int64], FloatArray]:
    """Return the node of the token and the error of its model at each step."""
    generator, objective = np.random.default_rng(seed), setting.objective
    walk = draw_walk(setting.walk, graph, objective, generator).bind(graph, objective)
    setting = replace(setting, walk=walk)
    optimum = objective.optimum()
    node, model = draw_start(objective, generator)
    walker = Walker(setting, graph, node, init_token(setting, model))
    nodes, errors = [node], [float(np.linalg.norm(model - optimum))]
    for _ in range(steps):
        walker.visit(setting.draw(generator, generator))
        nodes.append(walker.node)
        errors.append(float(np.linalg.norm(walker.token.update["model"] - optimum)))
    return np.array(nodes), np.array(errors)


class _Picture:
    """The two panels, and the parts that change from frame to frame."""

    def __init__(
        self, figure: Figure, graph: Graph, nodes: NDArray[np.int64], errors: FloatArray
    ) -> None:
        self.nodes, self.errors, self.positions = nodes, errors, spring_layout(graph)
        left, right = figure.subplots(1, 2, width_ratios=(1.0, 1.2))
        self.dots = draw_graph(
            left, self.positions, graph.edges(), 150, c=np.zeros(graph.node_count), cmap="Blues",
            vmin=0, vmax=int(np.bincount(nodes).max()), edgecolors="black", linewidths=0.6,
        )  # fmt: skip
        (self.trail,) = left.plot([], [], color=_TOKEN_COLOUR, linewidth=2.2, alpha=0.6, zorder=3)
        (self.token,) = left.plot(
            [], [], "o", markersize=20, markerfacecolor="none", markeredgecolor=_TOKEN_COLOUR,
            markeredgewidth=3, zorder=4,
        )  # fmt: skip
        self.title = left.set_title("")
        left.set(xlim=(-1.2, 1.2), ylim=(-1.2, 1.2))
        style_axes(right, "updates", "distance to the optimum, $\\|w - w^*\\|$")
        # The rest of the curve is faint, so that the first frame shows something too.
        right.plot(errors, color=_CURVE_COLOUR, linewidth=1.2, alpha=0.25)
        (self.line,) = right.plot([], [], color=_CURVE_COLOUR, linewidth=1.8)
        (self.current_point,) = right.plot([], [], "o", color=_TOKEN_COLOUR, markersize=7)
        visible = errors[errors > 0]
        right.set(yscale="log", xlim=(0, len(nodes) - 1),
                  ylim=(visible.min() * 0.8, visible.max() * 1.25))  # fmt: skip
        plain_ticks(right.yaxis)

    def show(self, frame: int) -> list[Any]:
        """Draw the state after `frame` updates."""
        nodes = self.nodes[: frame + 1]
        visits = np.bincount(nodes[:-1], minlength=len(self.positions))
        self.dots.set_array(visits.astype(float))
        self.trail.set_data(*self.positions[nodes[-_TRAIL:]].T)
        self.token.set_data(*self.positions[nodes[-1:]].T)
        self.title.set_text(f"after {plural(frame, 'update')} the token is at node {nodes[-1]}")
        self.line.set_data(np.arange(frame + 1), self.errors[: frame + 1])
        self.current_point.set_data([frame], [self.errors[frame]])
        return [self.dots, self.trail, self.token, self.title, self.line, self.current_point]


def _encode(film: Any, suffix: str, frames_per_second: int) -> bytes:
    if suffix == ".html":
        page: str = film.to_jshtml(fps=frames_per_second)
        return page.encode()
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "film.gif"
        film.save(path, writer="pillow", fps=frames_per_second, dpi=72)
        return path.read_bytes()
