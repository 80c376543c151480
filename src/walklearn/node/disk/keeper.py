"""The keeper's side of a book: two files, the book to give to everybody and the key to keep.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     book = new_book(Path(folder, "hospitals.book"))
...     files = sorted(file.name for file in Path(folder).iterdir())
>>> files, book.number
(['hospitals.book', 'hospitals.book.key'], 0)
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from walklearn.files.atomic_write import atomic_write
from walklearn.node.disk.directory import others_may_read
from walklearn.node.wire.book import DEGREE, Book, BookError
from walklearn.node.wire.identity import Identity, verified

_CERTIFICATE = b"-----BEGIN CERTIFICATE-----"


def new_book(path: Path, degree: int = DEGREE) -> Book:
    """Make a keeper's key and an empty book that it signed."""
    for file in (path, key_file(path)):
        if file.exists():
            raise BookError(f"{file} exists: a book is made once, and changed by `book add`.")
    keeper = Identity.create("keeper")
    book = Book.new(keeper, degree)
    atomic_write(key_file(path), keeper.key + keeper.certificate, private=True)
    atomic_write(path, book.encode())
    return book


def change_book(path: Path, change: Callable[[Book], Book]) -> Book:
    """Put the changed book, signed anew, in place of the old one."""
    keeper = _keeper(path)
    book = change(Book.decode(path.read_bytes(), keeper.fingerprint)).signed(keeper)
    atomic_write(path, book.encode())
    return book


def key_file(path: Path) -> Path:
    """Where the keeper's key is."""
    return path.with_name(path.name + ".key")


def _keeper(path: Path) -> Identity:
    file = key_file(path)
    try:
        key, begin, certificate = file.read_bytes().partition(_CERTIFICATE)
    except FileNotFoundError:
        raise BookError(
            f"{file} is missing: only the keeper changes a book, with the key that "
            "`walklearn node book new` made."
        ) from None
    if shared := others_may_read(file):
        raise BookError(f"{shared}, or if somebody did, agree on another keeper.")
    keeper = Identity(key, begin + certificate)
    if not _is_whole(keeper):
        raise BookError(
            f"{file} is damaged: put it back from a copy. Without one nobody can change the book, "
            "and the participants have to agree on another keeper."
        )
    return keeper


def _is_whole(keeper: Identity) -> bool:
    """Whether key and certificate can be read and belong together."""
    try:
        return verified(keeper.public_key, b"a trial", keeper.sign(b"a trial"))
    except (ValueError, TypeError, AssertionError):  # what the cryptography says of a damaged key
        return False
