"""The cost of privacy: the error of a released value against ε, for every mechanism.

The error is that of `privacy.compare`: root mean square, as a share of the public range, of the
release after shrinking, which costs no privacy. A public constant has error .289, so a mechanism is
useful only below that line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from walklearn.plots.axes import axes_or_new, colour, plain_ticks, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def privacy_tradeoff(
    *, bounds: Sequence[float], delta: float, epsilons: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """Draw the error against ε. A line begins at the smallest ε that its mechanism can achieve.

    Parameters
    ----------
    bounds
        The public range of the values.
    delta
        The δ of all claims.
    epsilons
        The values of ε; from 0.3 to 10 by default.
    ax
        The axes to draw on; new ones if omitted.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

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

    claim = f"δ = {format_upper(delta)}"
    values = np.geomspace(0.3, 10.0, 16) if epsilons is None else np.asarray(epsilons, float)
    if values.ndim != 1 or not values.size:
        raise ValueError("epsilons must be a list of at least one number.")
    errors: dict[str, list[float]] = {}
    for epsilon in values.tolist():
        for row in compare(epsilon=epsilon, delta=delta, bounds=bounds).rows:
            errors.setdefault(row.kind, []).append(row.shrunk_error)
    axes = axes_or_new(ax)
    style_axes(axes, "ε", "error of a release, share of the range")
    axes.set_xscale("log")
    plain_ticks(axes.xaxis)
    for number, (kind, kind_errors) in enumerate(errors.items()):
        if np.isfinite(kind_errors).any():
            axes.plot(
                values, kind_errors, color=colour(number), marker="o", markersize=3, label=kind
            )
        else:
            axes.plot([], [], color=colour(number), label=f"{kind}: infeasible at {claim}")
    axes.axhline(CONSTANT_ERROR, color="grey", linestyle=":",
                 label="a public constant")  # fmt: skip
    axes.set(ylim=(0.0, None), title=f"values within {bounds[0]:g} to {bounds[1]:g}, {claim}")
    axes.legend(frameon=False)
    return axes
