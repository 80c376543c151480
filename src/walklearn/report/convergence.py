"""Error against what was spent: a panel per graph, problem and step size, a line per method."""

from __future__ import annotations

from collections.abc import Sequence

from walklearn.report.bands import CENTRES, CONFIDENCE, FEWEST, RESAMPLES, CellBands, panels
from walklearn.report.figures import Block, Control, Figure, Series

FEW_PANELS, MANY_PANELS = 6, 12
MANY_LINES = 12

COST_LABELS = {
    "updates": "SGD updates",
    "messages": "messages sent (mean)",
    "bytes": "bytes sent (mean)",
}
METRIC_LABELS = {
    "distance": "‖w − w*‖, last iterate",
    "average_distance": "‖w̄ − w*‖, average",
    "gap": "f(w) − f*, last iterate",
    "average_gap": "f(w̄) − f*, average",
}
METRIC_SYMBOLS = {name: label.partition(",")[0] for name, label in METRIC_LABELS.items()}

INTERVAL = (
    f"{100 * CONFIDENCE:.0f} % interval, for the mean by bootstrap over instances "
    f"({RESAMPLES} resamples), for the median from order statistics"
)


def metric_control(first: str) -> Control:
    """The switch between errors."""
    return Control("y", "Error", METRIC_LABELS, first)


def centre_control(first: str = "mean") -> Control:
    """The switch between mean and median."""
    return Control("centre", "Centre", CENTRES, first)


def convergence(cells: Sequence[CellBands], metric: str, *, beside: bool = False) -> Block:
    """Every cell of a study, as convergence curves; ``beside`` figures that matter more."""
    figures = [
        Figure(
            title,
            [Series(cell.method, cell.columns, cell.file) for cell in members],
            members[0].recompute(metric),
        )
        for title, members in panels(cells)
    ]
    counts = sorted({cell.instances for cell in cells})
    return Block(
        kind="lines",
        heading="Convergence",
        caption=(
            f"{' to '.join(f'{count:,}' for count in (counts[0], counts[-1])[: len(counts)])} "
            f"instances. Band: {INTERVAL}; each record on its own. No band below {FEWEST} "
            "instances. An instance that diverged counts as infinite: the mean has a hole there."
        ),
        controls=[metric_control(metric), Control("x", "Against", COST_LABELS), centre_control()],
        figures=figures,
        shown=_shown(figures, beside),
        options={"band": True},
    )


def _shown(figures: Sequence[Figure], beside: bool) -> int | None:
    """How many panels are unfolded: all of a few, the first of many, none where others matter."""
    lines = {one.name for figure in figures for one in figure.series}
    if beside and (len(figures) > FEW_PANELS or len(lines) > MANY_LINES):
        return 0
    return FEW_PANELS if len(figures) > MANY_PANELS else None
