"""Tests that hang end with the stacks of all threads, so that the test command always ends."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.running import PROJECT, run

HANGS = '''
"""
>>> import time
>>> time.sleep(100)
"""
import threading, time
from hypothesis import given, strategies

def helper():
    time.sleep(100)

def test_waits():
    threading.Thread(target=helper, daemon=True).start()
    threading.Event().wait()

def test_is_quick():
    pass

@given(strategies.integers())
def test_hypothesis(number):
    time.sleep(100)
'''


@pytest.mark.parametrize("processes", [0, 1])
def test_tests_that_hang_end(tmp_path: Path, processes: int) -> None:
    (tmp_path / "test_hangs.py").write_text(HANGS)
    (tmp_path / "less_grace.py").write_text("import tests.conftest as c\nc.GRACE_SECONDS = 2")
    result = run(
        sys.executable, "-m", "pytest", "-c", PROJECT / "pyproject.toml", "-n", processes,
        "-p", "no:cacheprovider", "-p", "tests.conftest", "-p", "less_grace", "-o", "timeout=1",
        tmp_path / "test_hangs.py",
        cwd=PROJECT, env=os.environ | {"PYTHONPATH": f"{tmp_path}:{PROJECT}", "COLUMNS": "300"},
    )  # fmt: skip
    assert result.returncode != 0
    assert "in helper" in result.stdout + result.stderr  # the stack of the other thread
    assert "in test_hypothesis" in result.stderr  # from the end of the process
    if processes:  # otherwise the report ends with the process
        assert re.search(r"FAILED .*::test_hangs - .*Timeout", result.stdout)  # the doctest
        assert re.search(r"FAILED .*::test_waits - .*Timeout", result.stdout)
        assert re.search(r"FAILED .*::test_hypothesis - .*crashed", result.stdout)
        assert " 1 passed" in result.stdout
