"""A row is known again by its cells, whatever file they come in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from walklearn.files.raw_rows import raw_rows


def test_the_dense_formats_give_the_same_digests(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    (tmp_path / "rows.csv").write_text("a,b,y\n1,0.5,yes\n\n2,-0,no\n")
    X, y = np.array([[1.0, 0.5], [2.0, 0.0]]), np.array(["yes", "no"])
    np.savez(tmp_path / "rows.npz", X=X, y=y, columns=np.array(["a", "b"]))
    table = arrow.table({"b": [0.5, 0.0], "a": [1, 2], "y": ["yes", "no"]})
    parquet.write_table(table, tmp_path / "rows.parquet")
    csv, npz, columns = (raw_rows(tmp_path / f"rows.{end}") for end in ("csv", "npz", "parquet"))
    assert csv == npz == columns
    assert len(set(csv)) == 2


def test_cells_do_not_run_together(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("a,b\nx,yz\n")
    (tmp_path / "other.csv").write_text("a,b\nxy,z\n")
    assert raw_rows(tmp_path / "one.csv") != raw_rows(tmp_path / "other.csv")


def test_sparse_rows_keep_the_places_of_their_numbers(tmp_path: Path) -> None:
    (tmp_path / "one.svm").write_text("1 1:1 3:1\n-1 2:0.5\n")
    (tmp_path / "other.svm").write_text("1 1:1 2:1\n-1 2:5e-1 3:0\n1 9:4\n")
    one, other = (set(raw_rows(tmp_path / name)) for name in ("one.svm", "other.svm"))
    assert len(one & other) == 1
