"""Rows from files: CSV, Parquet, NumPy's npz, SVMlight.

`read_table` reads the columns of a file, each of numbers or of text, with every cell checked;
`read_rows` encodes them for a `Problem`. Errors name the file, the row (counted from 1, with its
line) and the column.

>>> import tempfile, pathlib
>>> from walklearn.tables import read_rows
>>> with tempfile.TemporaryDirectory() as folder:
...     file = pathlib.Path(folder, "people.csv")
...     _ = file.write_text("age,city,site,label\\n30,Oslo,0,no\\n50,Rome,1,yes\\n")
...     rows = read_rows(file, target="label", node_column="site")
>>> rows.encoding.feature_names
('age', 'city=Oslo', 'city=Rome')
>>> rows.y.tolist(), rows.nodes.tolist()
(['no', 'yes'], [0, 1])
"""

import lazy_loader

# Loaded on first use, because simulations need no tables.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
