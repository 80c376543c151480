"""What theory says of a walk before it is run: its spectrum, the theorems' constants, cautions.

>>> from walklearn import graphs, theory, walks
>>> round(theory.spectral_gap(graphs.complete(5), walks.Uniform(laziness=0.5)), 3)
0.625
"""

from walklearn.theory.diagnosis import (
    Constant,
    Diagnosis,
    diagnose,
    mixing_time,
    residual,
    spectral_gap,
)

__all__ = [
    "Constant",
    "Diagnosis",
    "diagnose",
    "mixing_time",
    "residual",
    "spectral_gap",
]
