"""`Results`: the directory of a study, with its text and a file for each finished cell.

    study.toml  about.json          the text; format, version, hashes of the cells
    cells/<hash>.parquet            a row per instance, replicate and record
    facts/<hash>.parquet            a row per instance
    nodes/<hash>.parquet            a row per node, of instance 0
    edges/<hash of the graph>.parquet
    verdicts.parquet

Files are written atomically, the records of a cell last: a cell is finished if its records exist.
If the text of a study changes, cells that it no longer has stay in the directory, but are not read.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from walklearn import __version__
from walklearn.extras import package
from walklearn.files.atomic_write import atomic_write
from walklearn.studies.cell import FORMAT, Cell
from walklearn.studies.import_paths import register_shipped
from walklearn.studies.study import Study
from walklearn.studies.tables import (
    CellResult,
    Columns,
    constant_columns,
    machine,
    now,
    origin_columns,
    rows_of,
    storage_columns,
)

if TYPE_CHECKING:
    import pandas

_ABOUT = "about.json"
_CURVES = "curves.parquet"  # the points of a computed figure, which has no study.toml
_JSON: Mapping[type, str] = {str: "a string", bool: "true or false", dict: "an object"}


class ResultsError(ValueError):
    """A results directory cannot be used."""


@dataclass(frozen=True)
class Results:
    """The stored results of a study. `run_study` makes them, `Results.open` opens them again.

    Parameters
    ----------
    directory
        Directory of the results.
    about
        Content of its about.json.
    """

    directory: Path
    about: Mapping[str, Any]

    @classmethod
    def open(cls, directory: str | os.PathLike[str]) -> Results:
        """Open a results directory.

        Raise a ResultsError if it contains no results, if they are damaged, or if another version
        wrote them.

        >>> Results.open("no-such-directory")
        Traceback (most recent call last):
            ...
        walklearn.studies.results.ResultsError: no-such-directory holds no results of a ...
        """
        folder = Path(directory)
        return cls(folder, _read_about(folder))

    @classmethod
    def prepare(cls, directory: str | os.PathLike[str], study: Study) -> Results:
        """Create or reuse a directory for the study; finished cells are kept, verdicts deleted.

        Raise a ResultsError if it is damaged, or if another version wrote it.
        """
        for name in ("pyarrow.parquet", "pandas", "threadpoolctl"):
            package(name, "experiments", "studies need")  # fails before the first cell is run
        folder = Path(directory)
        started = cls.open(folder).about["started"] if (folder / _ABOUT).exists() else now()
        cells = {cell.hash: cell.names | {"edges": cell.graph_hash} for cell in study.cells()}
        results = cls(folder, _about(study.name, study.is_quick, started, cells))
        results._file("", "verdicts").unlink(missing_ok=True)  # those of an earlier run
        results._write("study.toml", study.text.encode())
        results._write(_ABOUT, json.dumps(results.about, indent=1).encode())
        return results

    @classmethod
    def of_curves(
        cls, directory: str | os.PathLike[str], points: pandas.DataFrame, question: str, note: str
    ) -> Results:
        """Store a computed figure in a directory with its name.

        points: a row per point, with its provenance. note: the choices behind the figure.
        """
        folder = Path(directory)
        about = _about(folder.name, False, now(), {}) | {"question": question, "note": note}
        results = cls(folder, about)
        results._write_frame("curves", points)
        results._write(_ABOUT, json.dumps(about, indent=1).encode())
        return results

    @cached_property
    def study(self) -> Study:
        """The study as it was run."""
        register_shipped(self.about["study"])
        path = self.directory / "study.toml"
        study = Study.from_text(path.read_text(encoding="utf-8"), str(path), check=False)
        return study.quick() if self.about["quick"] else study

    def is_finished(self, cell: Cell) -> bool:
        """True if the cell is finished."""
        return self._file("cells", cell.hash).exists()

    @property
    def finished_count(self) -> int:
        """The number of finished cells of the study."""
        return sum(self._file("cells", name).exists() for name in self.about["cells"])

    def write(self, cell: Cell, result: CellResult) -> None:
        """Store the results of a cell, its records last."""
        names = {**cell.names, "cell": cell.hash}
        if result.edges:
            self._write_table("edges", cell.graph_hash, result.edges, {"graph": cell.graph})
        self._write_table("nodes", cell.hash, result.nodes, names)
        self._write_table("facts", cell.hash, result.facts, names)
        self._write_table("cells", cell.hash, result.records, names)

    def write_verdicts(self, study: Study, verdicts: pandas.DataFrame) -> None:
        """Store the verdicts of the study, with their provenance."""
        rows = verdicts.assign(**origin_columns(study.seed), **storage_columns(study.hash))
        self._write_frame("verdicts", rows)

    def records(self) -> pandas.DataFrame:
        """Return costs and errors: a row per cell, instance, replicate and record."""
        return self._read("cells", self.about["cells"])

    def facts(self) -> pandas.DataFrame:
        """Return optimum, theory, privacy and tuning: a row per cell and instance."""
        return self._read("facts", self.about["cells"])

    def nodes(self) -> pandas.DataFrame:
        """Return the nodes of instance 0: a row per cell and node."""
        return self._read("nodes", self.about["cells"])

    def edges(self) -> pandas.DataFrame:
        """Return the edges of instance 0: a row per graph and edge."""
        return self._read(
            "edges", dict.fromkeys(each["edges"] for each in self.about["cells"].values())
        )

    def verdicts(self) -> pandas.DataFrame:
        """Return the verdicts: a row per claim and reading; empty before they are computed."""
        return self._read("", ["verdicts"])

    def _file(self, kind: str, name: str) -> Path:
        return self.directory / kind / f"{name}.parquet"

    def _read(self, kind: str, names: Iterable[str]) -> pandas.DataFrame:
        arrow, parquet = _arrow(), package("pyarrow.parquet", "experiments", "studies need")
        tables = []
        for path in filter(Path.exists, (self._file(kind, name) for name in names)):
            try:
                tables.append(parquet.read_table(path, page_checksum_verification=True))
            except (OSError, arrow.ArrowException) as error:
                raise _damage_error(path, error) from error
        filled = [table for table in tables if len(table)] or tables[:1] or [arrow.table({})]
        # Cells that were stored before a column existed have no values in it.
        table = arrow.concat_tables(filled, promote_options="default")
        frame: pandas.DataFrame = table.to_pandas()
        return frame

    def _write_table(
        self, kind: str, name: str, table: Columns, identity: Mapping[str, str]
    ) -> None:
        rows = rows_of(table)
        columns = {
            **constant_columns(identity, rows),
            **table,
            **constant_columns(storage_columns(name), rows),
        }
        self._write_parquet(f"{kind}/{name}.parquet", _arrow().table(columns))

    def _write_frame(self, name: str, rows: pandas.DataFrame) -> None:
        table = _arrow().Table.from_pandas(rows, preserve_index=False)
        self._write_parquet(f"{name}.parquet", table)

    def _write_parquet(self, name: str, table: Any) -> None:
        buffer = io.BytesIO()
        parquet = package("pyarrow.parquet", "experiments", "studies need")
        parquet.write_table(table, buffer, write_page_checksum=True)
        self._write(name, buffer.getvalue())

    def _write(self, name: str, content: bytes) -> None:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, content)


def _arrow() -> Any:
    return package("pyarrow", "experiments", "studies need")


def _damage_error(file: Path, problem: Exception) -> ResultsError:
    reason = str(problem).rstrip(".")
    return ResultsError(f"{file} is damaged: {reason}. Delete it and run the study again.")


def _about(study: str, is_quick: bool, started: str, cells: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of about.json."""
    return {
        "format": FORMAT,
        "walklearn": __version__,
        "study": study,
        "quick": is_quick,
        "started": started,
        "machine": machine(),
        "cells": cells,
    }


