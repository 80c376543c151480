"""Privacy of the constants that nodes release: mechanisms, exact costs, calibration, bounds.

A node's constant L_i tells about its data. It is released once, noisy, within public bounds:
`calibrate` finds the least noise for a target (ε, δ), `compare` says what each mechanism leaves
of the value, `smoothness_bounds` gives the public bounds.

>>> from walklearn import privacy
>>> mechanism = privacy.calibrate("clamped-gamma", epsilon=3.0, delta=0.03, bounds=(1.0, 50.0))
>>> mechanism
ClampedGamma(theta=8041.63, bounds=(1, 50))
>>> mechanism.delta(3.0) <= 0.03
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Public name -> the module that holds it. Modules load on first use (PEP 562): a node that puts
# noise on a model needs neither calibration nor audit.
_HOME = {
    "AlreadyReleasedError": "ledger",
    "Audit": "auditing",
    "BudgetExceededError": "ledger",
    "Charge": "composition",
    "ClampedGamma": "mechanisms",
    "Comparison": "comparison",
    "Gamma": "mechanisms",
    "Gaussian": "mechanisms",
    "InfeasiblePrivacyError": "infeasible",
    "Laplace": "mechanisms",
    "Ledger": "ledger",
    "MECHANISMS": "mechanisms",
    "Mechanism": "mechanisms",
    "ModelNoise": "model_noise",
    "Row": "comparison",
    "TruncatedLaplace": "mechanisms",
    "audit": "auditing",
    "calibrate": "calibration",
    "clip_features": "bounds",
    "compare": "comparison",
    "compose": "composition",
    "release_error": "comparison",
    "shrunk": "comparison",
    "smoothness_bounds": "bounds",
}

__all__ = [
    "MECHANISMS",
    "AlreadyReleasedError",
    "Audit",
    "BudgetExceededError",
    "Charge",
    "ClampedGamma",
    "Comparison",
    "Gamma",
    "Gaussian",
    "InfeasiblePrivacyError",
    "Laplace",
    "Ledger",
    "Mechanism",
    "ModelNoise",
    "Row",
    "TruncatedLaplace",
    "audit",
    "calibrate",
    "clip_features",
    "compare",
    "compose",
    "release_error",
    "shrunk",
    "smoothness_bounds",
]

if TYPE_CHECKING:
    from walklearn.privacy.auditing import Audit, audit
    from walklearn.privacy.bounds import clip_features, smoothness_bounds
    from walklearn.privacy.calibration import calibrate
    from walklearn.privacy.comparison import Comparison, Row, compare, release_error, shrunk
    from walklearn.privacy.composition import Charge, compose
    from walklearn.privacy.infeasible import InfeasiblePrivacyError
    from walklearn.privacy.ledger import AlreadyReleasedError, BudgetExceededError, Ledger
    from walklearn.privacy.mechanisms import (
        MECHANISMS,
        ClampedGamma,
        Gamma,
        Gaussian,
        Laplace,
        Mechanism,
        TruncatedLaplace,
    )
    from walklearn.privacy.model_noise import ModelNoise


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
