"""Making a node: its rows against the plan, its key, its one release. All of it or nothing.

What needs much memory and time is done here, once: the calibration of the mechanism and of the
noise on the model, and the composition of both against the owner's budget. The running node reads
the results.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_left
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from walklearn.node.agreement.node_rows import NodeRows, node_rows_of, read_plan_table
from walklearn.node.agreement.plan import Plan
from walklearn.node.disk.contribution_count import ContributionCount
from walklearn.node.disk.directory import NodeDirectory, Settings, new_directory, write_parts
from walklearn.node.disk.store import Release, Store
from walklearn.node.protocol.learner import Learner
from walklearn.node.wire.identity import Identity
from walklearn.objectives.linear.rows import is_sparse
from walklearn.objectives.linear.smoothness import check_exact
from walklearn.privacy.accounting.composition import Charge, compose
from walklearn.privacy.accounting.ledger import Ledger
from walklearn.privacy.accounting.owner_record import (
    ChargeEntry,
    LockedRecord,
    OwnerRecord,
    RecordTotal,
    RowSet,
    Run,
    charges_of,
)
from walklearn.privacy.accounting.printing import format_upper
from walklearn.privacy.limits import check_delta, check_epsilon
from walklearn.privacy.mechanisms.description import UNPROTECTED_MODEL, describe, from_description
from walklearn.privacy.mechanisms.mechanism import Mechanism
from walklearn.privacy.model_noise import ModelNoise
from walklearn.tables.row_marks import blocks_of, table_blocks
from walklearn.wording import plural

Budget = tuple[float, float]
LISTEN = "0.0.0.0:7447"


@dataclass(frozen=True)
class Created:
    """A new node, and what its owner should know about it.

    shortened: rows longer than the feature bound. outside: L_i was outside the public bounds and
    was moved to them before the release. constant: almost every release of such a plan is the
    same number, whatever the rows. total: the cost of all runs on any of these rows. reused: the
    constant was released before from the same rows, and is released again at no cost.
    """

    directory: NodeDirectory
    release: Release
    rows: int
    shortened: int
    outside: bool
    constant: bool
    total: RecordTotal
    reused: bool = False


def create_node(
    path: str | os.PathLike[str],
    *,
    plan: str | os.PathLike[str],
    data: str | os.PathLike[str] | NodeRows,
    listen: str = LISTEN,
    address: str = "",
    name: str | None = None,
    budget: Budget | None = None,
    record: str | os.PathLike[str] | None = None,
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
    record
        The file of the owner's record, to which the node is charged; by default the user's.
        Contributions are counted in the folder `counts` beside it.
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
        if not (agreed.privacy.protects_model or accept_unprotected):
            raise ValueError(
                f"{plan} leaves the model unprotected (ε = ∞). {UNPROTECTED_MODEL} Write a private "
                "plan with walklearn plan new --epsilon 3 --delta 1e-5, or accept this with "
                "--accept-unprotected (accept_unprotected=True in Python)."
            )
        agreed.check_usable()
        if isinstance(data, NodeRows):
            rows, blocks = data, blocks_of(data.X, data.y)
        else:
            table = read_plan_table(data, agreed)
            rows, blocks = node_rows_of(table, agreed), table_blocks(table)
        mechanism, noise = agreed.mechanism, agreed.noise
        # A claim about rows needs an exact L_i, and for sparse rows L_i is iterated.
        if getattr(mechanism, "protect", "node") == "rows" and is_sparse(rows.X):
            check_exact(*rows.X.shape)
        learner = Learner.of_plan(agreed, rows.X, rows.y)
        identity = Identity.create()
        owner = OwnerRecord(record)
        count = owner.path.absolute().parent / "counts" / identity.fingerprint
        counts = "" if noise is None else str(count)
        settings = replace(settings, plan_digest=agreed.digest, counts=counts)
        write_parts(fresh, settings, Path(plan).read_text(encoding="utf-8"), identity, rows)
        marked = owner.mark(blocks)
        with owner.locked() as locked_record:
            earlier = _EarlierRuns.of(locked_record, marked, agreed, mechanism)
            allowed = _contributions_allowed(agreed, mechanism, noise, budget, earlier)
            release = Release(
                mechanism=None if mechanism is None else describe(mechanism),
                noise=None if noise is None else describe(noise),
                may_contribute=allowed,
                record=str(owner.path.absolute()),
                rows=marked.digest,
            )
            run = earlier.new_run(agreed, release)
            number = locked_record.add(marked, run)  # before the first draw
            importance = learner.importance if earlier.reused is None else earlier.reused
            if mechanism is not None and earlier.reused is None:
                importance = float(mechanism.release([learner.smoothness])[0])
                locked_record.set_released(number, importance)
        release = replace(release, importance=importance)
        with Store.create(fresh / "node.sqlite", learner.limits) as store:
            store.put_release(release)
            if noise is not None:
                ContributionCount.create(count)
        outside = mechanism is not None and bool(
            mechanism.count_out_of_bounds([learner.smoothness])
        )
        constant = mechanism is not None and _is_constant(mechanism)
    return Created(
        NodeDirectory(target),
        release,
        len(rows.y),
        rows.shortened,
        outside,
        constant,
        owner.total_of(marked, agreed.privacy.delta),
        earlier.reused is not None,
    )


def ledger_of(plan: Plan, release: Release) -> Ledger:
    """Return what this plan may cost the rows of a node at most, and by what protection.

    The model is charged its whole cap from the start. A price of the contributions so far would be
    wrong for a neighbour who sees them and chooses when to stop looking.
    """
    ledger = Ledger(nodes=1)
    if release.mechanism is not None:
        ledger.charge("importance", from_description(release.mechanism))
    elif plan.reveals_rows:
        ledger.record_unprotected("importance")
    if release.noise is None:
        ledger.record_unprotected("model")
    elif release.may_contribute:
        noise = from_description(release.noise)
        ledger.charge("model", noise, times=release.may_contribute)
    return ledger


def limited_claim(plan: Plan, release: Release) -> str | None:
    """Return the claim of a node that a budget limits; None for one that has the plan's own."""
    if release.noise is None or release.may_contribute == release.noise["max_contributions"]:
        return None
    total = plan.privacy
    assert total.epsilon is not None
    assert total.delta is not None
    epsilon = ledger_of(plan, release).total(0, total.delta)
    unit = "one row of a node" if total.unit == "rows" else "all rows of a node"
    return (
        f"ε = {format_upper(epsilon, 4)} at δ = {format_upper(total.delta)} for {unit} (the plan "
        f"allows {format_upper(total.epsilon)}; --budget limits it to "
        f"{plural(release.may_contribute, 'contribution')})"
    )


