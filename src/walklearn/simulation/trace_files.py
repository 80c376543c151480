"""The files of traces: NumPy's ``.npz``, or a Parquet table that other tools can read.

Here a trace is a mapping of field names to values. Numbers, names and the spec are a JSON header
with the format's name and version. Metrics, messages and times, one number per replicate and
record, are the columns of the Parquet table, and its metadata holds the rest.

>>> read_trace_file("runs/today.csv", dict)
Traceback (most recent call last):
    ...
ValueError: a trace is stored in a .npz or .parquet file, got 'runs/today.csv'.
"""

import base64
import io
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from walklearn.arrays import read_npz
from walklearn.extras import arrow_memory, extra
from walklearn.files.atomic_write import atomic_write
from walklearn.wording import no_such_file

Fields: TypeAlias = Mapping[str, Any]
Encode: TypeAlias = Callable[[Fields], bytes]
Decode: TypeAlias = Callable[[bytes], dict[str, Any]]

ERRORS = ("distance", "average_distance", "gap", "average_gap")  # metrics that need an optimum
COST_COLUMNS = ("label", "replicate", "updates", "messages", "bytes", "time")  # metrics follow them
NUMBER_BYTES = 8

_FORMAT = "walklearn trace"
_VERSION = 3
_METRIC = "metrics/"  # starts the name of a metric in a .npz file


class TraceFileError(ValueError):
    """The file is not a trace, is damaged, or comes from another version of walklearn."""


def write_trace_file(path: str | os.PathLike[str], fields: Fields) -> None:
    """Write the fields to a file of the kind that its suffix names, atomically."""
    atomic_write(path, _file_format(Path(path))[1](fields))


def read_trace_file(path: str | os.PathLike[str], make: Callable[..., Any]) -> Any:
    """Return what `make` makes of the fields of a file; arrays that were None are absent."""
    source = Path(path)
    magic, _, decode = _file_format(source)
    if not source.is_file():
        raise FileNotFoundError(f"{no_such_file(source)} Trace.save writes such a file.")
    content = source.read_bytes()
    # An empty or cut file begins as the magic does, so it is damaged.
    if not magic.startswith(content[: len(magic)]):
        raise TraceFileError(f"{source} is not a walklearn trace, nor a {source.suffix} file.")
    try:
        return make(**decode(content))
    except ImportError:
        raise
    except TraceFileError as error:
        raise TraceFileError(f"{source} {error}") from error
    except Exception as error:  # the readers fail on damage in too many ways to list
        raise TraceFileError(f"{source} is truncated or damaged: {error}") from error


def table_columns(fields: Fields) -> dict[str, Any]:
    """Return the table with one row per replicate and record, column by column."""
    messages, updates = fields["messages"], fields["updates"]
    costs = (
        [fields["label"]] * messages.size,
        np.repeat(np.arange(len(messages)), len(updates)),
        np.tile(updates, len(messages)),
        messages.ravel(),
        bytes_sent(fields).ravel(),
        fields["time"].ravel(),
    )
    metrics = {name: series.ravel() for name, series in fields["metrics"].items()}
    return dict(zip(COST_COLUMNS, costs, strict=True)) | metrics


def bytes_sent(fields: Fields) -> Any:
    """Return the bytes of all messages; questions and answers are one number each."""
    questions = 0 if fields["questions"] is None else fields["questions"]
    return (fields["messages"] - questions) * fields["message_bytes"] + questions * NUMBER_BYTES


def _encode_header(fields: Fields) -> str:
    plain = (str, int, dict)  # neither arrays nor None
    values = {k: v for k, v in fields.items() if isinstance(v, plain) and k != "metrics"}
    return json.dumps({"format": _FORMAT, "version": _VERSION, **values})


def _decode_header(text: str | None) -> dict[str, Any]:
    if text is None or (header := json.loads(text)).pop("format", None) != _FORMAT:
        raise TraceFileError("is not a walklearn trace.")
    if (version := header.pop("version")) != _VERSION:
        raise TraceFileError(
            f"is a trace of format {version}, and this walklearn reads format {_VERSION}. Upgrade "
            "walklearn, or run the simulation again."
        )
    return dict(header)


def _zip(fields: Fields, **more: Any) -> bytes:
    present: Any = {n: value for n, value in fields.items() if isinstance(value, np.ndarray)}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **present, **more)
    return buffer.getvalue()


def _encode_npz(fields: Fields) -> bytes:
    metrics = {_METRIC + name: series for name, series in fields["metrics"].items()}
    header = np.array(_encode_header(fields))
    return _zip(fields, walklearn=header, **metrics)


def _decode_npz(content: bytes) -> dict[str, Any]:
    arrays = read_npz(content)
    header = arrays.pop("walklearn", None)
    fields = _decode_header(None if header is None else header.item())
    names = [name for name in arrays if name.startswith(_METRIC)]
    metrics = {name.removeprefix(_METRIC): arrays.pop(name) for name in names}
    return fields | arrays | {"metrics": metrics}


def _encode_parquet(fields: Fields) -> bytes:
    with extra("tables", "this needs"):
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    others = {name: value for name, value in fields.items() if name not in ("messages", "time")}
    whole = base64.b64encode(_zip(others))  # other readers expect text in the metadata
    metadata = {"walklearn": _encode_header(fields), "walklearn.arrays": whole}
    table = arrow.table(table_columns(fields), metadata=metadata)
    buffer = io.BytesIO()
    parquet.write_table(table, buffer, write_page_checksum=True)
    return buffer.getvalue()


def _decode_parquet(content: bytes) -> dict[str, Any]:
    with extra("tables", "this needs"):
        import pyarrow.parquet as parquet
    table = parquet.read_table(
        arrow_memory(content),
        page_checksum_verification=True,
        thrift_string_size_limit=2**31 - 1,  # models may be large
    )
    metadata = table.schema.metadata or {}
    text = metadata.get(b"walklearn")
    header = _decode_header(None if text is None else text.decode())
    arrays = read_npz(base64.b64decode(metadata[b"walklearn.arrays"]))
    shape = len(arrays["models"]), len(arrays["updates"])
    columns = {name: table[name].to_numpy().reshape(shape) for name in table.column_names}
    metrics = {name: series for name, series in columns.items() if name not in COST_COLUMNS}
    costs = {name: columns[name] for name in ("messages", "time")}
    return header | arrays | costs | {"metrics": metrics}


# The bytes that a file starts with, and the functions that encode and decode the fields.
_FILE_FORMATS = {
    ".npz": (b"PK\x03\x04", _encode_npz, _decode_npz),
    ".parquet": (b"PAR1", _encode_parquet, _decode_parquet),
}


def _file_format(path: Path) -> tuple[bytes, Encode, Decode]:
    if path.suffix not in _FILE_FORMATS:
        raise ValueError(f"a trace is stored in a .npz or .parquet file, got {str(path)!r}.")
    return _FILE_FORMATS[path.suffix]
