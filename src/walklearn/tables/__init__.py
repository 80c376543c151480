"""Rows from the files people have: CSV, Parquet, NumPy's npz, SVMlight.

`read_table` gives the columns of a file, each of numbers or of text, with every cell checked;
`read_rows` makes of them what a `Problem` needs. A message names the file, the row (counted from
1, with its line) and the column, and says what to do.

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

# On first use: nobody who simulates reads tables.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
