"""How often each node was visited, compared with its stationary distribution.

On a small graph the area of a dot is the node's share of the visits; its colour how that share
compares with its expected share, on a logarithmic scale: white as promised, blue less, red more.
Thousands of
dots would tell nothing, so the ratio itself is then drawn, against the number of neighbours.

>>> import walklearn as wl
>>> from matplotlib.figure import Figure
>>> graph = wl.graphs.star(6)
>>> axes = visits(graph, [50, 10, 10, 10, 10, 10], expected=[1 / 6] * 6, ax=Figure().subplots())
>>> len(axes.collections)   # the edges and the dots
2
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from walklearn.checks import check_length
from walklearn.graphs import Graph, spring_layout
from walklearn.plots.axes import FloatArray, colour, dress, new_axes, plain_ticks, visible
from walklearn.wording import as_given

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection

    from walklearn.simulation.trace import Trace

_LARGEST = 400.0  # points², of the dot of the most visited node
MAX_DOTS = 300  # nodes of a graph that is drawn; dots of more cover each other
_GROUPS = 2  # of nodes with about as many neighbours, for each doubling of that number
_WIDEST = 2.0  # colours span a factor of 2 to either side at least


def visits(
    run: Trace | Graph,
    counts: ArrayLike | None = None,
    expected: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how often each node was visited, beside what the walk's expected promises.

    A graph of up to 300 nodes is drawn, with a dot for each node. Of a larger one, and of a run
    alone, which does not keep the edges, the picture is visits / expected against the number of
    neighbours: hubs that are visited too often, or corners that are hardly reached, stand out.

    Parameters
    ----------
    run
        A run, such as `simulate` returns it; or the graph, and then `counts` must be given.
    counts
        The visits, one for each node, such as ``Trace.visits``; a run has its own.
    expected
        What they should be in the long run, such as ``walk.stationary(graph, problem)``. By
        default what the run knows of its walk, and every node alike for a graph.
    ax
        Where to draw; by default on new axes.

    Returns
    -------
    Axes
        The axes that were drawn on.

    Examples
    --------
    >>> import walklearn as wl
    >>> from matplotlib.figure import Figure
    >>> graph = wl.graphs.barabasi_albert(1000, 2, seed=1)
    >>> problem = wl.Problem(*wl.datasets.two_gaussians(1000, dimension=2, seed=1), penalty=1.0)
    >>> run = wl.simulate(problem, graph, wl.walks.Uniform(), steps=100_000, replicates=4,
    ...                   step_size=wl.PowerStep(0.01), records=1, seed=1, progress=False)
    >>> axes = visits(run, ax=Figure().subplots())
    >>> axes.get_xlabel(), axes.get_ylabel()
    ('neighbours of the node', 'visits / expected of the walk')
    """
    if isinstance(run, Graph):
        if counts is None:
            raise ValueError("visits(graph, counts): give the visits, such as run.visits")
        counted, degrees = _per_node(run.node_count, counts, "counts"), run.degrees
    else:
        if counts is not None:
            raise ValueError("a run has its own visits: plot.visits(run), or (graph, counts)")
        counted, degrees = _of_run(run)
        expected = run.expected_visits if expected is None else expected
    ratio = _ratio(counted, expected)
    against = "equal share" if expected is None else "expected of the walk"
    if isinstance(run, Graph) and run.node_count <= MAX_DOTS:
        return _on_graph(run, counted, ratio, against, new_axes(6.0, 5.2) if ax is None else ax)
    axes = new_axes() if ax is None else ax
    if degrees.min() == degrees.max():
        _spread(axes, ratio, int(degrees[0]), against)
    else:
        _by_degree(axes, ratio, degrees, counted.sum() * _shares(expected, len(counted)), against)
    low, high = np.quantile(ratio, (0.05, 0.95))
    never = int(np.count_nonzero(counted == 0))
    axes.set_title(
        f"9 of 10 nodes: {low:.2g} to {high:.2g} times the {against.partition(' of')[0]}"
        + (f"; {never} of {len(ratio)} never visited" if never else ""),
        fontsize="medium",
    )
    return axes


def _of_run(run: Trace) -> tuple[FloatArray, NDArray[np.int64]]:
    if not hasattr(run, "visits"):
        raise TypeError(
            "visits draws a run such as simulate returns, or a graph with its counts, got "
            f"{as_given(run)}."
        )
    if run.visits is None or run.degrees is None:
        raise ValueError(
            f"{run.label} has kept no visits (an interrupted run does not): simulate it to its end"
        )
    return _per_node(len(run.visits), run.visits, "visits"), run.degrees


