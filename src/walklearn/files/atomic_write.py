"""Atomic writes: a file or a directory appears completely or not at all.

The content is written to a temporary file beside the target, forced to the disk, and renamed.
A crash at any moment leaves the old file or the new one, never a mixture.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     atomic_write(Path(folder, "greeting"), b"hello")
...     [file.read_bytes() for file in Path(folder).iterdir()]
[b'hello']
"""

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def atomic_write(path: str | os.PathLike[str], content: bytes, private: bool = False) -> None:
    """Write or replace a file; a failure leaves no temporary file behind.

    private: True if only the user who owns the file may read it.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(no_directory(target.parent))
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    # Not os.umask: it applies to the whole process, and would change the files of other threads.
    mode = 0o600 if private else 0o666
    try:
        with open(temporary, "xb", opener=lambda name, how: os.open(name, how, mode)) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:  # an interrupt too
        temporary.unlink(missing_ok=True)
        name_target(target, temporary, error)
        raise
    sync_directory(target.parent)


@contextmanager
def atomic_directory(target: Path, mode: int = 0o777, *, replace: bool = False) -> Iterator[Path]:
    """Yield a temporary directory that is renamed to the target if the block succeeds.

    replace: True to replace an existing directory, which is an `OSError` otherwise, even if it was
    created while the block ran.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    stamp = secrets.token_hex(8)
    fresh, former = target.with_name(f".{stamp}.tmp"), target.with_name(f".{stamp}.old")
    try:
        fresh.mkdir(mode)
    except OSError as error:
        name_target(target, fresh, error)
        raise
    try:
        yield fresh
        if replace and target.exists():
            os.rename(target, former)
        try:
            os.rename(fresh, target)
        except BaseException:
            if former.exists():
                os.rename(former, target)
            raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        if target.exists():
            shutil.rmtree(former, ignore_errors=True)
    sync_directory(target.parent)


def name_target(target: Path, temporary: Path, error: BaseException) -> None:
    """Name the target in an error about the temporary file, or about a write to it."""
    names = None, str(temporary)
    if isinstance(error, OSError) and error.errno is not None and error.filename in names:
        error.filename = str(target)


def no_directory(folder: Path) -> str:
    """Return the error message for a directory that does not exist."""
    nearest = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not nearest.is_dir():
        return f"{nearest} is a file, not a directory. Choose another path."
    return f"the directory {folder} does not exist. Make it first: mkdir -p {folder}"


def sync_directory(directory: Path) -> None:
    """Flush the entries of a directory to the disk."""
    if os.name == "nt":  # Windows cannot open a directory
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network drives lack it
            raise
    finally:
        os.close(descriptor)
