"""One small study with everything a page can show, really run, and a browser to look at it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from walklearn.report import write_report
from walklearn.studies import Results, Study, run_study
from walklearn.studies.verdicts import verdicts

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

HOSTILE = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"

STUDY = f"""
name = "everything"
question = "Is this safe? {HOSTILE}"
seed = 1
instances = 12
updates = 200
records = 12
metric = "average_gap"
facts = true

[graphs]
er = {{ family = "erdos_renyi", nodes = 12, probability = 0.5 }}
ring = {{ family = "ring", nodes = 11 }}

[problems]   # a full grid over two numbers: a map
a = {{ data = "two_gaussians", dimension = 2, variance = 1.0, penalty = 0.5 }}
b = {{ data = "two_gaussians", dimension = 2, variance = 1.0, penalty = 1.0 }}
c = {{ data = "two_gaussians", dimension = 2, variance = 4.0, penalty = 0.5 }}
d = {{ data = "two_gaussians", dimension = 2, variance = 4.0, penalty = 1.0 }}

[methods]
uniform = {{ walk = "uniform" }}
weighted = {{ walk = "weighted" }}
gossip = {{ gossip = "asynchronous" }}
"<img src=x onerror='window.hacked = 1'>" = {{ walk = "simple", graphs = ["er"], problems = ["a"] }}

[methods.laplace-1]   # three that differ in epsilon alone: a price
walk = "weighted"
mechanism = "laplace"
epsilon = 1.0
delta = 0.0
bounds = [0.5, 100.0]
graphs = ["er"]
problems = ["a"]
[methods.laplace-3]
walk = "weighted"
mechanism = "laplace"
epsilon = 3.0
delta = 0.0
bounds = [0.5, 100.0]
graphs = ["er"]
problems = ["a"]
[methods.laplace-9]
walk = "weighted"
mechanism = "laplace"
epsilon = 9.0
delta = 0.0
bounds = [0.5, 100.0]
graphs = ["er"]
problems = ["a"]

[step_sizes.printed]
constant = 0.02
exponent = 0.75

[[claims]]
kind = "beats"
text = "The weighted walk beats the uniform one {HOSTILE}"
source = "{HOSTILE}"
better = "weighted"
worse = "uniform"
metrics = ["average_gap", "distance"]
at = [50, 200]

[[claims]]
kind = "rank"
text = "The mixing time ranks graphs"
methods = ["uniform"]
by = "mixing_time"

[[claims]]
kind = "cost-to-target"
text = "The uniform walk gets there before gossip"
better = "uniform"
worse = "gossip"
metrics = ["distance"]
target = 0.8
relative = true
cost = ["updates", "messages"]
"""


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    out = tmp_path_factory.mktemp("results")
    found = run_study(Study.from_text(STUDY), out, cores=1)
    found.write_verdicts(verdicts(found.study, found))
    return found


@pytest.fixture(scope="session")
def page(results: Results) -> Path:
    return write_report(results.directory, results.directory.parent / "report.html")


@pytest.fixture(scope="session")
def chrome() -> Iterator[Chrome]:
    """A headless Chromium that can reach no network and keeps what its console says."""
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            message = f"needs the system packages chromium and chromium-driver: no {program}"
            pytest.fail(message) if os.environ.get("WALKLEARN_NO_SKIPS") else pytest.skip(message)
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
