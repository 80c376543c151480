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
from walklearn.node.wire.book import DEGREE, Book, BookError
from walklearn.node.wire.identity import Identity

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
    try:
        key, begin, certificate = key_file(path).read_bytes().partition(_CERTIFICATE)
    except FileNotFoundError:
        raise BookError(
            f"{key_file(path)} is missing: only the keeper changes a book, with the key that "
            "`walklearn node book new` made."
        ) from None
    return Identity(key, begin + certificate)
