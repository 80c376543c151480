"""Making a node: its rows against the plan, its key, its one release. All of it or nothing.

What needs much memory and time is done here, once: the calibration of the mechanism and of the
noise on the model, and the composition of both against the owner's budget. The running node reads
the results.
"""

from __future__ import annotations

import json
import math
import os
import time
from bisect import bisect_left
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from walklearn.files.raw_rows import digests_of, raw_rows
from walklearn.files.wording import plural
from walklearn.node.agreement.node_rows import NodeRows, read_node_rows
from walklearn.node.agreement.plan import Plan
from walklearn.node.disk.contribution_count import ContributionCount
from walklearn.node.disk.directory import NodeDirectory, Settings, new_directory, write_parts
from walklearn.node.disk.kept_releases import KeptReleases, kept_releases, owners_folder
from walklearn.node.disk.store import Release, Store
from walklearn.node.protocol.learner import Learner
from walklearn.node.wire.identity import Identity
from walklearn.problem.owned_rows import is_sparse
from walklearn.problem.smoothness import check_exact

if TYPE_CHECKING:
    from walklearn.privacy.composition import Charge
    from walklearn.privacy.ledger import Ledger
    from walklearn.privacy.mechanism import Mechanism
    from walklearn.privacy.model_noise import ModelNoise

Budget = tuple[float, float]
LISTEN = "0.0.0.0:7447"


@dataclass(frozen=True)
class Created:
    """A new node, and what its owner should know about it.

    shortened: rows longer than the feature bound. outside: L_i was outside the public bounds and
    was moved to them before the release. constant: almost every release of such a plan is the
    same number, whatever the rows. earlier: what was released of the same rows before, in words.
    """

    directory: NodeDirectory
    release: Release
    rows: int
    shortened: int
    outside: bool
    constant: bool
    earlier: str = ""

    @property
    def privacy_claim(self) -> str:
        """What is claimed for its rows in all, in words that begin with ε or name the plan."""
        return self.release.claim_in_all or self.directory.plan.privacy_claim


def create_node(
    path: str | os.PathLike[str],
    *,
    plan: str | os.PathLike[str],
    data: str | os.PathLike[str] | NodeRows,
    listen: str = LISTEN,
    address: str = "",
    name: str | None = None,
    budget: Budget | None = None,
    releases: Path | None = None,
    accept_unprotected: bool = False,
) -> Created:
    """Make a node's directory.

    Parameters
    ----------
    path
        Where to make it.
    plan
        The plan's file.
    data
        The file of the node's rows, or rows that are numbers already.
    listen
        The host:port of this machine that the node listens on.
    address
        Host:port under which neighbours reach it; without one the node dials its neighbours,
        and they must have one.
    name
        What the node is called; by default the directory's name.
    budget
        (ε, δ) that all the node's releases together must keep to; it then contributes to the
        model less often than the plan would let it.
    releases
        The folder of the owner's record of what was released of which rows; by default that of
        the user. Contributions are counted in the folder `counts` beside it.
    accept_unprotected
        Accept a plan that leaves the model unprotected. Such a plan is refused otherwise.

    Returns
    -------
    Created
        What was made, and what was released.

    Raises
    ------
    ValueError
        If the plan leaves the model unprotected and `accept_unprotected` is False.
    """
    target = Path(path)
    settings = Settings(name if name is not None else target.name, listen, address)
    with new_directory(target) as fresh:
        agreed = Plan.read(Path(plan))
        if not (agreed.hides_the_model or accept_unprotected):
            from walklearn.privacy.description import UNPROTECTED_MODEL

            raise ValueError(
                f"{plan} leaves the model unprotected (ε = ∞). {UNPROTECTED_MODEL} Give epsilon "
                "and delta in its [privacy], or accept this with --accept-unprotected "
                "(accept_unprotected=True in Python)."
            )
        if isinstance(data, NodeRows):
            rows, given = data, digests_of(data.X, data.y[:, None].tolist())
        else:
            rows, given = read_node_rows(data, agreed), raw_rows(data)
        mechanism, noise = agreed.calibrated_mechanism(), agreed.calibrated_noise()
        _check_exact(rows, mechanism)
        learner = Learner.of_plan(agreed, rows.X, rows.y)
        identity = Identity.create()
        folder = (releases or owners_folder()).absolute()
        count = folder.parent / "counts" / identity.fingerprint
        counts = "" if noise is None else str(count)
        settings = replace(settings, plan_digest=agreed.digest, counts=counts)
        write_parts(fresh, settings, Path(plan).read_text(encoding="utf-8"), identity, rows)
        # Entered before the node exists: nobody can have seen what is not entered.
        with (
            kept_releases(folder) as kept,
            Store.create(fresh / "node.sqlite", learner.limits) as store,
        ):
            past = _Past.of(kept, given, agreed, mechanism)
            allowed = _contributions_allowed(agreed, mechanism, noise, budget, past)
            drawn = _drawn(agreed, learner, mechanism, noise, allowed, past)
            past.enter(kept, given, agreed, drawn)
            release = store.draw_release(lambda: drawn)
            if noise is not None:
                ContributionCount.create(count)
        outside = mechanism is not None and bool(mechanism.outside([learner.smoothness]))
        constant = mechanism is not None and _is_constant(mechanism)
    return Created(
        NodeDirectory(target),
        release,
        len(rows.y),
        rows.shortened,
        outside,
        constant,
        past.in_words,
    )


