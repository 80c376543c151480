"""Storage of the tokens of a node's record: in its row, or in files beside the database.

A token above 1 MB is a file of its own, forced to the disk before the row that names it: through
SQLite's log it would be written twice.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from walklearn.files.atomic_write import atomic_write, sync_directory
from walklearn.node.protocol.tokens import Limits, Token, decode_token

LARGEST_ROW = 1_000_000  # bytes of a token; larger ones are files

# A token as the row has it: itself, or the name of its file.
Body = tuple[bytes | None, str | None]
NO_BODY: Body = (None, None)


class ReplacedError(Exception):
    """The file of a token has given way to another since its name was read."""


class Bodies:
    """The tokens of the database at this path."""

    def __init__(self, path: Path, limits: Limits) -> None:
        self._folder, self._limits = path.with_suffix(".bodies"), limits

    def write(self, token: Token | None, made: list[Path]) -> Body:
        """Give what a row of the database holds of a token; a file written for it joins `made`."""
        if token is None:
            return NO_BODY
        content = token.encoded
        if len(content) <= LARGEST_ROW:
            return content, None
        if not self._folder.is_dir():
            self._folder.mkdir(mode=0o700)
            sync_directory(self._folder.parent)  # or a power cut takes it, with the token in it
        file = self._folder / secrets.token_hex(16)
        made.append(file)  # first, because a failure may leave the file
        atomic_write(file, content, private=True)
        return None, file.name

    def read(self, body: Body) -> Token | None:
        """Read the token that a row has; `ReplacedError` if its file is gone."""
        content, file = body
        if file is not None:
            try:
                content = (self._folder / file).read_bytes()
            except FileNotFoundError:
                raise ReplacedError from None
        return None if content is None else decode_token(content, self._limits)

    def keep_only(self, *bodies: Body) -> None:
        """Remove the files that no row names, left by a crash or by the commit before."""
        if not self._folder.is_dir():
            return
        named = {file for _, file in bodies}
        for file in self._folder.iterdir():
            if file.name not in named:
                file.unlink(missing_ok=True)
