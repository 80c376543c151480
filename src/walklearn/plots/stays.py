"""Acceptance and entrapment: the number of updates in a row at each node.

A node that others propose rarely, or with a much larger weight than its neighbours, keeps the
token: it stays with probability P_ii and makes 1 / (1 − P_ii) updates in a row on average, all on
the same rows. One such node in a corner of the graph can delay the whole walk.
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
    >>> axes.get_title()   # the centre never stays, a leaf moves once in eight times
    'moves in 22 % of the steps; longest stay 8 updates, at node 1'
    """
    shares = walk.stationary(graph, problem)
    moves = np.maximum(1.0 - walk.transition_matrix(graph, problem).diagonal(), 1e-300)
    length = 1.0 / moves
    longest = int(length.argmax())
    axes = axes_or_new(ax)
    dots = axes.scatter(graph.degrees, length, s=40, **colour_by_ratio(shares * graph.node_count))
    style_axes(axes, "neighbours of the node", "updates in a row, mean")
    axes.set(
        yscale="log", title=f"moves in {100 * float(shares @ moves):.0f} % of the steps; "
        f"longest stay {length[longest]:.3g} updates, at node {longest}",
    )  # fmt: skip
    colour_bar(axes, dots, "share of the visits × N")
    plain_ticks(axes.yaxis)
    return axes
