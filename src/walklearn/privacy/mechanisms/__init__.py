"""Mechanisms, which release a noisy value in place of a node's constant.

A mechanism turns a value v within public bounds [lo, hi] into a noisy one:

| name              | release                                            | noise      |
|-------------------|----------------------------------------------------|------------|
| gamma             | Gamma(shape v/θ, scale θ): mean v, variance vθ     | theta      |
| clamped-gamma     | the same, clamped to a public [l, h]               | theta      |
| laplace           | v + Laplace noise, clamped                         | scale      |
| truncated-laplace | v + Laplace noise that never exceeds ±cut, clamped | scale, cut |
| gaussian          | v + Gaussian noise, clamped                        | sigma      |

A walk divides by released values, so they must be positive: additive noise is clamped to the bounds
unless another clamp is given. `clamp=None` leaves it unclamped, for experiments only. Values
outside the bounds are moved to the nearer bound before the release; `count_out_of_bounds` counts
them.

`delta` is exact for the clamped release (`curves`). `mean` and `variance` are those of the clamped
release (`moments`); rounding to the grid changes them by less than 1e-9 of the noise variance. A
real release is drawn exactly (`exact_draws`), so δ holds for the published number. With a generator
a release is simulated in double precision (`sampling`), which is quick and protects nobody.

>>> import numpy as np
>>> mechanism = ClampedGamma(theta=20.0, bounds=(1.0, 50.0))
>>> round(mechanism.delta(3.0), 4), round(mechanism.epsilon(0.03), 3)
(0.8935, 8.566)
>>> mechanism.release([2.0, 30.0], np.random.default_rng(1)).shape
(2,)
"""

from walklearn.privacy.mechanisms.gamma import ClampedGamma, Gamma
from walklearn.privacy.mechanisms.gaussian import Gaussian
from walklearn.privacy.mechanisms.laplace import Laplace, TruncatedLaplace
from walklearn.privacy.mechanisms.mechanism import MECHANISMS, Mechanism

__all__ = [
    "MECHANISMS", "ClampedGamma", "Gamma", "Gaussian", "Laplace", "Mechanism", "TruncatedLaplace",
]  # fmt: skip
