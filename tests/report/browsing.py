"""Looking at a page in a browser."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

WAIT_SECONDS = 60


def until(condition: Callable[[], Any], what: str) -> Any:
    """Wait for a condition; the limit only ends a test that would fail anyway."""
    limit = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < limit:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError(f"never happened: {what}")


def unfolded(chrome: Chrome, page: Path) -> Chrome:
    """The page opened, every fold unfolded, every figure drawn."""
    chrome.get(page.as_uri())
    until(lambda: chrome.execute_script("return window.Plotly"), "the library of the figures")
    chrome.execute_script(
        "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
    )
    for plot in chrome.find_elements("css selector", ".plot"):
        chrome.execute_script("arguments[0].scrollIntoView({ behavior: 'instant' })", plot)
        until(lambda plot=plot: plot.find_elements("css selector", "svg.main-svg"), "a figure")
    return chrome
