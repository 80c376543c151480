"""What privacy costs: the error of a released value against ε, for every mechanism.

The error is `privacy.compare`'s: root mean square, as a share of the public range, of the release
after the shrinkage that is free. A public constant, which tells nothing, has error .289: a
mechanism is worth something only below that line.

>>> from matplotlib.figure import Figure
>>> axes = privacy_tradeoff(bounds=(1.0, 10.0), delta=0.03, epsilons=[1.0, 3.0],
...                         ax=Figure().subplots())
>>> [line.get_label() for line in axes.get_lines()][-1]
'a constant, which tells nothing'
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from walklearn.plot.axes import colour, dress, new_axes, plain_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from walklearn.theory import NetworkPrivacy


def privacy_tradeoff(
    *, bounds: Sequence[float], delta: float, epsilons: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """Draw error against ε. A line begins where its mechanism can first keep the promise.

    Parameters
    ----------
    bounds
        The public range of the values.
    delta
        The δ of all promises.
    epsilons
        Where to look; 0.3 to 10 by default.
    ax
        The axes to draw on; new ones when omitted.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> axes = privacy_tradeoff(bounds=(1.0, 10.0), delta=0.03, epsilons=[1.0, 3.0],
    ...                         ax=Figure().subplots())
    >>> axes.get_xscale()
    'log'
    """
    from walklearn.privacy.comparison import CONSTANT_ERROR, compare

    where = np.geomspace(0.3, 10.0, 16) if epsilons is None else np.asarray(epsilons, float)
    if where.ndim != 1 or not where.size:
        raise ValueError("epsilons must be a list of numbers, not empty")
    tables = [compare(epsilon=float(e), delta=delta, bounds=bounds) for e in where]
    errors: dict[str, list[float]] = {}
    for table in tables:
        for row in table.rows:
            errors.setdefault(row.kind, []).append(row.shrunk_error)
    axes = new_axes() if ax is None else ax
    dress(axes, "ε", "error of a release, share of the range")
    axes.set_xscale("log")
    plain_ticks(axes.xaxis)
    for number, (kind, line) in enumerate(errors.items()):
        if np.isfinite(line).any():
            axes.plot(where, line, color=colour(number), marker="o", markersize=3, label=kind)
        else:
            axes.plot([], [], color=colour(number), label=f"{kind}: infeasible at δ = {delta:g}")
    axes.axhline(CONSTANT_ERROR, color="grey", linestyle=":",
                 label="a constant, which tells nothing")  # fmt: skip
    axes.set(ylim=(0.0, None), title=f"values within {bounds[0]:g} to {bounds[1]:g}, δ = {delta:g}")
    axes.legend(frameon=False)
    return axes


def privacy_by_distance(
    claim: NetworkPrivacy, *, delta: float, observers: ArrayLike = (0,), ax: Axes | None = None
) -> Axes:
    """Draw the ε between pairs of nodes against their distance, and the local ε above.

    Parameters
    ----------
    claim : NetworkPrivacy
        What single nodes learn (`theory.seen_from_one_node`).
    delta : float
        The δ of all the claims.
    observers : list of int
        Who looks; each looks at all other nodes.
    ax : matplotlib.axes.Axes
        The axes to draw on; new ones when omitted.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Examples
    --------
    >>> import walklearn as wl
    >>> from matplotlib.figure import Figure
    >>> noise = wl.privacy.ModelNoise(clip=1.0, noise_multiplier=10.0, max_contributions=10)
    >>> claim = wl.theory.NetworkPrivacy(wl.graphs.ring(8), noise)
    >>> axes = privacy_by_distance(claim, delta=1e-5, ax=Figure().subplots())
    >>> axes.get_xlabel()
    'hops between the two nodes'
    """
    pairs = [claim.by_distance(delta, int(observer)) for observer in np.asarray(observers)]
    hops, seen = (np.concatenate(each) for each in zip(*pairs, strict=True))
    axes = new_axes() if ax is None else ax
    dress(axes, "hops between the two nodes", f"ε at δ = {delta:g}")
    distances = np.unique(hops)
    axes.plot(hops, seen, "o", color=colour(0), alpha=0.25, markersize=4, label="a pair of nodes")
    medians = [np.median(seen[hops == distance]) for distance in distances]
    axes.plot(distances, medians, color=colour(0), label="median at that distance")
    axes.axhline(claim.local(delta), color=colour(1), label="everyone who sees all tokens")
    axes.set(ylim=(0.0, None), xticks=distances)
    axes.legend(frameon=False)
    return axes
