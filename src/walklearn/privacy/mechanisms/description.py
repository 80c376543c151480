"""Mechanisms as plain values for files, and back.

>>> from walklearn.privacy.mechanisms import Laplace
>>> describe(Laplace(scale=9.0, bounds=(1.0, 10.0)))
{'kind': 'laplace', 'scale': 9.0, 'bounds': [1.0, 10.0], 'clamp': [1.0, 10.0]}
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from walklearn.privacy.accounting.composition import Release
from walklearn.privacy.mechanisms import MECHANISMS
from walklearn.privacy.mechanisms.row_gaussian import RowGaussian
from walklearn.privacy.model_noise import ModelNoise

IN_THE_CLEAR = "in the clear"  # the description of an unprotected release
UNPROTECTED_MODEL = (
    "Anyone who sees the token before and after a visit learns the gradient of the rows that the "
    "visit used (with memory: its change). If the node has one row, this reveals the row. If it "
    "has several, many visits can reveal much about them."
)


def check_accounted(mechanism: Release) -> None:
    """Raise a ValueError if a class changes the noise but inherits the cost."""
    if not mechanism.is_accounted:
        raise ValueError(
            f"no privacy can be claimed for {mechanism!r}: its class overrides the draw of a "
            "release and inherits the cost. Override `curve` in the same class."
        )


def describe(mechanism: Release) -> dict[str, Any]:
    """Return a mechanism as plain JSON values: its kind and its parameters.

    >>> describe(ModelNoise(clip=1.0, noise_multiplier=2.0, max_contributions=5))["protect"]
    'rows'
    """
    described: Any = mechanism  # every mechanism is a dataclass
    values = {"kind": mechanism.name, **dataclasses.asdict(described)}
    return {key: list(each) if isinstance(each, tuple) else each for key, each in values.items()}


def from_description(description: Mapping[str, Any]) -> Release:
    """Return the mechanism that `describe` described."""
    parameters = dict(description)
    kind = parameters.pop("kind", None)
    others: dict[Any, Any] = {ModelNoise.name: ModelNoise, RowGaussian.name: RowGaussian}
    mechanism: Any = others.get(kind) or MECHANISMS.by_name(kind)
    try:
        release: Release = mechanism(**parameters)
    except TypeError as error:
        raise ValueError(f"these are not the parameters of {kind}: {parameters!r}.") from error
    return release
