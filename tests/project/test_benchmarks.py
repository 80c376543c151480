"""The benchmark compares equal work: the C loop and the NumPy loop make walklearn's updates."""

from __future__ import annotations

import math
import shutil
import sys

import pytest

from benchmarks.__main__ import NAMES, rows_of
from benchmarks.measurement import Measurement, exit_code, missed_lines, table
from tests.running import PROJECT, missing, run

pytestmark = pytest.mark.slow


def test_the_contestants_do_the_same_work() -> None:
    """The script checks that itself, before it times anything."""
    if shutil.which("gcc") is None:
        missing("needs the system package gcc")
    result = run(sys.executable, "-m", "benchmarks.hops", "--quick", cwd=PROJECT)
    assert result.returncode == 0, result.stderr
    assert "C / batch" in result.stdout


def test_the_estimators_are_as_accurate_as_logistic_regression() -> None:
    """The quick run of the script: breast cancer, one seed; within a point without privacy."""
    result = run(sys.executable, "-m", "benchmarks.estimators", "--quick", cwd=PROJECT)
    assert result.returncode == 0, result.stderr
    rows = dict(line.strip("| ").split(" | ", 1) for line in result.stdout.splitlines()[3:])
    for contestant in ("walk with memory, raw", "weighted walk, raw", "uniform walk, raw"):
        assert float(rows[contestant].split(" | ")[1]) > -1.0


# hops and sparse have tests of their own
@pytest.mark.parametrize("name", sorted({*NAMES} - {"hops", "sparse"}))
def test_every_benchmark_runs(name: str) -> None:
    """On small sizes, where the figures mean little; a row says why if it cannot be measured."""
    rows = rows_of(name, quick=True)
    assert rows
    for row in rows:
        assert math.isfinite(row.value) or row.note, row
        assert "failed" not in row.note, row


def test_a_missed_target_is_named() -> None:
    slow = Measurement("a hop", 2.0, "times", 1.3)
    rows = [slow, Measurement("speed", 50.0, "times", 40.0, at_least=True)]
    assert missed_lines(rows) == ["missed: a hop: 2.00 times, target ≤ 1.3"]
    assert table(rows).count("missed") == 1
    assert exit_code(rows, check=True) == 1
    assert exit_code(rows[1:], check=True) == exit_code(rows, check=False) == 0


def test_sparse_rows_take_little_more_than_themselves() -> None:
    """The quick run of the script; its times are told, not asserted."""
    held = [row.value for row in rows_of("sparse", quick=True) if "arrays held" in row.what]
    assert len(held) == 5
    assert max(held) <= 1.5
