"""`walklearn node roster`: create, change and print the signed list of participants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import walklearn as wl
from walklearn.cli.console import Console
from walklearn.cli.node_extra import with_node_extra
from walklearn.wording import align_columns, plural

_roster = click.argument("roster", type=click.Path(path_type=Path, dir_okay=False))


@click.group()
def roster() -> None:
    """Manage the roster: the names, keys and addresses of participants.

    \b
    Examples:
      walklearn node roster new hospitals.roster
      walklearn node roster add hospitals.roster "walklearn1:..." "walklearn1:..."
      walklearn node roster show hospitals.roster
    """


@roster.command()
@_roster
@click.option("--degree", type=int, default=4, show_default=True,
              help="Approximate number of neighbours of each participant; even.")  # fmt: skip
@with_node_extra
def new(roster: Path, degree: int, console: Console) -> None:
    """Create a signing key and an empty roster, and print the line for the plan."""
    from walklearn.node.disk.roster_signer import key_file, new_roster

    made = new_roster(roster, degree)
    signer = made.signer_fingerprint
    console.document |= {
        "roster": str(roster),
        "key": str(key_file(roster)),
        "roster_signer": signer,
    }
    console.print(f"{roster} is public. Keep {key_file(roster)} secret. Add this line to the plan:")
    console.print(f'roster_signer = "{signer}"')


@roster.command()
@_roster
@click.argument("invites", nargs=-1)
@click.option("--remove", multiple=True, metavar="NAME", help="Remove this participant.")
@click.option("--edge", "edges", type=(str, str), multiple=True, metavar="NAME NAME",
              help="Make these two neighbours. With --edge, --degree is not used.")  # fmt: skip
@with_node_extra
def add(
    roster: Path, invites: tuple[str, ...], remove: tuple[str, ...], edges: tuple[tuple[str, str]],
    console: Console,
) -> None:  # fmt: skip
    """Add the participants in INVITES, or update their addresses, and sign the roster.

    Compare each fingerprint with its owner first: all participants trust the keys in the roster.
    """
    from walklearn.node.disk.roster_signer import change_roster

    new_invites = [wl.node.Invite.decode(line).verify() for line in invites]
    if not (new_invites or remove or edges):
        raise ValueError("there is nothing to change. Pass INVITES, --edge or --remove.")

    def change(old: wl.node.Roster) -> wl.node.Roster:
        changed = old.without(*remove) if remove else old
        changed = changed.with_participants(*new_invites) if new_invites else changed
        return changed.with_edges(*edges) if edges else changed

    _show(change_roster(roster, change), console)


@roster.command()
@_roster
@with_node_extra
def show(roster: Path, console: Console) -> None:
    """Print the participants and their neighbours."""
    content = roster.read_bytes()
    _show(wl.node.Roster.decode(content, wl.node.Roster.signer_of(content)), console)


def _show(roster: wl.node.Roster, console: Console) -> None:
    from walklearn.node.wire.identity import for_eyes

    participants: list[dict[str, Any]] = [
        {"name": each.name, "address": each.address, "fingerprint": each.fingerprint,
         "neighbours": [other.name for other in roster.neighbours(each.fingerprint)]}
        for each in roster.participants
    ]  # fmt: skip
    console.document |= {
        "number": roster.number,
        "roster_signer": roster.signer_fingerprint,
        "parts": roster.parts,
        "participants": participants,
    }
    rows = [
        [each["name"], each["address"] or "dials only", for_eyes(each["fingerprint"]),
         " ".join(each["neighbours"])]
        for each in participants
    ]  # fmt: skip
    console.print(
        f"roster {roster.number}, {plural(len(rows), 'participant')}, "
        f"roster signer {for_eyes(roster.signer_fingerprint)}"
    )
    for line in align_columns(["name", "address", "fingerprint", "neighbours"], rows):
        console.print(line)
    if roster.former:
        console.print(f"former participants: {', '.join(each.name for each in roster.former)}")
    if roster.parts > 1:
        console.print(f"The graph has {roster.parts} components: the walk cannot reach all nodes.")
