"""The owner's record: the total privacy loss of all runs on the same rows.

Each run has its own (ε, δ), but several runs on the same rows cost more. The record stores the
charges of each run and a keyed mark of each of its rows (`tables.row_marks`). The total of some
rows composes all runs on any of them. It is an upper bound, because a row need not have been in all
of these runs.

A run is charged before it draws any noise, and nothing is ever refunded: a run that fails or is
interrupted may have revealed as much as a run that ends.

The record is one SQLite file. Writers wait for each other; readers never wait. Each distinct set of
rows is stored once, 8 bytes per row, with the list of the sets that it overlaps.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
import sqlite3
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from walklearn.errors import PrivacyWarning
from walklearn.files.atomic_write import sync_directory
from walklearn.privacy.accounting.composition import Charge, compose
from walklearn.privacy.accounting.ledger import Ledger
from walklearn.privacy.accounting.printing import format_upper
from walklearn.privacy.limits import DEFAULT_DELTA
from walklearn.privacy.mechanisms.description import IN_THE_CLEAR, from_description
from walklearn.privacy.model_noise import Unit
from walklearn.tables.row_marks import Marks, RowBlock, RowMarks, blocks_of
from walklearn.wording import plural

_FORMAT = 1
_APPLICATION = 0x77616C72  # "walr", in the header of the file
_WAIT_SECONDS = 600.0  # a writer waits for others that compose totals
_MARKS_PER_PART = 2**20
# Errors of the folder or its file system, not of the content.
_PLACE_ERRORS = ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_FULL", "SQLITE_IOERR",
                 "SQLITE_PROTOCOL", "SQLITE_PERM")  # fmt: skip
_RESTORE = "Restore it from a backup: without it the cost of earlier runs is unknown."
_SCHEMA = f"""
CREATE TABLE key (content BLOB NOT NULL);
CREATE TABLE row_sets (id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE);
CREATE TABLE marks (row_set INTEGER NOT NULL, part INTEGER NOT NULL, content BLOB NOT NULL,
    PRIMARY KEY (row_set, part));
CREATE TABLE overlaps (row_set INTEGER NOT NULL, other INTEGER NOT NULL,
    PRIMARY KEY (row_set, other)) WITHOUT ROWID;
CREATE TABLE runs (id INTEGER PRIMARY KEY, row_set INTEGER NOT NULL, name TEXT NOT NULL,
    began TEXT NOT NULL, charges TEXT NOT NULL, delta REAL, nodes INTEGER NOT NULL,
    constant TEXT NOT NULL, released REAL);
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {_FORMAT};
"""
_ROW_SET = "SELECT id FROM row_sets WHERE digest = ?"
_RUNS = (
    "SELECT name, charges, delta, nodes, constant, released FROM runs WHERE row_set IN ({}) "
    "ORDER BY id"
)

ChargeEntry = tuple[str, Any, int]  # what, description of the mechanism or None, times


class OwnerRecordError(ValueError):
    """The owner's record cannot be read or written; the message says what to do."""


class RowSet(NamedTuple):
    """The rows of one run: their marks, and one digest for all of them."""

    digest: str
    marks: Marks


@dataclass(frozen=True)
class Run:
    """A recorded run.

    charges: the largest charges of each of its nodes. delta: the δ of the run's own claim. nodes:
    the number of nodes that its rows were spread over. constant: digest of everything that its
    release of L_i depends on; empty without a release. released: the released L_i, once drawn.
    """

    name: str
    charges: tuple[ChargeEntry, ...]
    delta: float | None = None
    nodes: int = 1
    constant: str = ""
    released: float | None = None

    @classmethod
    def of_ledger(cls, ledger: Ledger, name: str, delta: float | None = None) -> Run:
        """Return the run that a ledger describes, each charge with its largest count."""
        charges = []
        for each in ledger.to_dict()["releases"]:
            mechanism = None if each["mechanism"] == IN_THE_CLEAR else each["mechanism"]
            charges.append((each["what"], mechanism, int(np.max(each["times"]))))
        if delta is None and ledger.budget is not None:
            delta = ledger.budget[1]
        return cls(name, tuple(charges), delta, ledger.nodes)

    @property
    def is_private(self) -> bool:
        """True if every release of the run was protected."""
        return all(description is not None for _, description, _ in self.charges)


