"""Edge lists as people publish them: who is joined to whom, a pair on each line of a text file.

Names or numbers, apart by spaces, tabs, commas or semicolons; # and % begin comments; a file may
be compressed by gzip. Further columns, such as weights or times, are left out with a warning, and
so are edges from a node to itself: a walk can stay anyway. Repeated edges count once, whichever way
round they are written. A first line of words that occur nowhere else is a header.

>>> import pathlib, tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     path = pathlib.Path(folder, "edges.txt")
...     _ = path.write_text("% as published\\n7\\t3\\n3\\t12\\n")
...     pairs, names = read_pairs(path)
>>> pairs.tolist(), names
([[1, 0], [0, 2]], ['3', '7', '12'])
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Set
from itertools import chain
from pathlib import Path

import numpy as np

from walklearn.graphs.sparse_rows import Integers
from walklearn.tables.compressed import open_text
from walklearn.tables.table import DataError
from walklearn.wording import no_such_file

COMMENTS = ("#", "%")


def read_pairs(path: Path) -> tuple[Integers, list[str] | None]:
    """Read the pairs of an edge list as node numbers, with the names in order of size or alphabet.

    Names are None where nodes are called 0, 1, 2, … without a gap.
    """
    if not path.is_file():
        raise DataError(no_such_file(path))
    pairs = _numbers(path)
    if pairs is not None:
        labels, numbered = np.unique(pairs, return_inverse=True)
        names = None if np.array_equal(labels, np.arange(len(labels))) else labels.astype(str)
        pairs = numbered.reshape(pairs.shape)
        found = None if names is None else [str(name) for name in names]
    else:
        words = named_pairs(path)
        in_order = ordered({word for pair in words for word in pair})
        number = {name: at for at, name in enumerate(in_order)}
        pairs = np.array([[number[one], number[other]] for one, other in words], dtype=np.int64)
        counted = in_order == [str(at) for at in range(len(in_order))]
        found = None if counted else in_order
    loops = pairs[:, 0] == pairs[:, 1]
    tell_of_loops(path, int(loops.sum()))
    return pairs[~loops], found


def tell_of_loops(path: Path, count: int) -> None:
    """Warn that edges from a node to itself are left out, if there are any."""
    if count:
        lines = "1 line joins" if count == 1 else f"{count} lines join"
        left_out = "is left out" if count == 1 else "are left out"
        warnings.warn(f"{path}: {lines} a node to itself and {left_out}.", stacklevel=4)


def named_pairs(path: Path, owners: Set[str] = frozenset()) -> list[tuple[str, str]]:
    """Read the pairs as they are written, with care, so that a wrong line can be named.

    owners: names that are known from elsewhere, so that a line with one of them is no header.
    """
    try:
        with open_text(path) as lines:
            texts = [(at, _without_comment(line)) for at, line in enumerate(lines, start=1)]
    except (UnicodeDecodeError, EOFError, OSError) as error:
        raise DataError(f"{path} is not text in UTF-8, so it is no edge list ({error}).") from error
    found = [(at, text, _words(text)) for at, text in texts if text]
    if _has_header([words for *_, words in found], owners):
        if not owners:  # nobody knows whether it was meant as an edge
            warnings.warn(
                f"{path}: line {found[0][0]}, {found[0][1]!r}, is taken for a header, as its words "
                "occur nowhere else.",
                stacklevel=4,
            )
        del found[0]
    for at, text, words in found:
        if len(words) < 2 or not all(words[:2]) or not all(map(_is_number, words[2:])):
            raise DataError(
                f'{path}, line {at}: expected two nodes, such as "oslo rome" or "oslo,rome" (names '
                f"with spaces in them need a comma or a tab between), got {text[:60]!r}."
            )
    if not found:
        raise DataError(f"{path}: there are no edges in this file.")
    _tell_of_columns(path, max(len(words) for *_, words in found))
    return [(words[0], words[1]) for *_, words in found]


def _has_header(rows: list[list[str]], owners: Set[str]) -> bool:
    if len(rows) < 2 or len(rows[0]) < 2 or len(rows[0]) != len(rows[1]):
        return False
    elsewhere = {word for words in rows[1:] for word in words[:2]}
    return elsewhere.isdisjoint(rows[0][:2]) and owners.isdisjoint(rows[0][:2])


def ordered(names: set[str]) -> list[str]:
    """Numbers by size, names by the alphabet."""
    numbers = all(re.fullmatch(r"\d{1,18}", name, re.ASCII) for name in names)
    return sorted(names, key=int) if numbers else sorted(names)


def _numbers(path: Path) -> Integers | None:
    """Read a file of whole numbers in one go; None when a closer look is needed."""
    try:
        with open_text(path) as lines, warnings.catch_warnings():
            warnings.simplefilter("error")  # numpy would read 1.5 as 1 with a warning
            first = next((text for line in lines if (text := _without_comment(line))), "")
            words, delimiter = _words(first), "," if "," in first else None
            is_header = not any(map(_is_number, words))  # above numbers, or there is an error below
            pairs = np.loadtxt(
                lines if is_header else chain([first], lines), dtype=np.int64, comments=COMMENTS,
                delimiter=delimiter, ndmin=2, usecols=(0, 1),
            )  # fmt: skip
    except (ValueError, IndexError, Warning, OSError, EOFError):
        return None
    if not pairs.size or (pairs < 0).any():
        return None
    _tell_of_columns(path, len(words))
    return pairs


def _tell_of_columns(path: Path, width: int) -> None:
    if width > 2:
        warnings.warn(
            f"{path}: only the first two of {width} columns are used, who is joined to whom; "
            "weights and the like are left out.",
            stacklevel=4,
        )


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _without_comment(line: str) -> str:
    for mark in COMMENTS:
        line = line.split(mark)[0]
    return line.strip()


def _words(text: str) -> list[str]:
    separator = r"[,;\t]" if re.search(r"[,;\t]", text) else r"\s+"
    words = [word.strip(' "') for word in re.split(separator, text)]
    # "0, 1" and "1 , 2" beside "1 2" in one file: a cell with a space in it is two words.
    return words if len(words) > 1 else text.split()
