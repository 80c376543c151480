"""One small study with everything a page can show, really run, and a browser to look at it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.report.everything import STUDY
from tests.running import missing
from walklearn.report import write_report
from walklearn.studies import Results, Study, run_study

if TYPE_CHECKING:
    from selenium.webdriver import Chrome


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    out = tmp_path_factory.mktemp("results")
    return run_study(Study.from_text(STUDY), out, cores=1)


@pytest.fixture(scope="session")
def page(results: Results) -> Path:
    return write_report(results.directory, results.directory.parent / "report.html")


@pytest.fixture(scope="session")
def chrome() -> Iterator[Chrome]:
    """A headless Chromium that can reach no network and keeps what its console says."""
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            missing(f"needs the system packages chromium and chromium-driver: no {program}")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for argument in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
        "--disable-dev-shm-usage", "--disable-background-networking",
        "--disable-component-update", "--force-prefers-reduced-motion", "--disable-sync",
        "--window-size=1280,1000",
        "--proxy-server=127.0.0.1:9",  # nothing listens there: a fetch would fail and be logged
    ):  # fmt: skip
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(
        options=options, service=webdriver.ChromeService(shutil.which("chromedriver"))
    )
    yield driver
    driver.quit()
