"""The node's memory on disk: the record of the protocol, and its release.

SQLite in WAL mode with synchronous=FULL: when `commit` returns, the record survives a power cut;
when it raises `StoreError`, because the disk is full, say, nothing of it was written and the node
can go on. Under a private plan each contribution is reserved outside the directory before it is
committed: see `contribution_count`. The log of WAL mode is kept short, and when the disk has no
room it is emptied and the record is tried again. What the node has counted is written with the
record. When the disk itself fails nobody knows: `DiskError`, and the process should end without an
answer. Large tokens are files beside the database: see `bodies`.

>>> import tempfile
>>> from walklearn.objectives.linear.domains import Ball
>>> limits = Limits(size=2, updates=100, domain=Ball(1.0))
>>> with tempfile.TemporaryDirectory() as folder:
...     with Store.create(Path(folder, "node.sqlite"), limits) as store:
...         store.put_release(Release(importance=2.5))
...         store.commit(Record(contributions=3))
...     with Store.open(Path(folder, "node.sqlite"), limits) as store:
...         store.release().importance, store.record.contributions
(2.5, 3)
"""

from __future__ import annotations

import json
import sqlite3
import struct
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from walklearn.files.atomic_write import sync_directory
from walklearn.node.disk import columns
from walklearn.node.disk.bodies import NO_BODY, Bodies, Body, ReplacedError
from walklearn.node.disk.contribution_count import ContributionCount
from walklearn.node.disk.database import (
    APPLICATION,
    FORMAT,
    StoreError,
    check_format,
    connect,
    explained,
    locked,
)
from walklearn.node.protocol.fields import MessageError
from walklearn.node.protocol.record import Place, Record
from walklearn.node.protocol.tokens import Limits, Line

# The log of WAL mode holds so many tokens before it is emptied, which costs as much as two commits.
_LOG_TOKENS, _PAGE = 16, 4096

_SCHEMA = """
CREATE TABLE record (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    newest TEXT, place TEXT NOT NULL, receiver TEXT, contributions INTEGER NOT NULL,
    token BLOB, token_file TEXT, final BLOB, final_file TEXT, counted TEXT NOT NULL,
    memory BLOB NOT NULL, kept BLOB, ends TEXT NOT NULL, seals TEXT NOT NULL
);
CREATE TABLE release (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    importance REAL NOT NULL, mechanism TEXT, noise TEXT, may_contribute INTEGER NOT NULL,
    record TEXT NOT NULL, rows TEXT NOT NULL
);
"""


# One statement is its own transaction: a hop costs no more than this.
_PUT = "INSERT OR REPLACE INTO record VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_GET = (
    "SELECT newest, place, receiver, contributions, counted, memory, kept, ends, seals, "
    "token, token_file, final, final_file FROM record"
)


@dataclass(frozen=True)
class Release:
    """The node's permanent disclosure about its rows, and the terms of its contributions.

    importance: R_i. mechanism: the description of what drew it; None for "in the clear", or
    where the walk needs none. noise: the description of the noise on the model. may_contribute:
    how often the rows may show in it. record: the file of the owner's record that the node was
    charged to. rows: the digest of its rows there.
    """

    importance: float = 1.0
    mechanism: Mapping[str, Any] | None = None
    noise: Mapping[str, Any] | None = None
    may_contribute: int = 0
    record: str = ""
    rows: str = ""


