"""Textbook formulas of the noise, to compare with."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

from walklearn import privacy


def upper_tail(mechanism: privacy.Mechanism, t: Any, value: float) -> Any:
    """P(unclamped release ≥ t); for Gamma noise t > 0."""
    if isinstance(mechanism, privacy.Gamma | privacy.ClampedGamma):
        return special.gammaincc(value / mechanism.theta, np.maximum(t, 0) / mechanism.theta)
    if isinstance(mechanism, privacy.Gaussian):
        return special.ndtr((value - t) / mechanism.sigma)
    z = (t - value) / mechanism.scale
    plain = np.where(z > 0, 0.5 * np.exp(-np.abs(z)), 1 - 0.5 * np.exp(-np.abs(z)))
    if isinstance(mechanism, privacy.Laplace):
        return plain
    beyond = 0.5 * math.exp(-mechanism.cut / mechanism.scale)
    return np.clip((plain - beyond) / (1 - 2 * beyond), 0, 1)