@dataclass(frozen=True)
class RecordTotal:
    """The cost of all runs on any of some rows.

    Parameters
    ----------
    epsilon
        ε of all private runs together, an upper bound at `delta`; 0 if there are none.
    delta
        δ of that total.
    unit
        Unit of the claim: "rows", one row, or "node", all rows of a node.
    private_runs, unprotected_runs
        The numbers of runs that an ε covers, and that no ε covers.

    Examples
    --------
    >>> print(RecordTotal(5.6549, 1e-5, "rows", private_runs=3, unprotected_runs=2))
    3 private runs, in total ε = 5.655 at δ = 1e-05 for one row (upper bound); 2 unprotected runs
    """

    epsilon: float
    delta: float
    unit: Unit = "rows"
    private_runs: int = 0
    unprotected_runs: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the total as plain JSON values; an infinite ε is null."""
        return {**asdict(self), "epsilon": self.epsilon if math.isfinite(self.epsilon) else None}

    def __str__(self) -> str:
        parts = ["no private run"]
        if self.private_runs:
            unit = "one row" if self.unit == "rows" else "all rows of a node"
            epsilon = "∞" if math.isinf(self.epsilon) else format_upper(self.epsilon, 4)
            runs = plural(self.private_runs, "private run")
            delta = format_upper(self.delta)
            parts = [f"{runs}, in total ε = {epsilon} at δ = {delta} for {unit} (upper bound)"]
        if self.unprotected_runs:
            parts.append(plural(self.unprotected_runs, "unprotected run"))
        return "; ".join(parts)


class OwnerRecord:
    """Record of all runs on an owner's rows, and of their total privacy loss.

    `walklearn train` and `walklearn node init` write to the user's record automatically. Estimators
    do not, so that a grid search leaves no traces: charge a fit that you publish.

    Parameters
    ----------
    path
        The file. By default `walklearn/record.sqlite` under `$XDG_STATE_HOME` or, without that,
        `~/.local/state`.

    Examples
    --------
    >>> import tempfile, os
    >>> from walklearn.privacy import Ledger, ModelNoise
    >>> folder = tempfile.TemporaryDirectory()
    >>> record = OwnerRecord(os.path.join(folder.name, "record.sqlite"))
    >>> X, y = [[0.5, 1.0], [1.5, 2.0]], ["ill", "well"]
    >>> noise = ModelNoise.calibrate(epsilon=3.0, delta=1e-5, clip=1.0, max_contributions=10)
    >>> ledger = Ledger(nodes=2, budget=(3.0, 1e-5))
    >>> ledger.charge("model", noise, times=10)      # or the ledger_ of a fitted estimator
    >>> print(record.charge(X, y, ledger))
    1 private run, in total ε = 3 at δ = 1e-05 for one row (upper bound)
    >>> print(record.charge(X[:1], y[:1], ledger))
    2 private runs, in total ε = 4.464 at δ = 1e-05 for one row (upper bound)
    >>> record.total([[7.0, 7.0]], ["well"]).private_runs
    0
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        if path is None:
            state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
            path = Path(state, "walklearn", "record.sqlite")
        self.path = Path(path)

    def __repr__(self) -> str:
        return f"OwnerRecord({str(self.path)!r})"

    def charge(
        self, X: Any, y: Any, ledger: Ledger, *, delta: float | None = None, name: str = "Python"
    ) -> RecordTotal:
        """Record a run on these rows, and return the total of all runs on any of them.

        `X` is an array, lists, a data frame or a sparse matrix; `ledger` has the charges, such as
        `ledger_` of a fitted estimator. A ledger whose noise was drawn from a seed is not recorded,
        with a `PrivacyWarning`; one without noise is recorded as unprotected. `delta` is by default
        that of the ledger's budget, and `name` is for your own use.
        """
        rows, run = self.mark(blocks_of(X, y)), Run.of_ledger(ledger, name, delta)
        if ledger.has_seeded_noise:
            warnings.warn(
                "Nothing was recorded: the noise of this ledger was drawn from a seed.",
                PrivacyWarning,
                stacklevel=2,
            )
        else:
            with self.locked() as record:
                record.add(rows, run)
        return self.total_of(rows, run.delta)

    def total(self, X: Any, y: Any, delta: float | None = None) -> RecordTotal:
        """Return the total of all runs on any of these rows, by default at their largest δ."""
        if not self._exists():
            return total_of_runs([], delta)
        return self.total_of(self.mark(blocks_of(X, y)), delta)

    def mark(self, blocks: Iterable[RowBlock]) -> RowSet:
        """Return the row set of some rows; a record that does not exist is created with its key."""
        if not self._exists():
            with self._lock():
                pass
        with self._explained(), closing(self._reader()) as connection:
            key = _key(connection)
        marks = RowMarks(key).of(blocks)
        content = marks.astype("<u8").tobytes()
        return RowSet(hashlib.blake2b(content, key=key, digest_size=16).hexdigest(), marks)

    def total_of(self, rows: RowSet | str, delta: float | None = None) -> RecordTotal:
        """Return the total of all runs on any of these rows, without taking the lock.

        `rows` is a result of `mark`, or its digest if the rows were charged.
        """
        return total_of_runs(self.runs(rows), delta)

    def runs(self, rows: RowSet | str) -> list[Run]:
        """Return all recorded runs on any of these rows, in order, without taking the lock."""
        with self._explained(), closing(self._reader()) as connection:
            return _runs(connection, rows)

    @contextmanager
    def locked(self) -> Iterator[LockedRecord]:
        """Lock out all other writers, for a decision that depends on earlier runs."""
        with self._lock():
            with self._explained():
                connection = sqlite3.connect(self.path, timeout=_WAIT_SECONDS, isolation_level=None)
                connection.execute("PRAGMA synchronous = FULL")
                self._check(connection)
            with closing(connection):
                yield LockedRecord(connection, self)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Hold the lock, which ends with the process; create the record if there is none."""
        with self._explained():
            try:
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            except FileNotFoundError as error:  # such as below /proc
                raise OSError(error.errno, "its folder cannot be created") from error
            lock = sqlite3.connect(
                self.path.with_name(self.path.name + ".lock"), timeout=_WAIT_SECONDS,
                isolation_level=None,
            )  # fmt: skip
        with closing(lock):
            with self._explained():
                lock.execute("BEGIN EXCLUSIVE")
                if not self.path.exists():
                    self._create()
            yield

    def _create(self) -> None:
        fresh = self.path.with_name(f".{secrets.token_hex(8)}.tmp")
        os.close(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        try:
            with closing(sqlite3.connect(fresh, isolation_level=None)) as connection:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.executescript(f"BEGIN; {_SCHEMA} COMMIT")
                connection.execute("INSERT INTO key VALUES (?)", (secrets.token_bytes(32),))
            os.replace(fresh, self.path)
            sync_directory(self.path.parent)
        finally:
            for file in self.path.parent.glob(fresh.name + "*"):
                file.unlink()

    def _exists(self) -> bool:
        with self._explained():
            return self.path.exists()

    def _reader(self) -> sqlite3.Connection:
        """Open the file for reading, also in a folder without write permission."""
        if not self.path.is_file():
            raise OwnerRecordError(
                f"{self.path}, the owner's record of earlier runs, is missing. {_RESTORE}"
            )
        uri = self.path.absolute().as_uri() + "?mode=ro"
        connection = sqlite3.connect(uri, uri=True, timeout=_WAIT_SECONDS, isolation_level=None)
        try:
            self._check(connection)
        except sqlite3.OperationalError:
            connection.close()
            log = self.path.with_name(self.path.name + "-wal")
            if log.exists() and log.stat().st_size:  # some runs are only in the log
                raise
            connection = sqlite3.connect(f"{uri}&immutable=1", uri=True, isolation_level=None)
            self._check(connection)
        return connection

    def _check(self, connection: sqlite3.Connection) -> None:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if application != _APPLICATION:
            connection.close()
            raise OwnerRecordError(
                f"{self.path} is not a record of walklearn, or it is damaged. {_RESTORE}"
            )
        if version != _FORMAT:
            connection.close()
            raise OwnerRecordError(
                f"{self.path} was written by another version of walklearn (format {version}, this "
                f"one reads {_FORMAT}). Use that version."
            )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Raise errors of the database or the system as an `OwnerRecordError`."""
        whose = f"{self.path}, the owner's record of earlier runs,"
        allow = (
            "Give its folder space and write permission, or choose another folder with the "
            "environment variable XDG_STATE_HOME."
        )
        try:
            yield
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", "")
            if name.startswith("SQLITE_BUSY"):
                raise OwnerRecordError(
                    f"{whose} was locked by another process for {_WAIT_SECONDS:g} s. Wait for that "
                    "process, or end it, and start again."
                ) from error
            advice = allow if name.startswith(_PLACE_ERRORS) else _RESTORE
            raise OwnerRecordError(f"{whose} cannot be used: {error}. {advice}") from error
        except OSError as error:
            raise OwnerRecordError(f"{whose} cannot be used: {error.strerror}. {allow}") from error


