"""The command line, run as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import walklearn as wl
from tests.running import python, walklearn
from walklearn.cli import main
from walklearn.privacy.draws import exact_draws
from walklearn.privacy.noisy_gradients import NoisyGradients


def test_help_lists_the_commands_without_loading_them() -> None:
    result = walklearn("--help")
    assert result.returncode == 0
    assert "demo" in result.stdout
    script = "import sys, walklearn.cli; print('numpy' in sys.modules)"
    assert python(script).stdout.strip() == "False"


def test_version() -> None:
    assert wl.__version__ in walklearn("--version").stdout


def test_unknown_command_is_named() -> None:
    result = walklearn("dance")
    assert result.returncode == 2
    assert "dance" in result.stderr


def test_demo_saves_a_picture_a_table_and_traces(tmp_path: Path) -> None:
    result = walklearn("demo", "--steps", "300", "--replicates", "6", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    out = tmp_path / "walklearn-demo"
    assert (out / "comparison.png").read_bytes().startswith(b"\x89PNG")
    assert (out / "comparison.txt").read_text(encoding="utf-8").strip() in result.stdout
    for variance in ("10", "1"):
        traces = list(out.glob(f"variance-{variance}-*.npz"))
        assert len(traces) == 6
        assert out / f"variance-{variance}-Finito-oldest-first.npz" in traces
        for trace in map(wl.Trace.load, traces):
            assert trace.updates[-1] == 300
            assert trace.replicates == 6
            final = f"{np.median(trace.gap[:, -1]):.3g}"
            assert final in result.stdout


def test_demo_names_a_path_that_it_cannot_write(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    result = walklearn("demo", "--steps", "10", "--replicates", "1", "--out", "file", cwd=tmp_path)
    assert result.returncode == 2
    assert "file" in result.stderr


TARGET = ("--epsilon", "3", "--delta", "0.03", "--bounds", "1", "50")


def test_privacy_calibrate_and_compare() -> None:
    found = json.loads(walklearn("privacy", "calibrate", *TARGET, "--json").stdout)
    assert found["delta"] <= 0.03
    rows = json.loads(walklearn("privacy", "compare", *TARGET, "--json").stdout)["rows"]
    assert {row["mechanism"] for row in rows} == set(wl.privacy.MECHANISMS)
    assert "constant" in walklearn("privacy", "compare", *TARGET).stdout


def test_privacy_audits_a_whole_walk() -> None:
    target = ("--epsilon", "1", "--delta", "1e-5")
    sure = ("--samples", "100", "--confidence", "0.999999999")  # fails by chance below 2e-9
    result = walklearn("privacy", "audit", "--walk", *target, *sure)
    assert result.returncode == 0
    assert result.stdout.startswith("consistent: a walk with ModelNoise(")
    found = json.loads(walklearn("privacy", "audit", "--walk", *target, *sure, "--json").stdout)
    assert found["verdict"] == "consistent"
    assert [(each["engine"], each["draws"], each["faults"]) for each in found["audits"]] == [
        ("released", "real", []), ("node", "real", [])]  # fmt: skip
    seeded = walklearn("privacy", "audit", "--walk", *target, "--seed", "1", "--json")
    [one] = json.loads(seeded.stdout)["audits"]
    assert (one["engine"], one["draws"], one["walks"]) == ("compiled", "simulated", 20_000)
    assert "--walk" in walklearn("privacy", "audit", *target).stderr


@pytest.mark.parametrize("options", [("--walk",), ("--bounds", "1", "50")])
def test_privacy_audits_find_that_real_noise_is_missing(
    options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    zero = lambda self, size, bits=None: np.zeros(size, np.int64)  # noqa: E731
    monkeypatch.setattr(NoisyGradients, "draw", zero)
    monkeypatch.setattr(exact_draws, "rounded", lambda laws, *_, **__: [c for _, c in laws])
    arguments = ["privacy", "audit", "--epsilon", "9", "--delta", "0.01", "--samples", "100"]
    result = CliRunner().invoke(main, [*arguments, *options, "--json"])
    assert result.exit_code == 1
    found = json.loads(result.output)
    assert found["verdict"] == "VIOLATED"
    assert all(each["faults"] for each in found.get("audits", [found]))
    assert all(each["largest_refutable_epsilon"] < 9 for each in found.get("audits", [found]))


def test_privacy_refuses_impossible_targets() -> None:
    result = walklearn("privacy", "calibrate", *TARGET, "--mechanism", "gamma")
    assert result.returncode == 2
    assert "the floor is 0.85" in result.stderr
    result = walklearn(
        "privacy", "calibrate", "--epsilon", "-1", "--delta", "0", "--bounds", "1", "2"
    )
    assert result.returncode == 2
    assert "epsilon" in result.stderr


def test_privacy_attack_shows_both_sides() -> None:
    lines = walklearn("privacy", "attack", "--nodes", "20", "--steps", "400").stdout.splitlines()
    assert lines[2].strip().startswith("20 of 20 rows recovered")
    assert lines[4].strip().startswith("0 of 20 rows recovered")


def test_privacy_audit_and_plot(tmp_path: Path) -> None:
    result = walklearn("privacy", "audit", *TARGET, "--confidence", "0.999999999")
    assert result.returncode == 0
    assert "consistent" in result.stdout
    assert "20000 real releases" in result.stdout
    result = walklearn("privacy", "audit", *TARGET, "--seed", "1")
    assert "200000 simulated releases" in result.stdout
    for bounds in (("1", "3"), ("1", "500")):
        result = walklearn("privacy", "plot", "--bounds", *bounds, "--out", "p.png", cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
