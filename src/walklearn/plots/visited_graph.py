"""The number of visits to each node, compared with the stationary distribution.

On a small graph the area of a dot is the node's share of the visits. Its colour compares that share
with the expected one, on a logarithmic scale: white for equal, blue for less, red for more.
Thousands of dots would be unreadable, so on a large graph the ratio is drawn against the number of
neighbours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from walklearn.checks import check_length
from walklearn.graphs import Graph, spring_layout
from walklearn.plots.axes import (
    FloatArray,
    axes_or_new,
    colour,
    colour_bar,
    colour_by_ratio,
    plain_ticks,
    style_axes,
    visible,
)
from walklearn.wording import format_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection

    from walklearn.simulation.trace import Trace

_MAX_AREA = 400.0  # points², of the dot of the most visited node
MAX_DOTS = 300  # nodes; the dots of a larger graph would cover each other
_GROUPS = 2  # groups of nodes by degree, for each doubling of the degree


def visits(
    run: Trace | Graph,
    counts: ArrayLike | None = None,
    expected: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the number of visits to each node, compared with the expected number.

    A graph of up to 300 nodes is drawn, with a dot for each node. For a larger one, and for a run
    without its graph, the picture is visits / expected against the number of neighbours. It shows
    hubs that are visited too often, or corners that are hardly reached.

    Parameters
    ----------
    run
        A run, as `simulate` returns it; or the graph, which needs `counts`.
    counts
        The visits, one for each node, such as ``Trace.visits``; a run has its own.
    expected
        The expected visits or shares, such as ``walk.stationary(graph, problem)``. By default those
        of the run's walk; for a graph all nodes are equal.
    ax
        The axes to draw on; new ones if omitted.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> import walklearn as wl
    >>> from matplotlib.figure import Figure
    >>> star, shares = wl.graphs.star(6), [1 / 6] * 6
    >>> axes = visits(star, [50, 10, 10, 10, 10, 10], shares, ax=Figure().subplots())
    >>> len(axes.collections)   # the edges and the dots
    2
    """
    if isinstance(run, Graph):
        if counts is None:
            raise ValueError("visits(graph, counts) needs the visits. Pass run.visits.")
    elif not hasattr(run, "visits"):
        raise TypeError(
            "visits draws a run, as simulate returns it, or a graph with its counts, got "
            f"{format_value(run)}."
        )
    elif counts is not None:
        raise ValueError("a run has its own visits. Use visits(run), or visits(graph, counts).")
    elif run.visits is None or run.degrees is None:
        raise ValueError(
            f"{run.label} has no visits, as the run was interrupted. Simulate it to its end."
        )
    else:
        counts, expected = run.visits, run.expected_visits if expected is None else expected
    degrees = np.asarray(run.degrees)
    visit_counts, reference = (
        _checked_per_node(len(degrees), counts, "counts"),
        "expected of the walk",
    )
    if not visit_counts.any():
        raise ValueError("counts are all zero, so there is no visit to draw.")
    if expected is None:
        expected, reference = np.ones(len(degrees)), "equal share"
    shares = _checked_per_node(len(degrees), expected, "expected")
    if not shares.all():
        raise ValueError("expected must be positive at every node.")
    expected_counts = visit_counts.sum() * shares / shares.sum()
    ratio = visit_counts / expected_counts
    if isinstance(run, Graph) and run.node_count <= MAX_DOTS:
        axes = axes_or_new(ax, (6.0, 5.2))
        areas = np.maximum(_MAX_AREA * visit_counts / visit_counts.max(), 12.0)
        colours = colour_by_ratio(ratio)
        dots = draw_graph(axes, spring_layout(run), run.edges(), areas, **colours)
        colour_bar(axes, dots, f"visits / {reference}", shrink=0.7)
        return axes
    axes = axes_or_new(ax)
    if degrees.min() == degrees.max():
        axes.hist(ratio, bins=min(40, 5 + len(ratio) // 10), color=colour(0))
        axes.axvline(1.0, color="grey", linewidth=0.8)
        style_axes(axes, f"visits / {reference}", f"nodes, each with {degrees[0]} neighbours")
    else:
        _draw_by_degree(axes, ratio, degrees, expected_counts, reference)
    low, high = np.quantile(ratio, (0.05, 0.95))
    unvisited = int(np.count_nonzero(visit_counts == 0))
    axes.set_title(
        f"9 of 10 nodes: {low:.2g} to {high:.2g} times the {reference.partition(' of')[0]}"
        + (f"; {unvisited} of {len(ratio)} never visited" if unvisited else ""),
        fontsize="medium",
    )
    return axes


def _draw_by_degree(
    axes: Axes,
    ratio: FloatArray,
    degrees: NDArray[np.int64],
    expected: FloatArray,
    reference: str,
) -> None:
    """Draw each node as a faint dot, the median by degree, and the range of random variation."""
    visited = ratio > 0
    sizes = np.round(_GROUPS * np.log2(np.maximum(degrees, 1)))
    groups = [np.flatnonzero(sizes == size) for size in np.unique(sizes)]
    # Jitter, because nodes of one degree would cover each other.
    jitter = 1.0 + 0.12 * (np.arange(len(ratio)) * 0.618034 % 1.0 - 0.5)
    axes.plot(
        (degrees * jitter)[visited], ratio[visited], ".", color=colour(0), markersize=3, alpha=0.3,
        label="a node", rasterized=True,
    )  # fmt: skip
    median_degrees = np.array([np.median(degrees[group]) for group in groups])
    axes.plot(
        median_degrees, [np.median(ratio[group]) for group in groups], "o-", color=colour(1),
        markersize=4, label="median at this number",
    )  # fmt: skip
    chance = 2.0 / np.sqrt([np.median(expected[group]) for group in groups])
    for edge, label in ((1.0 + chance, "95 % of independent draws"), (1.0 - chance, None)):
        axes.plot(median_degrees, visible(edge), "--", color="black", linewidth=1, label=label)
    axes.axhline(1.0, color="grey", linewidth=0.8)
    axes.set(xscale="log", yscale="log")
    axes.set_ylim(min(0.5, 0.8 * ratio[visited].min()), max(2.0, 1.25 * ratio.max()))
    style_axes(axes, "neighbours of the node", f"visits / {reference}")
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)
    axes.legend(frameon=False, fontsize="small")


def draw_graph(
    axes: Axes,
    positions: NDArray[np.float64],
    edges: NDArray[np.int64],
    sizes: ArrayLike,
    **colours: Any,
) -> PathCollection:
    """Draw edges in grey and dots above them; return the dots, for a colour bar."""
    from matplotlib.collections import LineCollection

    strength = min(0.6, 60.0 / max(len(edges), 1) ** 0.75)
    axes.add_collection(LineCollection(list(positions[edges]), colors="grey", alpha=strength))
    dots = axes.scatter(positions[:, 0], positions[:, 1], s=sizes, zorder=2, **colours)
    axes.set(aspect="equal", xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    return dots


def _checked_per_node(nodes: int, values: ArrayLike | None, name: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    check_length(name, array, nodes, "nodes")
    if not (np.isfinite(array).all() and (array >= 0).all()):
        raise ValueError(f"{name} must be finite and at least 0 at every node.")
    return array
