"""Style, types and the import rule are tests like any other."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.running import PROJECT, run

SCRIPTS = Path(sys.executable).parent

CHECKS = {
    "style": [sys.executable, "-m", "ruff", "check", "--no-cache", "."],
    "format": [sys.executable, "-m", "ruff", "format", "--no-cache", "--check", "."],
    "types": [sys.executable, "-m", "mypy"],
    "import rule": [str(SCRIPTS / "lint-imports"), "--no-cache"],
}


@pytest.mark.parametrize("check", CHECKS)
def test_quality(check: str) -> None:
    result = run(*CHECKS[check], cwd=PROJECT, timeout=600)
    assert result.returncode == 0, result.stdout + result.stderr
