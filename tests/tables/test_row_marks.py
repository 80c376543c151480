"""A row is recognised by its cells, whatever file they come in."""

from __future__ import annotations

import tracemalloc
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from walklearn.tables import read_table
from walklearn.tables.row_marks import Marks, RowMarks, blocks_of, table_blocks

KEY = bytes(range(32))


def marks_of_file(path: Path) -> Marks:
    return RowMarks(KEY).of(table_blocks(read_table(path)))


def marks_of(X: object, y: object) -> Marks:
    return RowMarks(KEY).of(blocks_of(X, y))


def test_the_dense_formats_and_arrays_give_the_same_marks(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pandas = pytest.importorskip("pandas")
    (tmp_path / "rows.csv").write_text("a,b,y\n1,0.5,yes\n\n2,-0,no\n")
    X, y = np.array([[1.0, 0.5], [2.0, 0.0]]), np.array(["yes", "no"])
    np.savez(tmp_path / "rows.npz", X=X, y=y, columns=np.array(["a", "b"]))
    table = arrow.table({"b": [0.5, 0.0], "a": [1, 2], "y": ["yes", "no"]})
    parquet.write_table(table, tmp_path / "rows.parquet")
    frame = pandas.DataFrame({"b": [0.5, 0.0], "a": [1, 2]})
    expected = marks_of_file(tmp_path / "rows.csv").tolist()
    assert len(set(expected)) == 2
    for end in ("npz", "parquet"):
        assert marks_of_file(tmp_path / f"rows.{end}").tolist() == expected
    for rows in (X, X.tolist(), frame, X.astype(object), X.astype(str), X.astype(np.float32)):
        assert marks_of(rows, y).tolist() == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (0.0, -0.0), (1, 1.0), ("5e-1", 0.5), (" 7 ", 7), ("007", 7), (float("nan"), "nan"),
        (None, ""), (None, float("nan")), (True, 1), ("True", True), ("FALSE", 0),
        (np.int64(3), "3"), (b"abc", "abc"), (np.float32(0.1), "0.1"), (1e300, "inf"),
        *((None, word) for word in ("NA", "N/A", "null", "NULL", "None", "NaN", "NaT", "?")),
        (None, "<NA>"),
        (date(2020, 1, 1), "2020-01-01"),
        (datetime(2020, 1, 1), "2020-01-01"),
        (datetime(2020, 1, 1, 13, 30), "2020-01-01T13:30"),
        (datetime(2020, 1, 1, 13, 30, tzinfo=UTC), "2020-01-01 14:30:00+01:00"),
        (np.datetime64("2020-01-01T13:30", "us"), "2020-01-01 13:30:00"),
    ],
)  # fmt: skip
def test_cells_with_equal_values_give_equal_marks(one: object, other: object) -> None:
    """Also where another cell of the column is a text, which changes how cells are read."""
    for beside in ([], ["text"]):
        first, second = ([[cell, "x"] for cell in (cell, *beside)] for cell in (one, other))
        y = np.arange(1 + len(beside))
        a, b = np.array(first, dtype=object), np.array(second, dtype=object)
        assert marks_of(a, y).tolist() == marks_of(b, y).tolist()
    negative = np.array([np.nan, 1.0])
    assert marks_of(-negative[:1, None], [0]).tolist() == marks_of(negative[:1, None], [0]).tolist()


