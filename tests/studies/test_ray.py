"""A real Ray cluster gives the same bits as this process, also when a worker is killed."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.running import run, started, wait_until
from tests.studies.examples import PRIVATE, SMALL, TUNED
from tests.studies.test_scheduler import LONG, PIPES, cells_in, command, equal, wait_for_cells
from tests.studies.test_workers import processes
from walklearn.studies import Results, Study, run_study

# A cluster of two workers that lives until its standard input is closed.
CLUSTER = """
import ray, sys
context = ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
print(context.address_info["gcs_address"], flush=True)
sys.stdin.read()
"""


pytestmark = pytest.mark.slow


def test_a_cluster_of_this_machine(tmp_path: Path) -> None:
    text = SMALL + PRIVATE + TUNED
    (tmp_path / "study.toml").write_text(text)
    result = run(*command("--engine", "ray", "--cores", "2"), cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    alone = run_study(Study.from_text(text), tmp_path / "alone", cores=1)
    assert equal(Results.open(tmp_path / "results" / "small"), alone)


def test_a_running_cluster_that_loses_a_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "study.toml").write_text(LONG)
    monkeypatch.setenv("RAY_AUTH_MODE", "token")  # nobody else can connect
    monkeypatch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
    with started(sys.executable, "-c", CLUSTER, stdin=subprocess.PIPE, **PIPES) as cluster:
        address = cluster.stdout.readline().strip()
        options = command("--engine", "ray", "--address", address)
        with started(*options, cwd=tmp_path, **PIPES) as running:
            wait_for_cells(tmp_path, running)
            before = cells_in(tmp_path)
            # A worker between two tasks is called idle, so none may be busy at first.
            busy = wait_until(lambda: busy_workers(cluster.pid), "a worker at its task")
            os.kill(busy[0], signal.SIGKILL)
            _, errors = running.communicate(timeout=200)
        assert running.returncode == 0, errors
        assert cluster.poll() is None  # the study does not end a cluster that it did not start
        cluster.communicate(timeout=60)
    assert len(cells_in(tmp_path)) == 18
    assert before.items() <= cells_in(tmp_path).items()
    alone = run_study(Study.from_text(LONG), tmp_path / "alone", cores=1)
    assert equal(Results.open(tmp_path / "results" / "small"), alone)


def busy_workers(ancestor: int) -> list[int]:
    """The cluster's processes that perform a task: "ray::perform"."""
    known = processes()

    def descends(process: int) -> bool:
        return process == ancestor or (process in known and descends(known[process][0]))

    return [
        process
        for process, (_, program) in known.items()
        if program.startswith("ray::perform") and descends(process)
    ]
