"""Status of a node for its owner. It contains nothing about rows, gradients or L_i."""

from __future__ import annotations

import math
from collections.abc import Mapping
from time import monotonic
from typing import Any

from walklearn.node.agreement.plan import Plan
from walklearn.node.disk.contribution_count import ContributionCount
from walklearn.node.disk.database import StoreError
from walklearn.node.disk.directory import NodeDirectory
from walklearn.node.disk.store import Release, Store
from walklearn.node.protocol import events as happened
from walklearn.node.protocol.pace import patience
from walklearn.node.protocol.record import Place, Record
from walklearn.node.protocol.state import Phase, State
from walklearn.node.protocol.tokens import Limits, Line

# Where the plan resumes no walk: after so long it is called stalled.
STALLED_SECONDS = 10.0


class Watch:
    """When the token and each neighbour were last heard of, in this process, and who had the token.

    here_at: when the token was last worked on here. last_holder: the fingerprint of who had it last
    as far as is known here.
    """

    def __init__(self) -> None:
        self._began = monotonic()
        self.here_at: float | None = None
        self.last_holder: str | None = None
        self._heard: dict[str, float] = {}

    def saw(self, event: happened.Event, before: State, after: State) -> None:
        """Note when an event happened, and what it says of the token and the neighbours."""
        now = monotonic()
        match event:
            case happened.Announced(who) | happened.NeighbourUp(who):
                self._heard[who] = now
            case happened.TokenArrived(who) | happened.FinalArrived(who):
                self._heard[who] = now
            case happened.Answered() if before.record.receiver is not None:
                self._heard[before.record.receiver] = now
                if after.record.place is Place.GONE:
                    self.last_holder = before.record.receiver
        if isinstance(event, happened.Work) and after.record is not before.record:
            self.here_at, self.last_holder = now, after.fingerprint

    def token_seconds(self, state: State) -> float | None:
        """Seconds since the token was here; None if it was not since the process began."""
        if state.phase is Phase.HOLDING:
            return 0.0
        return None if self.here_at is None else monotonic() - self.here_at

    def moved_seconds(self, state: State) -> float | None:
        """Seconds since the walk was last seen to move, here or elsewhere; None without a walk."""
        if state.seen is None or state.phase is Phase.FINISHED:
            return None
        return max(0.0, monotonic() - state.seen.moved_at)

    def is_stalled(self, state: State) -> bool:
        """True if the walk has not moved for the time after which a node presumes it lost."""
        moved, limits = self.moved_seconds(state), state.learner.plan.time_limits
        return moved is not None and moved > (patience(limits, state.returns) or STALLED_SECONDS)

    def silent_seconds(self, neighbour: str) -> float:
        """Seconds since the neighbour said something, or since the process began."""
        return monotonic() - self._heard.get(neighbour, self._began)


# So many digits of a hash are shown.
SHORT = 12


def record_status(record: Record, updates: int) -> dict[str, Any]:
    """Return the status that the disk has, with or without a running process."""
    newest = record.newest_model
    return {
        "updates": 0 if newest is None else newest.updates,
        "of": updates,
        "final": record.final is not None,
        "final_hash": short_hash(record),
        "walk": None if record.newest_line is None else _line(record.newest_line),
        "hop": None if record.newest is None else record.newest.hop,
        "contributions": record.contributions,
    }


def short_hash(record: Record) -> str | None:
    """The first digits of the final model's SHA-256; None if there is no final model."""
    return record.final_digest[:SHORT] or None


def stored_status(directory: NodeDirectory, phase: str = "not running") -> dict[str, Any]:
    """Return the status of a node that does not run, or does not answer (phase "frozen")."""
    plan = directory.plan
    with Store.look(directory.store_path, Limits.of_plan(plan)) as store:
        record, release = store.record, store.release()
    return {
        "running": False,
        "name": directory.settings.name,
        "fingerprint": directory.identity.fingerprint,
        "plan": {"name": plan.name, "digest": plan.digest},
        "phase": phase,
        "holds_token": record.place is Place.HERE,
        **record_status(record, plan.updates),
        "contributions": _stored_contributions(directory, record),
        "privacy": str(plan.claim),
        **total_status(plan, release),
        "may_contribute": release.may_contribute if release and release.noise else None,
        "neighbours": [
            {
                "name": each.name,
                "fingerprint": each.fingerprint,
                "confirmed": each.fingerprint in record.confirmed_by,
            }
            for each in directory.neighbours()
        ],
    }


def _stored_contributions(directory: NodeDirectory, record: Record) -> int | None:
    """The count that the node would start from; None if it cannot be known."""
    if directory.count_path is None:
        return record.contributions
    try:
        return max(record.contributions, ContributionCount.read(directory.count_path))
    except StoreError:
        return None


