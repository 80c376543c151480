"""Data files are read, and every mistake is named with its file, row and column."""

from __future__ import annotations

import contextlib
import csv
import gzip
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from walklearn.graphs import read_network
from walklearn.tables import DataError, csv_file, read_rows, read_table
from walklearn.tables.encoding import Column, Encoding

PEOPLE = pd.DataFrame(
    {
        "age": [30.0, 41.5, 29.0, 58.0],
        "city": ["Oslo", "Rome", "Oslo", "São Paulo, SP"],
        "site": [0, 1, 2, 3],
        "label": ["no", "yes", "no", "yes"],
    }
)


def write(tmp_path: Path, text: str | bytes, name: str = "people.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def check_people(path: Path) -> None:
    rows = read_rows(path, target="label", node_column="site")
    assert rows.columns == ("age", "city")
    assert rows.encoding.feature_names == ("age", "city=Oslo", "city=Rome", "city=São Paulo, SP")
    np.testing.assert_array_equal(rows.X[:, 0], PEOPLE["age"])
    np.testing.assert_array_equal(rows.X[:, 1:].argmax(axis=1), [0, 1, 0, 2])
    assert rows.nodes is not None
    assert rows.nodes.tolist() == [0, 1, 2, 3]
    assert rows.y.tolist() == PEOPLE["label"].tolist()
    assert rows.classes.tolist() == ["no", "yes"]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_csv_of_every_dialect(tmp_path: Path, separator: str, encoding: str, newline: str) -> None:
    path = tmp_path / "people.csv"
    PEOPLE.to_csv(path, sep=separator, encoding=encoding, index=False, lineterminator=newline)
    check_people(path)


def test_parquet(tmp_path: Path) -> None:
    PEOPLE.to_parquet(tmp_path / "people.parquet")
    check_people(tmp_path / "people.parquet")
    PEOPLE.astype({"city": "category", "label": "category"}).to_parquet(tmp_path / "c.parquet")
    check_people(tmp_path / "c.parquet")


def test_npz(tmp_path: Path) -> None:
    path = tmp_path / "rows.npz"
    X = np.arange(6.0).reshape(3, 2)
    np.savez(path, X=X, y=[1, -1, 1], site=["b", "a", "b"], columns=["height", "width"])
    rows = read_rows(path, target="y", node_column="site")
    np.testing.assert_array_equal(rows.X, X)
    assert rows.columns == ("height", "width")
    assert rows.y.tolist() == [1, -1, 1]
    assert rows.nodes is not None
    assert rows.nodes.tolist() == ["b", "a", "b"]


def test_svmlight(tmp_path: Path) -> None:
    path = write(tmp_path, "1 qid:3 1:0.5 3:2\n-1 qid:4 2:1.5\n", "rows.svmlight")
    rows = read_rows(path, target="y", node_column="qid")
    assert rows.columns == ("x1", "x2", "x3")
    assert rows.X.nnz == 3
    np.testing.assert_array_equal(rows.X.toarray(), [[0.5, 0.0, 2.0], [0.0, 1.5, 0.0]])
    assert rows.y.tolist() == [1, -1]
    assert rows.nodes is not None
    assert rows.nodes.tolist() == [3, 4]
    # Later rows need not have all features, and a feature keeps its index.
    later = read_table(write(tmp_path, "0 2:4\n", "later.svmlight"))
    np.testing.assert_array_equal(rows.encoding.encode(later).toarray(), [[0.0, 4.0, 0.0]])
    from_zero = read_table(write(tmp_path, "0 0:7 2:4\n", "zero.svm"))
    assert list(from_zero) == ["x0", "x1", "x2", "y"]
    np.testing.assert_array_equal(rows.encoding.encode(from_zero).toarray(), [[0.0, 4.0, 0.0]])


def test_numbers_in_a_declared_range_are_brought_to_minus_one_to_one(tmp_path: Path) -> None:
    path = write(tmp_path, "age,city,y\n0,Oslo,0\n100,Rome,1\n75,Rome,1\n")
    rows = read_rows(path, target="y", schema={"age": {"range": (0, 100)}})
    np.testing.assert_allclose(rows.X[:, 0], [-1.0, 1.0, 0.5])
    assert rows.encoding.columns[0] == Column("age", None, 50.0, 50.0, 1.0)
    with pytest.raises(DataError, match=r"scale .*'city'.*text"):
        read_rows(path, target="y", schema={"city": {"range": (0, 1)}})
    with pytest.raises(DataError, match=r"cut_off .*'y'"):
        read_rows(path, target="y", schema={"y": {"range": (0, 1)}})


def test_categories_and_text_are_as_declared(tmp_path: Path) -> None:
    path = write(tmp_path, "zone,code,y\nNA,1,0\nEU,2,1\n")
    rows = read_rows(
        path, target="y", schema={"zone": {"categories": ["EU", "NA", "AS"]}}, text=["code"]
    )
    assert rows.encoding.feature_names == ("zone=EU", "zone=NA", "zone=AS", "code=1", "code=2")
    np.testing.assert_array_equal(rows.X, [[0, 1, 0, 1, 0], [1, 0, 0, 0, 1]])
    with pytest.raises(DataError, match=r"row 1 \(line 2\), column 'zone': .*'NA'"):
        read_rows(path, target="y", schema={"zone": {"categories": ["EU", "AS"]}})


def test_encoding_of_a_model_reads_new_rows(tmp_path: Path) -> None:
    encoding = Encoding((Column("city", ("Oslo", "Rome")), Column("code", ("1", "2"))))
    path = write(tmp_path, "code,y,city\n2,1,Rome\n1,0,Oslo\n")
    rows = read_rows(path, target="y", encoding=encoding)
    np.testing.assert_array_equal(rows.X, [[0, 1, 0, 1], [1, 0, 1, 0]])
    assert Encoding.from_dict(encoding.to_dict()) == encoding


def test_rows_and_lines_of_long_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell may span lines, and the wrong one may be in any block."""
    monkeypatch.setattr(csv_file, "ROWS_AT_ONCE", 7)
    lines = ["a,b,note"] + [f'{k},{k},"two\nlines"' for k in range(50)]
    assert read_table(write(tmp_path, "\n".join(lines)))["a"].tolist() == list(range(50))
    lines[31] = '30,abc,"two\nlines"'
    with pytest.raises(DataError, match=r"row 31 \(line 62\), column 'b': 'abc'"):
        read_table(write(tmp_path, "\n".join(lines)))["b"]


def test_unused_columns_may_be_broken(tmp_path: Path) -> None:
    path = write(tmp_path, "age,note,y\n1,,0\n2,x,1\n3,7,1\n")
    rows = read_rows(path, target="y", drop=["note"])
    assert rows.columns == ("age",)
    table = read_table(path)
    with pytest.raises(DataError, match=r"row 1 \(line 2\), column 'note'"):
        table["note"]
    some = table.rows(np.array([1, 2]))
    assert some["age"].tolist() == [2.0, 3.0]
    assert some.name_row(1).endswith("row 3 (line 4)")
    assert some.rows(np.array([1])).name_row(0).endswith("row 3 (line 4)")


NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(min_size=1, max_size=8).map(lambda text: f"_{text.strip()}_")


@given(
    rows=st.lists(st.tuples(NUMBERS, TEXTS), min_size=1, max_size=20),
    delimiter=st.sampled_from([",", ";", "\t", "|"]),
)
@settings(max_examples=60, deadline=None)
def test_written_tables_are_read_back(rows: list[tuple[float, str]], delimiter: str) -> None:
    """Whatever the texts: quotes, separators and line breaks in them included."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.csv")
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter=delimiter)
            writer.writerows([("number", "text"), *rows])
        table = read_table(path, delimiter=delimiter)
        assert table["number"].tolist() == [number for number, _ in rows]
        assert table["text"].tolist() == [text.strip() for _, text in rows]


