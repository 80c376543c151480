"""The public grid that released values lie on, and the quick draws of a simulation.

**Grid.** Floating-point noise is not real-valued noise: which doubles can be reached depends
on the secret value, and a single output can give it away (Mironov 2012). So a release is
rounded to multiples of a step that is a power of two chosen from public quantities only, about
2^-16 of the noise and of the range, and then clamped to public ends. Rounding and clamping
see only the noisy number, so they are post-processing and cost no privacy.

**Draws.** What is drawn here comes from the seed of a simulation, in double precision: right to
about 2^-50, and it protects nobody. A real release is drawn by `exact_draws`.

>>> grid_step(3.0)
3.0517578125e-05
"""

from __future__ import annotations

import math

import numpy as np

from walklearn.privacy.limits import Array

# Multiples of the step up to 2^52 are exact; what is larger is clamped there.
LARGEST_MULTIPLE = 2.0**52


def grid_step(length: float) -> float:
    """The largest power of two that is at most 2^-16 of a public length."""
    return math.ldexp(1.0, math.frexp(length)[1] - 17)


def gamma_draws(shapes: Array, generator: np.random.Generator) -> Array:
    """Gamma(k, 1) draws, exact in the lower tail.

    For k < 1 the law of Gamma(k) is that of Gamma(k + 1) e^(−E/k), E exponential. NumPy's own
    sampler gives exactly 0 for half the draws at k = .001; here only what is below e^(−745)
    does, which the grid lifts to one step.
    """
    small = shapes < 1.0
    draws: Array = np.asarray(generator.standard_gamma(shapes + small))
    if small.any():
        exponents = generator.standard_exponential(shapes.shape)
        with np.errstate(over="ignore", under="ignore"):
            exponents /= shapes
            draws *= np.where(small, np.exp(-exponents), 1.0)
    return draws
