"""Names, lists and numbers in messages.

>>> f"no column 'lable'{did_you_mean('lable', ['age', 'Label'])}"
"no column 'lable', did you mean 'Label'?"
>>> f"The columns are {join_names(['age', 'Label', 'city'])}."
"The columns are 'age', 'Label' and 'city'."
>>> f"{plural(1, 'node')} and {plural(2, 'edge')}, seen {format_times(1)}."
'1 node and 2 edges, seen once.'
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

MAX_CHARACTERS = 120  # characters of a value in a message


def closest(word: str, known: Iterable[str]) -> str | None:
    """Return the most similar known name, if one is similar; capitals do not matter.

    >>> closest("rnig", ["ring", "star"]), closest("cube", ["ring", "star"])
    ('ring', None)
    """
    by_lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(str(word).lower(), by_lower, n=1)
    return by_lower[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the end of a sentence: ', did you mean …?' if a name is similar, else '.'."""
    close = closest(word, known)
    return f", did you mean {close!r}?" if close is not None else "."


def join_names(names: Sequence[str], maximum: int = 8) -> str:
    """Return names as 'a', 'b' and 'c', at most `maximum` of them.

    >>> join_names(["a", "b", "c"], maximum=1)
    "'a' and 2 others"
    """
    parts = [repr(name) for name in names[:maximum]]
    if len(names) > maximum:
        parts.append(plural(len(names) - maximum, "other"))
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def join_choices(choices: Sequence[str]) -> str:
    """Return choices as 'a, b or c'.

    >>> join_choices(["a"]), join_choices(["a", "b", "c"])
    ('a', 'a, b or c')
    """
    return " or ".join([", ".join(choices[:-1]), choices[-1]] if len(choices) > 1 else choices)


def format_value(value: object) -> str:
    """Return an invalid value for a message. Long ones are shortened; a class gets a hint.

    >>> format_value([1, 2]), format_value(dict), format_value("x" * 1000)[:50]
    ('[1, 2]', 'the class dict: write dict()', "a str that begins with 'xxxxxxxxxxxxxxxxxxxxxxxxxx")
    """
    if isinstance(value, type):
        return f"the class {value.__name__}: write {value.__name__}()"
    text = repr(value)
    short = len(text) <= MAX_CHARACTERS and "\n" not in text
    first = text[: MAX_CHARACTERS // 2].partition("\n")[0]
    return text if short else f"a {type(value).__name__} that begins with {first}…"


def plural(count: float, thing: str) -> str:
    """Return a number of things: '1 edge', '20,000 edges'."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def format_times(count: int) -> str:
    """Return a number of times: 'once', '3 times'."""
    return "once" if count == 1 else f"{count:,} times"


def number(value: float, digits: int = 3) -> str:
    """Return a rounded number for a table or a sentence.

    >>> number(0.123456), number(12345.6), number(1e-9), number(float("nan"))
    ('0.123', '12,300', '1e-09', '–')
    >>> number(1234.5, digits=2), number(123.0, digits=2)
    ('1,200', '120')
    >>> number(-0.5), number(float("-inf"))
    ('−0.5', '−∞')
    """
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    rounded = float(f"{value:.{digits}g}")
    text = f"{rounded:,.0f}" if 1e3 <= abs(rounded) < 1e7 else f"{rounded:g}"
    return text.replace("-", "−", 1) if value < 0 else text


def no_such_file(path: Path) -> str:
    """Return the message for a missing file, with a similar name if there is one."""
    if path.is_dir():
        return f"{path} is a directory, not a file."
    names = [each.name for each in path.parent.iterdir()] if path.parent.is_dir() else []
    return f"{path} does not exist{did_you_mean(path.name, names)}"


def align_columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table. Columns of numbers are right-aligned; empty headers are omitted.

    >>> align_columns(["walk", "gap"], [["uniform", "0.5"], ["weighted", "12"]])
    ['walk      gap', 'uniform   0.5', 'weighted   12']
    """
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    right = [
        all(re.match(r"[-+]?([\d.]|(inf|nan)\b)|-?$", row[index]) for row in rows)
        for index in range(len(header))
    ]
    return [
        "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in ((header, *rows) if any(header) else rows)
    ]
