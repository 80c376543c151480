"""Errors of atomic writes name the target, and leave nothing behind."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.running import run

WRITE = """
from walklearn.files.atomic_write import atomic_write
try:
    atomic_write("predictions.csv", bytes(100_000))
except OSError as error:
    print(error.filename, error.strerror)
"""


def test_a_full_disk_names_the_target(tmp_path: Path) -> None:
    """A limit on the size of files acts like a full disk."""
    limited = ["bash", "-c", 'ulimit -f 4; exec "$@"', "bash", sys.executable, "-c", WRITE]
    result = run(*limited, cwd=tmp_path)
    assert result.stdout == "predictions.csv File too large\n", result.stderr
    assert list(tmp_path.iterdir()) == []
