"""Files that appear whole or not at all, and stay when the power fails.

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
    """Put ``content`` at ``path``, in place of what was there; a failure leaves nothing behind.

    private: only its owner may read the file, from its first byte on.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(no_directory(target.parent))
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    # Not by os.umask: that is the whole process's, so another thread's file might be open to all.
    mode = 0o600 if private else 0o666
    try:
        with open(temporary, "xb", opener=lambda name, how: os.open(name, how, mode)) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:  # an interrupt too
        temporary.unlink(missing_ok=True)
        tell_of(target, temporary, error)
        raise
    sync_directory(target.parent)


@contextmanager
def whole_directory(target: Path, mode: int = 0o777, *, replace: bool = False) -> Iterator[Path]:
    """Yield a temporary directory that is renamed to the target if the block succeeds.

    replace: True to put it in place of another directory. Otherwise such a directory is an
    `OSError`, also if it appeared in the meantime.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    stamp = secrets.token_hex(8)
    fresh, former = target.with_name(f".{stamp}.tmp"), target.with_name(f".{stamp}.old")
    try:
        fresh.mkdir(mode)
    except OSError as error:
        tell_of(target, fresh, error)
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


def tell_of(target: Path, temporary: Path, error: BaseException) -> None:
    """Let an error name what was to be written, not the hidden file that nobody asked for."""
    if isinstance(error, OSError) and error.filename == str(temporary):
        error.filename = str(target)


def no_directory(folder: Path) -> str:
    """The message that a file's directory is not there, with what to do."""
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not there.is_dir():
        return f"{there} is a file, not a directory: nothing can be put into it."
    return f"there is no directory {folder}. Make it first: mkdir -p {folder}"


def sync_directory(directory: Path) -> None:
    """Force the new name itself to the disk."""
    if os.name == "nt":  # Windows cannot open a directory
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network drives know no such
            raise
    finally:
        os.close(descriptor)
