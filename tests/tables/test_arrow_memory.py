"""A process that ends as soon as pyarrow's threads have read something ends with its exit code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import walklearn as wl

pytestmark = pytest.mark.slow  # it needs many processes, and a machine that is kept busy by them

LOAD = """
import sys
from walklearn import Trace
trace = Trace.load(sys.argv[1])
"""
READ = """
import sys
from walklearn.tables import csv_file, read_table
csv_file.MIN_BYTES_FOR_ARROW = 0
numbers = read_table(sys.argv[1])["a"]
"""


def saved_trace(folder: Path) -> Path:
    problem = wl.Problem([[1.0], [1.0], [1.0]], [1.0, 2.0, 3.0], loss=wl.losses.Squared())
    path = folder / "trace.parquet"
    step = wl.PowerStep(0.5)
    trace = wl.simulate(problem, wl.graphs.ring(3), wl.walks.Uniform(), steps=100, step_size=step)
    trace.save(path)
    return path


def written_rows(folder: Path) -> Path:
    path = folder / "rows.csv"
    path.write_text("a,b\n" + "0.25,0.5\n" * 500_000)  # several pieces for each thread
    return path


@pytest.mark.parametrize(
    ("code", "write"), [(LOAD, saved_trace), (READ, written_rows)], ids=["parquet", "csv"]
)
def test_no_thread_of_pyarrow_outlives_what_it_reads(tmp_path, code, write):
    """With memory of Python at least 5 of 100 such processes were aborted.

    The probability that none of 60 is aborted would then be at most .95^60 = .05.
    """
    path = write(tmp_path)
    for _ in range(15):
        command = [sys.executable, "-c", code, str(path)]
        processes = [subprocess.Popen(command) for _ in range(4)]
        assert [process.wait(60) for process in processes] == [0] * 4
