"""Curves that were computed and not simulated, as those of Figure 1: lines through stored points.

A directory that holds ``curves.parquet`` in place of cells has a row per point: panel, series, x,
y, x_label, y_label and y_log, whether the vertical axis is logarithmic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from walklearn.report.figures import Block, Figure, Series

if TYPE_CHECKING:
    import pandas


def curves(table: pandas.DataFrame, file: str, note: str) -> list[Block]:
    """A block of panels for each pair of axes; the note says what was chosen."""
    blocks = []
    axes = ["x_label", "y_label", "y_log"]
    for (x_label, y_label, y_log), rows in table.groupby(axes, sort=False):
        figures = []
        for panel, lines in rows.groupby("panel", sort=False):
            series = [
                Series(str(name), {"x": line["x"].tolist(), "y": line["y"].tolist()}, file)
                for name, line in lines.groupby("series", sort=False)
            ]
            recompute = (
                "import pandas\n"
                f"rows = pandas.read_parquet({file!r})\n"
                f"print(rows[(rows.panel == {panel!r}) & (rows.series == {series[0].name!r})])"
            )
            figures.append(Figure(str(panel), series, recompute))
        blocks.append(
            Block(
                kind="lines",
                heading=f"{y_label} against {x_label}",
                caption=f"Computed, not simulated: no interval. {note}",
                controls=[],
                figures=figures,
                options={
                    "x": "x", "y": "y", "x_label": x_label, "y_label": y_label, "x_log": False,
                    "y_log": bool(y_log),
                },
            )
        )  # fmt: skip
    return blocks
