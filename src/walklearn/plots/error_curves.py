r"""Convergence: a metric of recorded runs against their cost.

The cost is the number of updates, messages or bytes, or the time. Errors are positive and span
decades, so both axes are logarithmic. A line is the median over the replicates and its band a
confidence interval of that median, from :meth:`walklearn.Trace.summary`. To save the picture, use
``axes.figure.savefig(path)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from walklearn.checks import check_choice
from walklearn.plots.axes import axes_or_new, colour, dash, draw_band, style_axes, visible
from walklearn.wording import format_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from walklearn.simulation.trace import Summary, Trace

#: Costs of a run, and the label of the horizontal axis for each.
COSTS = {
    "updates": "updates",
    "messages": "messages sent, mean of the replicates",
    "bytes": "bytes sent, mean of the replicates",
    "time": "time, mean of the replicates",
}

#: Labels of the vertical axis. A metric that is not listed is labelled with its name.
METRICS = {
    "distance": r"distance of the last iterate, $\|w - w^*\|$",
    "average_distance": r"distance of the average, $\|\bar{w} - w^*\|$",
    "gap": r"gap of the last iterate, $f(w) - f^*$",
    "average_gap": r"gap of the average, $f(\bar{w}) - f^*$",
    "value": r"value at the last iterate, $f(w)$",
    "average_value": r"value at the average, $f(\bar{w})$",
}


def convergence(
    traces: Trace | Iterable[Trace] | Mapping[str, Trace],
    x: str = "updates",
    metric: str = "distance",
    ax: Axes | None = None,
    **line_options: Any,
) -> Axes:
    """Draw a metric of several runs against their cost, on logarithmic axes.

    Parameters
    ----------
    traces
        One run, several, or a dictionary from name to run. Each is a line with its confidence band.
    x
        ``"updates"``, ``"messages"``, ``"bytes"`` or ``"time"``. Replicates send different numbers
        of messages before the same record, so a record is drawn at their mean.
    metric
        The name of a metric that all traces have, such as ``"distance"``, ``"average_gap"``,
        ``"value"``, or one of your own.
    ax
        The axes to draw on, for instance those of an earlier call; new ones if omitted.
    **line_options
        Options of :meth:`matplotlib.axes.Axes.plot` for every line, such as ``linewidth=3``.

    Returns
    -------
    matplotlib.axes.Axes
        The axes. Values that a logarithm cannot show (zero, negative, infinite) are left out; if
        nothing remains, a ValueError is raised.

    Examples
    --------
    >>> import walklearn as wl
    >>> from matplotlib.figure import Figure
    >>> X, y = wl.datasets.two_gaussians(8, dimension=2, seed=1)
    >>> trace = wl.simulate(wl.Problem(X, y, penalty=1.0), wl.graphs.ring(8), wl.walks.Uniform(),
    ...                     step_size=wl.PowerStep(0.1), steps=100, seed=1)
    >>> axes = convergence([trace], ax=Figure().subplots())
    >>> axes.get_xlabel(), axes.get_yscale()
    ('updates', 'log')
    """
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.lines import Line2D

    check_choice("x", x, COSTS)
    runs = _labelled_runs(traces)
    costs = [visible(np.atleast_2d(getattr(trace, x)).mean(axis=0)) for _, trace in runs]
    summaries = [_summary(trace, metric) for _, trace in runs]
    points = zip(costs, summaries, strict=True)
    if all(np.isnan(cost * visible(summary[0])).all() for cost, summary in points):
        raise ValueError(
            f"no trace has a positive median {metric} after a positive number of {x}, so there is "
            "nothing to draw on logarithmic axes."
        )
    axes = axes_or_new(ax)
    style_axes(axes, COSTS[x], METRICS.get(metric, metric))
    axes.set(xscale="log", yscale="log")
    # Keep the notes of earlier calls on these axes.
    legend = axes.get_legend()
    notes = [legend.get_title().get_text()] if legend else []
    full_names = normalize_kwargs(line_options, Line2D)  # without short names, such as lw
    for (label, trace), cost, summary in zip(runs, costs, summaries, strict=True):
        options = _default_options(axes, trace, label) | full_names
        median, lower, upper, confidence = summary
        (line,) = axes.plot(cost, visible(median), **options)
        if confidence > 0:
            draw_band(axes, cost, lower, upper, color=line.get_color(), alpha=0.18)
            interval = f"{100 * confidence:.0f} % confidence interval"
            notes.append(f"median of {trace.replicates} replicates,\nband: its {interval}")
        else:
            notes.append("one replicate, no band")
    title = "\n".join(dict.fromkeys(notes))
    axes.legend(title=title, frameon=False, title_fontsize="small", alignment="left")
    return axes


def _labelled_runs(traces: Any) -> list[tuple[str, Trace]]:
    """Return the runs, each with its name in the legend."""
    if isinstance(traces, Mapping):
        runs = [(str(name), trace) for name, trace in traces.items()]
    else:
        all_traces = traces if isinstance(traces, Iterable) else [traces]
        runs = [(getattr(trace, "label", ""), trace) for trace in all_traces]
    if not runs:
        raise ValueError("there is no trace to draw. Pass at least one.")
    for _, trace in runs:
        if not hasattr(trace, "summary"):
            raise TypeError(
                f"traces must be runs such as simulate returns, got {format_value(trace)}."
            )
    return runs


def _summary(trace: Trace, metric: str) -> Summary:
    summary = trace.summary(metric)
    if np.isnan(summary[0]).all():
        message = f"the median {metric} of {trace.label} is NaN at every record."
        if "distance" in metric:
            gap = metric.replace("distance", "gap")
            message += f" If w* is not unique there is no distance. Use metric={gap!r}."
        raise ValueError(message)
    return summary


def _default_options(axes: Axes, trace: Trace, label: str) -> dict[str, Any]:
    line_count = len(
        axes.get_lines()
    )  # so that a second call on the same axes takes the next colour
    return {
        "color": colour(line_count),
        "linestyle": dash(line_count),
        "linewidth": 1.8,
        "marker": "o" if len(trace.updates) == 1 else None,  # a single record makes no line
        "label": label if trace.complete else f"{label} (interrupted)",
    }
