"""What a node says of itself to its owner; nothing here tells of rows, gradients or L_i."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from walklearn.node.disk.directory import NodeDirectory
from walklearn.node.disk.store import Store
from walklearn.node.protocol.messages import Limits, Line
from walklearn.node.protocol.state import Link, Phase, Record, State


def record_status(record: Record, updates: int) -> dict[str, Any]:
    """What the disk knows, whether a process runs or not."""
    newest = record.newest_model
    return {
        "updates": 0 if newest is None else newest.updates,
        "of": updates,
        "final": record.final is not None and record.final_line == record.newest_line,
        "walk": None if record.newest_line is None else _line(record.newest_line),
        "hop": None if record.newest is None else record.newest.hop,
        "contributions": record.contributions,
    }


def stored_status(directory: NodeDirectory) -> dict[str, Any]:
    """What can be said of a node that does not run."""
    plan = directory.plan
    with Store.look(directory.store_path, Limits.of_plan(plan)) as store:
        record = store.record
    return {
        "running": False,
        "name": directory.settings.name,
        "fingerprint": directory.identity.fingerprint,
        "plan": {"name": plan.name, "digest": plan.digest},
        "phase": "not running",
        **record_status(record, plan.updates),
        "neighbours": [
            {"name": peer.name, "fingerprint": peer.fingerprint} for peer in directory.peers()
        ],
    }


def node_status(state: State, names: Mapping[str, str]) -> dict[str, Any]:
    """What a running node knows: where the token is as far as it can tell, and its neighbours."""
    return {
        "phase": state.phase.value,
        **record_status(state.record, state.learner.plan.updates),
        "may_contribute": state.learner.may_contribute if state.learner.noise else None,
        "importance": state.learner.importance,
        "neighbours": [_neighbour(names.get(each, each), each, state) for each in state.neighbours],
    }


def gauges(state: State) -> dict[str, float]:
    """The numbers that Prometheus follows."""
    newest = state.record.newest_model
    return {
        "holds_token": float(state.phase in (Phase.HOLDING, Phase.HANDING_OVER)),
        "finished": float(state.phase is Phase.FINISHED),
        "newest_updates": float(0 if newest is None else newest.updates),
        "neighbours": float(state.degree),
        "neighbours_up": float(sum(link.up for link in state.links.values())),
        "contributions": float(state.record.contributions),
    }


def all_know_the_end(state: State) -> bool:
    """Whether every neighbour has said that it has the final model, or one of a newer line."""
    own = state.record.final_line
    if own is None:
        return False
    heard = [state.links.get(each, Link()).theirs for each in state.neighbours]
    return all(each is not None and each.final is not None and each.final >= own for each in heard)


def _neighbour(name: str, fingerprint: str, state: State) -> dict[str, Any]:
    link = state.links.get(fingerprint, Link())
    return {
        "name": name,
        "fingerprint": fingerprint,
        "up": link.up,
        "usable": state.is_usable(fingerprint),
        "degree": None if link.theirs is None else link.theirs.degree,
        "final": link.theirs is not None and link.theirs.final is not None,
    }


def _line(line: Line) -> dict[str, Any]:
    return {"name": line.walk, "counter": line.counter, "reclaimer": line.reclaimer}
