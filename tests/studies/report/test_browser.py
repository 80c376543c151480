"""The page in a real browser: it draws figures, its controls work, and the console stays empty."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.running import wait_until
from tests.studies.report.browsing import unfolded
from tests.studies.report.everything import HOSTILE

if TYPE_CHECKING:
    from selenium.webdriver import Chrome


@pytest.fixture(scope="module")
def drawn(chrome: Chrome, page: Path) -> Chrome:
    return unfolded(chrome, page)


def console(chrome: Chrome) -> list[Any]:
    """Messages on the console since the last call."""
    return list(chrome.get_log("browser"))  # type: ignore[no-untyped-call]


def lines(chrome: Chrome, block: int = 0) -> dict[str, list[float]]:
    """The lines of the first panel of a block, as Plotly has them."""
    return dict(
        chrome.execute_script(
            "const plot = document.querySelectorAll('.block')[arguments[0]].querySelector('.plot');"
            "const named = plot.data.filter((one) => one.name);"
            "return Object.fromEntries(named.map((one) => [one.name, [...one.y]]))",
            block,
        )
    )


def block_named(chrome: Chrome, heading: str) -> int:
    heads = [one.text for one in chrome.find_elements("css selector", ".block h3")]
    return heads.index(heading)


def test_everything_is_drawn_and_the_console_stays_silent(drawn: Chrome) -> None:
    plots = drawn.find_elements("css selector", ".plot")
    kinds = {block["kind"] for block in data(drawn).values()}
    assert kinds == {"lines", "map", "bars"}
    assert len(plots) == len(drawn.find_elements("css selector", ".plot svg.main-svg:first-child"))
    assert console(drawn) == []


def data(chrome: Chrome) -> dict[str, Any]:
    text = chrome.execute_script("return document.getElementById('data').textContent")
    return dict(json.loads(text))


def test_texts_of_a_study_stay_texts(drawn: Chrome) -> None:
    assert HOSTILE in drawn.find_element("css selector", ".question").text
    assert drawn.execute_script("return window.hacked") is None
    assert drawn.find_elements("css selector", "img[src=x]") == []


def test_verdicts_are_there_and_can_be_filtered(drawn: Chrome) -> None:
    rows = drawn.find_elements("css selector", "#verdict-table tr.row")
    assert not any(row.is_displayed() for row in rows)  # many: folded under their claims
    drawn.find_element("css selector", "#fold").click()
    assert all(row.is_displayed() for row in rows)
    counts: dict[str, int] = {}
    for row in rows:
        verdict = str(row.get_attribute("data-verdict"))
        counts[verdict] = counts.get(verdict, 0) + 1
        assert verdict in row.text
    for chip in drawn.find_elements("css selector", ".filters [data-verdict]"):
        verdict = str(chip.get_attribute("data-verdict"))
        assert f"{counts.get(verdict, 0)} {verdict}" in chip.text
    chips = drawn.find_elements("css selector", ".filters [data-verdict]")
    for chip in chips[1:]:
        chip.click()
    left = {row.get_attribute("data-verdict") for row in rows if row.is_displayed()}
    assert left <= {chips[0].get_attribute("data-verdict")}
    for chip in chips[1:]:
        chip.click()
    search = drawn.find_element("css selector", "#search")
    search.send_keys("no such reading")
    assert not any(row.is_displayed() for row in rows)
    assert drawn.find_element("css selector", "#none-left").is_displayed()
    search.clear()
    search.send_keys(" ")
    assert all(row.is_displayed() for row in rows)


def test_verdicts_sort_within_their_claim_and_name_their_rows(drawn: Chrome) -> None:
    button = drawn.find_element("css selector", "[data-sort=estimate]")
    group = "#verdict-table tbody:nth-of-type(1) tr.row"
    for direction in (1, -1):
        button.click()
        order = [
            direction * float(str(row.get_attribute("data-estimate")))
            for row in drawn.find_elements("css selector", group)
        ]
        assert order == sorted(order)
        assert len(order) > 1
    row = drawn.find_element("css selector", group)
    assert "verdicts.parquet, row" not in drawn.find_element("css selector", "#verdicts").text
    row.find_element("css selector", "button.from").click()
    assert "verdicts.parquet, row" in drawn.find_element("css selector", "#verdicts").text
    row.find_element("css selector", "button.from").click()


def test_the_legend_hides_and_shows_by_key_too(drawn: Chrome) -> None:
    block = block_named(drawn, "Convergence")
    before = lines(drawn, block)
    legend = drawn.find_elements("css selector", ".block")[block]
    button = legend.find_element("css selector", "[data-series=weighted]")
    assert "weighted" in before
    button.send_keys(" ")
    wait_until(lambda: "weighted" not in lines(drawn, block), "a line hides")
    assert button.get_attribute("aria-pressed") == "false"
    assert lines(drawn, block) == {k: v for k, v in before.items() if k != "weighted"}
    button.click()
    wait_until(lambda: lines(drawn, block) == before, "the line is back")


def test_controls_change_the_figure(drawn: Chrome) -> None:
    from selenium.webdriver.support.select import Select

    block = block_named(drawn, "Convergence")
    figure = data(drawn)[f"everything/{block}"]["figures"][0]
    columns = {series["name"]: series["columns"] for series in figure["series"]}
    element = drawn.find_elements("css selector", ".block")[block]
    for metric in ("distance", "average_gap"):
        Select(element.find_element("css selector", "[data-control=y]")).select_by_value(metric)
        wanted = {name: each[f"{metric} mean"] for name, each in columns.items()}
        wait_until(lambda wanted=wanted: lines(drawn, block) == wanted, f"{metric} is drawn")
    x = (
        "const block = document.querySelectorAll('.block')[arguments[0]];"
        "return block.querySelector('.plot').layout.xaxis.title.text"
    )
    Select(element.find_element("css selector", "[data-control=x]")).select_by_value("messages")
    wait_until(lambda: "messages" in drawn.execute_script(x, block), "messages are the axis")
    label = element.find_element("css selector", ".plot").get_attribute("aria-label")
    assert "uniform" in str(label)
    assert "f(w̄) − f*" in str(label)
    first = element.find_element("css selector", "figure")
    cells = first.find_elements("css selector", ".numbers table tbody tr")
    assert len(cells) == sum(len(each["updates"]) for each in columns.values())


def test_numbers_can_be_downloaded(drawn: Chrome, tmp_path: Path) -> None:
    drawn.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    drawn.execute_script("document.querySelector('.block .download').click()")
    file = wait_until(lambda: list(tmp_path.glob("*.csv")), "the download")[0]
    head, *rows = wait_until(lambda: file.read_text(encoding="utf-8"), "its content").splitlines()
    assert head.startswith("series,")
    assert head.endswith(",file")
    first = data(drawn)["everything/0"]["figures"][0]["series"]
    assert len(rows) == sum(len(series["columns"]["file"]) for series in first)


def test_dark_is_dark_in_figures_too(drawn: Chrome) -> None:
    toggle = drawn.find_element("css selector", "#theme")
    script = (
        "const block = document.querySelector('.plot');"
        "return [getComputedStyle(document.body).backgroundColor, block.layout.font.color]"
    )
    drawn.execute_script("document.querySelector('.plot').scrollIntoView()")
    colours = {}
    for _ in range(3):
        drawn.execute_script("arguments[0].click()", toggle)
        colours[toggle.text.split()[-1]] = drawn.execute_script(script)
    assert colours["Light"] == colours["Auto"]  # the browser prefers light
    assert luminance(colours["Dark"][0]) < 0.05 < 0.6 < luminance(colours["Light"][0])
    assert luminance(colours["Light"][1]) < 0.05 < 0.6 < luminance(colours["Dark"][1])


def luminance(colour: str) -> float:
    """The relative luminance of WCAG 2, between 0 and 1."""
    parts = [float(part) / 255 for part in colour.strip("rgba()").split(",")[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
              for part in parts]  # fmt: skip
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_system_may_prefer_dark(drawn: Chrome) -> None:
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    drawn.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    script = "return getComputedStyle(document.body).backgroundColor"
    wait_until(
        lambda: luminance(drawn.execute_script(script)) < 0.05, "the page follows the system"
    )
    drawn.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.mark.parametrize("width", [390, 768])
def test_nothing_sticks_out_on_a_small_screen(drawn: Chrome, width: int) -> None:
    size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
    drawn.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        wait_until(
            lambda: drawn.execute_script("return innerWidth") == width, "the screen is small"
        )
        # Only what is near the screen is drawn again. A browser may lay the page out anew after it
        # has told its width, and lines that then break move the figure away: so scroll each time.
        script = (
            "const root = document.documentElement, plot = document.querySelector('.plot');"
            "plot.scrollIntoView({ behavior: 'instant' });"
            "return root.scrollWidth <= root.clientWidth && plot.layout.width === plot.clientWidth"
        )
        wait_until(lambda: drawn.execute_script(script), "page and figure fit the screen")
    finally:
        drawn.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_every_control_has_a_name_and_text_stands_out(drawn: Chrome) -> None:
    nameless = drawn.execute_script(
        "return [...document.querySelectorAll('button, select, input, [role=region], [role=img]')]"
        ".filter((one) => !(one.ariaLabel || one.textContent.trim() || one.labels?.length"
        " || one.getAttribute('aria-labelledby'))).map((one) => one.outerHTML)"
    )
    assert nameless == []
    for theme in ("light", "dark"):
        drawn.execute_script("document.documentElement.dataset.theme = arguments[0]", theme)
        pairs = drawn.execute_script(
            "const texts = document.querySelectorAll('.chip, .muted, .question, a, td, summary');"
            "const ground = (one) => getComputedStyle(one).backgroundColor;"
            "return [...texts].map((one) => {"
            "  let behind = one;"
            "  while (/, 0\\)$/.test(ground(behind))) behind = behind.parentElement;"
            "  return [getComputedStyle(one).color, ground(behind)];"
            "})"
        )
        for ink, ground in {tuple(pair) for pair in pairs}:
            assert contrast(ink, ground) >= 4.5, (theme, ink, ground)
    drawn.execute_script("delete document.documentElement.dataset.theme")


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2; running text needs 4.5."""
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


def test_the_console_was_silent_to_the_end(drawn: Chrome) -> None:
    assert console(drawn) == []
