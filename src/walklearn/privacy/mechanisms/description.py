"""What releases something, as plain values for files and back.

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

IN_THE_CLEAR = "in the clear"  # in place of a description, where nothing protects
UNPROTECTED_MODEL = (
    "Anyone who sees the token before and after a visit learns the gradient of the rows that the "
    "visit used (with memory: its change). If the node has one row, this reveals the row. If it "
    "has several, many visits can reveal much about them."
)


def check_accounted(mechanism: Release) -> None:
    """Raise a ValueError if a subclass changes the noise and keeps the cost of its base."""
    if not mechanism.is_accounted:
        raise ValueError(
            f"no privacy can be claimed for {mechanism!r}: its class overrides the draw of a "
            "release and inherits the cost. Override `curve` in the same class."
        )


def describe(mechanism: Release) -> dict[str, Any]:
    """A mechanism as plain JSON values: its kind and its parameters.

    >>> describe(ModelNoise(clip=1.0, noise_multiplier=2.0, max_contributions=5))["protect"]
    'rows'
    """
    # Not `asdict`, which would leave tuples as they are: JSON gives lists back.
    of_a_dataclass: Any = mechanism
    names = [field.name for field in dataclasses.fields(of_a_dataclass)]
    values = [getattr(mechanism, name) for name in names]
    plain = [list(value) if isinstance(value, tuple) else value for value in values]
    return {"kind": mechanism.name, **dict(zip(names, plain, strict=True))}


def from_description(description: Mapping[str, Any]) -> Release:
    """Make the mechanism that `describe` described."""
    parameters = dict(description)
    kind = parameters.pop("kind", None)
    others: dict[Any, Any] = {ModelNoise.name: ModelNoise, RowGaussian.name: RowGaussian}
    made_of: Any = others.get(kind) or MECHANISMS.by_name(kind)
    try:
        release: Release = made_of(**parameters)
    except TypeError as error:
        raise ValueError(f"these are not the parameters of {kind}: {parameters!r}.") from error
    return release
