"""Pictures of blocks of figures, drawn by matplotlib.

They have the numbers, labels, colours and dashes of the page, from the same description
(`walklearn.studies.report.figures`), for the first value of each control.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from walklearn.files.atomic_write import atomic_write
from walklearn.plots.axes import COLOURS, colour, dash, draw_band, plain_ticks, style_axes, visible
from walklearn.studies.report.figures import Block, Figure
from walklearn.studies.report.verdict_table import SYMBOLS
from walklearn.wording import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure as Canvas

MANY_LINES = 5  # beyond, their bands are fainter


@dataclass(frozen=True)
class Picture:
    """Blocks whose panels fill a grid row by row; panel: width and height of one, in inches."""

    blocks: Sequence[Block]
    columns: int = 1
    panel: tuple[float, float] = (3.6, 2.7)


def draw(picture: Picture) -> Canvas:
    """Draw the picture, with one legend above it and its captions below."""
    from matplotlib.figure import Figure as Canvas

    panels = [(block, figure) for block in picture.blocks for figure in block.figures]
    rows = -(-len(panels) // picture.columns)
    width, height = picture.panel[0] * picture.columns + 0.4, picture.panel[1] * rows + 0.9
    canvas = Canvas(figsize=(width, height), layout="constrained")
    grid = canvas.subplots(rows, picture.columns, squeeze=False)
    coloured = None
    for axes, (block, figure) in zip(grid.flat, panels, strict=False):
        coloured = _DRAW[block.kind](axes, block, figure) or coloured
        title = textwrap.fill(figure.title, int(16 * picture.panel[0]))
        axes.set_title(title, fontsize="small")
    for axes in grid.flat[len(panels) :]:
        axes.remove()
    _share_labels(grid)
    _explain(canvas, picture.blocks, width)
    if coloured is not None:
        scale = picture.blocks[0].options["scale"]
        bar = canvas.colorbar(coloured, ax=grid.ravel().tolist(), shrink=0.8, label=scale["title"])
        bar.set_ticks(list(scale["marks"].values()), labels=list(scale["marks"]))
    return canvas


def save(canvas: Canvas, directory: Path, name: str) -> list[Path]:
    """Write the picture as PNG and as SVG, each atomically."""
    # Panels are laid out once, which takes longer than drawing them.
    canvas.draw_without_rendering()
    canvas.set_layout_engine("none")
    paths = []
    for suffix in (".png", ".svg"):
        content = io.BytesIO()
        # Without a date the same results give the same file.
        metadata = {"Date": None} if suffix == ".svg" else {}
        canvas.savefig(content, format=suffix[1:], dpi=110, metadata=metadata)
        paths.append(directory / f"{name}{suffix}")
        atomic_write(paths[-1], content.getvalue())
    return paths


def _draw_lines(axes: Axes, block: Block, figure: Figure) -> None:
    x_name, y_name = block.axes
    shown, options, mode = block.visible(figure), block.options, block.options.get("mode", "lines")
    log = {axis: options.get(f"{axis}_log", True) for axis in "xy"}
    bands = sum(f"{y_name} lower" in one.columns for one in figure.series)
    strength = 0.08 if bands > MANY_LINES else 0.16
    for axis, is_log in log.items():
        if is_log:
            axes.set(**{f"{axis}scale": "log"})
    for series in shown:
        place = block.style(series.name)
        names = (x_name, y_name, f"{y_name} lower", f"{y_name} upper")
        x, y, lower, upper = map(series.numbers, names)
        style: dict[str, Any] = {"color": colour(place), "label": series.name}
        if np.isnan(x).all():  # no value on this axis: a level
            axes.axhline(y[0], linestyle=dash(max(place, len(COLOURS))), **style)
            if np.isfinite([lower[0], upper[0]]).all():
                axes.axhspan(lower[0], upper[0], color=colour(place), alpha=0.08, linewidth=0)
            continue
        if options.get("band"):
            draw_band(axes, visible(x), lower, upper, color=colour(place), alpha=strength)
        elif np.isfinite(lower).any():
            style["yerr"] = np.nan_to_num([y - lower, upper - y])
        axes.errorbar(
            visible(x) if log["x"] else x, visible(y) if log["y"] else y,
            linestyle=dash(place) if "lines" in mode else "none", linewidth=1.6, elinewidth=1.2,
            marker=_marker(place, mode), markersize=5, capsize=2, **style,
        )  # fmt: skip
        if "text" in mode:
            for at, label in zip(zip(x, y, strict=True), series.columns["label"], strict=True):
                axes.annotate(label, at, (3, 3), textcoords="offset points", fontsize="x-small")
    marks = np.unique(np.concatenate([series.numbers(x_name) for series in shown]))
    marks = marks[np.isfinite(marks)]
    if options.get("ticks"):
        axes.set_xticks(marks, [f"{mark:g}" for mark in marks])
        axes.set_xticks([], minor=True)
    if "lines" not in mode:
        axes.margins(0.1)
        low, high = marks[0], marks[-1]
        if log["x"] and high < 5.0 * low:  # close to each other or equal: room, and few ticks
            axes.set_xlim(0.5 * low, 2.0 * high)
            plain_ticks(axes.xaxis)
    style_axes(axes, block.label("x"), block.label("y"))


def _marker(number: int, mode: str) -> str | None:
    """The marker of the n-th series; without lines, another one where colours repeat."""
    if "markers" not in mode:
        return None
    return "o" if "lines" in mode else "os^D"[number // len(COLOURS) % 4]


def _draw_bars(axes: Axes, block: Block, figure: Figure) -> None:
    x_name, y_name = block.axes
    shown = block.visible(figure)
    axes.set_yscale("log")
    for place, series in enumerate(shown):
        y, lower, upper = map(series.numbers, (y_name, f"{y_name} lower", f"{y_name} upper"))
        at = np.arange(len(y)) + (place + 0.5) / len(shown) * 0.8 - 0.4
        axes.bar(at, y, 0.8 / len(shown), color=colour(block.style(series.name)), label=series.name,
                 yerr=np.nan_to_num([y - lower, upper - y]), capsize=3)  # fmt: skip
        for x, height, share in zip(at, y, series.numbers("reached"), strict=True):
            if np.isnan(height):
                axes.annotate(f"{series.name}: {share:.0%} reached it", (x, 0.02), rotation=90,
                              xycoords=("data", "axes fraction"), fontsize="x-small")  # fmt: skip
    names = list(shown[0].columns[x_name])
    axes.set_xticks(range(len(names)), names)
    axes.set_xlim(-0.5, len(names) - 0.5)
    style_axes(axes, "", block.label("y"))


def _draw_map(axes: Axes, block: Block, figure: Figure) -> ScalarMappable:
    (series,) = block.visible(figure)
    columns = {name: list(values) for name, values in series.columns.items()}
    xs, ys = sorted(set(columns["x"])), sorted(set(columns["y"]))
    reach = block.options["scale"]["reach"]
    strengths = np.full((len(ys), len(xs)), np.nan)
    for values in zip(*columns.values(), strict=True):
        cell = dict(zip(columns, values, strict=True))
        row, column = ys.index(cell["y"]), xs.index(cell["x"])
        with np.errstate(divide="ignore"):
            strengths[row, column] = np.clip(np.log2(cell["ratio"]), -reach, reach)
        ink = "white" if abs(strengths[row, column]) > 0.6 * reach else "black"
        style: dict[str, Any] = {"ha": "center", "va": "center", "color": ink}
        estimate, low, high = (
            number(cell[name], digits=2).replace("e+", "e") for name in ("ratio", "lower", "upper")
        )
        axes.text(column, row, f"{estimate} {SYMBOLS[cell['verdict']]}", **style)
        axes.text(column, row - 0.25, f"{low} to {high}", fontsize="x-small", **style)
    axes.set_xticks(range(len(xs)), [f"{x:g}" for x in xs])
    axes.set_yticks(range(len(ys)), [f"{y:g}" for y in ys])
    axes.set(xlabel=block.label("x"), ylabel=block.label("y"))
    return axes.imshow(
        strengths, cmap="RdBu_r", vmin=-reach, vmax=reach, origin="lower", aspect="auto"
    )


_DRAW: dict[str, Callable[[Axes, Block, Figure], ScalarMappable | None]] = {
    "lines": _draw_lines,
    "bars": _draw_bars,
    "map": _draw_map,
}


def _share_labels(grid: Any) -> None:
    """Remove labels that the panel below or to the left has, too."""
    for above, below in zip(grid[:-1].flat, grid[1:].flat, strict=True):
        if below.get_figure() and above.get_xlabel() == below.get_xlabel():
            above.set_xlabel("")
    for row in grid:
        for axes in row[:0:-1]:
            if axes.get_ylabel() == row[0].get_ylabel():
                axes.set_ylabel("")


def _explain(canvas: Canvas, blocks: Sequence[Block], width: float) -> None:
    """Draw one legend for all panels, and below them the captions."""
    lines: dict[str, Any] = {}
    for axes in canvas.axes:
        for line, label in zip(*axes.get_legend_handles_labels(), strict=True):
            lines.setdefault(label, line)
    if lines:
        across = max(1, int(width / (0.085 * max(map(len, lines)) + 0.55)))
        canvas.legend(lines.values(), lines.keys(), loc="outside upper center",
                      ncols=-(-len(lines) // -(-len(lines) // across)), frameon=False)  # fmt: skip
    centres = dict.fromkeys(block.start["centre"] for block in blocks if "centre" in block.start)
    captions = dict.fromkeys(block.caption for block in blocks)
    text = " ".join([*(f"Shown is the {centre}." for centre in centres), *captions])
    canvas.supxlabel(textwrap.fill(text, int(14 * width)), fontsize="small", color="#555555")
