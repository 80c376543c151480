"""SciPy's special functions, loaded when the first of them is called (PEP 562).

Drawing, clipping and releasing need none of them, and a node that only does that should not
carry SciPy. From the second call on, a function is found here as if it had been imported.

>>> from walklearn.privacy.accounting import special
>>> float(special.gammaln(1.0))
0.0
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scipy.special import *  # noqa: F403

_NAMES = (
    "betainc", "betainccinv", "betaincinv", "erf", "erfcx", "gammainc", "gammaincc", "gammainccinv",
    "gammaincinv", "gammaln", "log_ndtr", "ndtr",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    function = getattr(import_module("scipy.special"), name)
    globals()[name] = function
    return function
