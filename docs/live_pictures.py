"""Takes the pictures of a network at work: `python docs/live_pictures.py [directory]`.

Twelve real nodes learn on this machine while a headless Chromium looks at their page. It needs the
extras `node` and `test` and the system packages chromium and chromium-driver, and half a minute.
"""

from __future__ import annotations

import contextlib
import io
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from selenium import webdriver

import walklearn as wl
from walklearn.cli.walk_panel import panel
from walklearn.node.trial.local_network import LocalNetwork
from walklearn.node.trial.two_gaussians import Glimpse, Trial, watch
from walklearn.node.trial.view import NetworkView

HERE = Path(__file__).parent / "pictures"
NODES, UPDATES, KILLED = 12, 20_000, 3
SHOWN_AT = 4_000  # updates


def main(folder: Path) -> None:
    """A network, its panel as `up` draws it in 80 columns, and its page with a node killed."""
    graph = wl.graphs.as_graph("erdos-renyi", nodes=NODES, seed=1)
    trial = Trial.draw(graph, "uniform", UPDATES, None, 1)
    with (
        tempfile.TemporaryDirectory() as place,
        LocalNetwork.create(Path(place), trial.plan, graph, trial.rows()) as network,
        chromium() as browser,
        contextlib.ExitStack() as stack,
    ):
        view = NetworkView(network, trial, "erdos-renyi, uniform walk")
        stack.enter_context(view.page)
        network.start()
        browser.get(view.page.address)
        view.begin()
        network.start_walk()
        begin, curve = time.monotonic(), list[tuple[int, float]]()
        for glimpse in watch(network, trial):
            view.show(glimpse)
            if glimpse.error is not None:
                curve.append((glimpse.updates, glimpse.error))
            if glimpse.updates > SHOWN_AT and glimpse.nodes[KILLED].is_up:
                draw_panel(glimpse, time.monotonic() - begin, curve, folder / "panel.svg")
                browser.find_element("id", f"button-{KILLED}").click()
            if glimpse.updates > SHOWN_AT + 2_000:
                break
            time.sleep(0.25)
        time.sleep(1.0)
        browser.save_screenshot(str(folder / "network_page.png"))


def draw_panel(
    glimpse: Glimpse, seconds: float, curve: list[tuple[int, float]], path: Path
) -> None:
    """What a terminal of 80 columns shows, as a picture that fetches no font."""
    console = Console(record=True, width=80, file=io.StringIO(), force_terminal=True)
    console.print(panel(glimpse, seconds, curve, 80))
    text = console.export_svg(title="walklearn up", unique_id="panel")
    path.write_text(re.sub(r"@font-face \{.*?\}\n?", "", text, flags=re.S), encoding="utf-8")


def chromium() -> webdriver.Chrome:
    """A browser without a window, as wide as a desk has it."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for argument in ("--headless=new", "--no-sandbox", "--window-size=1200,1600", "--no-first-run"):
        options.add_argument(argument)
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    return webdriver.Chrome(options=options, service=service)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
