"""The node's memory on disk: the record of the protocol, and the release that is drawn once.

SQLite in WAL mode with synchronous=FULL: when `commit` returns, the record survives a power cut;
when it raises `StoreError`, because the disk is full, say, nothing of it was written and the node
can go on. The log of WAL mode is kept short, and when the disk has no room it is emptied and the
record is tried again. What the node has counted is written with the record. When the disk itself
fails nobody knows: `DiskError`, and the process should end without an answer. A token above 1 MB
is a file of its own beside the database, forced to the disk before the row that names it.

>>> import tempfile
>>> from walklearn.problem.domains import Ball
>>> limits = Limits(size=2, updates=100, domain=Ball(1.0))
>>> with tempfile.TemporaryDirectory() as folder:
...     with Store.create(Path(folder, "node.sqlite"), limits) as store:
...         store.draw_release(lambda: Release(importance=2.5)).importance
...         store.commit(Record(contributions=3))
...     with Store.open(Path(folder, "node.sqlite"), limits) as store:
...         store.release().importance, store.record.contributions
2.5
(2.5, 3)
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from walklearn.files.atomic_write import sync_directory
from walklearn.node.protocol.fields import PROOF_BYTES, MessageError
from walklearn.node.protocol.learner import Kept
from walklearn.node.protocol.memory import Memory
from walklearn.node.protocol.messages import Reminder
from walklearn.node.protocol.state import Place, Record
from walklearn.node.protocol.tally import Tally
from walklearn.node.protocol.tokens import Limits, Line, Mark, Token, decode_token

FORMAT = 1
APPLICATION = 0x77616C6B  # "walk": SQLite keeps it in the header of the file
LARGEST_ROW = 1_000_000  # bytes of a token; larger ones are files

# The log of WAL mode holds so many tokens before it is emptied, which costs as much as two commits.
_LOG_TOKENS, _PAGE = 16, 4096

_SCHEMA = """
CREATE TABLE record (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    newest TEXT, place TEXT NOT NULL, receiver TEXT, contributions INTEGER NOT NULL,
    token BLOB, token_file TEXT, final BLOB, final_file TEXT, counted TEXT NOT NULL,
    tallies BLOB NOT NULL, memory BLOB NOT NULL, kept BLOB
);
CREATE TABLE release (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    importance REAL NOT NULL, mechanism TEXT, noise TEXT, may_contribute INTEGER NOT NULL,
    earlier TEXT NOT NULL, told TEXT NOT NULL
);
CREATE TABLE seals (line TEXT PRIMARY KEY, seal BLOB NOT NULL);
"""


# One statement is its own transaction: a hop costs no more than this.
_PUT = "INSERT OR REPLACE INTO record VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_GET = (
    "SELECT newest, place, receiver, contributions, counted, tallies, memory, kept, "
    "token, token_file, final, final_file FROM record"
)
# A token as the row has it: itself, or the name of its file.
Body = tuple[bytes | None, str | None]
_NO_BODY: Body = (None, None)
# What is counted of a neighbour, after its fingerprint; and what is remembered for it: its
# fingerprint, the line's place in a list, hop, proof.
_TALLY = struct.Struct("<32s3Qd2Q")
_HAD = struct.Struct(f"<32sIQ{PROOF_BYTES}s")


class StoreError(Exception):
    """The store cannot be used, or could not be written to; what it held before it still holds."""


class DiskError(Exception):
    """The disk failed while something was forced to it: it may have been written or not."""


@dataclass(frozen=True)
class Release:
    """What the node told of its rows for good, and on what terms it may contribute to the model.

    importance: R_i. mechanism: the description of what drew it; None for "in the clear", or
    where the walk needs none. noise: the description of the noise on the model. may_contribute:
    how often the rows may show in it. earlier: what was charged to the same rows before this node
    was made, as (what, description of the mechanism or None for "in the clear", times). told: what
    all of it comes to, in words; empty where nothing was charged before.
    """

    importance: float = 1.0
    mechanism: Mapping[str, Any] | None = None
    noise: Mapping[str, Any] | None = None
    may_contribute: int = 0
    earlier: tuple[tuple[str, Mapping[str, Any] | None, int], ...] = ()
    told: str = ""


# What SQLite says of a full disk: to a write, and on opening, where the log's index finds no room.
_NO_ROOM = ("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE")


class _ReplacedError(Exception):
    """The file of a token has given way to another since its name was read."""


class Store:
    """The database of one node; `open` for the process that runs it, `look` for all others.

    record: what was written last. counted: what the node has counted, to be written with the next
    record; after `open`, what it had counted by then.
    """

    def __init__(self, path: Path, limits: Limits, lock: sqlite3.Connection | None) -> None:
        self.path, self._limits, self._lock = path, limits, lock
        self._connection = _connect(path)
        # The log of WAL mode gives its content to the database once it has so many pages.
        pages = min(max(64, _LOG_TOKENS * limits.largest_token // _PAGE), 1000)
        self._connection.execute(f"PRAGMA wal_autocheckpoint = {pages}")
        self.record = Record()
        self.counted: Mapping[str, Any] = {}
        self._counted: Mapping[str, Any] = self.counted  # as it is on the disk
        self._pending: Record | None = None
        self._token: Body = _NO_BODY
        self._final: Body = _NO_BODY
        self._memory = _memory_out(self.record.memory)
        self._has_files = limits.largest_token > LARGEST_ROW
        self._one_at_a_time = threading.RLock()

    @classmethod
    def create(cls, path: Path, limits: Limits) -> Self:
        """A new store; refused where there is a file already."""
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            raise StoreError(f"{path} exists already.") from None
        except OSError as error:
            raise StoreError(f"{path} cannot be made: {error.strerror}.") from None
        with _explained(path):
            store = cls(path, limits, _locked(path))
            store._connection.executescript(
                f"PRAGMA journal_mode = WAL; BEGIN; {_SCHEMA}"
                f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {FORMAT}; COMMIT"
            )
            sync_directory(path.parent)
        return store

    @classmethod
    def open(cls, path: Path, limits: Limits) -> Self:
        """The store of a node, for the one process that runs it; clears up what a crash left."""
        _check_format(path)
        with _explained(path):
            store = cls(path, limits, _locked(path))
            store.record = store._load()
            store._remove_orphans()
        return store

    @classmethod
    def look(cls, path: Path, limits: Limits) -> Self:
        """The store of a node that may be running, to read from."""
        _check_format(path)
        with _explained(path):
            store = cls(path, limits, None)
            store.record = store._load()
        return store

    def idle_seconds(self) -> float:
        """How long ago the last process wrote here, by the clocks of the file and of today."""
        files = (self.path, self.path.with_name(self.path.name + "-wal"))
        written = max(file.stat().st_mtime for file in files if file.exists())
        return max(0.0, time.time() - written)

    def close(self) -> None:
        """Write what is still to be written, and let go."""
        try:
            self.flush()
        finally:
            self._connection.close()
            if self._lock is not None:
                self._lock.close()

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
        try:
            with _explained(self.path):
                if record.token is not before.token:
                    token = self._write_body(record.token, made)
                if record.final is not before.final:
                    final = self._write_body(record.final, made)
                if record.memory is not before.memory:
                    memory = _memory_out(record.memory)
                self._put(
                    (_mark_out(record.newest), record.place.value, record.receiver,
                     record.contributions, *token, *final, json.dumps(dict(self.counted)),
                     _tallies_out(record.tallies), memory, _kept_out(record.kept)),
                )  # fmt: skip
        except StoreError:
            for file in made:
                file.unlink(missing_ok=True)
            raise
        self.record, self._token, self._final, self._pending = record, token, final, None
        self._counted, self._memory = self.counted, memory
        self._remove_orphans()

    def _put(self, row: tuple[Any, ...]) -> None:
        self._with_room(lambda: self._connection.execute(_PUT, row))

    def _with_room(self, write: Callable[[], object]) -> None:
        """Write; if the disk is full, the log is emptied first."""
        try:
            write()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_FULL:
                raise
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            write()

    def later(self, record: Record) -> None:
        """Write the record with the next commit, or at the next `flush`."""
        self._pending = record

    def flush(self) -> None:
        """Write what was left for later, if anything was, and what was counted since."""
        with self._one_at_a_time:
            if self._pending is not None or self.counted != self._counted:
                self._commit(self._pending or self.record)

    def _load(self) -> Record:
        for _ in range(10):  # a running node may replace a file while this process reads
            with suppress(_ReplacedError):
                return self._load_once()
        raise StoreError(f"{self.path} is damaged: the file of a token is missing.")

    def _load_once(self) -> Record:
        row = self._connection.execute(_GET).fetchone()
        if row is None:
            return Record()
        newest, place, receiver, contributions, counted, tallies, memory, kept, *bodies = row
        self._token, self._final = (bodies[0], bodies[1]), (bodies[2], bodies[3])
        self._memory = memory
        try:
            self.counted = self._counted = json.loads(counted)
            return Record(
                newest=_mark_in(newest),
                token=self._read_body(self._token),
                place=Place(place),
                receiver=receiver,
                final=self._read_body(self._final),
                contributions=contributions,
                tallies=_tallies_in(tallies),
                memory=_memory_in(memory),
                kept=_kept_in(kept),
            )
        except (MessageError, LookupError, ValueError, TypeError, struct.error) as error:
            raise StoreError(f"{self.path} is damaged, or of another plan: {error}") from None

    def _read_body(self, body: Body) -> Token | None:
        content, file = body
        if file is not None:
            content = self._read_file(file)
        return None if content is None else decode_token(content, self._limits)

    def _write_body(self, token: Token | None, made: list[Path]) -> Body:
        """What the row will have of a token; a file that this takes is added to `made`."""
        if token is None:
            return _NO_BODY
        content = token.encoded
        if len(content) <= LARGEST_ROW:
            return content, None
        if not _bodies(self.path).is_dir():
            _bodies(self.path).mkdir(mode=0o700)
            sync_directory(self.path.parent)  # or a power cut takes it, with the token in it
        file = _bodies(self.path) / secrets.token_hex(16)
        _write_file(file, content)
        made.append(file)
        return None, file.name

    def _read_file(self, name: str) -> bytes:
        try:
            return (_bodies(self.path) / name).read_bytes()
        except FileNotFoundError:
            raise _ReplacedError from None

    def _remove_orphans(self) -> None:
        """Files that no row names, left by a crash or by the commit before."""
        if not self._has_files or not _bodies(self.path).is_dir():
            return
        named = {self._token[1], self._final[1]}
        for file in _bodies(self.path).iterdir():
            if file.name not in named:
                file.unlink(missing_ok=True)

    # ── seals ────────────────────────────────────────────────────────────────────────────────

    def keep_seals(self, seals: Mapping[Line, bytes]) -> None:
        """Write the seals of the lines that the next record tells of, instead of those before."""
        with self._one_at_a_time, _explained(self.path):
            self._with_room(lambda: self._replace_seals(seals))

    def _replace_seals(self, seals: Mapping[Line, bytes]) -> None:
        with self._transaction() as run:
            run("DELETE FROM seals")
            for line, seal in seals.items():
                run("INSERT INTO seals VALUES (?, ?)", (_mark_out(Mark(line, 0)), seal))

    def seals(self) -> dict[Line, bytes]:
        """Those that were written last."""
        with _explained(self.path):
            rows = self._connection.execute("SELECT line, seal FROM seals").fetchall()
        try:
            found = [(_mark_in(line), bytes(seal)) for line, seal in rows]
        except (ValueError, TypeError) as error:
            raise StoreError(f"{self.path} is damaged: {error}") from None
        return {mark.line: seal for mark, seal in found if mark is not None}

    # ── the release ──────────────────────────────────────────────────────────────────────────

    def draw_release(self, draw: Callable[[], Release]) -> Release:
        """The node's release: drawn now if it never was, and on the disk before anyone sees it.

        A crash leaves either none, and then nobody has seen one, or this one for good.
        """
        with self._one_at_a_time, _explained(self.path), self._transaction() as run:
            known = self.release()
            if known is not None:
                return known
            drawn = draw()
            run(
                "INSERT INTO release VALUES (1, ?, ?, ?, ?, ?, ?)",
                (drawn.importance, _text(drawn.mechanism), _text(drawn.noise),
                 drawn.may_contribute, json.dumps(drawn.earlier), drawn.told),
            )  # fmt: skip
        return drawn

    def release(self) -> Release | None:
        """What was released; None if it is not drawn yet."""
        with _explained(self.path):
            row = self._connection.execute(
                "SELECT importance, mechanism, noise, may_contribute, earlier, told FROM release"
            ).fetchone()
        if row is None:
            return None
        importance, mechanism, noise, may_contribute, earlier, told = row
        return Release(
            importance, mechanism and json.loads(mechanism), noise and json.loads(noise),
            may_contribute, tuple((what, each, n) for what, each, n in json.loads(earlier)), told,
        )  # fmt: skip

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        run = self._connection.execute
        run("BEGIN IMMEDIATE")
        try:
            yield run
            run("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # the first error is the one to tell
                run("ROLLBACK")
            raise


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, timeout=10, check_same_thread=False)
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def _locked(path: Path) -> sqlite3.Connection:
    """A lock that ends with the process: two processes must never run one node."""
    lock = sqlite3.connect(path.with_suffix(".lock"), isolation_level=None, timeout=0)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError:
        lock.close()
        raise StoreError(f"{path} is in use: another process runs this node.") from None
    return lock


def _check_format(path: Path) -> None:
    """Refuse what is not there, not ours, damaged, or of a later version."""
    if not path.is_file():
        raise StoreError(f"there is no {path}: make the node first, with `walklearn node init`.")
    with _explained(path):
        connection = _connect(path)
        try:
            application = connection.execute("PRAGMA application_id").fetchone()[0]
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if application != APPLICATION:
                raise StoreError(f"{path} is not the store of a node.")
            if version > FORMAT:
                raise StoreError(
                    f"{path} was written by a later walklearn (format {version}, this one reads "
                    f"{FORMAT}): update walklearn."
                )
            state = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if state != "ok":
                raise StoreError(f"{path} is damaged: {state}.")
        finally:
            connection.close()


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """What SQLite or the disk complains of, as a `StoreError`, or a `DiskError`."""
    try:
        yield
    except sqlite3.Error as error:
        # A failed write leaves no commit behind, a failed fsync may. (fsync: whether the pages
        # that it could not write are tried again is anybody's guess.)
        name = getattr(error, "sqlite_errorname", "")
        if name in _NO_ROOM:
            raise StoreError(f"{path}: the disk is full. Make room on it.") from error
        if name.startswith("SQLITE_IOERR") and name != "SQLITE_IOERR_WRITE":
            raise DiskError(f"{path}: {error} ({name}).") from error
        raise StoreError(f"{path}: {error}.") from error
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}.") from error


def _bodies(path: Path) -> Path:
    return path.with_suffix(".bodies")


def _write_file(path: Path, content: bytes) -> None:
    """The file and its name, forced to the disk; nothing is left of it if that fails."""
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        sync_directory(path.parent)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _text(description: Mapping[str, Any] | None) -> str | None:
    return None if description is None else json.dumps(dict(description))


def _tallies_out(tallies: Mapping[str, Tally]) -> bytes:
    return b"".join(_TALLY.pack(bytes.fromhex(who), *each) for who, each in tallies.items())


def _tallies_in(content: bytes) -> dict[str, Tally]:
    return {who.hex(): Tally(*counts) for who, *counts in _TALLY.iter_unpack(content)}


def _memory_out(memory: Memory) -> bytes:
    """A line of JSON, then some bytes for each neighbour: this is written with every handover."""
    lines = sorted({each.mark.line for each in memory.had.values()})
    head = json.dumps([lines, _mark_out(memory.reminded), memory.forgot]).encode()
    places = {line: place for place, line in enumerate(lines)}
    had = [
        _HAD.pack(bytes.fromhex(who), places[each.mark.line], each.mark.hop, each.proof)
        for who, each in memory.had.items()
    ]
    return b"\n".join([head, b"".join(had)])


def _memory_in(content: bytes) -> Memory:
    head, _, rows = content.partition(b"\n")
    lines, reminded, forgot = json.loads(head)
    had = {
        who.hex(): Reminder(Mark(Line(*lines[place]), hop), proof)
        for who, place, hop, proof in _HAD.iter_unpack(rows)
    }
    return Memory(had, _mark_in(reminded), forgot)


def _mark_out(mark: Mark | None) -> str | None:
    if mark is None:
        return None
    line = mark.line
    return f"{line.updates} {line.counter} {line.reclaimer} {line.walk} {mark.hop}"


def _mark_in(text: str | None) -> Mark | None:
    if text is None:
        return None
    updates, counter, reclaimer, walk, hop = text.split()
    return Mark(Line(int(updates), int(counter), reclaimer, walk), int(hop))


def _kept_out(kept: Kept | None) -> bytes | None:
    """What the node remembers: a line of JSON, then the slopes as they are."""
    if kept is None:
        return None
    told = {**kept._asdict(), "slopes": kept.slopes.shape}
    return json.dumps(told).encode() + b"\n" + np.ascontiguousarray(kept.slopes, "<f8").tobytes()


def _kept_in(content: bytes | None) -> Kept | None:
    if content is None:
        return None
    head, _, numbers = content.partition(b"\n")
    told = json.loads(head)
    slopes = np.frombuffer(numbers, "<f8").astype(np.float64).reshape(told["slopes"])
    return Kept(told["epoch"], slopes, told["updated"], tuple(told["past"]))
