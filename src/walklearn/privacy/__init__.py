"""Privacy of the constants that nodes release: mechanisms, exact costs, calibration, bounds.

A node's constant L_i depends on its data. It is released once, with noise, within public bounds.
`calibrate` finds the smallest noise for a target (ε, δ), `compare` measures the error of each
mechanism, and `smoothness_bounds` derives the public bounds.

>>> from walklearn import privacy
>>> mechanism = privacy.calibrate("clamped-gamma", epsilon=3.0, delta=0.03, bounds=(1.0, 50.0))
>>> mechanism
ClampedGamma(theta=8041.63, bounds=(1, 50))
>>> mechanism.delta(3.0) <= 0.03
True
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
