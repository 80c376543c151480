"""SciPy's special functions, imported on the first use (PEP 562).

A node that only draws, clips and releases needs none of them and should not load SciPy.

>>> from walklearn.privacy.accounting import special
>>> float(special.gammaln(1.0))
0.0
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scipy.special import *  # noqa: F403


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    function = getattr(import_module("scipy.special"), name)
    globals()[name] = function
    return function