@given(st.binary(max_size=200), st.sampled_from(["x.csv", "x.npz", "x.parquet", "x.svm"]))
@settings(max_examples=150, deadline=None)
def test_any_bytes_are_read_or_refused(content: bytes, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(content)
        with contextlib.suppress(DataError):
            table = read_table(path)
            for column in table:
                assert len(table[column]) == table.row_count


MISTAKES: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", r"people.csv is empty"),
    "cut off": (gzip.compress(b"a,y\n1,2\n")[:-4], "compressed"),
    "not quite compressed": (b"\x1f\x8b", "compressed"),
    "only a header": ("a,y\n", "no rows"),
    "no header": ("1,2\n3,4\n", "first line .*'1,2'"),
    "too few cells": ("a,b,y\n1,2,3\n1,2\n", r"row 2 \(line 3\) has 2 cells, the header has 3"),
    "too many cells": ("a,y\n1,2\n1,500,3\n", r"row 2 \(line 3\) has 3 cells.*'1,500,3'.*quotes"),
    "name twice": ("a,b,a,y\n1,2,3,4\n", "'a' .*columns 1 and 3"),
    "no name": (",a,y\n0,1,2\n", r"column 1 has no name.*index=False"),
    "not a number": ("age,y\n1,0\nabc,1\n", r"row 2 \(line 3\), column 'age': 'abc'"),
    "decimal comma": ('age,y\n1,0\n"1,5",1\n', "'1,5' .*decimal point"),
    "missing number": ("age,y\n1,0\n,1\n", r"row 2 \(line 3\), column 'age': .*missing"),
    "NA": ("age,y\n1,0\nNA,1\n", r"column 'age': .*missing \('NA'\) \(1 such"),
    "NaN": ("age,y\n1,0\nnan,1\n", "column 'age': .*missing"),
    "missing text": ("city,y\nOslo,0\n ,1\n", r"row 2 \(line 3\), column 'city': .*missing"),
    "infinite": ("age,y\n1,0\n-inf,1\n", r"row 2 \(line 3\), column 'age': .*infinite"),
    "target typo": ("age,Label\n1,0\n2,1\n", r"no column 'y'.*'age' and 'Label'"),
    "one column": ("a b y\n1 2 3\n", r"no column 'y'.*'a b y'"),
    "nothing but the target": ("y\n1\n2\n", "--delimiter"),
    "names as categories": (
        "name,y\n" + "".join(f"p{k},{k % 2}\n" for k in range(30)), "'name' .*30 different"),
    "open quote": ('a,y\n"1,2\n3,4\n', "line 3: .*pairs"),
    "latin1": ("city,y\nZürich,1\n".encode("latin1"), r"UTF-8 \(byte 0xfc.*iconv"),
    "a spreadsheet": (b"PK\x03\x04 and so on", "spreadsheet"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_in_csv(tmp_path: Path, mistake: str) -> None:
    content, message = MISTAKES[mistake]
    with pytest.raises(DataError, match=f"(?s){message}"):
        read_rows(write(tmp_path, content), target="y")


def test_typos_are_guessed(tmp_path: Path) -> None:
    path = write(tmp_path, "age,Label,city\n1,0,Oslo\n2,1,Rome\n")
    with pytest.raises(DataError, match=r"no column 'lable', did you mean 'Label'\?"):
        read_rows(path, target="lable")
    with pytest.raises(DataError, match=r"no column 'agee', did you mean 'age'\?"):
        read_rows(path, target="Label", drop=["agee"])
    with pytest.raises(DataError, match=r"no column 'town'"):
        read_rows(path, target="Label", text=["town"])
    with pytest.raises(DataError, match=r"peple.csv .*'people.csv'\?"):
        read_table(tmp_path / "peple.csv")
    with pytest.raises(DataError, match=r"is a directory"):
        read_table(tmp_path)
    with pytest.raises(DataError, match=r"people\.xlsx.*\.csv"):
        read_table(write(tmp_path, "a", "people.xlsx"))


def test_mistakes_in_binary_files(tmp_path: Path) -> None:
    def npz(**arrays: object) -> Path:
        np.savez(tmp_path / "rows.npz", **arrays)  # type: ignore[arg-type]
        return tmp_path / "rows.npz"

    X = np.ones((2, 2))
    with pytest.raises(DataError, match="never loaded"):
        read_table(npz(X=X, y=np.array([{}, {}], dtype=object)))
    with pytest.raises(DataError, match=r"{'x0': 2, 'x1': 2, 'y': 3}"):
        read_table(npz(X=X, y=[1, 2, 3]))
    with pytest.raises(DataError, match=r"'y' has shape \(2, 1\)"):
        read_table(npz(X=X, y=[[1], [2]]))
    with pytest.raises(DataError, match=r"2 names"):
        read_table(npz(X=X, columns=["a"]))
    with pytest.raises(DataError, match=r"row 2, column 'x1': .*missing"):
        read_table(npz(X=[[1, 2], [3, np.nan]]))["x1"]
    with pytest.raises(DataError, match="damaged"):
        read_table(write(tmp_path, npz(X=X).read_bytes()[:40], "cut.npz"))
    with pytest.raises(DataError, match=r"cut\.parquet .*Parquet"):
        read_table(write(tmp_path, "hello", "cut.parquet"))
    table = pd.DataFrame({"a": [1.0, None], "when": pd.to_datetime(["2020", "2021"])})
    table.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"row 2, column 'a': .*missing"):
        read_table(tmp_path / "t.parquet")["a"]
    with pytest.raises(DataError, match=r"column 'when' .*timestamp"):
        read_table(tmp_path / "t.parquet")["when"]
    with pytest.raises(DataError, match="SVMlight"):
        read_table(write(tmp_path, "hello world", "rows.svm"))
    with pytest.raises(DataError, match="is not CSV"):
        read_table(write(tmp_path, "1 1:2", "rows.svm"), delimiter=",")


def test_encoded_numbers_of_files_are_checked(tmp_path: Path) -> None:
    path = write(tmp_path, "age,y\n1e300,1\n1,0\n")
    tiny = Encoding((Column("age", None, 0.0, 1e-10),))
    with pytest.raises(
        DataError, match=r"people\.csv, row 1 \(line 2\), column 'age': .* infinite"
    ):
        read_rows(path, target="y", encoding=tiny)
    cut = read_rows(path, target="y", schema={"age": {"range": (0.0, 1e-10)}})
    np.testing.assert_array_equal(cut.X[:, 0], [1.0, 1.0])  # far beyond the end, and so at it
    texts = pd.DataFrame({"age": ["1", "nan"]})
    texts.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"row 2, column 'age': .*missing \(1 such"):
        Encoding.of_numbers(["age"]).encode(read_table(tmp_path / "t.parquet"))


