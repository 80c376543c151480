"""Making a node: its rows against the plan, its key, its one release. All of it or nothing.

What needs much memory and time is done here, once: the calibration of the mechanism and of the
noise on the model, and the composition of both against the owner's budget. The running node reads
the results.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from walklearn.node.agreement.node_rows import NodeRows, read_node_rows
from walklearn.node.agreement.plan import Plan
from walklearn.node.disk.directory import NodeDirectory, Settings, new_directory, write_parts
from walklearn.node.disk.kept_releases import KeptReleases, owners_folder
from walklearn.node.disk.store import Release, Store
from walklearn.node.protocol.learner import Learner
from walklearn.node.wire.identity import Identity

if TYPE_CHECKING:
    from walklearn.privacy.composition import Charge
    from walklearn.privacy.ledger import Ledger
    from walklearn.privacy.mechanisms import Mechanism
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
) -> Created:
    """Make a node's directory.

    plan: a file. data: a file, or rows that are numbers already. listen: host:port of this
    machine. address: host:port under which neighbours reach it; without one the node dials its
    neighbours, and they must have one. name: by default the directory's.
    budget: (ε, δ) that all the node's releases together must keep to; it then contributes to the
    model less often than the plan would let it. releases: the folder of the owner's record of what
    was released of which rows; by default that of the user.
    """
    target = Path(path)
    settings = Settings(name if name is not None else target.name, listen, address)
    with new_directory(target) as fresh:
        agreed = Plan.read(Path(plan))
        rows = data if isinstance(data, NodeRows) else read_node_rows(data, agreed)
        mechanism, noise = agreed.calibrated_mechanism(), agreed.calibrated_noise()
        kept = KeptReleases(releases or owners_folder())
        learner = Learner.of_plan(agreed, rows.X, rows.y)
        past = _Past.of(kept, rows, learner, mechanism)
        allowed = _contributions_allowed(agreed, mechanism, noise, budget, past.charges)
        identity = Identity.create()
        settings = replace(settings, plan_digest=agreed.digest)
        write_parts(fresh, settings, Path(plan).read_text(encoding="utf-8"), identity, rows)
        with Store.create(fresh / "node.sqlite", learner.limits) as store:
            drawn = _drawn(learner, mechanism, noise, allowed, past)
            # Entered before the node exists: nobody can have seen what is not entered.
            past.enter(kept, rows, drawn, noise)
            release = store.draw_release(lambda: drawn)
        outside = mechanism is not None and bool(mechanism.outside([learner.smoothness]))
        constant = mechanism is not None and _is_constant(mechanism)
    return Created(
        NodeDirectory(target), release, len(rows.y), rows.shortened, outside, constant, past.told
    )


def ledger_of(plan: Plan, release: Release) -> Ledger:
    """What the rows of a node may cost at most, and by what protection; earlier nodes included.

    The model is charged its whole cap from the start. A price of the contributions so far would be
    wrong for a neighbour who sees them and chooses when to stop looking.
    """
    from walklearn.privacy.ledger import Ledger, from_description

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
        mechanism = from_description(description)
        ledger.charge(f"{what}, earlier {number}", mechanism, times=times)
    return ledger


@dataclass(frozen=True)
class _Past:
    """What the owner's record has of the same rows.

    same: the digest of what this release would be of. reused: what came out when it was drawn.
    earlier: all other charges, as (what, description of the mechanism, times); what was in the
    clear is nobody's secret any more, and is not entered.
    """

    same: str
    reused: float | None
    earlier: tuple[tuple[str, Any, int], ...]

    @classmethod
    def of(
        cls, kept: KeptReleases, rows: NodeRows, learner: Learner, mechanism: Mechanism | None
    ) -> _Past:
        same = kept.digest(f"{mechanism!r} {learner.smoothness!r}".encode())
        reused, earlier = None, list[tuple[str, Any, int]]()
        for entry in kept.of(rows):
            if mechanism is not None and entry["same"] == same:
                reused = float(entry["importance"])
                earlier += [tuple(each) for each in entry["charges"] if each[0] != "importance"]
            else:
                earlier += [tuple(each) for each in entry["charges"]]
        return cls(same, reused, tuple(earlier))

    @property
    def charges(self) -> list[Charge]:
        from walklearn.privacy.composition import Charge
        from walklearn.privacy.ledger import from_description

        return [Charge(what, from_description(each), n) for what, each, n in self.earlier]

    @property
    def told(self) -> str:
        """In words; nothing where these rows are new."""
        parts = []
        if self.reused is not None:
            parts.append("these rows were released before: the same R_i is used again, at no cost.")
        if self.earlier:
            parts.append(
                f"these rows have {len(self.earlier)} earlier charges, which count beside the new "
                "ones: the ledger has the total."
            )
        return " ".join(parts)

    def enter(
        self, kept: KeptReleases, rows: NodeRows, drawn: Release, noise: ModelNoise | None
    ) -> None:
        """Write down what the new node may show, unless it shows nothing or everything anyway."""
        charges: list[tuple[str, Any, int]] = []
        if drawn.mechanism is not None and self.reused is None:
            charges.append(("importance", drawn.mechanism, 1))
        if noise is not None and drawn.may_contribute:
            charges.append(("model", drawn.noise, drawn.may_contribute))
        if charges:
            same = self.same if drawn.mechanism is not None else ""
            entry = {"same": same, "importance": drawn.importance, "charges": charges}
            kept.add(rows, {**entry, "made": time.strftime("%Y-%m-%dT%H:%M:%S")})


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
    learner: Learner,
    mechanism: Mechanism | None,
    noise: ModelNoise | None,
    allowed: int,
    past: _Past,
) -> Release:
    from walklearn.privacy.ledger import describe

    importance = learner.importance
    if past.reused is not None:
        importance = past.reused
    elif mechanism is not None:
        importance = float(mechanism.release([learner.smoothness])[0])
    return Release(
        importance=importance,
        mechanism=None if mechanism is None else describe(mechanism),
        noise=None if noise is None else describe(noise),
        may_contribute=allowed,
        earlier=past.earlier,
    )


def _contributions_allowed(
    plan: Plan,
    mechanism: Mechanism | None,
    noise: ModelNoise | None,
    budget: Budget | None,
    earlier: list[Charge],
) -> int:
    """How often the rows may show in the model: the plan's cap, or less for the budget's sake."""
    most = 0 if noise is None else noise.max_contributions
    if budget is None:
        return most
    from walklearn.privacy.arguments import check_delta, check_epsilon
    from walklearn.privacy.composition import Charge, compose

    epsilon, delta = check_epsilon(budget[0]), check_delta(budget[1])
    base = list(earlier)
    if plan.tells:
        base.append(Charge("importance", mechanism, 1))
    if noise is None:
        base.append(Charge("model", None, 1))

    def within(contributions: int) -> bool:
        more = [Charge("model", noise, contributions)] if contributions else []
        return compose([*base, *more]).within(epsilon, delta)

    if not within(0):
        clear = [charge.what for charge in base if charge.mechanism is None]
        why = f"the plan shares the {clear[0]} in the clear" if clear else "the release costs more"
        raise ValueError(
            f"the budget of epsilon = {epsilon:g} at delta = {delta:g} cannot be kept: {why}."
        )
    if not most or within(most):
        return most
    return bisect_left(range(1, most), True, key=lambda contributions: not within(contributions))
