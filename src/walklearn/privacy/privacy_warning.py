"""The warning about uses of private rows that no ε covers."""

from __future__ import annotations


class PrivacyWarning(UserWarning):
    """A use of private rows is not covered by the claimed ε.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("error", PrivacyWarning)  # refuse what would only be warned of
    """
