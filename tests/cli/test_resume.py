"""Ctrl-C in a training keeps the model so far, and --resume goes on from it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import walklearn as wl
from tests.running import WALKLEARN, invoke, invoke_ok, refusal, started
from walklearn.cli.resume import check_plan
from walklearn.models import Model

ASKED = ("--target", "y", "--node-column", "site", "--seed", "1")
PRIVATE = ("--epsilon", "3", "--delta", "1e-5", "--scale", "*=0,1", "--steps", "100",
           "--task", "classification")  # fmt: skip


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    X = np.random.default_rng(1).normal(size=(400, 3))
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    table["y"] = np.where(X @ [1.0, -1.0, 0.5] > 0, "yes", "no")
    table["site"] = np.arange(400) % 20
    path = tmp_path_factory.mktemp("resume") / "rows.csv"
    table.to_csv(path, index=False)
    return path


def test_a_real_interrupt_keeps_the_model_and_resume_ends_where_it_would_have(
    rows: Path, tmp_path: Path
) -> None:
    """So many steps take hours, so that only the interrupt ends the first run."""
    out = tmp_path / "model"
    command = [*WALKLEARN, "train", rows, *ASKED, "--out", out, "--verbose"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with started(*command, "--steps", 2_000_000_000, **pipes) as process:
        assert process.stderr is not None
        seen = ""
        while "loss=" not in seen:  # the bar has moved
            character = process.stderr.read(1)
            assert character, seen
            seen += character
        process.send_signal(signal.SIGINT)
        said, notes = process.communicate(timeout=120)
    assert process.returncode == 130, notes
    assert "with --resume continues" in " ".join(notes.split())
    assert "A classifier of 'y'" in said
    kept = Model.load(out)
    assert kept.details["interrupted"] is True
    assert kept.updates > 0
    assert invoke("train", rows, *ASKED, "--out", out).exit_code == 2  # it is there
    done = invoke_ok("train", rows, *ASKED, "--out", out, "--resume", "--json")
    assert json.loads(done.stdout)["updates"] > kept.updates
    resumed = Model.load(out)
    assert "interrupted" not in resumed.details
    invoke("train", rows, *ASKED, "--out", tmp_path / "whole")
    whole = Model.load(tmp_path / "whole")
    np.testing.assert_allclose(resumed.weights, whole.weights, rtol=2e-3, atol=2e-3)
    message = refusal("train", rows, *ASKED, "--out", out, "--resume")
    assert "was not interrupted" in message


def test_impossible_resumption_is_refused(rows: Path, tmp_path: Path) -> None:
    out = tmp_path / "model"
    for options, why in (
        ((*ASKED, *PRIVATE), "a private training"),
        (ASKED, "does not exist"),
        (ASKED[:4], "does not exist"),
    ):
        message = refusal("train", rows, *options, "--out", out, "--resume")
        assert why in message
    assert not out.exists()


def interrupted(out: Path) -> Model:
    """The model in OUT, as if Ctrl-C had ended its training just where it did end."""
    kept = Model.load(out).with_details({"interrupted": True})
    kept.save(out, overwrite=True)
    return kept


SETTINGS = [
    (("--walk", "weighted"), "differ: walk"),
    (("--laziness", "0.1"), r"laziness \(was 0, is 0.1\)"),
    (("--update", "sgd"), "update"),
    (("--step-constant", "0.5"), r"step_constant \(was None, is 0.5\)"),
    (("--batch", "7"), r"batch \(was None, is 7\)"),
    (("--tol", "0.01"), r"differ: tolerance \(was 0.0001, is 0.01\)"),
    (("--graph", "ring"), r"differ: edges \(was \d+, is 20\)"),
    (("--feature-bound", "2"), r"feature_bound \(was None, is 2\)"),
    (("--seed", "2"), r"seed \(was 1, is 2\)"),
    (("--penalty", "0.5"), r"differ: penalty \(was 0.001, is 0.5\)\. Repeat"),
]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        *SETTINGS,
        (("--loss", "squared-hinge"), "squared-hinge"),
        (("--test-fraction", "0.3"), r"rows \(was 320, is 280\)"),
        (("--scale", "a=0,2"), "differ: scales"),
        (("--drop", "c"), "differ: columns, scales"),
        (("--steps", "300"), "already has 300"),
        (("--max-steps", "200"), "--max-steps 200"),
    ],
    ids=str,
)
def test_another_command_than_before_is_refused(
    rows: Path, tmp_path: Path, changes: tuple[str, ...], why: str
) -> None:
    out, command = tmp_path / "model", ("train", rows, *ASKED, "--test-fraction", "0.2")
    assert invoke(*command, "--steps", "300", "--out", out).exit_code == 0
    kept = interrupted(out)
    message = refusal(*command, *changes, "--out", out, "--resume")
    assert re.search(why, message)
    assert Model.load(out).updates == kept.updates


def test_another_graph_with_as_many_edges_is_named(tmp_path: Path) -> None:
    facts = wl.PublicFacts(4)
    one, other = (
        wl.advise(wl.graphs.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), diagonal]), facts)
        for diagonal in ((0, 2), (1, 3))
    )
    kept: Any = SimpleNamespace(details={"plan": one.digest, "settings": one.settings})
    check_plan(tmp_path, kept, one)
    with pytest.raises(ValueError, match=r"edges of the.*--force"):
        check_plan(tmp_path, kept, other)


def test_steps_count_those_before_the_interruption(rows: Path, tmp_path: Path) -> None:
    out = tmp_path / "model"
    assert invoke("train", rows, *ASKED, "--steps", "300", "--out", out).exit_code == 0
    interrupted(out)
    assert invoke("train", rows, *ASKED, "--steps", "500", "--out", out, "--resume").exit_code == 0
    assert Model.load(out).updates == 500


def test_without_a_seed_training_resumes_on_the_same_graph(rows: Path, tmp_path: Path) -> None:
    out, command = tmp_path / "model", ("train", rows, *ASKED[:4], "--step-constant", "0.5")
    assert invoke(*command, "--steps", "300", "--out", out).exit_code == 0
    before = interrupted(out).details
    tested = invoke(*command, "--test-fraction", "0.2", "--out", out, "--resume")
    assert "--seed" in " ".join(tested.stderr.split())
    assert invoke(*command, "--steps", "500", "--out", out, "--resume").exit_code == 0
    assert Model.load(out).details["plan"] == before["plan"]
    assert invoke(*command, "--steps", "300", "--out", tmp_path / "other").exit_code == 0
    assert Model.load(tmp_path / "other").details["graph_seed"] != before["graph_seed"]


def test_a_private_training_is_not_resumed_by_leaving_epsilon_out(
    rows: Path, tmp_path: Path
) -> None:
    out = tmp_path / "model"
    assert invoke("train", rows, *ASKED, *PRIVATE, "--out", out).exit_code == 0
    interrupted(out)
    message = refusal("train", rows, *ASKED, "--update", "sgd", "--out", out, "--resume")
    assert "a private training" in message


def test_a_mechanism_without_epsilon_is_refused(rows: Path, tmp_path: Path) -> None:
    message = refusal("train", rows, *ASKED, "--mechanism", "laplace", "--out", tmp_path / "model")
    assert "--epsilon and --delta" in message
