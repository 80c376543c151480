"""The command line, run as a user runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

import walklearn as wl


def walklearn(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "walklearn.cli", *arguments]
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=300, check=False
    )


def test_help_lists_the_commands_without_loading_them() -> None:
    result = walklearn("--help")
    assert result.returncode == 0
    assert "demo" in result.stdout
    script = "import sys, walklearn.cli; print('numpy' in sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert loaded.stdout.strip() == "False"


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
        for label in ("uniform-walk", "weighted-walk", "asynchronous-gossip"):
            trace = wl.Trace.load(out / f"variance-{variance}-{label}.npz")
            assert trace.updates[-1] == 300
            assert trace.replicates == 6
            final = f"{np.median(trace.distance[:, -1]):.3g}"
            assert final in result.stdout


def test_demo_says_where_it_cannot_write(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    result = walklearn("demo", "--steps", "10", "--replicates", "1", "--out", "file", cwd=tmp_path)
    assert result.returncode == 2
    assert "file" in result.stderr
