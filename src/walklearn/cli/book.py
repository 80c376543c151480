"""`walklearn node book`: the list of participants that its keeper signs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import walklearn as wl
from walklearn.cli.console import Console
from walklearn.cli.node_extra import with_node_extra
from walklearn.wording import aligned, plural

_book = click.argument("book", type=click.Path(path_type=Path, dir_okay=False))


@click.group()
def book() -> None:
    """Keep the book: who takes part, by which key, at which address.

    \b
    Examples:
      walklearn node book new hospitals.book
      walklearn node book add hospitals.book "walklearn1:..." "walklearn1:..."
      walklearn node book show hospitals.book
    """


@book.command()
@_book
@click.option("--degree", type=int, default=4, show_default=True,
              help="How many neighbours everybody has, about; an even number.")  # fmt: skip
@with_node_extra
def new(book: Path, degree: int, console: Console) -> None:
    """Make a keeper's key and an empty book; print the line that the plan needs."""
    from walklearn.node.disk.keeper import key_file, new_book

    made = new_book(book, degree)
    keeper = made.keeper_fingerprint
    console.document |= {"book": str(book), "key": str(key_file(book)), "keeper": keeper}
    console.print(f"{book} is for everybody, {key_file(book)} for the keeper alone. In the plan:")
    console.print(f'keeper = "{keeper}"')


@book.command()
@_book
@click.argument("invites", nargs=-1)
@click.option("--remove", multiple=True, metavar="NAME", help="Strike this participant out.")
@click.option("--edge", "edges", type=(str, str), multiple=True, metavar="NAME NAME",
              help="Make these two neighbours; then no rule makes others.")  # fmt: skip
@with_node_extra
def add(
    book: Path, invites: tuple[str, ...], remove: tuple[str, ...], edges: tuple[tuple[str, str]],
    console: Console,
) -> None:  # fmt: skip
    """Add the participants of INVITES, or give them their new address, and sign the book.

    Compare each fingerprint with its owner: the book vouches for them to everybody.
    """
    from walklearn.node.disk.keeper import change_book

    found = [wl.node.Invite.decode(line).verify() for line in invites]
    if not (found or remove or edges):
        raise ValueError("nothing to add: give invites, --edge or --remove.")

    def change(old: wl.node.Book) -> wl.node.Book:
        changed = old.without(*remove) if remove else old
        changed = changed.with_participants(*found) if found else changed
        return changed.with_edges(*edges) if edges else changed

    _show(change_book(book, change), console)


@book.command()
@_book
@with_node_extra
def show(book: Path, console: Console) -> None:
    """Who is in the book, and whose neighbours they are."""
    content = book.read_bytes()
    _show(wl.node.Book.decode(content, wl.node.Book.keeper_of(content)), console)


def _show(book: wl.node.Book, console: Console) -> None:
    from walklearn.node.wire.identity import for_eyes

    participants: list[dict[str, Any]] = [
        {"name": each.name, "address": each.address, "fingerprint": each.fingerprint,
         "neighbours": [other.name for other in book.neighbours(each.fingerprint)]}
        for each in book.participants
    ]  # fmt: skip
    console.document |= {
        "number": book.number,
        "keeper": book.keeper_fingerprint,
        "parts": book.parts,
        "participants": participants,
    }
    rows = [
        [each["name"], each["address"] or "dials only", for_eyes(each["fingerprint"]),
         " ".join(each["neighbours"])]
        for each in participants
    ]  # fmt: skip
    console.print(
        f"book {book.number}, {plural(len(rows), 'participant')}, "
        f"keeper {for_eyes(book.keeper_fingerprint)}"
    )
    for line in aligned(["name", "address", "fingerprint", "neighbours"], rows):
        console.print(line)
    if book.former:
        console.print(f"former participants: {', '.join(each.name for each in book.former)}")
    if book.parts > 1:
        console.print(f"The graph has {book.parts} pieces, so the walk cannot reach every node.")
