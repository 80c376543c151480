"""How the suite runs: a process for each core; and a browser to look at pages with."""

from __future__ import annotations

import faulthandler
import os
import secrets
import shutil
import signal
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import joblib
import pytest
from hypothesis import settings

from tests.running import missing
from walklearn.objectives.linear.losses import LOSSES
from walklearn.privacy import MECHANISMS
from walklearn.updates import UPDATES
from walklearn.walks import WALKS

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

SLOW_SECONDS = 1800  # the time limit of tests that are marked as slow
GRACE_SECONDS = 60  # after which a test that ignores its time limit ends the process
_stderr = pytest.StashKey[int]()  # a copy that pytest does not capture

# Every run tries the same examples, here as on a CI server; --hypothesis-profile=search looks for
# new ones.
settings.register_profile("same", derandomize=True)
settings.register_profile("search", derandomize=False, print_blob=True)
settings.load_profile("same")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One process a core, none for single files: they would start longer than they run.

    More than four would ask for more memory than a laptop has; `-n` on the command line prevails.
    """
    single_files = any(".py" in argument for argument in config.args)
    return 0 if single_files else min(4, joblib.cpu_count())


def pytest_configure(config: pytest.Config) -> None:
    """Every process keeps what Numba compiles for itself, and heeds a Ctrl-C.

    Numba's cache is not made for two that write at a time: both may give their code one name.
    What a script starts in the background inherits that SIGINT is ignored, and hands it on to
    the commands that tests start and interrupt.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.stash[_stderr] = os.dup(sys.__stderr__.fileno() if sys.__stderr__ else 2)
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker and "NUMBA_CACHE_DIR" not in os.environ:
        os.environ["NUMBA_CACHE_DIR"] = str(config.rootpath / ".pytest_cache" / "numba" / worker)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give slow tests a longer time limit."""
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW_SECONDS))


def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> None:
    """Dump the stacks of all threads and end the process if a test ignores its time limit.

    Compiled code does not react to the signal, and Hypothesis repeats a test that failed. Under
    pytest-xdist another process runs the remaining tests.
    """
    limit = settings.timeout + GRACE_SECONDS
    faulthandler.dump_traceback_later(limit, exit=True, file=item.config.stash[_stderr])


def pytest_timeout_cancel_timer(item: pytest.Item) -> None:
    """Cancel the end of the process."""
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="module")
def chrome(browser: Chrome) -> Iterator[Chrome]:
    """The browser for the tests of one file, which leave their page and what its console said.

    A live page that is left open asks for its events for ever, into the next file's console.
    """
    yield browser
    browser.get("about:blank")
    browser.get_log("browser")  # type: ignore[no-untyped-call]


@pytest.fixture(scope="session")
def browser() -> Iterator[Chrome]:
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


@pytest.fixture(scope="session", autouse=True)
def _session_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the runs of fixtures that several tests share out of the user's record, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test an owner's record of its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / secrets.token_hex(8)))


@pytest.fixture(scope="module", autouse=True)
def _registered_parts() -> Iterator[None]:
    """Forget the parts that the tests of a file register: a message may list all names."""
    with pytest.MonkeyPatch.context() as patch:
        for registry in (WALKS, UPDATES, LOSSES, MECHANISMS):
            for content in ("_entries", "_import_paths"):
                patch.setattr(registry, content, dict(getattr(registry, content)))
        yield
