"""What errors say of names: which one may have been meant, and which there are.

>>> f"no column 'lable'{did_you_mean('lable', ['age', 'Label'])}"
"no column 'lable', did you mean 'Label'?"
>>> f"The columns are {listed(['age', 'Label', 'city'])}."
"The columns are 'age', 'Label' and 'city'."
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
        shown.append(f"{len(names) - most} others")
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