def ledger_of(plan: Plan, release: Release) -> Ledger:
    """What the rows of a node may cost at most, and by what protection; earlier nodes included.

    The model is charged its whole cap from the start. A price of the contributions so far would be
    wrong for a neighbour who sees them and chooses when to stop looking.
    """
    from walklearn.privacy.description import from_description
    from walklearn.privacy.ledger import Ledger

    ledger = Ledger(nodes=1)
    if release.mechanism is not None:
        ledger.charge("importance", from_description(release.mechanism))
    elif plan.tells:
        ledger.in_the_clear("importance")
    if release.noise is None:
        ledger.in_the_clear("model")
    elif release.may_contribute:
        noise = from_description(release.noise)
        ledger.charge("model", noise, times=release.may_contribute)
    for number, (what, description, times) in enumerate(release.earlier, 1):
        if description is None:
            ledger.in_the_clear(f"{what}, earlier {number}")
        else:
            mechanism = from_description(description)
            ledger.charge(f"{what}, earlier {number}", mechanism, times=times)
    return ledger


Charged = tuple[str, Any, int]  # what, description of the mechanism or None, times


@dataclass(frozen=True)
class _Past:
    """What the owner's record says of earlier releases that used any of these rows.

    same: the digest of what this release is made of. reused: the number it gave when it was drawn
    before. earlier: all other charges. clear: the plans that showed such rows in the clear.
    """

    same: str
    reused: float | None
    earlier: tuple[Charged, ...]
    clear: tuple[str, ...]

    @classmethod
    def of(
        cls, kept: KeptReleases, given: list[bytes], plan: Plan, mechanism: Mechanism | None
    ) -> _Past:
        # Of facts and whole rows only: that two constants are the same number is itself a secret.
        same = kept.digest(_facts(plan, mechanism).encode() + b"".join(sorted(given)))
        reused, earlier, clear = None, list[Charged](), dict[str, None]()
        for entry in kept.of(given):
            charges = [(what, each, times) for what, each, times in entry["charges"]]
            if mechanism is not None and entry["same"] == same:
                reused = float(entry["importance"])
                charges = [each for each in charges if each[0] != "importance"]
            earlier += charges
            if any(description is None for _, description, _ in charges):
                clear[entry["plan"]] = None
        return cls(same, reused, tuple(earlier), tuple(clear))

    @property
    def charges(self) -> list[Charge]:
        from walklearn.privacy.composition import Charge
        from walklearn.privacy.description import from_description

        return [
            Charge(what, None if each is None else from_description(each), times)
            for what, each, times in self.earlier
        ]

    @property
    def shown(self) -> str:
        """The plans by which the rows were shown as they are, in words; empty if there is none."""
        names = ", ".join(map(repr, self.clear))
        return f"these rows were shown in the clear by plan {names}" if names else ""

    @property
    def in_words(self) -> str:
        """What these rows were charged before, in words; nothing where they are new."""
        parts = []
        if self.reused is not None:
            parts.append("these rows were released before: the same R_i is used again, at no cost.")
        if self.earlier:
            charges = plural(len(self.earlier), "earlier charge")
            parts.append(f"these rows, or some of them, have {charges}, beside the new ones.")
        return " ".join(parts)

    def enter(self, kept: KeptReleases, given: list[bytes], plan: Plan, drawn: Release) -> None:
        """Write down what the new node may show, in the clear or not."""
        charges: list[Charged] = []
        if plan.tells and self.reused is None:
            charges.append(("importance", drawn.mechanism, 1))
        if drawn.noise is None:
            charges.append(("model", None, 1))
        elif drawn.may_contribute:
            charges.append(("model", drawn.noise, drawn.may_contribute))
        if charges:
            content = {
                "same": self.same if drawn.mechanism is not None else "",
                "importance": drawn.importance if drawn.mechanism is not None else None,
                "charges": charges,
                "plan": plan.name,
                "made": time.strftime("%Y-%m-%dT%H:%M:%S"),
            }
            kept.add(given, content)


