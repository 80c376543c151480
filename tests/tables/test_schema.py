"""Schemas from files, tables and options, and the features that they declare."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from walklearn.cli.data_options import declared_by
from walklearn.files.checked_table import CheckedTable
from walklearn.tables import read_rows
from walklearn.tables.encoding import Column, Encoding
from walklearn.tables.schema import Schema, column_to_dict, read_column

TEXT = """
["*"]
spread = 2
[city]
categories = ["Oslo", "São Paulo, SP"]
[age]
range = [0, 100]
[income]
centre = 40_000
spread = 12_000
cut_off = 2.5
"""


def test_a_file_and_options(tmp_path: Path) -> None:
    path = tmp_path / "schema.toml"
    path.write_text(TEXT, encoding="utf-8")
    schema = declared_by(path, ["zone=EU, NA"], ["income=0,1e5"], ["height=170,10"])
    assert schema.categories == {"city": ("Oslo", "São Paulo, SP"), "zone": ("EU", "NA")}
    assert schema.of_column("age") == Column("age", None, 50.0, 50.0, 1.0)
    assert schema.of_column("income") == Column("income", None, 5e4, 5e4, 1.0)  # options win
    assert schema.of_column("height") == Column("height", None, 170.0, 10.0, 3.0)
    assert schema.of_column("other") == Column("other", None, 0.0, 2.0, 3.0)
    assert Schema.of(path).of_column("income") == Column("income", None, 4e4, 1.2e4, 2.5)
    assert schema.undeclared(["age", "anything"]) == []
    assert Schema.of({"age": {"spread": 1}}).undeclared(["age", "height"]) == ["height"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("age = 3", "line 1: age .*table"),
        ("[age]\nrange = [1]", "line 2: age.range .*low, high"),
        ("[age]\nrange = [2, 1]", r"low < high"),
        ("[age]\nranges = [1, 2]", "age.ranges .*; .* range"),
        ("[age]\ncategories = [1.5, 2]", "line 2: age.categories"),
        ("[age]", "line 1: age .*spread"),
        ("[age]\ncentre = 3", "line 1: age .*spread"),
        ("[age]\nspread = 0", r"line 2: age\.spread .* 0"),
        ("[age]\nspread = 1\nrange = [0, 1]", r"age needs either"),
        ("[age]\ncentre = 1\nrange = [0, 1]", "cut_off .*spread"),
        ('["*"]\ncategories = ["a"]', r"is for numbers"),
        ("[age", r"is not TOML"),
    ],
)
def test_mistakes_in_a_file(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "schema.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        Schema.of(path)


@pytest.mark.parametrize(
    ("ranges", "scales"),
    [(["age"], []), (["age=0,old"], []), (["age=3,2"], []), ([], ["age=1"]), ([], ["age=1,0"])],
)
def test_mistakes_in_options(ranges: list[str], scales: list[str]) -> None:
    (given,) = ranges + scales
    with pytest.raises(ValueError, match=rf"'{given}' .* --(range|scale) age="):
        declared_by(None, [], ranges, scales)


def test_declared_columns_are_encoded(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("age,income,city,y\n0,1e6,Oslo,0\n100,40000,Rome,1\n200,28000,Rome,1\n")
    declared = {
        "age": {"range": (0, 100)},
        "*": {"centre": 40_000, "spread": 12_000},
        "city": {"categories": ["Rome", "Oslo", "Bern"]},
    }
    rows = read_rows(path, target="y", schema=declared)
    np.testing.assert_array_equal(
        rows.X, [[-1, 3, 0, 1, 0], [1, 0, 1, 0, 0], [1, -1, 1, 0, 0]]
    )  # cut off at the end of the range, and at three spreads
    assert rows.encoding.longest == pytest.approx(math.sqrt(1 + 9 + 1), rel=1e-9)
    assert rows.encoding.longest >= np.linalg.norm(rows.X, axis=1).max()
    assert Encoding.from_dict(rows.encoding.to_dict()) == rows.encoding
    assert read_rows(path, target="y").encoding.longest == math.inf


def test_sparse_rows_are_cut_off_and_stay_sparse(tmp_path: Path) -> None:
    path = tmp_path / "rows.svm"
    path.write_text("1 1:2 3:100\n-1 2:5\n")
    rows = read_rows(path, target="y", schema={"*": {"spread": 2}})
    assert isinstance(rows.X, csr_array)
    np.testing.assert_array_equal(rows.X.toarray(), [[1, 0, 3], [0, 2.5, 0]])
    dense = read_rows(path, target="y", schema={"*": {"centre": 1, "spread": 2}})
    np.testing.assert_array_equal(dense.X, [[0.5, -0.5, 3], [-0.5, 2, -0.5]])


def test_columns_that_fill_a_small_part_of_a_range() -> None:
    generator = np.random.default_rng(1)
    counts = generator.lognormal(0.0, 1.5, 4000)  # a few are large
    even = generator.uniform(0.0, 1.0, 4000)
    table = {"count": counts, "even": even, "city": np.array(["Oslo", "Rome"] * 2000)}
    ranges = {"count": {"range": (0, counts.max())}, "even": {"range": (0, 1)}}
    for sparse in (False, True):
        encoding = Schema.of(ranges).apply_to(Encoding.of_table(table))
        X = encoding.encode(table)
        assert encoding.narrow_columns(csr_array(X) if sparse else X) == ["count"]
    typical = {"count": {"centre": 2, "spread": 3}, "even": {"range": (0, 1)}}
    encoding = Schema.of(typical).apply_to(Encoding.of_table(table))
    assert encoding.narrow_columns(encoding.encode(table)) == []


@pytest.mark.parametrize(
    "column",
    [Column("a", ("x", "y")), Column("a", None, 0.1, 0.3, 1.7), Column("a", None, -5.0, 1e-3, 1.0)],
)
def test_written_columns_are_read_back(column: Column) -> None:
    assert read_column("a", CheckedTable(column_to_dict(column))) == column
    with pytest.raises(ValueError, match="needs a cut_off"):
        column_to_dict(Column("a"))
