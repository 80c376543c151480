"""The graph, with how often each node was visited.

The area of a dot is the node's share of the visits; its colour how that share compares with the
stationary law, on a logarithmic scale: white as promised, blue less, red more.

>>> import walklearn as wl
>>> from matplotlib.figure import Figure
>>> graph = wl.graphs.star(6)
>>> axes = visits(graph, [50, 10, 10, 10, 10, 10], law=[1 / 6] * 6, ax=Figure().subplots())
>>> len(axes.collections)   # the edges and the dots
2
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from walklearn.graphs import Graph, spring_layout
from walklearn.plot.axes import new_axes, plain_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection

_LARGEST = 400.0  # points², of the dot of the most visited node
_WIDEST = 2.0  # colours span a factor of 2 to either side at least


def visits(
    graph: Graph, counts: ArrayLike, law: ArrayLike | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the graph with the visits of each node.

    Parameters
    ----------
    counts
        The visits, one for each node, such as ``Trace.visits``.
    law
        What they should be in the long run, such as ``walk.stationary(graph, problem)``; every
        node alike where omitted.
    """
    from matplotlib.colors import LogNorm

    counted = _per_node(graph, counts, "counts")
    if counted.sum() == 0:
        raise ValueError("counts are all zero: no visit to draw")
    share = counted / counted.sum()
    expected = np.ones(graph.node_count) if law is None else _per_node(graph, law, "law")
    if not (expected > 0).all():
        raise ValueError("law must be positive at every node")
    ratio = share / (expected / expected.sum())
    seen = ratio[ratio > 0]
    span = max(_WIDEST, float(seen.max()), float(1.0 / seen.min()))
    axes = new_axes(6.0, 5.2) if ax is None else ax
    dots = draw_graph(
        axes, spring_layout(graph), graph.edges(), np.maximum(_LARGEST * share / share.max(), 12.0),
        c=np.maximum(ratio, 1.0 / span), cmap="RdBu_r", norm=LogNorm(1.0 / span, span),
    )  # fmt: skip
    figure = axes.get_figure(root=True)
    assert figure is not None
    bar = figure.colorbar(dots, ax=axes, label="visits / stationary law", shrink=0.7)
    plain_ticks(bar.ax.yaxis)
    return axes


def draw_graph(
    axes: Axes,
    positions: NDArray[np.float64],
    edges: NDArray[np.int64],
    sizes: ArrayLike,
    **colours: Any,
) -> PathCollection:
    """Edges in grey and dots above them, which are returned: a bar may explain their colours."""
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


def _per_node(graph: Graph, values: ArrayLike, name: str) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (graph.node_count,):
        raise ValueError(
            f"{name} must hold one number for each of the {graph.node_count} nodes, "
            f"not shape {array.shape}"
        )
    if not (np.isfinite(array).all() and (array >= 0).all()):
        raise ValueError(f"{name} must be finite and not negative")
    return array
