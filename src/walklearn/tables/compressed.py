"""Files that may be compressed by gzip, whatever their names."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

_GZIP = b"\x1f\x8b"  # the first bytes of such a file


def open_bytes(path: Path) -> BinaryIO:
    """Open a file to read its bytes, decompressed."""
    with path.open("rb") as file:
        packed = file.read(len(_GZIP)) == _GZIP
    return cast(BinaryIO, gzip.open(path, "rb")) if packed else path.open("rb")


def open_text(path: Path, encoding: str = "utf-8-sig", **options: Any) -> TextIO:
    """Open a file to read its text, decompressed; `options` are those of `open`."""
    return io.TextIOWrapper(open_bytes(path), encoding, **options)


def suffix_of(path: Path) -> str:
    """Return the suffix without compression: ".csv" for rows.csv and rows.csv.gz."""
    return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()
