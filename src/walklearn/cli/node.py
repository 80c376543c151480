"""`walklearn node`: create a node, add neighbours, run it, print its status and its model."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import walklearn as wl
from walklearn.cli.console import Console
from walklearn.cli.node_extra import with_node_extra
from walklearn.cli.node_status import claim_lines, confirmation, status_of, status_page
from walklearn.cli.roster import roster
from walklearn.wording import format_times, plural

if TYPE_CHECKING:
    from walklearn.node.disk.creation import Created

# Several threads of linear algebra gain nothing on one node's rows, and many nodes on one machine
# would compete for cores. NumPy reads the variable when it is imported, which happens later.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_directory = click.argument("directory", type=click.Path(path_type=Path))


@click.group()
def node() -> None:
    """Take part in a network, with one node next to its own data and no server.

    \b
    Examples:
      walklearn node init mynode --plan plan.toml --data rows.csv \\
        --listen 0.0.0.0:7447 --address host.example.org:7447
      walklearn node invite mynode
      walklearn node peer mynode "walklearn1:..."    # or, for all neighbours at once:
      walklearn node join mynode hospitals.roster
      walklearn node run mynode
      walklearn node start-walk mynode
      walklearn node model mynode --out model/
    """


@node.command()
@_directory
@click.option("--plan", type=click.Path(path_type=Path), required=True,
              help="Plan that all participants share (TOML file).")  # fmt: skip
@click.option("--data", type=click.Path(path_type=Path), required=True,
              help="File with this node's rows. They never leave the node.")  # fmt: skip
@click.option("--listen", default="0.0.0.0:7447", show_default=True, metavar="HOST:PORT",
              help="Address to listen on.")  # fmt: skip
@click.option("--address", default="", metavar="HOST:PORT",
              help="Address that neighbours dial. Without it this node dials them.")  # fmt: skip
@click.option("--name", help="Name of the node. Default: name of the directory.")
@click.option("--budget", type=float, nargs=2, metavar="EPSILON DELTA",
              help="Limit on the total (ε, δ) of all releases of this node.")  # fmt: skip
@click.option("--accept-unprotected", is_flag=True,
              help="Accept a plan that leaves the model unprotected.")  # fmt: skip
@with_node_extra
def init(
    directory: Path, plan: Path, data: Path, listen: str, address: str, name: str | None,
    budget: tuple[float, float] | None, accept_unprotected: bool, console: Console,
) -> None:  # fmt: skip
    """Create the node DIRECTORY: check the rows against the plan, create a key, draw the release.

    The release is drawn once and stored. A second draw for the same rows would allow neighbours to
    average the noise away.

    Each node is charged to the owner's record before any noise is drawn. The record is
    ~/.local/state/walklearn/record.sqlite, or under $XDG_STATE_HOME.
    """
    from walklearn.cli.data_warnings import node_file_notes
    from walklearn.node.disk.creation import limited_claim

    notes = node_file_notes(wl.tables.read_table(data), wl.node.Plan.read(plan))
    created = wl.node.create_node(
        directory, plan=plan, data=data, listen=listen, address=address, name=name, budget=budget,
        accept_unprotected=accept_unprotected,
    )  # fmt: skip
    claim = limited_claim(created.directory.plan, created.release)
    console.document |= {
        "directory": str(created.directory.path),
        "name": created.directory.settings.name,
        "rows": created.rows,
        "shortened": created.shortened,
        "outside": created.outside,
        "privacy": str(created.directory.plan.claim),
        **({} if claim is None else {"this_node": claim}),
        "all_runs": str(created.total),
        "total": created.total.to_dict(),
        "notes": notes,
    }
    console.print(_describe(created, console.document))
    for note in notes:
        console.note(note)


@node.command()
@_directory
@with_node_extra
def invite(directory: Path, console: Console) -> None:
    """Print this node's invite, which neighbours add with `walklearn node peer`.

    Send it over any channel, and compare the fingerprint over another, such as the telephone.
    """
    from walklearn.node.wire.identity import for_eyes

    mine = wl.node.NodeDirectory(directory).invite
    console.output(
        mine.encode(), invite=mine.encode(), name=mine.name, fingerprint=mine.fingerprint
    )
    console.log(f"fingerprint of {mine.name}: {for_eyes(mine.fingerprint)}")


@node.command()
@_directory
@click.argument("invite", required=False)
@click.option("--remove", metavar="NAME", help="Remove this neighbour.")
@with_node_extra
def peer(directory: Path, invite: str | None, remove: str | None, console: Console) -> None:
    """Add the neighbour in INVITE, or remove one; a running node notices it within a second.

    Both sides must add each other. Without INVITE, list the neighbours.
    """
    from walklearn.node.wire.identity import for_eyes

    opened = wl.node.NodeDirectory(directory)
    if invite is not None and remove is not None:
        raise ValueError("INVITE adds a neighbour and --remove removes one. Pass one of them.")
    if invite is not None:
        added = opened.add_peer(invite)
        place = f"at {added.address}" if added.address else "which will dial this node"
        console.document["added"] = _peer_facts(added)
        console.print(f"{added.name} {place}, fingerprint {for_eyes(added.fingerprint)}")
    elif remove is not None:
        opened.remove_peer(remove)
        console.document["removed"] = remove
        console.print(f"Removed the neighbour {remove}.")
    else:
        console.document["neighbours"] = [_peer_facts(each) for each in opened.neighbours()]
        for each in opened.neighbours():
            console.print(f"{each.name}  {each.address or 'dials'}  {for_eyes(each.fingerprint)}")


@node.command()
@_directory
@click.argument("roster", type=click.Path(path_type=Path, dir_okay=False))
@with_node_extra
def join(directory: Path, roster: Path, console: Console) -> None:
    """Take the neighbours from ROSTER, which the plan's roster signer has signed.

    A running node notices it. Later versions of the roster reach the node from its neighbours.
    """
    opened = wl.node.NodeDirectory(directory)
    joined = opened.join(roster.read_bytes())
    names = ", ".join(peer.name for peer in opened.neighbours()) or "none"
    console.document |= {
        "roster": joined.number,
        "participants": len(joined.participants),
        "neighbours": [peer.name for peer in opened.neighbours()],
    }
    participants = plural(len(joined.participants), "participant")
    console.print(f"roster {joined.number}, {participants}; neighbours: {names}")


@node.command()
@_directory
@click.option("--listen", metavar="HOST:PORT", help="Listen on this address instead.")
@click.option("--metrics-port", type=click.IntRange(1, 65535),
              help="Port for Prometheus on 127.0.0.1.")  # fmt: skip
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]),
              help="Default: info, with --quiet error, with --verbose debug.")  # fmt: skip
@click.option("--linger-seconds", type=click.FloatRange(0), default=60.0, show_default=True,
              help="Seconds to wait at the end until neighbours have the model.")  # fmt: skip
@click.option("--stop-seconds", type=click.FloatRange(0), default=20.0, show_default=True,
              help="Seconds to try to hand the token over when the node is stopped.")  # fmt: skip
@click.option("--web", is_flag=True,
              help="Serve a page about this node on 127.0.0.1 and print its address.")  # fmt: skip
@click.option("--web-port", type=click.IntRange(0, 65535), default=0,
              help="Port of the page. Default: a free one.")  # fmt: skip
@click.option("--validation", type=click.Path(path_type=Path),
              help="File of public rows. The page shows the model's loss on them.")  # fmt: skip
@click.option(
    "--serve", is_flag=True, help="Keep running after the end, for nodes that return later."
)
@with_node_extra
def run(
    directory: Path, listen: str | None, metrics_port: int | None, log_level: str | None,
    linger_seconds: float, stop_seconds: float, serve: bool, web: bool, web_port: int,
    validation: Path | None, console: Console,
) -> None:  # fmt: skip
    """Run the node until the plan's updates are done and its neighbours have the model.

    You may stop the node (Ctrl-C or SIGTERM; it hands the token over first), kill it, and start it
    again at any time. Log lines are JSON on standard error.
    """
    from walklearn.node.process.service import run_node
    from walklearn.node.wire.identity import check_address

    if listen is not None:
        check_address(listen)
    if validation is not None and not web:
        raise ValueError("--validation needs --web, because only the page shows it. Pass both.")
    options = wl.node.NodeOptions(
        listen, metrics_port, linger_seconds, stop_seconds, stay=serve,
        web_port=web_port if web else None, validation=validation, announce=console.announce,
    )  # fmt: skip
    level = log_level or ("error" if console.quiet else "debug" if console.verbose else "info")
    opened = wl.node.NodeDirectory(directory)
    code = run_node(opened, options, level)
    console.document |= status_of(opened)
    raise SystemExit(code)


@node.command("start-walk")
@_directory
@click.option("--resume", is_flag=True,
              help="Continue from this node's newest model: the holder is gone.")  # fmt: skip
@click.option("--force", is_flag=True,
              help="Start although neighbours report a walk that this node never saw.")  # fmt: skip
@click.option("--wait", "wait_seconds", type=click.FloatRange(0), default=0.0, metavar="SECONDS",
              help="Seconds to wait for a node that is starting.")  # fmt: skip
@with_node_extra
def start_walk(
    directory: Path, resume: bool, force: bool, wait_seconds: float, console: Console
) -> None:
    """Start the walk at this node, which must be running. Do this once, at one node only."""
    from walklearn.node.process.control import NotRunningError, send_command

    wl.node.NodeDirectory(directory)
    if resume and force:
        raise click.UsageError("--resume continues a walk, --force starts a new one. Pass one.")
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            send_command(directory, "StartWalk", resume=resume, force=force)
            break
        except NotRunningError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.2)
    console.document["walk"] = "resumed" if resume else "begun"
    console.print("The walk continues from this node." if resume else "The walk has started.")


@node.command()
@_directory
@click.option("--watch", is_flag=True, help="Refresh every second until Ctrl-C.")
@with_node_extra
def status(directory: Path, watch: bool, console: Console) -> None:
    """Print this node's progress, its neighbours and the total privacy loss."""
    if watch and (console.as_json or console.quiet):
        raise click.UsageError("--watch needs a screen. Leave it out with --json and --quiet.")
    opened = wl.node.NodeDirectory(directory)
    while True:
        console.document = status_of(opened)
        if watch:
            click.clear()
        console.print(status_page(console.document))
        if not watch:
            return
        time.sleep(1.0)


