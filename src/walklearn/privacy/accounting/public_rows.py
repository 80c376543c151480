"""The public length of a row, from which the clip and the step of a private walk follow.

Estimators, `train`, `advise`, `plan new` and nodes all take it from here, so that the step is tuned
for the clip that is used. Each *column* adds 1 to the expected squared length: a number in units of
its typical spread has E[x²] ≈ 1, a number in half ranges has x² ≤ 1, and of the features of a text
exactly one is 1, however many categories it has. So √columns is the length, not √features.

>>> from walklearn.tables.encoding import Column, Encoding
>>> columns = (Column("age", None, 50.0, 20.0, 3.0), Column("city", ("Lima", "Oslo", "Rome")))
>>> length = RowLength.declared(Encoding(columns))
>>> length.typical, length.with_intercept(True)
(1.4142135623730951, 1.7320508075688774)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from walklearn.tables.encoding import Encoding


@dataclass(frozen=True)
class RowLength:
    """Public facts about ‖x‖, the length of a row without the intercept.

    typical: the length that rows have in units of typical spreads. bound: a length that no row
    exceeds. None where it is not known.
    """

    typical: float | None = None
    bound: float | None = None

    @classmethod
    def declared(
        cls,
        encoding: Encoding | None,
        row_length: float | None = None,
        feature_bound: float | None = None,
    ) -> RowLength:
        """Return the lengths that are given, completed by those that the columns declare."""
        if encoding is None:
            return cls(row_length, feature_bound)
        longest = encoding.longest if math.isfinite(encoding.longest) else None
        return cls(row_length or encoding.typical_length, feature_bound or longest)

    @property
    def is_typical(self) -> bool:
        """True if the length comes from typical spreads rather than from ranges or a bound."""
        return self.typical is not None

    def with_intercept(self, intercept: bool) -> float | None:
        """Return the length for `allot`, including the intercept's 1; None if nothing is known.

        Rows are shortened to the bound, so a bound below the typical length replaces it.
        """
        known = [each for each in (self.typical, self.bound) if each is not None]
        return math.hypot(min(known), float(intercept)) if known else None
