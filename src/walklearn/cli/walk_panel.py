"""Display of the walk in `walklearn up`: a panel in a terminal, otherwise a line every 2 s."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType

    from walklearn.cli.console import Console
    from walklearn.node.trial.two_gaussians import Glimpse

Curve = list[tuple[int, float]]
Show = Callable[["Glimpse", float, Curve], None]

_LINE_SECONDS = 2.0  # between two lines, where there is no terminal
_WIDEST = 100
_DOTS = {"down": "○", "starting": "◌", "frozen": "◌"}


@contextmanager
def walk_panel(console: Console) -> Iterator[Show]:
    """Yield a function that displays a snapshot of the network."""
    if console.quiet or console.as_json or not sys.stdout.isatty():
        due = 0.0

        def line(glimpse: Glimpse, seconds: float, curve: Curve) -> None:
            nonlocal due
            if seconds >= due:
                due = seconds + _LINE_SECONDS
                console.print(
                    f"{seconds:5.1f} s  {glimpse.updates:>6,} of {glimpse.of:,} updates  "
                    f"‖w − w*‖ = {_error(glimpse):<8}  {_where(glimpse)}"
                )

        yield line
        return
    from rich.live import Live

    with Live(refresh_per_second=8, transient=True) as live:

        def draw(glimpse: Glimpse, seconds: float, curve: Curve) -> None:
            live.update(panel(glimpse, seconds, curve, min(_WIDEST, live.console.width)))

        yield draw


def panel(glimpse: Glimpse, seconds: float, curve: Curve, width: int) -> RenderableType:
    """Return the walk as a box `width` columns wide; no line is longer."""
    from rich.panel import Panel
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    inside = width - 4
    # A bar outside a grid does not end its line, and the next row would be cropped.
    rows = Table.grid(expand=True)
    rows.add_column(overflow="fold")  # there may be more nodes than columns
    rows.add_row(ProgressBar(total=glimpse.of, completed=glimpse.updates))
    rows.add_row(f"{glimpse.updates:,} of {glimpse.of:,} updates in {seconds:.1f} s")
    rows.add_row(f"distance to the optimum {_error(glimpse)}, {_where(glimpse)}")
    rows.add_row(Text(sparkline(curve, inside), style="cyan"))
    dots = [_dot(number, glimpse) for number in range(len(glimpse.nodes))]
    rows.add_row(Text("".join(dots), style="green"))
    return Panel(rows, title="the walk", width=width)


def _dot(number: int, glimpse: Glimpse) -> str:
    if number == glimpse.holder and not glimpse.finished:
        return "◆"
    return _DOTS.get(glimpse.nodes[number].phase, "●")


def _error(glimpse: Glimpse) -> str:
    return "?" if glimpse.error is None else f"{glimpse.error:.4g}"


def _where(glimpse: Glimpse) -> str:
    if glimpse.finished:
        return f"final model on {glimpse.finished} of {len(glimpse.nodes)} nodes"
    if glimpse.holder is None:
        return "no token yet"
    return f"token at {glimpse.nodes[glimpse.holder].name}"


def sparkline(curve: Curve, width: int = 72) -> str:
    """Return the error so far, on a logarithmic scale, as blocks of eight heights.

    >>> sparkline([(1, 1.0), (2, 0.2), (3, 0.01)])
    '█▆▁'
    """
    import numpy as np

    if not curve:
        return ""
    errors = np.log(np.maximum([error for _, error in curve], 1e-300))
    if len(errors) > width:
        errors = errors[np.linspace(0, len(errors) - 1, width).astype(int)]
    span = float(errors.max() - errors.min()) or 1.0
    heights = np.round((errors - errors.min()) / span * 7).astype(int)
    return "".join("▁▂▃▄▅▆▇█"[height] for height in heights)
