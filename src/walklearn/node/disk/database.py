"""The file of SQLite under a node's store: opened, locked, checked, its errors in plain words."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FORMAT = 4
APPLICATION = 0x77616C6B  # "walk": SQLite keeps it in the header of the file

# What SQLite says where nothing may be written, or even the log's index not be made.
_NOT_WRITABLE = ("SQLITE_READONLY", "SQLITE_CANTOPEN")
# What SQLite says of a full disk: to a write, and on opening, where the log's index finds no room.
_NO_ROOM = ("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE")


class StoreError(Exception):
    """The store cannot be used, or could not be written to; what it held before it still holds."""


class DiskError(Exception):
    """The disk failed while something was forced to it: it may have been written or not."""


def in_use(path: Path, by: str = "another process runs this node") -> str:
    """Return the message that another process has the file."""
    return f"{path} is in use: {by}. Stop that process first."


def no_room(path: Path) -> str:
    """Return the message that the disk of the file is full."""
    return f"{path}: the disk is full. Make room on it."


def connect(path: Path) -> sqlite3.Connection:
    """Open a connection whose commits are on the disk when they return."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=10, check_same_thread=False)
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def locked(path: Path) -> sqlite3.Connection:
    """Hold a lock that ends with the process, for two processes must never run one node."""
    lock = sqlite3.connect(path.with_suffix(".lock"), isolation_level=None, timeout=0)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        lock.close()
        if error.sqlite_errorname != "SQLITE_BUSY":
            raise
        raise StoreError(in_use(path)) from None
    return lock


def check_format(path: Path) -> None:
    """Refuse what is not there, not ours, damaged, or of a later version."""
    if not path.is_file():
        raise StoreError(f"there is no {path}: make the node first, with `walklearn node init`.")
    with explained(path):
        connection = connect(path)
        try:
            application = connection.execute("PRAGMA application_id").fetchone()[0]
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if application != APPLICATION:
                raise StoreError(f"{path} is not the store of a node.")
            if version != FORMAT:
                age, remedy = "an earlier", "run the node with that one, or make it anew"
                if version > FORMAT:
                    age, remedy = "a later", "update walklearn"
                raise StoreError(
                    f"{path} was written by {age} walklearn (format {version}, this one reads "
                    f"{FORMAT}): {remedy}."
                )
            state = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if state != "ok":
                raise StoreError(f"{path} is damaged: {state}.")
        finally:
            connection.close()


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Raise what SQLite or the disk complains of as a `StoreError` or a `DiskError`."""
    try:
        yield
    except sqlite3.Error as error:
        # A failed write leaves no commit behind, a failed fsync may. (fsync: whether the pages
        # that it could not write are tried again is anybody's guess.)
        name = getattr(error, "sqlite_errorname", "")
        if name in _NO_ROOM:
            raise StoreError(no_room(path)) from error
        if name.startswith(_NOT_WRITABLE):
            raise StoreError(
                f"{path} cannot be written to: its disk is mounted read-only, or the permissions "
                f"of {path.parent} or of a file in it do not allow it."
            ) from error
        if name.startswith("SQLITE_IOERR") and name != "SQLITE_IOERR_WRITE":
            raise DiskError(f"{path}: {error} ({name}).") from error
        raise StoreError(f"{path}: {error}.") from error
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}.") from error
