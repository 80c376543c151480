"""Every engine computes the same numbers; finished cells are never lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from tests.running import WALKLEARN, invoke, run, started, wait_until
from tests.studies.examples import INFEASIBLE, PRIVATE, SMALL, TUNED
from walklearn.studies import Results, Study, run_study
from walklearn.studies.cell import CellError

PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
# Many short cells: there is time to interrupt between the first and the last.
LONG = (
    SMALL.replace("instances = 4", "instances = 10").replace("updates = 200", "updates = 600000")
    + "[step_sizes]\n"
    + "\n".join(f"c{i} = {{ constant = 0.0{i} }}" for i in range(1, 10))
).replace("[step_sizes.printed]\nconstant = 0.1\nexponent = 0.75\n", "")


def equal(one: Results, other: Results) -> bool:
    """True if all tables are equal, bit for bit, except for the time."""

    def tables(results: Results) -> list[pd.DataFrame]:
        names = ("records", "facts", "nodes", "edges")
        return [getattr(results, name)().drop(columns="stored_at") for name in names]

    return all(map(pd.DataFrame.equals, tables(one), tables(other)))


def command(*arguments: str) -> list[str]:
    return [*WALKLEARN, "run", "study.toml", *arguments]


def wait_for_cells(folder: Path, running: subprocess.Popen[str]) -> None:
    def is_finished() -> bool:
        assert running.poll() is None, running.communicate()
        return bool(cells_in(folder))

    wait_until(is_finished, "a finished cell", seconds=100)


def cells_in(folder: Path) -> dict[str, int]:
    """The finished cells, with the times at which they were written."""
    cells = (folder / "results" / "small" / "cells").glob("*.parquet")
    return {cell.name: cell.stat().st_mtime_ns for cell in cells}


def test_processes_give_the_same_bits(tmp_path: Path) -> None:
    study = Study.from_text(SMALL + PRIVATE + TUNED)
    alone = run_study(study, tmp_path / "alone", cores=1)
    assert equal(run_study(study, tmp_path / "two", cores=2), alone)


def test_a_cell_is_never_computed_twice(tmp_path: Path) -> None:
    run_study(Study.from_text(SMALL), tmp_path / "results", cores=1)
    before = cells_in(tmp_path)
    more = SMALL + '[methods.simple]\nwalk = "simple"\n'
    (tmp_path / "study.toml").write_text(more)
    result = run(*command("--cores", "1"), cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")  # quiet when piped
    assert "3 cells, 4 instances of 200 updates" in result.stdout
    after = cells_in(tmp_path)
    assert len(after) == 3
    assert before.items() <= after.items()


@pytest.mark.parametrize("cores", [1, 2])
def test_ctrl_c_keeps_finished_cells(tmp_path: Path, cores: int) -> None:
    (tmp_path / "study.toml").write_text(LONG)
    options = {"cwd": tmp_path, "start_new_session": True, **PIPES}
    with started(*command("--cores", str(cores)), **options) as running:
        wait_for_cells(tmp_path, running)
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does: to all its processes
        _, errors = running.communicate(timeout=60)
    kept = cells_in(tmp_path)
    assert running.returncode == 130, errors
    assert 1 <= len(kept) < 18
    assert f"{len(kept)} of 18 cells are stored in results/small." in errors
    assert "Traceback" not in errors
    assert not list(tmp_path.rglob("*.tmp"))
    assert len(Results.open(tmp_path / "results/small").records()) == len(kept) * 10 * 5
    run_study(Study.from_text(LONG), tmp_path / "results", cores=1)
    assert len(cells_in(tmp_path)) == 18
    assert kept.items() <= cells_in(tmp_path).items()


def test_an_error_in_a_worker_names_the_cell(tmp_path: Path) -> None:
    """A target that the first instance allows and a later one does not."""
    gamma = INFEASIBLE.replace("[1.0, 300.0]", '"instance"').replace("= 3.0", "= 60.0")
    study = Study.from_text(SMALL.replace("instances = 4", "instances = 40") + gamma)
    for cores in (1, 2):
        out = tmp_path / str(cores)
        with pytest.raises(CellError, match=r"small: ring,.*, printed:"):
            run_study(study, out, cores=cores)
        assert Results.open(out / "small").finished_count <= 2
        assert not list(out.rglob("*.tmp"))


def test_no_space_left(tmp_path: Path) -> None:
    """A limit on the size of files is a disk that is full, to a program that writes them."""
    (tmp_path / "study.toml").write_text(SMALL)
    limited = ["bash", "-c", 'ulimit -f 4; exec "$@"', "bash", *command("--cores", "1")]
    result = run(*limited, cwd=tmp_path)
    assert result.returncode == 2, result.stderr
    assert "cannot write to results/small: File too large. 0 of 2 cells are stored" in result.stderr
    assert "Traceback" not in result.stderr
    assert not cells_in(tmp_path)
    assert not list(tmp_path.rglob("*.tmp"))
    assert run_study(Study.from_text(SMALL), tmp_path / "results", cores=1).finished_count == 2


def test_bad_input_has_exit_code_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "study.toml").write_text(SMALL.replace("nodes = 9", "node = 9"))
    result = run(*command(), cwd=tmp_path)
    assert result.returncode == 2
    assert "Error: study.toml, line 12: graphs.ring.node" in result.stderr
    (tmp_path / "study.toml").write_text(SMALL)
    (tmp_path / "results").write_text("a file, not a directory")
    result = run(*command("--cores", "1"), cwd=tmp_path)
    assert result.returncode == 2
    assert "results" in result.stderr
    monkeypatch.setitem(sys.modules, "ray", None)
    refused = invoke("run", tmp_path / "study.toml", "--out", tmp_path / "there", "--engine", "ray")
    assert refused.exit_code == 2
    assert "[ray]" in refused.stderr
    assert not (tmp_path / "there").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [({"engine": "spark"}, "engine .*spark"), ({"cores": 0}, "cores .* 0"),
     ({"address": "host:1"}, 'address .*"ray"')],
)  # fmt: skip
def test_invalid_engines(tmp_path: Path, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run_study(Study.from_text(SMALL), tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()
