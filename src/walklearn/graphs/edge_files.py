"""Edge lists as text files: a pair of nodes on each line.

Nodes are names or numbers, separated by spaces, tabs, commas or semicolons; # and % begin comments;
a file may be compressed by gzip. Further columns, such as weights or times, and edges from a node
to itself are left out with a warning: a walk can stay anyway. Repeated edges count once, in either
direction. A first line of words that occur on no other line is a header.
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
from walklearn.tables.table import DataError, reads_as_number
from walklearn.wording import no_such_file, plural

COMMENTS = ("#", "%")


def read_pairs(path: Path, owners: Set[str] | None = None) -> tuple[Integers, list[str] | None]:
    """Read an edge list as pairs of node numbers, with the sorted names of the nodes.

    Names are None if they are the numbers 0, 1, 2, … without a gap and no owners are given.
    owners: names that own rows. Names are then kept as written ("07" is not "7"), and a line with
    an owner is no header.
    """
    if not path.is_file():
        raise DataError(no_such_file(path))
    numbers = _numbers(path) if owners is None else None
    if numbers is not None:
        labels, places = np.unique(numbers, return_inverse=True)
        pairs = places.reshape(numbers.shape)
        names = None if labels[-1] == len(labels) - 1 else labels.astype(str).tolist()
    else:
        words = _pairs_of_words(path, owners or frozenset())
        names = list(set(chain.from_iterable(words)))
        are_numbers = all(re.fullmatch(r"\d{1,18}", name, re.ASCII) for name in names)
        names.sort(key=int if are_numbers else str)
        number = {name: node for node, name in enumerate(names)}
        pairs = np.array([[number[one], number[other]] for one, other in words], dtype=np.int64)
        if owners is None and names == [str(node) for node in range(len(names))]:
            names = None
    loops = pairs[:, 0] == pairs[:, 1]
    if loops.any():
        count = plural(int(loops.sum()), "edge")
        warnings.warn(f"{path}: left out {count} from a node to itself.", stacklevel=3)
    return pairs[~loops], names


def _pairs_of_words(path: Path, owners: Set[str]) -> list[tuple[str, str]]:
    """Read the pairs as they are written, line by line, so that an error can name the line."""
    try:
        with open_text(path) as lines:
            texts = [(number, _without_comment(line)) for number, line in enumerate(lines, start=1)]
    except (UnicodeDecodeError, EOFError, OSError) as error:
        raise DataError(f"{path} is not text in UTF-8, so it is no edge list ({error}).") from error
    rows = [(number, text, _words(text)) for number, text in texts if text]
    if _has_header([words for *_, words in rows], owners):
        if not owners:  # the line may have been meant as an edge
            warnings.warn(
                f"{path}: line {rows[0][0]}, {rows[0][1]!r}, is read as a header because its words "
                "are on no other line.",
                stacklevel=4,
            )
        del rows[0]
    for number, text, words in rows:
        if len(words) < 2 or not all(words[:2]) or not all(map(reads_as_number, words[2:])):
            raise DataError(
                f'{path}, line {number}: expected two nodes, such as "oslo rome" or "oslo,rome" '
                f"(names with spaces need a comma or a tab between them), got {text[:60]!r}."
            )
    if not rows:
        raise DataError(f"{path}: there are no edges in this file.")
    _warn_of_columns(path, max(len(words) for *_, words in rows))
    return [(words[0], words[1]) for *_, words in rows]


def _has_header(rows: list[list[str]], owners: Set[str]) -> bool:
    if len(rows) < 2 or len(rows[0]) < 2 or len(rows[0]) != len(rows[1]):
        return False
    others = set(owners).union(*(words[:2] for words in rows[1:]))
    return others.isdisjoint(rows[0][:2])


def _numbers(path: Path) -> Integers | None:
    """Read a file of whole numbers at once; None if it has to be read line by line."""
    try:
        with open_text(path) as lines, warnings.catch_warnings():
            warnings.simplefilter("error")  # numpy would read 1.5 as 1 with a warning
            first = next((text for line in lines if (text := _without_comment(line))), "")
            words, delimiter = _words(first), "," if "," in first else None
            is_header = not any(map(reads_as_number, words))  # else an error follows
            pairs = np.loadtxt(
                lines if is_header else chain([first], lines), dtype=np.int64, comments=COMMENTS,
                delimiter=delimiter, ndmin=2, usecols=(0, 1),
            )  # fmt: skip
    except (ValueError, IndexError, Warning, OSError, EOFError):
        return None
    if not pairs.size or (pairs < 0).any():
        return None
    _warn_of_columns(path, len(words))
    return pairs


def _warn_of_columns(path: Path, width: int) -> None:
    if width > 2:
        warnings.warn(
            f"{path}: only the first two of {width} columns are used, the nodes of each edge.",
            stacklevel=4,
        )


def _without_comment(line: str) -> str:
    return re.split("[#%]", line)[0].strip()


def _words(text: str) -> list[str]:
    separator = r"[,;\t]" if re.search(r"[,;\t]", text) else r"\s+"
    words = [word.strip(' "') for word in re.split(separator, text)]
    # "0, 1" and "1 , 2" beside "1 2" in one file: a cell with a space in it is two words.
    return words if len(words) > 1 else text.split()