@node.command()
@_directory
@click.option("--out", type=click.Path(path_type=Path), required=True,
              help="Model directory to write.")  # fmt: skip
@click.option("--force", is_flag=True, help="Overwrite an existing model.")
@with_node_extra
def model(directory: Path, out: Path, force: bool, console: Console) -> None:
    """Write this node's newest model, which is the final one at the end, as a model directory.

    `walklearn predict` and `walklearn export` read it.
    """
    opened = wl.node.NodeDirectory(directory)
    trained, final = wl.node.newest_model(opened)
    trained.save(out, overwrite=force)
    which = "the final model" if final else "the newest model of this node (not final yet)"
    console.document |= {"out": str(out), "final": final, "updates": trained.updates}
    console.print(f"{out}: {which}, {plural(trained.updates, 'update')}.")
    if final:
        console.print(confirmation(status_of(opened)))


node.add_command(roster)


def _peer_facts(peer: wl.node.Invite) -> dict[str, Any]:
    return {"name": peer.name, "address": peer.address, "fingerprint": peer.fingerprint}


def _describe(created: Created, facts: dict[str, Any]) -> str:
    path, name = created.directory.path, created.directory.settings.name
    lines = [f"{path}: node {name}, {plural(created.rows, 'row')}"]
    if created.shortened:
        lines.append(f"{plural(created.shortened, 'row')} shortened to the feature bound.")
    if created.outside:
        lines.append("L_i lies outside the public bounds and was moved to them before its release.")
    if created.release.mechanism is not None:
        lines.append(f"released importance: {created.release.importance:.6g} (drawn only once)")
    if created.constant:
        lines.append(
            "warning: with this mechanism, these bounds, ε and δ, nearly all releases are equal, "
            "so the weighted walk is uniform. Agree on another mechanism or narrower bounds."
        )
    if created.release.noise is not None:
        lines.append(
            f"its rows influence the model at most {format_times(created.release.may_contribute)}."
        )
    if created.reused:
        lines.append("These rows have a release already; the node uses the same R_i, at no cost.")
    lines += claim_lines(facts)
    lines.append(f"next: walklearn node invite {path}")
    return "\n".join(lines)
