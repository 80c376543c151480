"""Number of contributions that a node has reserved, in a file outside its directory.

A restored backup of the node's directory resets the count in its database, but neighbours keep the
models they received. A node therefore reserves every contribution here, forced to the disk, before
it commits and sends it, and starts from the larger of the two counts. A crash after the reservation
charges a contribution that nobody saw, which is safe.

The file holds two lines, each a count and its checksum. A reservation overwrites the older line, so
an interrupted write leaves the other line intact. If one line is damaged, it may have held the next
count, so the node starts from one more than the other line says. A lock on the file ends with the
process: two copies of a directory cannot run at once.

>>> import tempfile
>>> folder = tempfile.TemporaryDirectory()
>>> file = Path(folder.name, "counts", "ab" * 32)
>>> ContributionCount.create(file)
>>> count = ContributionCount.open(file)
>>> count.reserve(3)
>>> count.value
3
>>> count.close()
>>> ContributionCount.read(file)
3
>>> folder.cleanup()
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from walklearn.files.atomic_write import atomic_write, sync_directory
from walklearn.node.disk.database import DiskError, StoreError, in_use, no_room

_LINE_BYTES = 22
# Changes the content alone, so the time of the last change need not be forced to the disk.
_sync = getattr(os, "fdatasync", os.fsync)


class ContributionCount:
    """Contributions that the node with this fingerprint, the file's name, has reserved.

    `open` locks the file for the process that runs the node.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path, self._descriptor = path, descriptor
        self._lines = _parse(path, os.pread(descriptor, 2 * _LINE_BYTES, 0))

    @staticmethod
    def create(path: Path) -> None:
        """Create the file of a node that has not contributed yet."""
        for folder in (path.parent.parent, path.parent):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        atomic_write(path, 2 * _line(path, 0), private=True)
        sync_directory(path.parent.parent)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Lock and read the file; a `StoreError` is raised if that is not possible."""
        import fcntl

        with _explained(path):
            descriptor = os.open(path, os.O_RDWR)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                count = cls(path, descriptor)
                count.reserve(_start(count._lines))  # rewrites a damaged line
                return count
            except BaseException:
                os.close(descriptor)
                raise

    @staticmethod
    def read(path: Path) -> int:
        """Return the count without a lock, while the node runs or not."""
        with _explained(path):
            return _start(_parse(path, path.read_bytes()))

    @property
    def value(self) -> int:
        """The number of contributions reserved so far."""
        return max(self._lines)

    def reserve(self, contributions: int) -> None:
        """Record a larger count; it is on the disk when this returns.

        A `StoreError` means that nothing was reserved, a `DiskError` that this is unknown.
        """
        if contributions <= self.value:
            return
        older = self._lines.index(min(self._lines))
        self._lines[older] = -1  # unknown until it is written
        line = _line(self._path, contributions)
        try:
            if os.pwrite(self._descriptor, line, older * _LINE_BYTES) < _LINE_BYTES:
                raise StoreError(no_room(self._path))
        except OSError as error:
            raise StoreError(f"{self._path} cannot be written to: {error.strerror}.") from None
        try:
            _sync(self._descriptor)
        except OSError as error:
            raise DiskError(f"{self._path}: {error.strerror}.") from None
        self._lines[older] = contributions

    def close(self) -> None:
        """Release the lock."""
        os.close(self._descriptor)


def _line(path: Path, count: int) -> bytes:
    digits = f"{count:012d}"
    return f"{digits} {zlib.crc32(f'{path.name} {digits}'.encode()):08x}\n".encode()


def _parse(path: Path, content: bytes) -> list[int]:
    """The counts of both lines, -1 for a line that is damaged; one of them must be intact."""
    counts = []
    for start in (0, _LINE_BYTES):
        line = content[start : start + _LINE_BYTES]
        digits = line[:12]
        intact = digits.isdigit() and line == _line(path, int(digits))
        counts.append(int(digits) if intact else -1)
    if max(counts) < 0:
        raise StoreError(_unknown(path, "it is damaged"))
    return counts


def _start(counts: list[int]) -> int:
    """Return the count to start from, given both lines; a damaged one may have held the next."""
    return max(counts) + (min(counts) < 0)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn an `OSError` into a `StoreError` that names the file and the remedy."""
    try:
        yield
    except BlockingIOError:
        runs = "another process runs this node, or a copy of its directory"
        raise StoreError(in_use(path, runs)) from None
    except OSError as error:
        raise StoreError(_unknown(path, str(error.strerror))) from None


def _unknown(path: Path, reason: str) -> str:
    return (
        f"{path} cannot be used: {reason}. It counts the contributions of this node, so nobody can "
        "tell how much of its privacy budget is left. Make the node anew with `walklearn node "
        "init`, which charges its rows again."
    )
