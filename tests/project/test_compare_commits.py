"""`benchmarks.compare` judges two commits by the medians of alternating runs."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from benchmarks.compare import Row, compare, failures, mean_ratio
from benchmarks.measurement import Measurement
from tests.running import PROJECT, run

TINY = """
from benchmarks.measurement import Measurement

def measurements(quick):
    yield Measurement("a time", {time}, "s")
    yield Measurement("a speed", 1 / {time}, "1/s", at_least=True)
    yield Measurement("not measured", float("nan"), "s")
"""


def test_a_row_has_the_ratio_of_medians_and_the_spread_of_base() -> None:
    base = [{"hop": 8.0, "fit": 1.0}, {"hop": 10.0, "fit": 1.0}, {"hop": 11.0, "fit": 1.0}]
    new = [{"hop": 30.0, "fit": 2.0}, {"hop": 20.0, "fit": 2.0}, {"hop": 5.0, "fit": 2.0}]
    rows = compare(base, new)
    assert rows == [Row("hop", 2.0, 1.25), Row("fit", 2.0, 1.0)]
    assert mean_ratio([Row("hop", 2.0, 1.0), Row("fit", 0.5, 1.0)]) == pytest.approx(1.0)


def test_limits() -> None:
    assert failures("hops", [Row("a", 1.14, 1.0), Row("b", 0.9, 1.0)]) == []
    assert failures("hops", [Row("a", 1.2, 1.05), Row("b", 0.8, 1.0)]) == []  # within its spread
    slow_row = failures("hops", [Row("a", 1.2, 1.04), Row("b", 0.8, 1.0)])
    assert slow_row == ["hops: a: 1.200, limit 1.196"]
    slow_mean = failures("hops", [Row("a", 1.06, 1.0), Row("b", 1.06, 1.0)])
    assert slow_mean == ["hops: geometric mean 1.060, limit 1.05"]


def test_a_row_that_one_commit_lacks_is_a_failure() -> None:
    rows = compare([{"a": 1.0, "b": 1.0}], [{"a": 1.0}])
    assert failures("hops", rows) == ["hops: only one of the commits has the row: b"]


def test_the_cost_of_a_row() -> None:
    assert Measurement("a speed", 4.0, "1/s", at_least=True).cost == 0.25
    assert Measurement("a ratio", 4.0, "times").cost == 4.0
    assert Measurement("a ratio of two own times", 4.0, "times", own_time=7.0).cost == 7.0


@pytest.mark.parametrize(("now", "code"), [(1.0, 0), (1.25, 1)])
def test_two_commits_of_a_small_project(tmp_path: Path, now: float, code: int) -> None:
    (tmp_path / "src" / "walklearn").mkdir(parents=True)
    (tmp_path / "src" / "walklearn" / "__init__.py").touch()
    (tmp_path / "benchmarks").mkdir()
    for name in ("__init__", "__main__", "compare", "machine", "measurement"):
        shutil.copy(PROJECT / "benchmarks" / f"{name}.py", tmp_path / "benchmarks")
    tiny = tmp_path / "benchmarks" / "tiny.py"
    tiny.write_text(TINY.format(time=1.0))
    git = ("git", "-c", "user.name=test", "-c", "user.email=test@example.org")
    for command in (("init", "-q"), ("add", "."), ("commit", "-qm", "base")):
        assert run(*git, *command, cwd=tmp_path).returncode == 0
    tiny.write_text(TINY.format(time=now))
    done = run(sys.executable, "-m", "benchmarks.compare", "--check", "--rounds", "1", "HEAD",
               "tiny", cwd=tmp_path)  # fmt: skip
    assert done.returncode == code, done.stderr
    assert f"| a time | {now:.3f} | 1.000 |" in done.stdout
    assert f"| a speed | {now:.3f} | 1.000 |" in done.stdout
    assert ("tiny: a time: 1.250, limit 1.150" in done.stdout) == bool(code)
    assert run("git", "worktree", "list", cwd=tmp_path).stdout.count("\n") == 1