@dataclass(frozen=True)
class _EarlierRuns:
    """Earlier runs on any of these rows.

    constant: digest of what the release of L_i depends on. reused: the number that was released
    from it before.
    """

    constant: str
    reused: float | None
    runs: tuple[Run, ...]

    @property
    def pays_for_constant(self) -> bool:
        """True if no private run was charged for this release; totals leave others out."""
        paid = any(run.is_private and run.constant == self.constant for run in self.runs)
        return self.reused is None or not paid

    @classmethod
    def of(
        cls, record: LockedRecord, rows: RowSet, plan: Plan, mechanism: Mechanism | None
    ) -> _EarlierRuns:
        """Read them from the record."""
        runs = record.runs(rows)
        if mechanism is None:
            return cls("", None, tuple(runs))
        # Of facts and whole rows only: that two constants are the same number is itself a secret.
        constant = record.keyed_digest(_facts(plan, mechanism).encode() + rows.digest.encode())
        drawn = [run.released for run in runs if run.constant == constant]
        reused = next((each for each in drawn if each is not None), None)
        return cls(constant, reused, tuple(runs))

    def new_run(self, plan: Plan, release: Release) -> Run:
        """Return the run that the new node is, with all that it may reveal."""
        charges: list[ChargeEntry] = []
        if plan.reveals_rows and self.pays_for_constant:
            charges.append(("importance", release.mechanism, 1))
        if release.noise is None:
            charges.append(("model", None, 1))
        elif release.may_contribute:
            charges.append(("model", release.noise, release.may_contribute))
        name, delta = f"plan {plan.name}", plan.privacy.delta
        return Run(name, tuple(charges), delta, 1, self.constant, self.reused)


# What of a plan L_i follows from, besides the rows.
_OF_THE_CONSTANT = (
    "columns", "features", "target", "classes", "loss", "penalty", "nodes", "rows", "objective",
    "intercept",
)  # fmt: skip


def _facts(plan: Plan, mechanism: Mechanism | None) -> str:
    """Return, as one text, all inputs of a release's distribution except the rows."""
    content = plan.digest_content
    facts = {name: content.get(name) for name in _OF_THE_CONSTANT}
    bound = plan.privacy.feature_bound
    # To the last digit: what is printed of a mechanism is rounded.
    drawn_by = None if mechanism is None else describe(mechanism)
    return json.dumps([facts, bound, drawn_by], sort_keys=True)


def _is_constant(mechanism: Mechanism) -> bool:
    """True if 19 of 20 releases are the same number, at both ends of the public bounds.

    By simulation, on the bounds alone: nothing of the rows shows in the answer.
    """
    draws = [
        mechanism.release(np.full(1000, value), np.random.default_rng(0))
        for value in mechanism.bounds
    ]
    usual = np.median(draws[0])
    return all(float(np.mean(draw == usual)) >= 0.95 for draw in draws)


def _contributions_allowed(
    plan: Plan,
    mechanism: Mechanism | None,
    noise: ModelNoise | None,
    budget: Budget | None,
    earlier: _EarlierRuns,
) -> int:
    """Return the largest number of contributions: the plan's cap, or fewer by the budget."""
    most = 0 if noise is None else noise.max_contributions
    if budget is None:
        return most
    epsilon, delta = check_epsilon(budget[0]), check_delta(budget[1])
    base = charges_of([entry for run in earlier.runs for entry in run.charges])
    if plan.reveals_rows and earlier.pays_for_constant:
        base.append(Charge("importance", mechanism, 1))
    if noise is None:
        base.append(Charge("model", None, 1))

    def within(contributions: int) -> bool:
        more = [Charge("model", noise, contributions)] if contributions else []
        return compose([*base, *more]).within(epsilon, delta)

    if not within(0):
        unprotected = sum(not run.is_private for run in earlier.runs)
        clear = [charge.what for charge in base if charge.mechanism is None]
        why, remedy = "the release costs more", ""
        if unprotected:
            why = f"{plural(unprotected, 'earlier run')} on these rows had no protection"
            remedy = " Leave --budget out, or use other rows."
        elif clear:
            why = f"the plan shares the {clear[0]} in the clear"
        given = f"epsilon = {format_upper(epsilon)} at delta = {format_upper(delta)}"
        raise ValueError(f"the budget of {given} cannot be kept: {why}.{remedy}")
    if not most or within(most):
        return most
    return bisect_left(range(1, most), True, key=lambda contributions: not within(contributions))