class LockedRecord:
    """The record while all other writers are locked out."""

    def __init__(self, connection: sqlite3.Connection, record: OwnerRecord) -> None:
        self._connection, self._explained = connection, record._explained

    def runs(self, rows: RowSet) -> list[Run]:
        """Return all recorded runs on any of these rows, in order."""
        with self._explained():
            return _runs(self._connection, rows)

    def has(self, rows: RowSet, run: Run) -> bool:
        """Return True if such a run on exactly these rows is recorded."""
        with self._explained():
            runs = self._connection.execute(_RUNS.format(_ROW_SET), (rows.digest,))
            return run in _read_runs(runs)

    def add(self, rows: RowSet, run: Run) -> int:
        """Record a run, which is on disk when this returns; return its number."""
        began = time.strftime("%Y-%m-%dT%H:%M:%S")
        with self._explained(), self._connection as connection:  # commits, or rolls back
            connection.execute("BEGIN IMMEDIATE")
            added = connection.execute(
                "INSERT INTO runs (row_set, name, began, charges, delta, nodes, constant, released)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (self._row_set(rows), run.name, began, json.dumps(run.charges), run.delta,
                 run.nodes, run.constant, run.released),
            ).lastrowid  # fmt: skip
        assert added is not None
        return added

    def set_released(self, number: int, released: float) -> None:
        """Store the constant that a recorded run has drawn."""
        with self._explained():
            self._connection.execute(
                "UPDATE runs SET released = ? WHERE id = ?", (released, number)
            )

    def keyed_digest(self, content: bytes) -> str:
        """Return a digest that nobody can compute without the record's key."""
        with self._explained():
            key = _key(self._connection)
        return hashlib.blake2b(content, key=key, digest_size=16).hexdigest()

    def _row_set(self, rows: RowSet) -> int:
        """Return the number of the row set, stored with its overlaps if it is new."""
        run_sql = self._connection.execute
        if known := run_sql(_ROW_SET, (rows.digest,)).fetchone():
            return int(known[0])
        others = _overlapping(self._connection, rows.marks)
        new = run_sql("INSERT INTO row_sets (digest) VALUES (?)", (rows.digest,)).lastrowid
        assert new is not None
        is_first = np.append(True, rows.marks[1:] != rows.marks[:-1])  # marks are sorted
        distinct = rows.marks[is_first[: len(rows.marks)]].astype("<u8")
        for part, start in enumerate(range(0, len(distinct), _MARKS_PER_PART)):
            content = distinct[start : start + _MARKS_PER_PART].tobytes()
            run_sql("INSERT INTO marks VALUES (?, ?, ?)", (new, part, content))
        pairs = {(new, new), *((new, each) for each in others), *((each, new) for each in others)}
        self._connection.executemany("INSERT INTO overlaps VALUES (?, ?)", pairs)
        return new


