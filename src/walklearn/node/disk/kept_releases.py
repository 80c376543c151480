"""What was promised for rows, kept by their owner outside of any node's directory.

Whoever draws a release of the same rows twice lets neighbours average the noise away, and a cap on
contributions is none if a new node begins at 0. So what a node was allowed to release is written
down with a digest of each of its rows, before the node exists: a node that is made anew from any of
them finds it. The digests are keyed, or one who reads the file alone could try rows.

From the look-up to the entry nobody else looks: of two nodes that are made of the same rows at the
same time, the second sees what the first has entered.

>>> import tempfile
>>> folder = tempfile.TemporaryDirectory()
>>> with kept_releases(Path(folder.name, "releases")) as kept:
...     kept.add([b"a row", b"another"], {"importance": 2.5})
>>> with kept_releases(Path(folder.name, "releases")) as kept:
...     kept.of([b"another", b"a third"]), kept.of([b"a third"])
([{'importance': 2.5}], [])
>>> folder.cleanup()
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from walklearn.files.atomic_write import atomic_write
from walklearn.node.disk.directory import DirectoryError

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS entries (id INTEGER PRIMARY KEY, content TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS rows (digest BLOB, entry INTEGER, PRIMARY KEY (digest, entry)) "
    "WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS keys (mark BLOB NOT NULL)",
)
_WAIT_SECONDS = 600.0  # for others who make nodes: they compose what theirs may cost


def owners_folder() -> Path:
    """Where the owner's releases are kept: a folder of the user's state."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state, "walklearn", "releases")


class KeptReleases:
    """The owner's record while nobody else looks at it; `kept_releases` opens it."""

    def __init__(self, connection: sqlite3.Connection, key: bytes) -> None:
        self._run, self._key = connection.execute, key

    def of(self, rows: Collection[bytes]) -> list[dict[str, Any]]:
        """All that was entered for any of these rows, oldest first."""
        entries: set[int] = set()
        for row in set(rows):
            found = self._run("SELECT entry FROM rows WHERE digest = ?", (self._keyed(row),))
            entries.update(entry for (entry,) in found)
        texts = [
            self._run("SELECT content FROM entries WHERE id = ?", (entry,)).fetchone()[0]
            for entry in sorted(entries)
        ]
        return [json.loads(text) for text in texts]

    def add(self, rows: Collection[bytes], content: dict[str, Any]) -> None:
        """Enter something for these rows; it is on the disk when the record is closed."""
        text = json.dumps(content)
        entry = self._run("INSERT INTO entries (content) VALUES (?)", (text,)).lastrowid
        for row in set(rows):
            self._run("INSERT INTO rows VALUES (?, ?)", (self._keyed(row), entry))

    def digest(self, content: bytes) -> str:
        """A keyed digest, which tells nothing to anyone without the key."""
        return self._keyed(content).hex()

    def _keyed(self, content: bytes) -> bytes:
        return hmac.new(self._key, content, hashlib.sha256).digest()


@contextmanager
def kept_releases(folder: Path) -> Iterator[KeptReleases]:
    """The record in a folder, locked until all that was entered is on the disk, or none of it."""
    file = folder / "releases.sqlite"
    with _usable(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        connection = sqlite3.connect(file, timeout=_WAIT_SECONDS, isolation_level=None)
        with closing(connection):
            connection.execute("BEGIN IMMEDIATE")
            for statement in _SCHEMA:
                connection.execute(statement)
            with _usable(folder):
                key = _key(folder / "key", connection)
            yield KeptReleases(connection, key)
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise DirectoryError(
            f"{file} tells what was released of rows before, and cannot be read or written: "
            f"{error}. Put it back from a copy; without it nobody knows what the rows have cost."
        ) from None


def _key(file: Path, connection: sqlite3.Connection) -> bytes:
    """The key of the digests, made with the record; with another, no row would be known again."""
    marked = connection.execute("SELECT mark FROM keys").fetchone()
    if marked is None and not file.exists():
        atomic_write(file, secrets.token_bytes(32), private=True)
    key = file.read_bytes() if file.exists() else b""
    mark = hashlib.sha256(b"the key of these releases" + key).digest()
    if marked is None:
        connection.execute("INSERT INTO keys VALUES (?)", (mark,))
    elif marked != (mark,):
        raise DirectoryError(
            f"{file} is {'another than it was' if key else 'gone'}, and without it no row of the "
            "releases beside it is recognised. Put it back from a copy."
        )
    return key


@contextmanager
def _usable(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DirectoryError(
            f"{folder} keeps what was released of rows, and cannot be used: {error.strerror}. "
            "Make it yours, or say another place by XDG_STATE_HOME."
        ) from None