def _shares(expected: ArrayLike | None, nodes: int) -> FloatArray:
    """The expected, as shares that sum to one."""
    expected = np.ones(nodes) if expected is None else _per_node(nodes, expected, "expected")
    if not (expected > 0).all():
        raise ValueError("expected must be positive at every node")
    return np.asarray(expected / expected.sum())


def _ratio(counted: FloatArray, expected: ArrayLike | None) -> FloatArray:
    """Each node's share of the visits, as a multiple of its expected share."""
    if counted.sum() == 0:
        raise ValueError("counts are all zero: no visit to draw")
    return np.asarray(counted / counted.sum() / _shares(expected, len(counted)))


def _on_graph(
    graph: Graph, counted: FloatArray, ratio: FloatArray, against: str, axes: Axes
) -> Axes:
    """Draw a dot per node: the area shows the visits, the colour their ratio to those expected."""
    from matplotlib.colors import LogNorm

    seen = ratio[ratio > 0]
    span = max(_WIDEST, float(seen.max()), float(1.0 / seen.min()))
    sizes = np.maximum(_LARGEST * counted / counted.max(), 12.0)
    dots = draw_graph(
        axes, spring_layout(graph), graph.edges(), sizes,
        c=np.maximum(ratio, 1.0 / span), cmap="RdBu_r", norm=LogNorm(1.0 / span, span),
    )  # fmt: skip
    figure = axes.get_figure(root=True)
    assert figure is not None
    bar = figure.colorbar(dots, ax=axes, label=f"visits / {against}", shrink=0.7)
    plain_ticks(bar.ax.yaxis)
    return axes


def _by_degree(
    axes: Axes,
    ratio: FloatArray,
    degrees: NDArray[np.int64],
    expected: FloatArray,
    against: str,
) -> None:
    """Draw each node as a faint dot, the median by degree, and what chance alone would scatter."""
    seen = ratio > 0
    sizes = np.round(_GROUPS * np.log2(np.maximum(degrees, 1)))
    groups = [np.flatnonzero(sizes == size) for size in np.unique(sizes)]
    # Nodes of one degree would cover each other: they stand a little apart.
    apart = 1.0 + 0.12 * (np.arange(len(ratio)) * 0.618034 % 1.0 - 0.5)
    axes.plot(
        (degrees * apart)[seen], ratio[seen], ".", color=colour(0), markersize=3, alpha=0.3,
        label="a node", rasterized=True,
    )  # fmt: skip
    middle = np.array([np.median(degrees[group]) for group in groups])
    axes.plot(
        middle, [np.median(ratio[group]) for group in groups], "o-", color=colour(1),
        markersize=4, label="median at this number",
    )  # fmt: skip
    chance = 2.0 / np.sqrt([np.median(expected[group]) for group in groups])
    for edge, label in ((1.0 + chance, "95 % of independent draws"), (1.0 - chance, None)):
        axes.plot(middle, visible(edge), "--", color="black", linewidth=1, label=label)
    axes.axhline(1.0, color="grey", linewidth=0.8)
    axes.set(xscale="log", yscale="log")
    low = ratio[seen].min()
    axes.set_ylim(min(0.5, 0.8 * low), max(2.0, 1.25 * ratio.max()))
    dress(axes, "neighbours of the node", f"visits / {against}")
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)
    axes.legend(frameon=False, fontsize="small")


def _spread(axes: Axes, ratio: FloatArray, degree: int, against: str) -> None:
    """Draw how many nodes have which ratio, where all have equally many neighbours."""
    axes.hist(ratio, bins=min(40, 5 + len(ratio) // 10), color=colour(0))
    axes.axvline(1.0, color="grey", linewidth=0.8)
    dress(axes, f"visits / {against}", f"nodes, each with {degree} neighbours")


def draw_graph(
    axes: Axes,
    positions: NDArray[np.float64],
    edges: NDArray[np.int64],
    sizes: ArrayLike,
    **colours: Any,
) -> PathCollection:
    """Draw edges in grey and dots above them; return the dots, whose colours a bar may explain."""
    from matplotlib.collections import LineCollection

    strength = min(0.6, 60.0 / max(len(edges), 1) ** 0.75)
    axes.add_collection(LineCollection(list(positions[edges]), colors="grey", alpha=strength))
    dots = axes.scatter(
        positions[:, 0], positions[:, 1], s=sizes, edgecolors="black", linewidths=0.6, zorder=2,
        **colours,
    )  # fmt: skip
    axes.set(aspect="equal", xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    return dots


def _per_node(nodes: int, values: ArrayLike, name: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    check_length(name, array, nodes, "nodes")
    if not (np.isfinite(array).all() and (array >= 0).all()):
        raise ValueError(f"{name} must be finite and not negative")
    return array
