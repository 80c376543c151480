"""Looking at a page in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.running import wait_until

if TYPE_CHECKING:
    from selenium.webdriver import Chrome


def unfolded(chrome: Chrome, page: Path) -> Chrome:
    """The page opened, every fold unfolded, every figure drawn."""
    chrome.get(page.as_uri())
    wait_until(lambda: chrome.execute_script("return window.Plotly"), "the library of the figures")
    chrome.execute_script(
        "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
    )
    for plot in chrome.find_elements("css selector", ".plot"):
        chrome.execute_script("arguments[0].scrollIntoView({ behavior: 'instant' })", plot)
        wait_until(lambda plot=plot: plot.find_elements("css selector", "svg.main-svg"), "a figure")
    return chrome