def test_tables_in_memory_are_checked_too() -> None:
    encoding = Encoding.of_table(PEOPLE[["age", "city"]])
    assert encoding.encode(PEOPLE).shape == (4, 4)
    broken = PEOPLE.astype({"age": object})
    broken.loc[2, "age"] = "old"
    with pytest.raises(DataError, match="row 2, column 'age': 'old'"):
        encoding.encode(broken)
    broken.loc[2, "age"] = "1,5"
    with pytest.raises(DataError, match=r"row 2, column 'age': '1,5' .*point"):
        encoding.encode(broken)
    with pytest.raises(DataError, match=r"row 1, column 'age': .*infinite"):
        encoding.encode(PEOPLE.assign(age=[1.0, np.inf, 2.0, 3.0]))
    with pytest.raises(DataError, match="no column 'age'"):
        encoding.encode(PEOPLE[["city"]])
    with pytest.raises(DataError, match=r"row 1, column 'city': .*missing"):
        Encoding.of_table({"city": ["a", None]})
    with pytest.raises(DataError, match=r"'a' occurs twice"):
        Encoding.of_numbers(["a", "a"])
    with pytest.raises(DataError, match=r"'b' occurs twice"):
        Column("a", ("b", "b"))


def test_edge_lists_use_the_names_of_the_data(tmp_path: Path) -> None:
    text = "node_a;node_b\n# the ferry\noslo;rome\n\nrome;bern\n"
    network = read_network(write(tmp_path, text, "e.txt"), ["rome", "oslo", "rome"])
    assert network.names == ("bern", "oslo", "rome")
    assert network.owners.tolist() == [2, 1, 2]
    assert network.graph.neighbours(2).tolist() == [0, 1]
    network = read_network(write(tmp_path, "1 2\n2 10\n10 1\n", "e.txt"), [10, 1, 2])
    assert network.names == ("1", "2", "10")
    assert network.owners.tolist() == [2, 0, 1]
    plain = read_network(write(tmp_path, "0,1\n1,2\n", "e.txt"), np.array([0, 1, 2]))
    assert plain.owners.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "e.txt: .*no edges"),
        ("oslo rome bern\n", "e.txt, line 1: .*'oslo rome bern'"),
        ("oslo rome\nbern kiel\n", "2 components.*'bern' to 'oslo' and 'rome'"),
        ("1 2\n2 3\n", r"row 0: node 'rome' owns this row"),
        ("olso rome\n", r"row 1: node 'oslo' owns this row.*did you mean 'olso'\? Rows"),
    ],
)
def test_mistakes_in_edge_lists(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=f"(?s){message}"):
        read_network(write(tmp_path, text, "e.txt"), ["rome", "oslo"])


