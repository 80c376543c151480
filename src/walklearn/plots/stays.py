"""Acceptance and entrapment: how long a token stays where it is.

A node that others propose rarely, or that weighs much more than its neighbours, keeps the token:
it stays with probability P_ii and makes 1 / (1 − P_ii) updates in a row on average, all on its own
rows. One such node in a corner of the graph can hold up the whole walk.

>>> import walklearn as wl
>>> from matplotlib.figure import Figure
>>> axes = entrapment(wl.graphs.star(9), wl.walks.Uniform(), ax=Figure().subplots())
>>> axes.get_title()   # the centre never stays, a leaf moves once in eight times
'moves in 22 % of the steps; longest stay 8 updates, at node 1'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from walklearn.plots.axes import new_axes, plain_ticks

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
        Who can talk to whom.
    walk
        Who is next.
    problem
        The rows, for a walk whose law depends on them, such as `Weighted`.
    ax
        The axes to draw on; new ones when omitted.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Examples
    --------
    >>> import walklearn as wl
    >>> from matplotlib.figure import Figure
    >>> axes = entrapment(wl.graphs.star(8), wl.walks.Uniform(), ax=Figure().subplots())
    >>> axes.get_xlabel() != ""
    True
    """
    from matplotlib.colors import LogNorm

    stay = walk.transition_matrix(graph, problem).diagonal()
    law = walk.stationary(graph, problem)
    moves = np.maximum(1.0 - stay, 1e-300)
    length = 1.0 / moves
    axes = new_axes() if ax is None else ax
    share = law * graph.node_count
    span = max(2.0, float(share.max()), float(1.0 / share.min()))
    dots = axes.scatter(
        graph.degrees, length, c=share, cmap="RdBu_r", norm=LogNorm(1.0 / span, span),
        edgecolors="black", linewidths=0.6, s=40,
    )  # fmt: skip
    longest = int(length.argmax())
    axes.set(
        xlabel="neighbours of the node", ylabel="updates in a row, mean", yscale="log",
        title=f"moves in {100 * float(law @ moves):.0f} % of the steps; "
        f"longest stay {length[longest]:.3g} updates, at node {longest}",
    )  # fmt: skip
    axes.grid(True, linewidth=0.5, alpha=0.4)
    axes.set_axisbelow(True)
    figure = axes.get_figure(root=True)
    assert figure is not None
    bar = figure.colorbar(dots, ax=axes, label="share of the visits × N")
    plain_ticks(bar.ax.yaxis)
    plain_ticks(axes.yaxis)
    return axes
