"""Style, types and the import rule are tests like any other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
SCRIPTS = Path(sys.executable).parent

CHECKS = {
    "style": [sys.executable, "-m", "ruff", "check", "--no-cache", "."],
    "format": [sys.executable, "-m", "ruff", "format", "--no-cache", "--check", "."],
    "types": [sys.executable, "-m", "mypy"],
    "import rule": [str(SCRIPTS / "lint-imports"), "--no-cache"],
}


@pytest.mark.parametrize("check", CHECKS)
def test_quality(check: str) -> None:
    result = subprocess.run(
        CHECKS[check], cwd=PROJECT, capture_output=True, text=True, timeout=600, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
