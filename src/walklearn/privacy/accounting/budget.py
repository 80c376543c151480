"""Budget plan: clip, noise, cap, step and number of updates from a total (ε, δ) and public facts.

    plan_budget(PrivacySettings(epsilon, delta), PublicFacts(N, M, features, row_length), loss)

`plan_budget` splits the total between the constants L_i (only if the walk reveals them) and the
model. It reads no row, so it costs no privacy. You can also set each of its results yourself.

`row_length` is the length of a row, without the intercept, in the units that the model is trained
in. It is √columns if columns are shifted and divided by a public *typical* centre and spread. With
only a range, which becomes −1 to 1, the same number is the `feature_bound`. Use the last model:
averages weigh early noise more, and early steps learn most.

**Derivation.** Let a node be visited K/N times and contribute T times at most, so that μ = 2√T/z
follows from (ε, δ). After K steps γ, the noise on w makes the score of a row of length ℓ noisy by
γ (N/M) z C √K ℓ. The same steps can move w by γ C K, and the score by A = γ C K ℓ. Their ratio,
2 √(N T/K) √N / (μ M), hardly depends on T: many short steps cost no more than a few long ones, and
then less of the cap is wasted on a node that happens to be visited often. So T =
`MAX_CONTRIBUTIONS`, fewer for large networks, where draws take time. A is then chosen so that the
noise in a score is `SCORE_NOISE`: the model is trained as far as its noise allows.

These constants were measured, not derived, on some data sets, and tried on others
(`python -m benchmarks.private_accuracy`). A clip of a fifth of a row's length cuts most gradients
to one length. The noise is relative to the clip, so a shorter clip only loses the distinction
between large and small errors of rows. A loss whose slope never reaches that fifth (Huber with a
small threshold) is clipped at its largest slope times ℓ, and its steps are longer by as much.

>>> from walklearn.objectives.linear.losses import Logistic
>>> facts = PublicFacts(nodes=20, rows=455, features=30, row_length=30**0.5)
>>> budget_plan = plan_budget(PrivacySettings(epsilon=3.0, delta=1e-5), facts, Logistic())
>>> budget_plan.noise.max_contributions, budget_plan.updates, round(budget_plan.noise.clip, 3)
(50, 901, 1.114)
>>> round(budget_plan.noise.noise_multiplier, 2), round(budget_plan.step, 4)
(19.67, 0.0062)
>>> budget_plan.noise.delta(3.0) <= 1e-5
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
MAX_DRAWS = 50_000  # contributions in total, unless that is below MIN_CONTRIBUTIONS per node
CONSTANTS_SHARE = 0.1  # of ε and of δ, if the walk reveals L_i
# The noise in the score of a row, in units in which labels are ±1 or targets have a spread of 1.
# With ranges alone most columns are far from their middle, and the model must move further.
SCORE_NOISE, SCORE_NOISE_OF_RANGES, SCORE_NOISE_OF_NUMBERS = 1.0, 5.0, 0.4
LARGE_RATIO = 1.0  # the noise is as long as the distance that training can cover
WEAK_EPSILON = 10.0
# A node uses T − 0.7 √T of its T contributions on average, because visits cluster by chance.
CHANCE = 0.7


@dataclass(frozen=True)
class BudgetPlan:
    """The shares of a total (ε, δ), and the walk that follows from them.

    Parameters
    ----------
    epsilon, delta
        The total for all that leaves a node because of its rows.
    constants
        The part (ε, δ) of the total for the release of L_i; None without a release.
    noise
        Clip, noise and cap of the contributions to the model.
    step, updates
        The constant step γ, and the number of updates.
    noise_to_signal
        Noise-to-signal ratio: the norm of the noise in the final model over the longest distance
        that training can move it. Lower is better; it does not predict the accuracy.
    """

    epsilon: float
    delta: float
    constants: tuple[float, float] | None
    noise: ModelNoise
    step: float
    updates: int
    noise_to_signal: float


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
    """Split a total (ε, δ), and derive the training from it and from public facts.

    Parameters
    ----------
    privacy
        The total, its unit, and the parts of the plan that are given.
    facts
        Public facts of the data: nodes, rows, features and the length of a row.
    loss, aggregate
        The objective; "sum" and the unit "rows" need the public number of rows.
    intercept
        True if the model has an intercept.
    penalty
        λ of the penalty (λ/2)‖w‖², which limits the step.
    reveals_rows
        True if the walk reveals L_i, which then takes `constants_share` of ε and of δ.
    step, updates
        The step and the number of updates, if they are given; by default they are derived.
    max_updates
        The largest number of updates, if there is one.

    Returns
    -------
    BudgetPlan
        The split, and the clip, cap, noise, step and number of updates.

    Raises
    ------
    ValueError
        If a public fact is missing, or the given parts cannot meet the budget.

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
    ValueError: noise_multiplier = 1 cannot meet ε = 3 at δ = 1e-05: 1 contribution of a node
    costs ε = 9.998. Use a larger noise_multiplier or ε.
    """
    if privacy.epsilon is None or privacy.delta is None:
        raise ValueError("the budget has no total. Pass epsilon and delta.")
    protect, nodes, rows = privacy.unit, facts.nodes, facts.rows
    size, length = _check_facts(privacy, facts, loss, intercept, aggregate)
    constants, remainder = _split(
        privacy.epsilon, privacy.delta, reveals_rows, privacy.constants_share
    )
    if updates is not None:
        updates = check_whole("updates", updates, maximum=MAX_TIMES)
    # Ratio of ∇f_i to the mean gradient of its rows, and of the clipped vector to that of a row.
    scale = float(rows or 1.0) if aggregate == "sum" else 1.0
    clipped_scale = scale if protect == "node" else 1.0
    # Norm of the longest gradient of a row of this length: a larger clip would only add noise.
    largest = loss.max_slope * length * clipped_scale
    clip = privacy.clip
    if clip is None:
        clip = min(CLIP_SHARE * length * clipped_scale, largest)
    noise = _find_noise(remainder, clip, privacy, nodes, updates)
    count = updates or max(1, round(nodes * _visits(noise.max_contributions, nodes)))
    if updates is None and max_updates is not None and count > max_updates:
        count, noise = max_updates, _find_noise(remainder, clip, privacy, nodes, max_updates)
    protected = float(rows or nodes) if protect == "rows" else nodes
    per_node = protected / nodes
    unit = noise.noise_multiplier / (per_node * math.sqrt(count))  # noise per distance
    if step is None:
        moves = clip * (scale if protect == "rows" else 1.0)  # largest effect of a step of 1
        # As far as the noise allows, but without overshooting: γ β ℓ² ≤ 1 for the mean gradient.
        # If slopes never reach CLIP_SHARE, steps that are longer by as much move scores equally.
        longer = max(1.0, CLIP_SHARE / loss.max_slope)
        score_noise = _score_noise(loss, is_typical=facts.row_length is not None)
        step = min(score_noise / (unit * moves * length * count),
                   longer / (scale * loss.smoothness * length**2))  # fmt: skip
        if penalty > 0.0:  # its gradient is unbounded and must not overshoot either
            step = min(step, 1.0 / penalty)
    step = check_number("step", step, above=0.0)
    large_delta = about_large_delta(privacy.delta, protected, protect)
    for warning in filter(None, (about_weak_epsilon(privacy.epsilon), large_delta)):
        warnings.warn(warning, stacklevel=2)
    ratio = unit * math.sqrt(size) * max(1.0, clip / largest)
    return BudgetPlan(privacy.epsilon, privacy.delta, constants, noise, float(step), count, ratio)


def about_noise(budget_plan: BudgetPlan) -> str:
    """Return a sentence about the noise-to-signal ratio, with advice if it is large."""
    ratio = f"Noise-to-signal ratio {budget_plan.noise_to_signal:.2g} (lower is better)."
    if budget_plan.noise_to_signal < LARGE_RATIO:
        return ratio
    more, unit = "rows", ""
    if budget_plan.noise.protect == "node":  # more rows of a node would not help
        more, unit = "nodes", ", or rows as the unit,"
    return (
        f"{ratio} The model may be poor. More {more}, fewer columns, a larger ε{unit} would help."
    )


def about_weak_epsilon(epsilon: float) -> str:
    """Return a sentence about an ε that protects little; empty up to ε = 10.

    >>> about_weak_epsilon(10.0)
    ''
    >>> print(about_weak_epsilon(12.0))
    ε = 12 offers little protection: an adversary who must distinguish two rows may be wrong in only
    1 of 162,756 cases. Up to 1 is strong, above 3 is weak.
    """
    if epsilon <= WEAK_EPSILON:
        return ""
    odds = math.exp(min(epsilon, 700.0)) + 1.0  # larger ε overflow
    cases = f"{odds:,.0f}" if odds < 1e9 else f"{odds:.2g}"
    return (
        f"ε = {format_upper(epsilon)} offers little protection: an adversary who must distinguish "
        f"two rows may be wrong in only 1 of {cases} cases. Up to 1 is strong, above 3 is weak."
    )


def about_large_delta(delta: float, count: float, unit: Unit) -> str:
    """Return a sentence about a δ that is not small beside 1 / (number of rows, or of nodes).

    >>> about_large_delta(1e-5, 5000, "rows")
    ''
    >>> print(about_large_delta(0.05, 40, "rows").partition(":")[0])
    δ = 0.05 is large for 40 rows
    """
    if delta * count < 1.0:
        return ""
    what = "rows" if unit == "rows" else "nodes"
    small = 10.0 ** math.floor(math.log10(0.1 / count))
    return (
        f"δ = {format_upper(delta)} is large for {count:,.9g} {what}: a mechanism that "
        f"publishes {delta * count:.3g} of them without noise would satisfy it. Use a δ far below "
        f"1 / {count:,.9g}, such as {small:g}."
    )


def _split(
    epsilon: float, delta: float, reveals_rows: bool, share: float | None
) -> tuple[tuple[float, float] | None, tuple[float, float]]:
    """Return the (ε, δ) of the constants and of the model, which add up to the total."""
    if not reveals_rows:
        if share is not None:
            raise ValueError(
                "constants_share needs a walk that reveals L_i. This one does not, so the whole "
                "budget goes to the model. Leave constants_share out."
            )
        return None, (epsilon, delta)
    share = CONSTANTS_SHARE if share is None else share
    check_number("constants_share", share, above=0.0, below=1.0)
    constants = (share * epsilon, share * delta)
    return constants, (epsilon - constants[0], delta - constants[1])


def _find_noise(
    budget: tuple[float, float],
    clip: float,
    privacy: PrivacySettings,
    nodes: int,
    updates: int | None,
) -> ModelNoise:
    """Return the smallest noise for a cap or the largest cap for a noise, or check both."""
    epsilon, delta = budget
    multiplier, contributions = privacy.noise_multiplier, privacy.max_contributions

    def calibrate(times: int) -> ModelNoise:
        return ModelNoise.calibrate(
            epsilon=epsilon, delta=delta, clip=clip, max_contributions=times, protect=privacy.unit
        )

    if multiplier is None:
        cap = _contributions(nodes, updates) if contributions is None else contributions
        return calibrate(cap)
    if contributions is None:
        # μ = 2√T/z, so T is the squared ratio of this noise to that for one contribution.
        share = (multiplier / calibrate(1).noise_multiplier) ** 2
        contributions = max(1, math.floor(share * (1.0 - 1e-9)))
        contributions = min(contributions, _contributions(nodes, updates))
    noise = ModelNoise(clip, multiplier, contributions, privacy.unit)
    if noise.delta(epsilon) > delta:
        raise ValueError(
            f"noise_multiplier = {multiplier:g} cannot meet ε = {format_upper(epsilon)} at "
            f"δ = {format_upper(delta)}: "
            f"{plural(contributions, 'contribution')} of a node "
            f"cost{'s' if contributions == 1 else ''} ε = {format_upper(noise.epsilon(delta), 4)}. "
            "Use a larger noise_multiplier or ε"
            f"{'' if contributions == 1 else ', or a smaller max_contributions'}."
        )
    return noise


def _contributions(nodes: int, updates: int | None) -> int:
    """Return T: a number of visits that nodes rarely exceed, or the default for so few nodes."""
    if updates is None:
        return max(MIN_CONTRIBUTIONS, min(MAX_CONTRIBUTIONS, MAX_DRAWS // nodes))
    visits = updates / nodes
    if nodes == 1:
        return updates
    root = 0.5 * (CHANCE + math.sqrt(CHANCE**2 + 4.0 * visits))
    return max(1, math.ceil(min(2.0 * visits, root**2)))


def _visits(contributions: int, nodes: int) -> float:
    """Return the mean number of visits of a node with which few nodes reach the cap."""
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
    """Return the size of the model and the length of a row; check that all facts are known."""
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
    outputs = int(getattr(loss, "classes", None) or 1)
    return outputs * (facts.features + intercept), float(length)