def test_nodes_counted_from_0_and_edges_from_1(tmp_path: Path) -> None:
    path = write(tmp_path, "1 2\n2 3\n3 1\n", "e.txt")
    with pytest.raises(DataError, match=r"row 2: node '0' .* nodes are 1 to 3. Rows number .* 0"):
        read_network(path, [1, 2, 0])
    with pytest.raises(DataError, match=r"row 1: node '7' .* 1 to 3. Add its edges"):
        read_network(path, [1, 7])


def test_true_and_false_are_the_same_in_every_file(tmp_path: Path) -> None:
    table = pd.DataFrame({"member": [True, False, True], "label": [False, True, True]})
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_parquet(tmp_path / "t.parquet")
    one = read_rows(tmp_path / "t.csv", target="label")
    other = read_rows(tmp_path / "t.parquet", target="label")
    assert one.encoding == other.encoding
    np.testing.assert_array_equal(one.X, other.X)
    assert one.y.tolist() == other.y.tolist() == ["False", "True", "True"]


@pytest.mark.parametrize("rows", [1, 25_000], ids=["one block", "two blocks"])
def test_separators_of_old_files_around_a_number_are_space(tmp_path: Path, rows: int) -> None:
    """NumPy strips fewer kinds of space than Python; where a block ends must not decide."""
    file = tmp_path / "odd.csv"
    file.write_text("a,b\n" + "1,2\n" * rows + "\x1c9,3\n", encoding="utf-8")
    assert read_table(file)["a"].tolist() == [1.0] * rows + [9.0]


def test_a_self_loop_in_an_edge_list_is_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "edges.txt"
    path.write_text("oslo rome\noslo oslo\n")
    with pytest.warns(UserWarning, match="left out 1 edge"):
        network = read_network(path, ["oslo", "rome"])
    assert network.names == ("oslo", "rome")


def test_compressed_csv(tmp_path: Path) -> None:
    text = "x,y\n" + "1,2\n" * 5
    (tmp_path / "rows.csv.gz").write_bytes(gzip.compress(text.encode()))
    table = read_table(tmp_path / "rows.csv.gz")
    assert table["x"].tolist() == [1.0] * 5
    (tmp_path / "rows.parquet.gz").write_bytes(gzip.compress(b"x"))
    with pytest.raises(DataError, match=r"\.csv\.gz"):
        read_table(tmp_path / "rows.parquet.gz")