def _read_about(folder: Path) -> dict[str, Any]:
    """Read about.json; a ResultsError if it is missing, damaged or of another version."""
    file = folder / _ABOUT
    try:
        about: dict[str, Any] = json.loads(file.read_bytes())
        written_by = about["format"], about["walklearn"]
    except FileNotFoundError as error:
        raise ResultsError(f"{folder} holds no results of a study (no {_ABOUT}).") from error
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ResultsError(f"cannot read {file}: {error!r}") from error
    if written_by != (FORMAT, __version__):
        raise ResultsError(
            f"{folder} was written by walklearn {written_by[1]} (format {written_by[0]}), but "
            f"this is walklearn {__version__} (format {FORMAT}). Read it with that version, or "
            "run the study again into another directory."
        )
    try:
        _check_about(about, (folder / _CURVES).is_file())
    except ValueError as error:
        raise _damage_error(file, error) from error
    return about


def _check_about(about: Mapping[str, Any], is_of_curves: bool) -> None:
    """Raise a ValueError if the content of about.json is invalid."""
    kinds = {"study": str, "quick": bool, "started": str, "machine": str, "cells": dict}
    if is_of_curves:
        kinds |= {"question": str, "note": str}
    for key, kind in kinds.items():
        if not isinstance(about.get(key), kind):
            value = json.dumps(about[key])[:60] if key in about else "missing"
            raise ValueError(f"{key!r} must be {_JSON[kind]}; it is {value}")
    try:
        datetime.fromisoformat(about["started"])
    except ValueError as error:
        raise ValueError(f"'started' must be an ISO 8601 time: {error}") from error
    for name, cell in about["cells"].items():
        if not isinstance(cell, dict) or not isinstance(cell.get("edges"), str):
            raise ValueError(f"'cells' must name the 'edges' of {name!r}")
