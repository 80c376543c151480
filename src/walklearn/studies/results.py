"""A study's directory: its text, a file for each finished cell, and tables to read them by.

    study.toml  about.json          the text that ran; format, version, which cells it has
    cells/<hash>.parquet            a row per instance, replicate and record
    facts/<hash>.parquet            a row per instance
    nodes/<hash>.parquet            a row per node, of instance 0
    edges/<hash of the graph>.parquet
    verdicts.parquet

A file appears whole or not at all, and a cell's records last: where they are, the cell is
finished. Cells of an earlier text that the present one no longer has are left alone and not read.
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
from walklearn.extras import extra, package
from walklearn.files.atomic_write import atomic_write
from walklearn.studies.cell import FORMAT, Cell
from walklearn.studies.origins import register_shipped
from walklearn.studies.study import Study
from walklearn.studies.tables import (
    CellResult,
    Columns,
    keeping,
    machine,
    now,
    origin,
    repeated,
    rows_of,
    seed_name,
)

if TYPE_CHECKING:
    import pandas

_ABOUT = "about.json"
_CURVES = "curves.parquet"  # a figure that was computed: it has no study.toml
_JSON: Mapping[type, str] = {str: "a string", bool: "true or false", dict: "an object"}


class ResultsError(ValueError):
    """A results directory that cannot be used, and what to do.

    Examples
    --------
    >>> Results.open("no-such-directory")
    Traceback (most recent call last):
        ...
    walklearn.studies.results.ResultsError: no-such-directory holds no results of a ...
    """


@dataclass(frozen=True)
class Results:
    """The results of a study so far. `run_study` makes them; `Results.open` finds them again.

    Parameters
    ----------
    directory
        Where the results are.
    about
        What was run, from the directory's own record.
    """

    directory: Path
    about: Mapping[str, Any]

    @classmethod
    def open(cls, directory: str | os.PathLike[str]) -> Results:
        """Open the results in a directory that a study wrote.

        Parameters
        ----------
        directory
            Where they are.

        Returns
        -------
        Results
            A `ResultsError` is raised where there are none, or they are damaged or another
            version's.
        """
        folder = Path(directory)
        return cls(folder, _read_about(folder))

    @classmethod
    def prepare(cls, directory: str | os.PathLike[str], study: Study) -> Results:
        """Make a directory to write this study's cells to; those that it has already are kept.

        Parameters
        ----------
        directory
            Where; it is made if it is not there.
        study
            What will be run. Verdicts of an earlier run are deleted.

        Returns
        -------
        Results
            A `ResultsError` is raised where the directory was written by another version or is
            damaged.
        """
        for needed in ("pyarrow.parquet", "pandas", "threadpoolctl"):
            # Better said now than when the first cell is finished.
            package(needed, "experiments", "studies need")
        folder = Path(directory)
        started = now()
        if (folder / _ABOUT).exists():
            started = cls.open(folder).about["started"]
        folder.mkdir(parents=True, exist_ok=True)
        cells = {cell.hash: cell.names | {"edges": cell.graph_hash} for cell in study.cells()}
        about = _about(study.name, study.is_quick, started, cells)
        results = cls(folder, about)
        results._file("", "verdicts").unlink(missing_ok=True)  # they are about what was there
        results._write("study.toml", study.text.encode())
        results._write(_ABOUT, json.dumps(about, indent=1).encode())
        return results

    @classmethod
    def of_curves(
        cls, directory: str | os.PathLike[str], points: pandas.DataFrame, question: str, note: str
    ) -> Results:
        """Store a computed figure, replacing earlier files.

        Parameters
        ----------
        directory
            Directory, named after the figure.
        points
            A row per point: panel, series, x, y, what the axes say, and its provenance.
        question
            Question that the figure answers.
        note
            Choices behind the figure.

        Returns
        -------
        Results
            Without cells and verdicts.
        """
        folder = Path(directory)
        about = _about(folder.name, False, now(), {}) | {"question": question, "note": note}
        folder.mkdir(parents=True, exist_ok=True)
        results = cls(folder, about)
        results._write_rows("curves", points)
        results._write(_ABOUT, json.dumps(about, indent=1).encode())
        return results

    @cached_property
    def study(self) -> Study:
        """The study as it was run."""
        register_shipped(self.about["study"])
        path = self.directory / "study.toml"
        study = Study.from_text(path.read_text(encoding="utf-8"), str(path), check=False)
        return study.quick() if self.about["quick"] else study

    def finished(self, cell: Cell) -> bool:
        """Whether the cell's records are there."""
        return self._file("cells", cell.hash).exists()

    @property
    def finished_count(self) -> int:
        """How many of the study's cells are finished."""
        return sum(self._file("cells", name).exists() for name in self.about["cells"])

    def write(self, cell: Cell, result: CellResult) -> None:
        """Keep a finished cell; its records come last, so that where they are all is there.

        Parameters
        ----------
        cell
            Which cell it is.
        result
            What its run has found.
        """
        names = {**cell.names, "cell": cell.hash}
        if result.edges:
            self._write_table("edges", cell.graph_hash, result.edges, {"graph": cell.graph})
        self._write_table("nodes", cell.hash, result.nodes, names)
        self._write_table("facts", cell.hash, result.facts, names)
        self._write_table("cells", cell.hash, result.records, names)

    def write_verdicts(self, study: Study, verdicts: pandas.DataFrame) -> None:
        """Keep what was found of the study's claims, in place of what was there.

        Parameters
        ----------
        study
            The study, whose seed and text every row will carry.
        verdicts
            A row for each reading of a claim, as `studies.verdicts.verdicts` makes them.
        """
        rows = verdicts.assign(**origin(seed_name(study.seed)), **keeping(study.hash))
        self._write_rows("verdicts", rows)

    def records(self) -> pandas.DataFrame:
        """A row per cell, instance, replicate and record: the cost so far and the errors."""
        return self._read("cells", self.about["cells"])

    def facts(self) -> pandas.DataFrame:
        """A row per cell and instance: what else is known of it."""
        return self._read("facts", self.about["cells"])

    def nodes(self) -> pandas.DataFrame:
        """A row per cell and node, for instance 0."""
        return self._read("nodes", self.about["cells"])

    def edges(self) -> pandas.DataFrame:
        """A row per graph and edge, for instance 0."""
        return self._read("edges", {each["edges"] for each in self.about["cells"].values()})

    def verdicts(self) -> pandas.DataFrame:
        """A row per claim and reading; empty before any was reached."""
        return self._read("", ["verdicts"])

    def _file(self, kind: str, name: str) -> Path:
        return self.directory / kind / f"{name}.parquet"

    def _read(self, kind: str, names: Iterable[str]) -> pandas.DataFrame:
        with extra("experiments", "studies need"):
            import pyarrow as arrow
            import pyarrow.parquet as parquet
        tables = []
        for path in (self._file(kind, name) for name in names):
            if not path.exists():
                continue
            try:
                tables.append(parquet.read_table(path, page_checksum_verification=True))
            except (OSError, arrow.ArrowException) as error:
                raise _damage_error(path, error) from error
        filled = [table for table in tables if len(table)] or tables[:1] or [arrow.table({})]
        # Cells kept before a column came to be have nothing there.
        every = arrow.concat_tables(filled, promote_options="default")
        frame: pandas.DataFrame = every.to_pandas()
        return frame

    def _write_table(
        self, kind: str, name: str, table: Columns, identity: Mapping[str, str]
    ) -> None:
        with extra("experiments", "studies need"):
            import pyarrow as arrow
            import pyarrow.parquet as parquet
        rows = rows_of(table)
        columns = {**repeated(identity, rows), **table, **repeated(keeping(name), rows)}
        buffer = io.BytesIO()
        parquet.write_table(arrow.table(columns), buffer, write_page_checksum=True)
        self._write(f"{kind}/{name}.parquet", buffer.getvalue())

    def _write_rows(self, name: str, rows: pandas.DataFrame) -> None:
        buffer = io.BytesIO()
        rows.to_parquet(buffer, index=False)
        self._write(f"{name}.parquet", buffer.getvalue())

    def _write(self, name: str, content: bytes) -> None:
        path = self.directory / name
        path.parent.mkdir(exist_ok=True)
        atomic_write(path, content)


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
    """Read what a directory says of its study; ResultsError if missing, damaged or another's."""
    file = folder / _ABOUT
    try:
        about = json.loads(file.read_bytes())
        written_by = about["format"], about["walklearn"]
    except FileNotFoundError as error:
        raise ResultsError(f"{folder} holds no results of a study (no {_ABOUT}).") from error
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ResultsError(f"cannot read {file}: {error!r}") from error
    if written_by != (FORMAT, __version__):
        raise ResultsError(
            f"{folder} was written by walklearn {written_by[1]} (format {written_by[0]}), and "
            f"this is walklearn {__version__} (format {FORMAT}): read it with that version, or "
            "run the study again into another directory."
        )
    try:
        _check_about(about, (folder / _CURVES).is_file())
    except ValueError as error:
        raise _damage_error(file, error) from error
    checked: dict[str, Any] = about
    return checked


def _check_about(about: Mapping[str, Any], is_of_curves: bool) -> None:
    """Raise a ValueError if the content of about.json is invalid."""
    kinds = {"study": str, "quick": bool, "started": str, "machine": str, "cells": dict}
    if is_of_curves:
        kinds |= {"question": str, "note": str}
    for key, kind in kinds.items():
        if not isinstance(about.get(key), kind):
            found = json.dumps(about[key])[:60] if key in about else "missing"
            raise ValueError(f"{key!r} must be {_JSON[kind]}, and is {found}")
    try:
        datetime.fromisoformat(about["started"])
    except ValueError as error:
        raise ValueError(f"'started' must be an ISO 8601 time: {error}") from error
    for name, cell in about["cells"].items():
        if not isinstance(cell, dict) or not isinstance(cell.get("edges"), str):
            raise ValueError(f"'cells' must name the 'edges' of {name!r}")
