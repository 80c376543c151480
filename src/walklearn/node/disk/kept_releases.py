"""What was promised for rows, kept by their owner outside of any node's directory.

Whoever draws a release of the same rows twice lets neighbours average the noise away, and a cap on
contributions is none if a new node begins at 0. So what a node was allowed to release is written
down under a digest of its rows, before the node exists: a node that is made anew from the same rows
finds it. The digest is keyed, or one who reads the names of the files could try rows; and it does
not depend on the order of the rows.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     kept = KeptReleases(Path(folder, "releases"))
...     rows = NodeRows(np.eye(2), np.ones(2))
...     before = kept.of(rows)
...     kept.add(rows, {"importance": 2.5})
...     before, kept.of(NodeRows(np.eye(2)[::-1], np.ones(2)))
([], [{'importance': 2.5}])
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from walklearn.node.agreement.node_rows import NodeRows
from walklearn.node.disk.directory import DirectoryError, private_write
from walklearn.problem.owned_rows import is_sparse


def owners_folder() -> Path:
    """Where the owner's releases are kept: a folder of the user's state."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state, "walklearn", "releases")


class KeptReleases:
    """The owner's record, a file for each set of rows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def of(self, rows: NodeRows) -> list[dict[str, Any]]:
        """All that was entered for these rows, oldest first."""
        file = self._file(rows)
        try:
            entries: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            raise DirectoryError(
                f"{file} tells what was released of these rows before, and cannot be read: {error}."
                " Put it back from a copy; without it nobody knows what the rows have cost."
            ) from None
        return entries

    def add(self, rows: NodeRows, entry: dict[str, Any]) -> None:
        """Enter something for these rows; it is on the disk when this returns."""
        content = json.dumps([*self.of(rows), entry], indent=2) + "\n"
        private_write(self._file(rows), content.encode())

    def digest(self, content: bytes) -> str:
        """A keyed digest, which tells nothing to who has no key."""
        return hmac.new(self._key(), content, hashlib.sha256).hexdigest()

    def _file(self, rows: NodeRows) -> Path:
        return self.folder / f"{self.digest(b''.join(sorted(_lines(rows))))}.json"

    def _key(self) -> bytes:
        file = self.folder / "key"
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not file.exists():
                private_write(file, secrets.token_bytes(32))
            return file.read_bytes()
        except OSError as error:
            raise DirectoryError(
                f"{self.folder} keeps what was released of rows, and cannot be used: "
                f"{error.strerror}. Make it yours, or say another place by XDG_STATE_HOME."
            ) from None


def _lines(rows: NodeRows) -> list[bytes]:
    """A digest of each row, the target with it."""
    if is_sparse(rows.X):
        starts = rows.X.indptr
        parts = [
            rows.X.indices[begin:end].astype(np.int64).tobytes() + rows.X.data[begin:end].tobytes()
            for begin, end in pairwise(starts)
        ]
    else:
        parts = [row.tobytes() for row in np.asarray(rows.X, dtype=np.float64)]
    return [
        hashlib.sha256(part + np.float64(target).tobytes()).digest()
        for part, target in zip(parts, rows.y, strict=True)
    ]
