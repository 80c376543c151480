"""The public grid of released values, and the quick draws of a simulation.

**Grid.** Floating-point noise is not real-valued noise: the set of doubles that can occur depends
on the secret value, and a single output can reveal it (Mironov 2012). So a release is rounded to
multiples of a step that is a power of two chosen from public quantities only, about 2^-16 of the
noise and of the range, and then clamped to public ends. Rounding and clamping use only the noisy
number, so they are post-processing and cost no privacy.

**Draws.** Simulated draws come from a seed, in double precision: accurate to about 2^-50, and they
protect nobody. A real release is drawn by `exact_draws`.

>>> grid_step(3.0)
3.0517578125e-05
"""

from __future__ import annotations

import math

import numpy as np

from walklearn.privacy.limits import Array

# Multiples of the step up to 2^52 are exact; larger ones are clamped to it.
LARGEST_MULTIPLE = 2.0**52


def grid_step(length: float) -> float:
    """Return the largest power of two that is at most 2^-16 of a public length."""
    return math.ldexp(1.0, math.frexp(length)[1] - 17)


def gamma_draws(shapes: Array, generator: np.random.Generator) -> Array:
    """Draw Gamma(k, 1), exactly in the lower tail.

    For k < 1, Gamma(k) has the distribution of Gamma(k + 1) e^(−E/k), E exponential. NumPy's own
    sampler returns 0 for half the draws at k = .001. This one does so only below e^(−745), and
    the grid lifts these to one step.
    """
    small = shapes < 1.0
    draws: Array = np.asarray(generator.standard_gamma(shapes + small))
    if small.any():
        exponents = generator.standard_exponential(shapes.shape)
        with np.errstate(over="ignore", under="ignore"):
            exponents /= shapes
            draws *= np.where(small, np.exp(-exponents), 1.0)
    return draws