def total_of_runs(runs: Sequence[Run], delta: float | None = None) -> RecordTotal:
    """Return the total of some runs on the same rows, at `delta` or else their largest δ."""
    private = [run for run in runs if run.is_private]
    if delta is None:
        stated = [run.delta for run in private if run.delta is not None]
        delta = max(stated, default=DEFAULT_DELTA)
    if not private:
        return RecordTotal(0.0, delta, unprotected_runs=len(runs))
    charges = [charge for run in private for charge in charges_of(run.charges)]
    epsilon = compose(charges).epsilon(delta) if charges else 0.0
    units = {getattr(charge.mechanism, "protect", "node") for charge in charges}
    # The rows of one node of a run may be spread over several nodes of another run. Replacing them
    # then changes several nodes, so only the claim for one row composes.
    composes_nodes = len(private) == 1 or all(run.nodes == 1 for run in private)
    unit: Unit = "node" if units == {"node"} and composes_nodes else "rows"
    return RecordTotal(epsilon, delta, unit, len(private), len(runs) - len(private))


def charges_of(entries: Iterable[ChargeEntry]) -> list[Charge]:
    """Return the charges that the record's entries describe."""
    return [
        Charge(what, None if each is None else from_description(each), times)
        for what, each, times in entries
    ]


def _key(connection: sqlite3.Connection) -> bytes:
    return bytes(connection.execute("SELECT content FROM key").fetchone()[0])


