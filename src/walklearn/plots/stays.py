"""Acceptance and entrapment: the number of updates in a row at each node.

A node keeps the token for long if it has few neighbours, or a visit weight much larger than theirs.
The token stays with probability P_ii, so the node makes 1 / (1 − P_ii) updates in a row on average,
all on the same rows. One such node in a corner of the graph can delay the whole walk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from walklearn.plots.axes import axes_or_new, colour_bar, colour_by_ratio, plain_ticks, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from walklearn.graphs import Graph
    from walklearn.objectives import Problem
    from walklearn.walks import Walk


def entrapment(
    graph: Graph, walk: Walk, problem: Problem | None = None, ax: Axes | None = None
) -> Axes:
    """Draw each node's mean number of updates in a row against its degree.

    The colour is the node's share of the visits times N: 1 is an equal share.

    Parameters
    ----------
    graph
        Communication graph.
    walk
        The walk, which chooses the next node.
    problem
        The rows, for a walk that depends on them, such as `Weighted`.
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
    >>> axes = entrapment(wl.graphs.star(9), wl.walks.Uniform(), ax=Figure().subplots())
    >>> axes.get_title()   # it always leaves the centre, but a leaf only with probability 1/8
    'moves in 22 % of the steps; longest stay 8 updates, at node 1'
    """
    shares = walk.stationary(graph, problem)
    move_probabilities = np.maximum(1.0 - walk.transition_matrix(graph, problem).diagonal(), 1e-300)
    stay_lengths = 1.0 / move_probabilities
    worst_node = int(stay_lengths.argmax())
    moving_percent = 100 * float(shares @ move_probabilities)
    axes = axes_or_new(ax)
    dots = axes.scatter(
        graph.degrees, stay_lengths, s=40, **colour_by_ratio(shares * graph.node_count)
    )
    style_axes(axes, "neighbours of the node", "updates in a row, mean")
    axes.set(
        yscale="log", title=f"moves in {moving_percent:.0f} % of the steps; "
        f"longest stay {stay_lengths[worst_node]:.3g} updates, at node {worst_node}",
    )  # fmt: skip
    colour_bar(axes, dots, "share of the visits × N")
    plain_ticks(axes.yaxis)
    return axes
