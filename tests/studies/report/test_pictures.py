"""Pictures of matplotlib show the numbers of the page, with captions."""

from __future__ import annotations

import math
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.studies.report.browsing import unfolded
from walklearn.plots.axes import COLOURS
from walklearn.studies.report.figures import Block, Figure, Series
from walklearn.studies.report.page import render
from walklearn.studies.report.pictures import Picture, draw
from walklearn.studies.report.sections import Section

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from selenium.webdriver import Chrome

#: What Plotly was given, plain: null where there is no number.
SHOWN = """
return [...arguments[0].querySelectorAll(".plot")].map((plot) => plot.data.map((one) => ({
  type: one.type, name: one.name, x: one.x, y: one.y, z: one.z, fill: one.fill,
  above: one.error_y?.array, below: one.error_y?.arrayminus, excess: one.marker?.color,
})))
"""


@pytest.fixture(scope="module")
def browser(chrome: Chrome, drawn: Section, tmp_path_factory: pytest.TempPathFactory) -> Chrome:
    file = tmp_path_factory.mktemp("pages") / "both.html"
    file.write_text(render([drawn], "walklearn report"), encoding="utf-8")
    return unfolded(chrome, file)


def test_the_page_and_the_picture_show_the_same_numbers(browser: Chrome, drawn: Section) -> None:
    elements = browser.find_elements("css selector", ".block")
    compared = 0
    for element, block in zip(elements, drawn.blocks, strict=True):
        canvas = draw(Picture([block]))
        plots = browser.execute_script(SHOWN, element)
        assert len(plots) == len(block.figures)
        for axes, traces in zip(canvas.axes, plots, strict=False):  # and a scale of colours
            compared += COMPARE[block.kind](axes, traces)
    assert compared > 100
    assert browser.get_log("browser") == []  # type: ignore[no-untyped-call]


def numbers(values: Any) -> np.ndarray:
    return np.array(values, dtype=float)


def same(one: Any, other: Any) -> None:
    """Up to the four digits that a page carries."""
    np.testing.assert_allclose(numbers(one), numbers(other), rtol=1e-3)


def compare_lines(axes: Axes, traces: list[dict[str, Any]]) -> int:
    lines = {line.get_label(): line for line in axes.get_lines()}
    bars = {each.get_label(): each for each in axes.containers}
    for trace in (one for one in traces if one["name"]):
        line = bars[trace["name"]][0] if trace["name"] in bars else lines[trace["name"]]
        same(line.get_ydata(), trace["y"])
        if trace["name"] not in bars:  # a level: from one side to the other
            continue
        same(line.get_xdata(), trace["x"])
        if trace["above"]:
            ends = numbers(bars[trace["name"]][2][0].get_segments())[:, :, 1]
            y = numbers(trace["y"])
            same(ends[:, 0], y - numbers(trace["below"]))
            same(ends[:, 1], y + numbers(trace["above"]))
    levels = sum(trace["name"] not in bars for trace in traces if trace["name"])
    bands = [trace for trace in traces if trace["fill"] and trace["y"]]
    shown = [numbers(path.vertices)[:, 1] for each in axes.collections[: len(bands)]
             for path in each.get_paths()] if not levels else []  # fmt: skip
    for heights, trace in zip(shown, bands, strict=bool(shown)):
        drawn = numbers(trace["y"])
        drawn = drawn[np.isfinite(drawn)]
        for one, other in ((heights, drawn), (drawn, heights)):
            assert (np.abs(one[:, None] / other - 1).min(axis=1) < 1e-3).all()
    return len(traces)


def compare_bars(axes: Axes, traces: list[dict[str, Any]]) -> int:
    from matplotlib.container import BarContainer

    bars = {each.get_label(): each for each in axes.containers if isinstance(each, BarContainer)}
    assert [label.get_text() for label in axes.get_xticklabels()] == traces[0]["x"]
    for trace in traces:
        same([bar.get_height() for bar in bars[trace["name"]]], trace["y"])
    return len(traces)


def compare_maps(axes: Axes, traces: list[dict[str, Any]]) -> int:
    ((image,), (trace,)) = axes.get_images(), traces
    same(2.0 ** np.ma.filled(image.get_array(), np.nan), 2.0 ** numbers(trace["z"]))  # of ratios
    assert [label.get_text() for label in axes.get_xticklabels()] == trace["x"]
    assert [label.get_text() for label in axes.get_yticklabels()] == trace["y"]
    return 1


COMPARE = {
    "lines": compare_lines,
    "bars": compare_bars,
    "map": compare_maps,
}


def test_every_block_has_a_picture_with_its_captions(drawn: Section) -> None:
    for block in drawn.blocks:
        canvas = draw(Picture([block], columns=2))
        canvas.savefig(BytesIO(), format="png", dpi=40)  # many warnings come only now
        titles = [axes.get_title() for axes in canvas.axes[: len(block.figures)]]
        assert [title.split() for title in titles] == [one.title.split() for one in block.figures]
        assert block.caption.split()[0] in canvas.get_supxlabel()
        labels = [text.get_text() for legend in canvas.legends for text in legend.get_texts()]
        assert set(labels) == (set(block.names) if block.legend else set())


def line(name: str = "one", **columns: list[float]) -> Series:
    return Series(name, columns or {"x": [1.0, 10.0], "y": [1.0, 0.1]}, "")


def lines_of(*series: Series, **options: Any) -> Block:
    return Block("lines", "", "Why.", [], [Figure("", series)],
                 options={"x": "x", "y": "y", **options})  # fmt: skip


def test_a_number_of_a_series_gives_it_its_colour_and_dash() -> None:
    block = lines_of(line("first"), line("other"))
    block = Block(**{**block.__dict__, "styles": {"other": len(COLOURS) + 2}})
    first, other = (each[0] for each in draw(Picture([block])).axes[0].containers)
    assert (first.get_color(), first.get_linestyle()) == (COLOURS[0], "-")
    assert (other.get_color(), other.get_linestyle()) == (COLOURS[2], "--")


def test_numbers_below_zero_leave_gaps_on_a_logarithmic_axis() -> None:
    series = line(x=[1.0, 2.0, 3.0], y=[1.0, 0.0, math.inf])
    (drawn,) = draw(Picture([lines_of(series)])).axes[0].containers
    np.testing.assert_array_equal(drawn[0].get_ydata(), [1.0, np.nan, np.nan])
    (linear,) = draw(Picture([lines_of(series, y_log=False)])).axes[0].containers
    np.testing.assert_array_equal(linear[0].get_ydata(), [1.0, 0.0, np.nan])


def test_panels_fill_a_grid_and_do_not_repeat_their_labels() -> None:
    block = lines_of(line(), x_label="cost", y_label="error")
    canvas = draw(Picture([block] * 3, columns=2))
    assert [axes.get_ylabel() for axes in canvas.axes] == ["error", "", "error"]
    assert [axes.get_xlabel() for axes in canvas.axes] == ["", "cost", "cost"]