def _runs(connection: sqlite3.Connection, rows: RowSet | str) -> list[Run]:
    digest = rows if isinstance(rows, str) else rows.digest
    if connection.execute(_ROW_SET, (digest,)).fetchone() is not None:
        overlapping = f"SELECT other FROM overlaps WHERE row_set = ({_ROW_SET})"
        runs = connection.execute(_RUNS.format(overlapping), (digest,))
    elif isinstance(rows, str):
        raise OwnerRecordError(
            "the owner's record does not contain these rows, so they were charged to another "
            "record. Restore that one from a backup."
        )
    else:
        sets = ", ".join(map(str, _overlapping(connection, rows.marks)))
        runs = connection.execute(_RUNS.format(sets))
    return _read_runs(runs)


def _read_runs(runs: Iterable[Any]) -> list[Run]:
    return [
        Run(name, tuple((what, each, n) for what, each, n in json.loads(charges)), *others)
        for name, charges, *others in runs
    ]


def _overlapping(connection: sqlite3.Connection, marks: Marks) -> list[int]:
    """Return the numbers of the stored sets with at least one of these marks (ascending)."""
    overlapping = set[int]()
    if not len(marks):
        return []
    for (row_set,) in connection.execute("SELECT id FROM row_sets").fetchall():
        parts = connection.execute("SELECT content FROM marks WHERE row_set = ?", (row_set,))
        for (content,) in parts:
            stored = np.frombuffer(content, "<u8").astype(np.uint64, copy=False)
            places = np.searchsorted(marks, stored)
            places[places == len(marks)] = 0
            if (marks[places] == stored).any():
                overlapping.add(row_set)
                break
    return sorted(overlapping)