class Store:
    """The database of one node; `open` for the process that runs it, `look` for all others.

    record: what was written last. counted: what the node has counted; seals: of the lines that the
    record names. Both are written with the next record; after `open` they are as on the disk.
    """

    def __init__(self, path: Path, limits: Limits, lock: sqlite3.Connection | None) -> None:
        self.path, self._limits, self._lock = path, limits, lock
        self._connection = connect(path)
        # The log of WAL mode gives its content to the database once it has so many pages.
        pages = min(max(64, _LOG_TOKENS * limits.largest_token // _PAGE), 1000)
        self._connection.execute(f"PRAGMA wal_autocheckpoint = {pages}")
        self.record = Record()
        self.counted: Mapping[str, Any] = {}
        self.seals: Mapping[Line, bytes] = {}
        self._written: Any = ({}, {})  # both, as they are on the disk
        self._pending: Record | None = None
        self._token: Body = NO_BODY
        self._final: Body = NO_BODY
        self._memory = columns.memory_out(self.record.memory)
        self._bodies = Bodies(path, limits)
        self._count: ContributionCount | None = None
        self._one_at_a_time = threading.RLock()

    @classmethod
    def create(cls, path: Path, limits: Limits) -> Self:
        """Make a new store; refused where there is a file already."""
        with explained(path):
            path.touch(0o600, exist_ok=False)
            store = cls(path, limits, locked(path))
            store._connection.executescript(
                f"PRAGMA journal_mode = WAL; BEGIN; {_SCHEMA}"
                f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {FORMAT}; COMMIT"
            )
            sync_directory(path.parent)
        return store

    @classmethod
    def open(cls, path: Path, limits: Limits, count: Path | None = None) -> Self:
        """Open the store for the one process that runs the node; clear up what a crash left.

        count: the file in which the node reserves its contributions, if its plan is private.
        """
        check_format(path)
        with explained(path):
            store = cls(path, limits, locked(path))
            store.record = store._load()
            store._bodies.keep_only(store._token, store._final)
        if count is not None:
            try:
                # The larger count holds: the directory or the file may be a restored backup.
                store._count = ContributionCount.open(count)
                store._count.reserve(store.record.contributions)
                store.record = replace(store.record, contributions=store._count.value)
            except BaseException:
                store.close()
                raise
        return store

    @classmethod
    def look(cls, path: Path, limits: Limits) -> Self:
        """Open the store of a node that may be running, to read from."""
        check_format(path)
        with explained(path):
            store = cls(path, limits, None)
            store.record = store._load()
        return store

    def close(self) -> None:
        """Write what is still to be written, and let go."""
        try:
            self.flush()
        finally:
            self._connection.close()
            if self._lock is not None:
                self._lock.close()
            if self._count is not None:
                self._count.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # ── the record ───────────────────────────────────────────────────────────────────────────

    def commit(self, record: Record) -> None:
        """Write the record, all of it or nothing; it is on the disk when this returns."""
        with self._one_at_a_time:
            self._commit(record)

    def _commit(self, record: Record) -> None:
        before, token, final, memory = self.record, self._token, self._final, self._memory
        made: list[Path] = []
        if self._count is not None:
            self._count.reserve(record.contributions)
        try:
            with explained(self.path):
                if record.token is not before.token:
                    token = self._bodies.write(record.token, made)
                if record.final is not before.final:
                    final = self._bodies.write(record.final, made)
                if record.memory is not before.memory:
                    memory = columns.memory_out(record.memory)
                self._put(
                    (columns.mark_out(record.newest), record.place.value, record.receiver,
                     record.contributions, *token, *final, json.dumps(dict(self.counted)),
                     memory, columns.kept_out(record.kept), json.dumps(dict(record.ends)),
                     columns.seals_out(self.seals)),
                )  # fmt: skip
        except StoreError:
            for file in made:
                file.unlink(missing_ok=True)
            raise
        self.record, self._token, self._final, self._pending = record, token, final, None
        self._written, self._memory = (self.counted, self.seals), memory
        self._bodies.keep_only(self._token, self._final)

    def _put(self, row: tuple[Any, ...]) -> None:
        """Write; if the disk is full, empty the log and write again."""
        try:
            self._connection.execute(_PUT, row)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_FULL:
                raise
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._connection.execute(_PUT, row)

    def later(self, record: Record) -> None:
        """Write the record with the next commit, or at the next `flush`."""
        self._pending = record

    def flush(self) -> None:
        """Write what was left for later, if anything was, and what was counted since."""
        with self._one_at_a_time:
            if self._pending is not None or (self.counted, self.seals) != self._written:
                self._commit(self._pending or self.record)

    def _load(self) -> Record:
        for _ in range(10):  # a running node may replace a file while this process reads
            with suppress(ReplacedError):
                return self._load_once()
        raise StoreError(f"{self.path} is damaged: the file of a token is missing.")

    def _load_once(self) -> Record:
        row = self._connection.execute(_GET).fetchone()
        if row is None:
            return Record()
        newest, place, receiver, contributions, counted, memory, kept, ends, seals, *bodies = row
        self._token, self._final = (bodies[0], bodies[1]), (bodies[2], bodies[3])
        self._memory = memory
        try:
            self.counted, self.seals = json.loads(counted), columns.seals_in(seals)
            self._written = (self.counted, self.seals)
            return Record(
                newest=columns.mark_in(newest),
                token=self._bodies.read(self._token),
                place=Place(place),
                receiver=receiver,
                final=self._bodies.read(self._final),
                contributions=contributions,
                memory=columns.memory_in(memory),
                kept=columns.kept_in(kept),
                ends=json.loads(ends),
            )
        except (MessageError, LookupError, ValueError, TypeError, struct.error) as error:
            raise StoreError(f"{self.path} is damaged, or of another plan: {error}") from None

    # ── the release ──────────────────────────────────────────────────────────────────────────

    def put_release(self, release: Release) -> None:
        """Write the node's release, once; it is on the disk when this returns."""
        with self._one_at_a_time, explained(self.path):
            self._connection.execute(
                "INSERT INTO release VALUES (1, ?, ?, ?, ?, ?, ?)",
                (release.importance, columns.text(release.mechanism), columns.text(release.noise),
                 release.may_contribute, release.record, release.rows),
            )  # fmt: skip

    def release(self) -> Release | None:
        """Return the node's release; None if there is none."""
        with explained(self.path):
            row = self._connection.execute(
                "SELECT importance, mechanism, noise, may_contribute, record, rows FROM release"
            ).fetchone()
        if row is None:
            return None
        importance, mechanism, noise, *others = row
        return Release(
            importance, mechanism and json.loads(mechanism), noise and json.loads(noise), *others
        )
