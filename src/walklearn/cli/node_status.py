"""`walklearn node status`: the status of a node, from its process or from its disk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import walklearn as wl
from walklearn.wording import align_columns

_PHASES = {"frozen": "its process does not answer: it is frozen or very busy"}
_COLUMNS = ["neighbour", "link", "silent", "final model"]


def status_of(opened: wl.node.NodeDirectory) -> dict[str, Any]:
    """Return the answer of the running node, or the status stored on its disk."""
    from walklearn.node.process.control import STATUS_SECONDS, NotAnsweringError, NotRunningError
    from walklearn.node.process.status import own_total, stored_status

    try:
        return wl.node.send_command(opened.path, "Status", STATUS_SECONDS) | own_total(opened)
    except NotRunningError:
        return stored_status(opened)
    except NotAnsweringError:
        return stored_status(opened, "frozen")


def status_page(now: dict[str, Any]) -> str:
    """Return a status as text, with a table of the neighbours."""
    end = f", the final model is here: {confirmation(now)}" if now["final"] else ""
    lines = [
        f"{now['name']} ({_PHASES.get(now['phase'], now['phase'])}), plan {now['plan']['name']}",
        f"newest model: {now['updates']} of {now['of']} updates{end}",
    ]
    if now.get("token_seconds") is not None and not now["holds_token"]:
        lines.append(f"token: left {now['token_seconds']:g} s ago, last with {now['last_holder']}")
    if now.get("stalled"):
        lines.append(f"no progress for {now['moved_seconds']:g} s")
    if now.get("may_contribute") is not None:
        lines.append(_contributions(now["contributions"], now["may_contribute"]))
    lines += claim_lines(now)
    refusals = now.get("counters", {}).get("refusals", {})
    if refusals:
        lines.append("refused: " + ", ".join(f"{n} × {why}" for why, n in refusals.items()))
    rows = [
        [
            each["name"],
            each.get("link", "?"),
            _silence(each),
            {True: "yes", False: "no"}.get(each.get("final"), "?"),
        ]
        for each in now["neighbours"]
    ]
    return "\n".join([*lines, *align_columns(_COLUMNS, rows)])


def claim_lines(now: Mapping[str, Any]) -> list[str]:
    """Return the node's own claim, and the total over all runs on any of its rows."""
    lines = []
    if "this_node" in now:
        lines.append(f"this node: {now['this_node']}")
    elif "privacy" in now:
        lines.append(f"this plan: {now['privacy']}")
    if "all_runs" in now:
        lines.append(f"all runs on any of these rows: {now['all_runs']}")
    return lines


def confirmation(now: dict[str, Any]) -> str:
    """Return the hash of the final model, and the neighbours that confirmed it."""
    texts = [f"its hash is {now['final_hash']}"]
    for what, has in (("confirmed by", True), ("not confirmed by", False)):
        names = [each["name"] for each in now["neighbours"] if each["confirmed"] is has]
        if names:
            texts.append(f"{what} {', '.join(names)}")
    return ", ".join(texts)


def _contributions(count: int | None, cap: int) -> str:
    if count is None:
        return f"contributions: at most {cap}; the file that counts them is missing or damaged"
    rest = ", the maximum; the node now forwards the token unchanged" if count >= cap else ""
    return f"contributions: {count} of {cap}{rest}"


def _silence(neighbour: dict[str, Any]) -> str:
    seconds = neighbour.get("silent_seconds")
    return "?" if seconds is None else f"{seconds:.0f} s"
