"""Privacy settings of a training, and the public facts that its noise is calibrated with.

Estimators, `train`, `advise`, `plan new` and nodes all calibrate with these two objects, so clip,
noise and step are the same wherever a training is planned. No claim protects a public fact.

The typical length of a row follows from public facts about its columns. Each *column* adds 1 to the
expected squared length: a number in units of its typical spread has E[x²] ≈ 1, a number in units of
half its range has x² ≤ 1, and a text column has exactly one feature that is 1, for any number of
categories. So the length is √columns, not √features.
"""

from __future__ import annotations

import math
from dataclasses import InitVar, dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from walklearn.checks import check_choice, check_number, check_whole
from walklearn.privacy.limits import DEFAULT_DELTA, check_delta, check_epsilon
from walklearn.privacy.mechanisms.description import IN_THE_CLEAR
from walklearn.privacy.model_noise import MAX_TIMES, ModelNoise, Unit

if TYPE_CHECKING:
    from walklearn.tables.encoding import Encoding


@dataclass(frozen=True)
class PrivacySettings:
    """Total privacy loss (ε, δ) of everything that leaves a node, and how it is spent.

    Parameters
    ----------
    epsilon, delta
        The total. None: nothing is protected, unless `noise` is given.
    protect
        The unit of the claim: "rows" (one row of a node is replaced) or "node" (all of them are).
        The field is called `unit`.
    model
        "in the clear" leaves the model unprotected: ε then covers the constants L_i alone.
    mechanism
        Name of the mechanism that releases L_i; None for the best one.
    noise
        Noise on the model with your own settings, instead of `epsilon`.
    feature_bound
        Public bound on the length of a row, without the intercept.
    max_rows
        Public cap on the rows of a node, for the bounds of L_i.
    bounds, lower
        Public bounds of L_i, or their lower end if there is no penalty.
    constants_share
        Share of ε and δ for the release of L_i; by default a tenth, if the walk discloses them.
    clip, max_contributions, noise_multiplier
        Parts of the noise on the model that are given. The others follow.

    Raises
    ------
    ValueError
        If ε, δ or the unit is not valid, or if two settings exclude each other.

    Examples
    --------
    >>> settings = PrivacySettings(epsilon=3.0, delta=1e-5, protect="node")
    >>> settings.unit, settings.protects_model
    ('node', True)
    """

    epsilon: float | None = None
    delta: float | None = None
    protect: InitVar[Unit] = "rows"
    model: str | None = None
    mechanism: str | None = None
    noise: ModelNoise | None = None
    feature_bound: float | None = None
    max_rows: float | None = None
    bounds: tuple[float, float] | None = None
    lower: float | None = None
    constants_share: float | None = None
    clip: float | None = None
    max_contributions: int | None = None
    noise_multiplier: float | None = None
    unit: Unit = field(init=False)

    def __post_init__(self, protect: Unit) -> None:
        """Check the settings as far as possible without the problem."""
        check_choice("protect", protect, Unit)
        for name in ("feature_bound", "max_rows", "lower"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), above=0.0)
        if self.noise is not None and protect == "node" and self.noise.protect != "node":
            raise ValueError(f'protect="node" contradicts {self.noise}. Leave protect out.')
        unit = self.noise.protect if self.noise is not None else protect
        object.__setattr__(self, "unit", unit)
        if self.epsilon is not None:
            check_epsilon(self.epsilon)
        if self.delta is not None:
            check_delta(self.delta)
        check_choice("model", self.model, (None, IN_THE_CLEAR))
        if self.epsilon is not None and self.noise is not None:
            raise ValueError(
                "epsilon is the total for everything that leaves a node, the model included, and "
                "the noise on the model follows from it. Leave out epsilon and delta, or your own "
                "ModelNoise (model_privacy, --model-noise)."
            )
        if self.epsilon is not None and self.delta is None:
            raise ValueError(
                f"epsilon = {self.epsilon:g} needs delta: privacy is a pair. Pass delta, which "
                "should be small beside 1 / (number of rows), such as 1e-5."
            )
        if self.epsilon is None and self.delta is not None and self.noise is None:
            raise ValueError(
                "delta was given without epsilon: privacy is a pair. Pass epsilon, such as 1.0."
            )

    @property
    def asks(self) -> bool:
        """True if the settings request protection."""
        return self.epsilon is not None or self.noise is not None

    @property
    def protects_model(self) -> bool:
        """True if each contribution of a node to the model is clipped and noisy."""
        return self.noise is not None or (self.epsilon is not None and self.model is None)

    @property
    def covers_constants_alone(self) -> bool:
        """True if ε covers only the constants L_i, which a weighted walk discloses."""
        return self.epsilon is not None and self.model is not None

    @property
    def hides_row_counts(self) -> bool:
        """True if the number of rows of a node is protected: only if the node is the unit.

        If rows are the unit, the noise on a node's mean, or the sum over its rows, reveals their
        number.
        """
        return self.asks and self.unit == "node"

    @property
    def reported_delta(self) -> float:
        """The δ at which ε is reported; your own noise may come without one."""
        return self.delta or DEFAULT_DELTA


# Without this, `dataclasses.replace` would reset the unit to the default of `protect`.
setattr(PrivacySettings, "protect", property(attrgetter("unit")))  # noqa: B010


@dataclass(frozen=True)
class PublicFacts:
    """Numbers about the data that are public before the training.

    Parameters
    ----------
    nodes
        The number of nodes N.
    rows
        The number M of rows of all nodes together, or the sum of their weights; None if it is
        not public.
    features
        The number of features of a row, without the intercept.
    row_length
        The typical length of a row in units of typical spreads, without the intercept.
    """

    nodes: int
    rows: float | None = None
    features: int | None = None
    row_length: float | None = None

    def __post_init__(self) -> None:
        """Check the numbers."""
        check_whole("nodes", self.nodes, maximum=MAX_TIMES)
        if self.features is not None:
            check_whole("features", self.features, minimum=0)
        for name in ("rows", "row_length"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), above=0.0)

    def public_length(self, privacy: PrivacySettings, intercept: bool) -> float | None:
        """Return the public length of a row with its intercept; None if it is unknown.

        Rows are shortened to `feature_bound`, so a bound below the typical length replaces it.
        """
        lengths = [each for each in (self.row_length, privacy.feature_bound) if each is not None]
        return math.hypot(min(lengths), float(intercept)) if lengths else None


def declared_lengths(
    encoding: Encoding | None, row_length: float | None = None, feature_bound: float | None = None
) -> dict[str, Any]:
    """Return `row_length` and `feature_bound` as given, completed by what the columns declare.

    >>> from walklearn.tables.encoding import Column, Encoding
    >>> columns = (Column("age", None, 50.0, 20.0, 3.0), Column("city", ("Lima", "Oslo", "Rome")))
    >>> declared_lengths(Encoding(columns))["row_length"]
    1.4142135623730951
    """
    if encoding is not None:
        longest = encoding.longest if math.isfinite(encoding.longest) else None
        row_length = row_length or encoding.typical_length
        feature_bound = feature_bound or longest
    return {"row_length": row_length, "feature_bound": feature_bound}
