"""What is said of names and numbers: which name may have been meant, which there are, how many.

>>> f"no column 'lable'{did_you_mean('lable', ['age', 'Label'])}"
"no column 'lable', did you mean 'Label'?"
>>> f"The columns are {listed(['age', 'Label', 'city'])}."
"The columns are 'age', 'Label' and 'city'."
>>> f"{plural(1, 'node')} and {plural(2, 'edge')}, seen {often(1)}."
'1 node and 2 edges, seen once.'
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known name that is most like the word, if one is much like it; capitals don't matter.

    >>> closest("rnig", ["ring", "star"]), closest("cube", ["ring", "star"])
    ('ring', None)
    """
    by_lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(str(word).lower(), by_lower, n=1)
    return by_lower[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """', did you mean …?' when there is a name much like it, '.' otherwise: ends a sentence."""
    close = closest(word, known)
    return f", did you mean {close!r}?" if close is not None else "."


def listed(names: Sequence[str], most: int = 8) -> str:
    """'a', 'b' and 'c'; of many only the first.

    >>> listed(["a", "b", "c"], most=1)
    "'a' and 2 others"
    """
    shown = [repr(name) for name in names[:most]]
    if len(names) > most:
        shown.append(plural(len(names) - most, "other"))
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def plural(count: float, thing: str) -> str:
    """How many things there are: '1 edge', '20,000 edges'; what ends otherwise is not for it."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def often(count: int) -> str:
    """How often something was, or may be: 'once', '3 times'."""
    return "once" if count == 1 else f"{count:,} times"