# What of a plan L_i follows from, besides the rows.
_OF_THE_CONSTANT = (
    "columns", "features", "target", "classes", "loss", "penalty", "nodes", "rows", "objective",
    "intercept",
)  # fmt: skip


def _facts(plan: Plan, mechanism: Mechanism | None) -> str:
    """All that the law of a release follows from besides the rows, as one text."""
    from walklearn.privacy.description import describe

    content = plan.to_dict()
    facts = {name: content.get(name) for name in _OF_THE_CONSTANT}
    bound = plan.privacy.feature_bound if plan.privacy is not None else None
    # To the last digit: what is printed of a mechanism is rounded.
    drawn_by = None if mechanism is None else describe(mechanism)
    return json.dumps([facts, bound, drawn_by], sort_keys=True)


def _check_exact(rows: NodeRows, mechanism: Mechanism | None) -> None:
    """Refuse an L_i that is iterated, where the claim rests on how exactly it is computed."""
    if getattr(mechanism, "protect", "node") == "rows" and is_sparse(rows.X):
        check_exact(*rows.X.shape)


def _claim_in_all(plan: Plan, release: Release, shown: str) -> str:
    """What this plan claims, and what holds for the rows with all that was charged before."""
    delta = plan.privacy.delta if plan.privacy is not None else None
    if not release.earlier:
        return ""
    claim = plan.privacy_claim.removesuffix(": all that leaves it")
    this = f"this plan: {claim}; these rows in all: "
    if shown:
        return f"{this}ε = ∞: {shown}"
    ledger = ledger_of(plan, release)
    total = math.inf if delta is None else ledger.total(0, delta)
    if math.isinf(total):
        return f"{this}ε = ∞" + ("" if delta is None else f" at δ = {delta:g}")
    unit = "one row of a node" if ledger.unit == "rows" else "all rows of a node"
    return f"{this}ε = {math.ceil(100 * total) / 100:g} at δ = {delta:g} for {unit}"


def _is_constant(mechanism: Mechanism) -> bool:
    """Whether 19 of 20 releases are one number, for both ends of the public bounds.

    By simulation, on the bounds alone: nothing of the rows shows in the answer.
    """
    draws = [
        mechanism.release(np.full(1000, value), np.random.default_rng(0))
        for value in mechanism.bounds
    ]
    usual = np.median(draws[0])
    return all(float(np.mean(draw == usual)) >= 0.95 for draw in draws)


def _drawn(
    plan: Plan,
    learner: Learner,
    mechanism: Mechanism | None,
    noise: ModelNoise | None,
    allowed: int,
    past: _Past,
) -> Release:
    from walklearn.privacy.description import describe

    importance = learner.importance
    if past.reused is not None:
        importance = past.reused
    elif mechanism is not None:
        importance = float(mechanism.release([learner.smoothness])[0])
    release = Release(
        importance=importance,
        mechanism=None if mechanism is None else describe(mechanism),
        noise=None if noise is None else describe(noise),
        may_contribute=allowed,
        earlier=past.earlier,
    )
    return replace(release, claim_in_all=_claim_in_all(plan, release, past.shown))


def _contributions_allowed(
    plan: Plan,
    mechanism: Mechanism | None,
    noise: ModelNoise | None,
    budget: Budget | None,
    past: _Past,
) -> int:
    """How often the rows may show in the model: the plan's cap, or less for the budget's sake."""
    most = 0 if noise is None else noise.max_contributions
    if budget is None:
        return most
    from walklearn.privacy.arguments import check_delta, check_epsilon
    from walklearn.privacy.composition import Charge, compose

    epsilon, delta = check_epsilon(budget[0]), check_delta(budget[1])
    base = past.charges
    if plan.tells:
        base.append(Charge("importance", mechanism, 1))
    if noise is None:
        base.append(Charge("model", None, 1))

    def within(contributions: int) -> bool:
        more = [Charge("model", noise, contributions)] if contributions else []
        return compose([*base, *more]).within(epsilon, delta)

    if not within(0):
        clear = [charge.what for charge in base if charge.mechanism is None]
        shares = f"the plan shares the {clear[0]} in the clear" if clear else ""
        why = past.shown or shares or "the release costs more"
        raise ValueError(
            f"the budget of epsilon = {epsilon:g} at delta = {delta:g} cannot be kept: {why}."
        )
    if not most or within(most):
        return most
    return bisect_left(range(1, most), True, key=lambda contributions: not within(contributions))
