"""A score on private rows is a release: the estimators warn of it once per process."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from walklearn.estimators.outcome import is_claimed
from walklearn.privacy.privacy_warning import PrivacyWarning

if TYPE_CHECKING:
    from walklearn.estimators.random_walk import RandomWalk

SCORE_IS_A_RELEASE = (
    "a score on private rows is a release that ε does not cover. Do not publish it, and choose no "
    "model or parameter by it; scores on public rows are free. This warning appears once per "
    "process."
)
_warned = False


def warn_about_score(estimator: RandomWalk) -> None:
    """Issue a `PrivacyWarning` at the first score of a private estimator in this process.

    A fit with a seed makes no claim, but it rehearses a private fit: it is warned of as well.
    """
    global _warned
    if not _warned and is_claimed(estimator):
        _warned = True
        warnings.warn(SCORE_IS_A_RELEASE, PrivacyWarning, stacklevel=3)
