"""The files a trace is kept in: NumPy's ``.npz``, or a Parquet table that other tools can read.

A trace is here a plain mapping of field names to values. Numbers, names and the spec travel as a
JSON header that carries the format's name and version. Metrics and messages, with one number
per replicate and record, are the columns of the Parquet table, whose metadata holds the rest.

>>> read_trace_file("runs/today.csv")
Traceback (most recent call last):
    ...
ValueError: a trace is kept in a .npz or .parquet file, not in 'runs/today.csv'
"""

import base64
import io
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from walklearn.arrays import read_npz
from walklearn.extras import arrow_memory, extra
from walklearn.files.atomic_write import atomic_write
from walklearn.wording import no_such_file

Fields: TypeAlias = Mapping[str, Any]

ERRORS = ("distance", "average_distance", "gap", "average_gap")  # metrics that need an optimum
COST_COLUMNS = ("label", "replicate", "updates", "messages", "bytes")  # metrics follow them
PER_NODE = ("visits", "degrees", "expected_visits")
OPTIONAL = ("questions", *PER_NODE, "released", "contributions")  # arrays that may be None
WHOLE = ("updates", "models", "averages", *OPTIONAL)  # the arrays that are no columns
HEADER = (
    "label", "spec", "message_bytes", "announcements", "announcement_bytes", "complete", "privacy",
)  # fmt: skip

NUMBER_BYTES = 8

_FORMAT = "walklearn trace"
_VERSION = 2
_METRIC = "metrics/"  # starts the name of a metric in a .npz file


class TraceFileError(ValueError):
    """The file is not a trace, is damaged, or comes from a newer walklearn.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from walklearn import Trace
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "trace.npz")
    ...     _ = path.write_text("something else")
    ...     try:
    ...         Trace.load(path)
    ...     except TraceFileError as error:
    ...         print(str(error).removeprefix(f"{path} "))
    is not a walklearn trace, nor a .npz file
    """


def write_trace_file(path: str | os.PathLike[str], fields: Fields) -> None:
    """Keep the fields in a file of the kind its suffix says, whole or not at all."""
    atomic_write(path, _file_format(Path(path)).encode(fields))


def read_trace_file(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read back what :func:`write_trace_file` kept; arrays that were None are absent."""
    source = Path(path)
    file_format = _file_format(source)
    if not source.is_file():
        raise FileNotFoundError(f"{no_such_file(source)} Trace.save writes such a file.")
    content = source.read_bytes()
    # The start of an empty or cut file is still a start of the magic: that one is damaged.
    if not file_format.magic.startswith(content[: len(file_format.magic)]):
        raise TraceFileError(f"{source} is not a walklearn trace, nor a {source.suffix} file")
    try:
        return file_format.decode(content)
    except ImportError:
        raise
    except TraceFileError as error:
        raise TraceFileError(f"{source} {error}") from error
    except Exception as error:  # the readers fail on damage in too many ways to list
        raise damaged(source, error) from error


def damaged(path: str | os.PathLike[str], error: Exception) -> TraceFileError:
    """The error for a file whose content makes no sense."""
    return TraceFileError(f"{path} is truncated or damaged: {error}")


def table_columns(fields: Fields) -> dict[str, Any]:
    """The table with one row per replicate and record, column by column."""
    messages, updates = fields["messages"], fields["updates"]
    costs = (
        [fields["label"]] * messages.size,
        np.repeat(np.arange(len(messages)), len(updates)),
        np.tile(updates, len(messages)),
        messages.ravel(),
        bytes_sent(fields).ravel(),
    )
    metrics = {name: series.ravel() for name, series in fields["metrics"].items()}
    return dict(zip(COST_COLUMNS, costs, strict=True)) | metrics


def bytes_sent(fields: Fields) -> Any:
    """A model with every message, but for questions and answers, which are one number each."""
    questions = 0 if fields["questions"] is None else fields["questions"]
    return (fields["messages"] - questions) * fields["message_bytes"] + questions * NUMBER_BYTES


def _encode_header(fields: Fields) -> str:
    values = {name: fields[name] for name in HEADER}
    return json.dumps({"format": _FORMAT, "version": _VERSION, **values})


def _decode_header(text: str | None) -> dict[str, Any]:
    if text is None or (header := json.loads(text)).pop("format", None) != _FORMAT:
        raise TraceFileError("is not a walklearn trace")
    if (version := header.pop("version")) > _VERSION:
        raise TraceFileError(
            f"is a trace of format {version} and this walklearn reads up to {_VERSION}: upgrade it"
        )
    if version < _VERSION:
        raise TraceFileError(
            f"is a trace of format {version}, in which metrics had no names. This walklearn reads "
            f"format {_VERSION}: run the simulation again"
        )
    return {name: header[name] for name in HEADER}


def _zip(fields: Fields, **more: Any) -> bytes:
    present = {name: fields[name] for name in WHOLE if fields[name] is not None}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **present, **more)
    return buffer.getvalue()


def _encode_npz(fields: Fields) -> bytes:
    metrics = {_METRIC + name: series for name, series in fields["metrics"].items()}
    header = np.array(_encode_header(fields))
    return _zip(fields, messages=fields["messages"], walklearn=header, **metrics)


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
    whole = base64.b64encode(_zip(fields))  # other readers expect text in the metadata
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
    return header | arrays | {"messages": columns["messages"], "metrics": metrics}


class _FileFormat(NamedTuple):
    magic: bytes  # how every such file starts
    encode: Callable[[Fields], bytes]
    decode: Callable[[bytes], dict[str, Any]]


_FILE_FORMATS = {
    ".npz": _FileFormat(b"PK\x03\x04", _encode_npz, _decode_npz),
    ".parquet": _FileFormat(b"PAR1", _encode_parquet, _decode_parquet),
}


def _file_format(path: Path) -> _FileFormat:
    if path.suffix not in _FILE_FORMATS:
        raise ValueError(f"a trace is kept in a .npz or .parquet file, not in {str(path)!r}")
    return _FILE_FORMATS[path.suffix]