def total_status(plan: Plan, release: Release | None) -> dict[str, Any]:
    """Return the total over all runs on any of the node's rows, as the owner's record has it now.

    A running node does not call this: composing takes memory and time that its process lacks.
    """
    from walklearn.node.disk.creation import limited_claim
    from walklearn.privacy.accounting.owner_record import OwnerRecord, OwnerRecordError

    if release is None or not release.record:
        return {}
    claim = limited_claim(plan, release)
    limited = {} if claim is None else {"this_node": claim}
    try:
        total = OwnerRecord(release.record).total_of(release.rows, plan.privacy.delta)
    except OwnerRecordError as error:
        return {"all_runs": f"not known: {error}", **limited}
    return {"all_runs": str(total), "total": total.to_dict(), **limited}


def own_total(directory: NodeDirectory) -> dict[str, Any]:
    """Return that total for a node that another process may run."""
    with Store.look(directory.store_path, Limits.of_plan(directory.plan)) as store:
        return total_status(directory.plan, store.release())


def node_status(state: State, names: Mapping[str, str], watch: Watch) -> dict[str, Any]:
    """Return the status of a running node: the token's last known place, and its neighbours."""
    here, last = watch.token_seconds(state), watch.last_holder
    moved = watch.moved_seconds(state)
    return {
        "phase": state.phase.value,
        "holds_token": state.phase is Phase.HOLDING,
        "token_seconds": None if here is None else round(here, 1),
        "last_holder": None if last is None else _holder(last, state, names),
        "moved_seconds": None if moved is None else round(moved, 1),
        "stalled": watch.is_stalled(state),
        **record_status(state.record, state.learner.plan.updates),
        "may_contribute": state.learner.may_contribute if state.learner.noise else None,
        "importance": state.learner.importance,
        "neighbours": [
            _neighbour(names.get(each, each), each, state, watch) for each in state.neighbours
        ],
    }


def gauges(status: Mapping[str, Any]) -> dict[str, float | dict[str, float]]:
    """The numbers that Prometheus follows: of holders one for each that there may be."""
    neighbours, last = status["neighbours"], status["last_holder"]
    links = [each["link"] for each in neighbours]
    # The last holder may no longer be a neighbour.
    holders = {"this node", last, *(each["name"] for each in neighbours)} - {None}
    return {
        "holds_token": status["holds_token"],
        "handing_over": status["phase"] == Phase.HANDING_OVER.value,
        "token_seconds": math.nan if status["token_seconds"] is None else status["token_seconds"],
        "walk_stalled": status["stalled"],
        "finished": status["final"],
        "newest_updates": status["updates"],
        "neighbours": len(neighbours),
        "neighbours_up": sum(each["up"] for each in neighbours),
        "neighbours_one_way": links.count("one way"),
        "neighbours_confirmed": sum(each["confirmed"] for each in neighbours),
        "contributions": status["contributions"],
        "last_holder": {each: each == last for each in sorted(holders)},
    }


def link_of(neighbour: str, state: State) -> str:
    """Return the state of a link in one word."""
    if not state.link(neighbour).up:
        return "down"
    return "up" if state.is_usable(neighbour) else "one way"


def _holder(fingerprint: str, state: State, names: Mapping[str, str]) -> str:
    """Return the name of the last holder, which may no longer be a neighbour."""
    if fingerprint == state.fingerprint:
        return "this node"
    return names.get(fingerprint, "a former neighbour")


def all_tell_of_the_end(state: State) -> bool:
    """True if every neighbour has said since the process began that it has the final model."""
    own, theirs = state.record.final_digest, [state.link(each).theirs for each in state.neighbours]
    return bool(own) and all(each is not None and each.final_digest == own for each in theirs)


def _neighbour(name: str, fingerprint: str, state: State, watch: Watch) -> dict[str, Any]:
    link = state.link(fingerprint)
    return {
        "name": name,
        "fingerprint": fingerprint,
        "link": link_of(fingerprint, state),
        "up": link.up,
        "usable": state.is_usable(fingerprint),
        "silent_seconds": round(watch.silent_seconds(fingerprint), 1),
        "degree": None if link.theirs is None else link.theirs.degree,
        "final": link.theirs is not None and link.theirs.final is not None,
        "confirmed": fingerprint in state.record.confirmed_by,
    }


def _line(line: Line) -> dict[str, Any]:
    return {
        "name": line.walk,
        "updates": line.updates,
        "counter": line.counter,
        "reclaimer": line.reclaimer,
    }
