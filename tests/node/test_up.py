"""`walklearn up` for real: processes that learn, agree, and are gone afterwards."""

import json
import os
import signal
import subprocess

import numpy as np
import pytest

from tests.running import WALKLEARN, run, started, wait_until
from walklearn.models import Model

COMMAND = [*WALKLEARN, "up"]


def alive(marker):
    """The process ids whose command line names the directory."""
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                with open(f"/proc/{entry.name}/cmdline", "rb") as file:
                    line = file.read()
            except OSError:
                continue
            if str(marker).encode() in line:
                found.append(int(entry.name))
    return found


def test_a_private_network_learns_and_every_node_ends_with_the_same_model(tmp_path):
    out = tmp_path / "network"
    options = ["--nodes", "6", "--graph", "ring", "--updates", "300", "--out", out,
               "--walk", "weighted", "--epsilon", "3", "--delta", "0.03"]  # fmt: skip
    done = run(*COMMAND, *options, "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert all(node["final"] for node in facts["nodes"])
    # Every update was made once, by somebody.
    assert sum(node["updates"] for node in facts["nodes"]) == facts["updates"] == 300
    assert alive(out) == []
    model = Model.load(out / "model")
    assert model.updates == 300
    assert model.predict(np.ones((1, 4))).shape == (1,)
    first = (out / "node-0" / "log.jsonl").read_text().splitlines()[0]
    assert json.loads(first)["event"] == "started"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_however_it_ends_no_process_is_left(tmp_path, number):
    out = tmp_path / "network"
    command = [*COMMAND, "--nodes", "3", "--updates", "1000000", "--out", out]
    with started(*command, stdout=subprocess.PIPE) as process:
        for line in process.stdout:
            if "processes are running" in line:
                break
        running = alive(out / "node-")
        assert len(running) == 3
        for each in running:  # or their threads would wait for each other
            with open(f"/proc/{each}/environ", "rb") as file:
                assert b"OPENBLAS_NUM_THREADS=1" in file.read().split(b"\0")
        process.send_signal(number)
        process.wait(60)
        wait_until(lambda: alive(out) == [], "its end")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--epsilon", "3"], "--delta"),
        (["--epsilon", "3", "--delta", "0.1"], "--epsilon"),
        (["--graph", "rinng"], "'ring'"),
    ],
)
def test_bad_input_is_told_before_anything_is_made(tmp_path, options, message):
    out = tmp_path / "network"
    done = run(*COMMAND, *options, "--out", out)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    assert not out.exists()


def test_a_directory_that_is_in_use_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("precious")
    done = run(*COMMAND, "--out", tmp_path)
    assert done.returncode == 2
    assert "not empty" in done.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["mine.txt"]
