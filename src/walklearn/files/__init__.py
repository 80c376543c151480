"""Rows from the files people have: CSV, Parquet, NumPy's npz, SVMlight.

`read_table` gives the columns of a file, each of numbers or of text, with every cell checked;
`read_rows` makes of them what a `Problem` needs. A message names the file, the row (counted from
1, with its line) and the column, and says what to do.

>>> import tempfile, pathlib
>>> with tempfile.TemporaryDirectory() as folder:
...     file = pathlib.Path(folder, "people.csv")
...     _ = file.write_text("age,city,site,label\\n30,Oslo,0,no\\n50,Rome,1,yes\\n")
...     rows = read_rows(file, target="label", node_column="site")
>>> rows.encoding.feature_names
('age', 'city=Oslo', 'city=Rome')
>>> rows.y.tolist(), rows.nodes.tolist()
(['no', 'yes'], [0, 1])
"""

from walklearn.files.formats import read_table
from walklearn.files.rows import Rows, read_rows, rows_of
from walklearn.files.schema import Schema
from walklearn.files.table import DataError, Table

__all__ = [
    "DataError",
    "Rows",
    "Schema",
    "Table",
    "read_rows",
    "read_table",
    "rows_of",
]
