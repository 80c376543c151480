"""Files that may be compressed by gzip: opened alike, whatever they are called.

>>> import gzip, pathlib, tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     path = pathlib.Path(folder, "edges.txt.gz")
...     _ = path.write_bytes(gzip.compress(b"0 1"))
...     with open_text(path) as file:
...         print(file.read())
0 1
"""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

_GZIP = b"\x1f\x8b"  # what such a file begins with


def open_bytes(path: Path) -> BinaryIO:
    """Open a file to read bytes, which are unpacked on the way where it is compressed."""
    with path.open("rb") as file:
        packed = file.read(len(_GZIP)) == _GZIP
    return cast(BinaryIO, gzip.open(path, "rb")) if packed else path.open("rb")


def open_text(path: Path, encoding: str = "utf-8-sig", **options: Any) -> TextIO:
    """Open a file to read text, unpacked likewise; `options` are those of `open`."""
    return io.TextIOWrapper(open_bytes(path), encoding, **options)


def suffix_of(path: Path) -> str:
    """The ending that tells the kind of a file: ".csv" of rows.csv and of rows.csv.gz."""
    return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()