def test_dates_and_missing_cells_give_the_same_marks_in_all_dense_formats(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pandas = pytest.importorskip("pandas")
    days = [datetime(2020, 1, 1), None, datetime(2021, 5, 6)]
    times = [datetime(2020, 1, 1, 7, 30), datetime(2020, 1, 2), None]
    ages, words, y = [30.0, None, 41.5], ["x", None, "z"], [1, 0, 1]
    columns = {"day": days, "time": times, "age": ages, "word": words, "y": y}
    frame = pandas.DataFrame(columns)
    parquet.write_table(arrow.table(columns), tmp_path / "rows.parquet")
    frame.to_parquet(tmp_path / "frame.parquet")
    np.savez(tmp_path / "rows.npz", day=np.array(days, "datetime64[s]"), y=y,
             time=np.array(times, "datetime64[ns]"), age=np.array(ages, float),
             word=np.array(["x", "", "z"]))  # fmt: skip
    for at, word in enumerate(("", "NA", "N/A", "null", "None", "nan")):
        frame.to_csv(tmp_path / f"rows{at}.csv", index=False, na_rep=word)
    expected = marks_of(frame[["age", "word", "day", "time"]], y).tolist()
    assert len(set(expected)) == 3
    files = [path for path in tmp_path.iterdir() if path.is_file()]
    assert len(files) == 9
    for path in files:
        assert marks_of_file(path).tolist() == expected, path.name


def test_a_column_that_is_declared_as_text_has_the_same_marks(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a,b,y\n007,0.50,yes\n2,NA,no\n3,,no\n")
    table = read_table(tmp_path / "rows.csv", text=["a", "b", "y"])
    expected = marks_of_file(tmp_path / "rows.csv")
    assert RowMarks(KEY).of(table_blocks(table)).tolist() == expected.tolist()


def test_a_row_has_marks_with_and_without_its_node_column(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, y, nodes = np.array([[1.0, 0.5], [2.0, 0.0]]), [7, 8], ["oslo", "lima"]
    (tmp_path / "rows.csv").write_text("a,site,b,y\n1,oslo,0.5,7\n2,lima,-0,8\n")
    np.savez(tmp_path / "rows.npz", X=X, y=y, site=nodes)
    table = arrow.table({"b": [0.5, 0.0], "site": nodes, "a": [1, 2], "y": y})
    parquet.write_table(table, tmp_path / "rows.parquet")
    without, with_nodes = marks_of(X, y), marks_of(X, np.array([y, nodes], dtype=object).T)
    for end in ("csv", "npz", "parquet"):
        path = tmp_path / f"rows.{end}"
        assert marks_of_file(path).tolist() == with_nodes.tolist()
        marks = RowMarks(KEY).of(table_blocks(read_table(path), "site"))
        assert marks.tolist() == sorted([*without, *with_nodes])
    (tmp_path / "rows.svm").write_text("1 qid:3 2:0.5\n-1 qid:4 1:2\n")
    (tmp_path / "bare.svm").write_text("1 2:0.5\n-1 1:2\n")
    marks = RowMarks(KEY).of(table_blocks(read_table(tmp_path / "rows.svm"), "qid"))
    bare = marks_of_file(tmp_path / "bare.svm")
    assert (len(marks), np.isin(bare, marks).all()) == (4, True)


def test_cells_do_not_run_together(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("a,b\nx,yz\n")
    (tmp_path / "other.csv").write_text("a,b\nxy,z\n")
    assert marks_of_file(tmp_path / "one.csv") != marks_of_file(tmp_path / "other.csv")


def test_marks_differ_between_rows_and_keys() -> None:
    X = np.random.default_rng(0).integers(0, 2, (20_000, 12)) + np.arange(12) * 2.0
    expected = len(np.unique(X, axis=0))
    assert len(np.unique(marks_of(X, np.zeros(len(X))))) == expected
    other = RowMarks(b"another key").of(blocks_of(X, np.zeros(len(X))))
    assert not np.isin(other, marks_of(X, np.zeros(len(X)))).any()


def test_sparse_rows_keep_the_places_of_their_numbers(tmp_path: Path) -> None:
    (tmp_path / "one.svm").write_text("1 1:1 3:1\n-1 2:0.5\n")
    (tmp_path / "other.svm").write_text("1 1:1 2:1\n-1 2:5e-1 3:0\n1 9:4\n")
    one, other = (marks_of_file(tmp_path / name) for name in ("one.svm", "other.svm"))
    assert np.isin(one, other).sum() == 1
    X = csr_array(np.array([[0.0, 1.0, 0.0, 1.0], [0.0, 0.0, 0.5, 0.0]]))
    assert marks_of(X, [1.0, -1.0]).tolist() == one.tolist()


@pytest.mark.parametrize("dtype", [bool, np.int32, np.float64])
def test_sparse_entries_that_are_stored_twice_count_as_their_sum(dtype: type) -> None:
    X = csr_array((np.ones(4, dtype), [1, 0, 1, 2], [0, 3, 4]), shape=(2, 3))
    assert not X.has_canonical_format
    expected = marks_of(csr_array([[1.0, 2.0, 0.0], [0.0, 0.0, 1.0]]), [1, 2])
    assert marks_of(X, [1, 2]).tolist() == expected.tolist()
    assert X.nnz == 4


def test_many_rows_need_little_memory_beside_them() -> None:
    X, y = np.random.default_rng(0).normal(size=(400_000, 5)), np.zeros(400_000)
    tracemalloc.start()
    marks = marks_of(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(marks) == len(y)
    assert peak < X.nbytes  # the marks twice, and a few blocks of a column


def test_rows_and_targets_must_match() -> None:
    with pytest.raises(ValueError, match="equally many rows"):
        marks_of(np.ones((3, 2)), np.ones(2))
    with pytest.raises(ValueError, match="rows and columns"):
        marks_of(np.ones(3), np.ones(3))
