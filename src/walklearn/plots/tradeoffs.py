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

from walklearn.plots.axes import colour, dress, new_axes, plain_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    from walklearn.privacy.accounting.printing import format_upper
    from walklearn.privacy.mechanisms.comparison import CONSTANT_ERROR, compare

    at = f"δ = {format_upper(delta)}"
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
            axes.plot([], [], color=colour(number), label=f"{kind}: infeasible at {at}")
    axes.axhline(CONSTANT_ERROR, color="grey", linestyle=":",
                 label="a constant, which tells nothing")  # fmt: skip
    axes.set(ylim=(0.0, None), title=f"values within {bounds[0]:g} to {bounds[1]:g}, {at}")
    axes.legend(frameon=False)
    return axes
