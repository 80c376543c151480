"""The budget: what becomes of a total (ε, δ), from public facts alone.

A user says how much may be told of the rows in all, and what is public about them. `plan_budget`
says what follows: how much of the total goes to the constants L_i (nothing, unless the walk tells
them) and how much to the model, at which length a row is clipped, how often a node may contribute,
how much noise that takes, how long the steps are and how many there are. Nothing here looks at a
row, so nothing here has to be paid for.

How to call it:

    plan_budget(PrivacySettings(epsilon, delta), PublicFacts(N, M, features, row_length), loss)

`row_length` is the length of a row, without the intercept, in the units that the model is trained
in. Where columns have a public *typical* centre and spread, and are shifted and divided by them,
that is √columns; where there is only a range, which becomes −1 to 1, the same number is the
`feature_bound`. Everything that is chosen can be given instead. What comes back has `noise` (for
`simulate` and the estimators), `step`, the constant of a `ConstantStep`, `updates`, and
`constants`, the (ε, δ) left for the release of L_i. The model to use is the last one: averages
weigh early noise more, and early steps learn most.

**Where the numbers come from.** Let a node be visited K/N times and contribute T times at most, so
that μ = 2√T/z follows from (ε, δ). Noise on w makes the score of a row of length ℓ noisy, after K
steps γ by γ (N/M) z C √K ℓ. The same steps can carry w over a distance of γ C K, and the score by A
= γ C K ℓ. Their ratio, 2 √(N T/K) √N / (μ M), hardly depends on T: many short steps cost no more
than a few long ones, and a cap is wasted less on a node that happens to be visited often. So T =
`MAX_CONTRIBUTIONS`, fewer for large networks, where draws take time. A is then chosen so that
the noise in a score is `SCORE_NOISE`, for which the model is trained as far as its noise allows.

These constants were measured, not derived, on some data sets, and tried on others
(`python -m benchmarks.private_accuracy`). A clip of a fifth of a row's length cuts most
gradients to one length: the noise is relative to the clip, so a shorter one costs nothing but the
distinction between rows that are far wrong and those that are a little wrong. A loss whose slope
never reaches that fifth (Huber with a small threshold) is clipped at its largest slope times ℓ, and
its steps are longer by as much.

>>> from walklearn.objectives.linear.losses import Logistic
>>> facts = PublicFacts(nodes=20, rows=455, features=30, row_length=30**0.5)
>>> allotted = plan_budget(PrivacySettings(epsilon=3.0, delta=1e-5), facts, Logistic())
>>> allotted.noise.max_contributions, allotted.updates, round(allotted.noise.clip, 3)
(50, 901, 1.114)
>>> round(allotted.noise.noise_multiplier, 2), round(allotted.step, 4)
(19.67, 0.0062)
>>> allotted.noise.delta(3.0) <= 1e-5
True
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

from walklearn.checks import check_number, check_whole
from walklearn.objectives.linear.losses import Loss
from walklearn.privacy.accounting.printing import format_upper
from walklearn.privacy.model_noise import MAX_TIMES, ModelNoise, Unit
from walklearn.privacy.settings import PrivacySettings, PublicFacts
from walklearn.wording import plural

CLIP_SHARE = 0.2  # of a row's length
MAX_CONTRIBUTIONS, MIN_CONTRIBUTIONS = 50, 10  # for few nodes, for very many
MAX_DRAWS = 50_000  # contributions in all, where that allows for the least
CONSTANTS_SHARE = 0.1  # of ε and of δ, where the walk tells L_i
# The noise in the score of a row, in units in which labels are ±1 or targets have a spread of 1;
# with ranges alone most columns are far from their middle, and training has to go further.
SCORE_NOISE, SCORE_NOISE_OF_RANGES, SCORE_NOISE_OF_NUMBERS = 1.0, 5.0, 0.4
LARGE_RATIO = 1.0  # from here on the noise is as long as the distance that training can cover
WEAK_EPSILON = 10.0
# Visits that come together by chance: of T that a node may make use of it gets T − 0.7 √T.
CHANCE = 0.7


@dataclass(frozen=True)
class BudgetPlan:
    """The shares of a total (ε, δ), and the walk that follows from them.

    Parameters
    ----------
    epsilon, delta
        The total for all that leaves a node because of its rows.
    constants
        The part (ε, δ) of the total that the release of L_i takes; None where nothing is told
        of it.
    noise
        Clipping, noise and cap of what a visit adds to the model.
    step, updates
        The constant step γ, and how many updates are made.
    noise_to_signal
        Noise-to-signal ratio: the norm of the noise in the final model over the longest distance
        that training can move it. Lower is better; it does not predict the accuracy.

    Examples
    --------
    >>> from walklearn.objectives.linear.losses import Logistic
    >>> facts = PublicFacts(nodes=20, rows=2000, features=3, row_length=1.7)
    >>> found = plan_budget(PrivacySettings(epsilon=3.0, delta=1e-5), facts, Logistic())
    >>> found.epsilon, found.constants, found.noise.max_contributions, found.updates
    (3.0, None, 50, 901)
    """

    epsilon: float
    delta: float
    constants: tuple[float, float] | None
    noise: ModelNoise
    step: float
    updates: int
    noise_to_signal: float

    @property
    def protect(self) -> Unit:
        """What the claim is about: "rows" or "node"."""
        return self.noise.protect


def plan_budget(
    privacy: PrivacySettings,
    facts: PublicFacts,
    loss: Loss,
    *,
    intercept: bool = True,
    penalty: float = 0.0,
    aggregate: str = "mean",
    reveals_rows: bool = False,
    step: float | None = None,
    updates: int | None = None,
    max_updates: int | None = None,
) -> BudgetPlan:
    """Share a total (ε, δ) out, from public facts.

    Parameters
    ----------
    privacy
        The total, its unit, and the parts of its split that are given.
    facts
        What is public of the data: nodes, rows, features and the length of a row.
    loss, aggregate
        What is minimised; "sum" and the unit "rows" need the public number of rows.
    intercept
        Whether the model has an intercept.
    penalty
        λ of the penalty (λ/2)‖w‖², which limits the step.
    reveals_rows
        True if the walk reveals L_i, which then takes `constants_share` of ε and of δ.
    step, updates
        The step and the number of updates, if they are given. By default they follow.
    max_updates
        The largest number of updates, if there is one.

    Returns
    -------
    BudgetPlan
        The shares, and the clip, cap, noise, step and length of the walk.

    Raises
    ------
    ValueError
        Where a public fact is missing, or what is given cannot meet the budget.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from walklearn.objectives.linear.losses import Logistic
    >>> privacy = PrivacySettings(epsilon=3.0, delta=1e-5)
    >>> facts = PublicFacts(nodes=20, rows=455, features=30, row_length=30**0.5)
    >>> plan_budget(privacy, facts, Logistic(), reveals_rows=True).constants
    (0.30000000000000004, 1.0000000000000002e-06)
    >>> privacy = replace(privacy, noise_multiplier=3.0)
    >>> plan_budget(privacy, facts, Logistic()).noise.max_contributions
    1
    >>> plan_budget(replace(privacy, noise_multiplier=1.0), facts, Logistic())
    Traceback (most recent call last):
        ...
    ValueError: noise_multiplier = 1 cannot meet ε = 3 at δ = 1e-05: already 1 contribution of
    a node takes 9.998. Raise it, or ε.
    """
    if privacy.epsilon is None or privacy.delta is None:
        raise ValueError("there is no total to share out: give epsilon and delta.")
    protect, nodes, rows = privacy.unit, facts.nodes, facts.rows
    size, length = _check_facts(privacy, facts, loss, intercept, aggregate)
    constants, left = _shared(privacy.epsilon, privacy.delta, reveals_rows, privacy.constants_share)
    of_updates = None if updates is None else check_whole("updates", updates, maximum=MAX_TIMES)
    # ∇f_i is so many times the mean gradient of its rows: that much is clipped of a whole node.
    scale = float(rows or 1.0) if aggregate == "sum" else 1.0
    # Longest gradient that is clipped, for a row of this length: a larger clip only adds noise.
    largest = loss.max_slope * length * (scale if protect == "node" else 1.0)
    clip = privacy.clip
    if clip is None:
        clip = min(CLIP_SHARE * length * (scale if protect == "node" else 1.0), largest)
    noise = _noise(left, clip, privacy, nodes, of_updates)
    count = of_updates or max(1, round(nodes * _visits(noise.max_contributions, nodes)))
    if of_updates is None and max_updates is not None and count > max_updates:
        count, noise = max_updates, _noise(left, clip, privacy, nodes, max_updates)
    per_node = float(rows or nodes) / nodes if protect == "rows" else 1.0
    unit = noise.noise_multiplier / (per_node * math.sqrt(count))  # noise, for a way of 1
    if step is None:
        moves = clip * (scale if protect == "rows" else 1.0)  # what a step of 1 does at most
        # As far as the noise allows, but without overshooting: γ β ℓ² ≤ 1 for the mean gradient.
        # If slopes never reach CLIP_SHARE, steps that are longer by as much move scores as far.
        longer = max(1.0, CLIP_SHARE / loss.max_slope)
        score_noise = _score_noise(loss, is_typical=facts.row_length is not None)
        step = min(score_noise / (unit * moves * length * count),
                   longer / (scale * loss.smoothness * length**2))  # fmt: skip
        if penalty > 0.0:  # its pull has no bound and must not overshoot either
            step = min(step, 1.0 / penalty)
    step = check_number("step", step, above=0.0)
    protected = float(rows or nodes) if protect == "rows" else nodes
    doubt = doubt_of_delta(privacy.delta, protected, protect)
    for caution in (about_weak_epsilon(privacy.epsilon), doubt):
        if caution:
            warnings.warn(caution, stacklevel=2)
    ratio = unit * math.sqrt(size) * max(1.0, clip / largest)
    return BudgetPlan(privacy.epsilon, privacy.delta, constants, noise, float(step), count, ratio)


def about_noise(allotted: BudgetPlan) -> str:
    """Return a sentence about the noise-to-signal ratio, with what helps if it is large."""
    ratio = f"Noise-to-signal ratio {allotted.noise_to_signal:.2g} (lower is better)."
    if allotted.noise_to_signal < LARGE_RATIO:
        return ratio
    more, unit = "rows", ""
    if allotted.noise.protect == "node":  # its price is the same however many rows a node has
        more, unit = "nodes", ", or rows as the unit,"
    return (
        f"{ratio} The model may be poor. More {more}, fewer columns, a larger ε{unit} would help."
    )


def about_weak_epsilon(epsilon: float) -> str:
    """Return a sentence on an ε that protects little; empty up to ε = 10.

    >>> about_weak_epsilon(10.0)
    ''
    >>> print(about_weak_epsilon(12.0))
    ε = 12 offers little protection: an adversary who must tell two rows apart may be wrong in only
    1 of 162,756 cases. Up to 1 is strong, above 3 is weak.
    """
    if epsilon <= WEAK_EPSILON:
        return ""
    odds = math.exp(min(epsilon, 700.0)) + 1.0  # larger ε overflow
    cases = f"{odds:,.0f}" if odds < 1e9 else f"{odds:.2g}"
    return (
        f"ε = {format_upper(epsilon)} offers little protection: an adversary who must tell two "
        f"rows apart may be wrong in only 1 of {cases} cases. Up to 1 is strong, above 3 is weak."
    )


def doubt_of_delta(delta: float, count: float, unit: Unit) -> str:
    """What to say of a δ that is not small beside one over so many rows, or nodes; else nothing.

    Parameters
    ----------
    delta
        The δ that is claimed.
    count
        How many rows there are in all, or nodes, whichever the unit is.
    unit
        What is protected: "rows" or "node".

    Returns
    -------
    str
        A sentence for whoever relies on it; empty where δ is small.

    Examples
    --------
    >>> doubt_of_delta(1e-5, 5000, "rows")
    ''
    >>> print(doubt_of_delta(0.05, 40, "rows").partition(":")[0])
    δ = 0.05 is large for 40 rows
    """
    if delta * count < 1.0:
        return ""
    what = "rows" if unit == "rows" else "nodes"
    small = 10.0 ** math.floor(math.log10(0.1 / count))
    return (
        f"δ = {format_upper(delta)} is large for {count:,.9g} {what}: it would also be kept by a "
        f"mechanism that shows {delta * count:.3g} of them as they are. It should be far below one "
        f"over their number, such as {small:g}."
    )


def _shared(
    epsilon: float, delta: float, reveals_rows: bool, share: float | None
) -> tuple[tuple[float, float] | None, tuple[float, float]]:
    """What the constants get, and what is left for the model: ε and δ of both add up."""
    if not reveals_rows:
        if share is not None:
            raise ValueError(
                "constants_share is for a walk that tells L_i; this one tells nothing of it, and "
                "the whole budget goes to the model."
            )
        return None, (epsilon, delta)
    share = CONSTANTS_SHARE if share is None else share
    check_number("constants_share", share, above=0.0, below=1.0)
    constants = (share * epsilon, share * delta)
    return constants, (epsilon - constants[0], delta - constants[1])


def _noise(
    budget: tuple[float, float],
    clip: float,
    given: PrivacySettings,
    nodes: int,
    updates: int | None,
) -> ModelNoise:
    """The least noise for a cap, the largest cap for a noise, or both as given if they will do."""
    epsilon, delta = budget
    multiplier, contributions = given.noise_multiplier, given.max_contributions

    def least(times: int) -> ModelNoise:
        return ModelNoise.calibrate(
            epsilon=epsilon, delta=delta, clip=clip, max_contributions=times, protect=given.unit
        )

    if multiplier is None:
        return least(_contributions(nodes, updates) if contributions is None else contributions)
    if contributions is None:
        # μ is 2√T/z: as many as the least noise for one contribution goes into this squared.
        share = (multiplier / least(1).noise_multiplier) ** 2
        contributions = max(1, math.floor(share * (1.0 - 1e-9)))
        contributions = min(contributions, _contributions(nodes, updates))
    noise = ModelNoise(clip, multiplier, contributions, given.unit)
    if noise.delta(epsilon) > delta:
        raise ValueError(
            f"noise_multiplier = {multiplier:g} cannot meet ε = {format_upper(epsilon)} at "
            f"δ = {format_upper(delta)}: "
            f"already {plural(contributions, 'contribution')} of a node takes "
            f"{format_upper(noise.epsilon(delta), 4)}. Raise it, or ε"
            f"{'' if contributions == 1 else ', or lower max_contributions'}."
        )
    return noise


def _contributions(nodes: int, updates: int | None) -> int:
    """T: as many as the visits of a node will hardly exceed, or what suits so many nodes."""
    if updates is None:
        return max(MIN_CONTRIBUTIONS, min(MAX_CONTRIBUTIONS, MAX_DRAWS // nodes))
    visits = updates / nodes
    if nodes == 1:
        return updates
    root = 0.5 * (CHANCE + math.sqrt(CHANCE**2 + 4.0 * visits))
    return max(1, math.ceil(min(2.0 * visits, root**2)))


def _visits(contributions: int, nodes: int) -> float:
    """How often a node should be visited on average, so that few are visited past the cap."""
    if nodes == 1:
        return float(contributions)
    return max(0.5 * contributions, contributions - CHANCE * math.sqrt(contributions))


def _score_noise(loss: Loss, is_typical: bool) -> float:
    if loss.takes == "number":
        return SCORE_NOISE_OF_NUMBERS
    return SCORE_NOISE if is_typical else SCORE_NOISE_OF_RANGES


def _check_facts(
    privacy: PrivacySettings, facts: PublicFacts, loss: Loss, intercept: bool, aggregate: str
) -> tuple[int, float]:
    """The size of the model and the length of a row, if all public facts are known."""
    check_whole("nodes", facts.nodes, maximum=MAX_TIMES)
    if facts.features is None:
        raise ValueError(
            "the noise for epsilon depends on the size of the model. Pass features, the number of "
            "features of a row."
        )
    check_whole("features", facts.features + intercept, maximum=MAX_TIMES)
    length, rows = facts.public_length(privacy, intercept), facts.rows
    if length is None and privacy.clip is not None:
        length = privacy.clip / CLIP_SHARE  # the length for which this clip is the usual one
    if not length:
        raise ValueError(
            "epsilon needs a public length of the rows. Declare a typical centre and spread, or a "
            "range, for each column, known without looking at the rows; or pass row_length or "
            "feature_bound."
        )
    needed = {"sum": 'aggregate="sum"', "rows": 'protect="rows"'}
    why = needed.get(aggregate) or needed.get(privacy.unit)
    if rows is None and why:
        raise ValueError(f"{why} needs the public number of rows of all nodes together (rows).")
    if rows is not None:
        check_number("rows", rows, above=0.0)
    outputs = int(getattr(loss, "classes", None) or 1)
    return outputs * (facts.features + intercept), float(length)
