"""A node's directory: everything that is the node's own, and nothing that is not.

    plan.toml      the agreement, as it was given
    node.json      name, where it listens, the address neighbours use, its file of contributions
    key.pem        the private key, readable by its owner only
    certificate.pem
    rows.npz       its rows, as numbers
    node.sqlite    the token and what was released: see `store`
    roster.json      the roster of participants, if the node has joined by one
    peers/         one invite for each neighbour that was added by hand
    control        the socket of the running node

It is made whole or not at all: under another name first, with the one release of L_i drawn and
on disk, then renamed. So a crash leaves no release or the one release, and nobody can have seen
a release that is not kept.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import ssl
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path

from walklearn.files.atomic_write import atomic_directory, atomic_write, sync_directory
from walklearn.node.agreement.node_rows import NodeRows
from walklearn.node.agreement.plan import Plan
from walklearn.node.wire.identity import Identity, Invite, check_address, check_name, no_address
from walklearn.node.wire.roster import Roster

FORMAT = "walklearn node"
ROSTER = "roster.json"
VERSION = 1


class DirectoryError(ValueError):
    """A directory that is no node's, or not in order, and what to do."""


def others_may_read(key: Path) -> str:
    """Return an error without a full stop; empty if only the owner can read the key."""
    mode = stat.S_IMODE(key.stat().st_mode)
    if not mode & 0o077:
        return ""
    return f"others may read the key {key} (permissions {mode:o}): make it private with chmod 600"


@dataclass(frozen=True)
class Settings:
    """Settings that a node chooses, and the digest of its plan.

    address: empty for a node that dials its neighbours and cannot be dialled. counts: the file in
    which the node reserves its contributions, empty if its plan puts no noise on the model.
    """

    name: str
    listen: str
    address: str
    plan_digest: str = ""
    counts: str = ""
    format: str = FORMAT
    version: int = VERSION

    def __post_init__(self) -> None:
        check_name(self.name)
        check_address(self.listen)
        if self.address:
            check_address(self.address)


class NodeDirectory:
    """An existing node's directory.

    Parameters
    ----------
    path
        Where it is.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not (self.path / "node.json").is_file():
            what = "is not a node's directory" if self.path.exists() else "does not exist"
            raise DirectoryError(f"{self.path} {what}: `walklearn node init` makes one.")
        if self.path.stat().st_uid != os.geteuid() and os.geteuid() != 0:
            raise DirectoryError(f"{self.path} belongs to another user: run as its owner.")
        if shared := others_may_read(self.path / "key.pem"):
            raise DirectoryError(f"{shared}, or better, make a new node.")

    @cached_property
    def settings(self) -> Settings:
        """Name, listening address, address for neighbours."""
        try:
            content = json.loads((self.path / "node.json").read_text(encoding="utf-8"))
            version = content["version"]
            if content["format"] == FORMAT and version <= VERSION:
                content = {"counts": "", **content}  # nodes without noise have no such file
                return Settings(**{each.name: content[each.name] for each in fields(Settings)})
        except (ValueError, KeyError, TypeError) as error:
            raise DirectoryError(f"{self.path / 'node.json'} is damaged: {error}.") from None
        raise DirectoryError(
            f"{self.path} was made by a newer walklearn (version {version}): use that one."
        )

    @cached_property
    def plan(self) -> Plan:
        """The agreement, which must be the one that rows and release were made for."""
        plan = Plan.read(self.path / "plan.toml")
        if plan.digest != self.settings.plan_digest:
            raise DirectoryError(
                f"{self.path / 'plan.toml'} has changed since the node was made, and its rows and "
                "its release belong to the plan as it was. Put that back, or make a new node."
            )
        return plan

    @cached_property
    def identity(self) -> Identity:
        """Key and certificate, which must belong together."""
        key, certificate = self.path / "key.pem", self.path / "certificate.pem"
        try:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key, password="")  # never ask at the terminal
        except ssl.SSLError:
            raise DirectoryError(
                f"{key} or {certificate} is damaged, or they do not belong together. Restore both "
                "from a backup. They identify the node to its neighbours: without a backup, make a "
                "new node."
            ) from None
        return Identity(key.read_bytes(), certificate.read_bytes())

    @property
    def rows(self) -> NodeRows:
        """The rows, as numbers."""
        return NodeRows.load(self.path / "rows.npz")

    @property
    def store_path(self) -> Path:
        """Path of the database with token and release."""
        return self.path / "node.sqlite"

    @property
    def count_path(self) -> Path | None:
        """The file that counts the node's contributions; None if its plan does not limit them."""
        return Path(self.settings.counts) if self.settings.counts else None

    @property
    def invite(self) -> Invite:
        """The invite for the neighbours."""
        settings = self.settings
        return Invite(settings.name, settings.address, self.identity.public_key)

    def neighbours(self) -> list[Invite]:
        """The neighbours, by name: those of the roster, but for removed ones, or added by hand.

        Where the plan has a roster, only that counts: what others sign for the walk, nobody would
        take.
        """
        folder, peers = self.path / "peers", list[Invite]()
        if self.plan.roster_signer is not None:
            if (roster := self.roster) is not None:
                removed = {file.stem for file in folder.glob("*.removed")}
                found = roster.neighbours(self.identity.fingerprint)
                peers = [peer for peer in found if peer.name not in removed]
            return peers
        for file in sorted(folder.glob("*.invite")):
            try:
                peers.append(Invite.decode(file.read_text(encoding="utf-8")))
            except (ValueError, OSError) as error:
                raise DirectoryError(f"{file} cannot be read: {error}") from None
        return peers

    @property
    def roster(self) -> Roster | None:
        """The roster of participants that the node has joined by; None if there is none."""
        file = self.path / ROSTER
        if self.plan.roster_signer is None or not file.exists():
            return None
        try:
            return Roster.decode(file.read_bytes(), self.plan.roster_signer)
        except ValueError as error:
            raise DirectoryError(f"{file}: {error} `walklearn node join` takes it anew.") from error

    def join(self, content: bytes) -> Roster:
        """Take a roster, in place of the one that was here.

        Parameters
        ----------
        content
            The roster as the roster signer sent it.

        Returns
        -------
        Roster
            It is signed by the roster signer of the plan, has this node in it and no more than the
            plan's nodes, and is not older than the one before; otherwise a `DirectoryError` or a
            `RosterError` is raised.
        """
        if self.plan.roster_signer is None:
            raise DirectoryError(
                "the plan names no roster signer, so no roster counts. Agree on one: `walklearn "
                "node roster new` prints the line for the plan, and nodes are made after that."
            )
        roster = Roster.decode(content, self.plan.roster_signer)
        roster.neighbours(self.identity.fingerprint)
        if len(roster.participants) > self.plan.nodes:
            raise DirectoryError(
                f"the roster has {len(roster.participants)} participants, and the plan is for "
                f"{self.plan.nodes}: that number stays the plan's."
            )
        known = None
        with suppress(DirectoryError):  # one that is damaged is replaced by this one
            known = self.roster
        if known is not None and known.number > roster.number:
            raise DirectoryError(
                f"this is roster {roster.number}, and the node has the newer roster {known.number}."
            )
        atomic_write(self.path / ROSTER, roster.encode(), private=True)
        return roster

    def neighbours_stamp(self) -> tuple[tuple[str, int], ...]:
        """Something that changes whenever the neighbours do, and is quick to look at."""
        stamps = []
        for file in ((self.path / "peers"), self.path / ROSTER, *(self.path / "peers").glob("*")):
            with suppress(FileNotFoundError):  # it was removed just now
                stamps.append((file.name, file.stat().st_mtime_ns))
        return tuple(sorted(stamps))

    def add_peer(self, line: str) -> Invite:
        """Keep a neighbour's invite; the same key may come back with another address.

        Parameters
        ----------
        line
            What `walklearn node invite` printed for the neighbour.

        Returns
        -------
        Invite
            What was kept. A `DirectoryError` is raised for one's own invite, for a name that is
            taken, for one too many, for who is not in the roster, and where neither has an address.
        """
        peer = Invite.decode(line).verify()
        if peer.fingerprint == self.identity.fingerprint:
            raise DirectoryError(
                "this is the node's own invite: give it to a neighbour, and add the neighbour's."
            )
        if peer.name == self.settings.name:
            raise DirectoryError(f"this node is called {peer.name!r} itself: names must differ.")
        if not (peer.address or self.settings.address):
            raise DirectoryError(no_address("this node", peer.name))
        self._removed_file(peer.name).unlink(missing_ok=True)
        known = {each.name: each for each in self.neighbours()}
        if self.plan.roster_signer is not None:
            if peer.fingerprint not in {each.fingerprint for each in known.values()}:
                raise DirectoryError(
                    f"the roster of this node does not make {peer.name} its neighbour. The plan's "
                    "roster signer adds it with `walklearn node roster add`, or joins the two with "
                    "--edge; `walklearn node join` takes the new roster."
                )
            return peer
        if peer.name in known and known[peer.name].fingerprint != peer.fingerprint:
            raise DirectoryError(
                f"there is a neighbour {peer.name!r} with another key. If its node was made anew, "
                f"remove the old one first: walklearn node peer {self.path} --remove {peer.name}"
            )
        if len(known) >= self.plan.nodes - 1 and peer.name not in known:
            raise DirectoryError(
                f"the plan has {self.plan.nodes} nodes, so this one has at most "
                f"{self.plan.nodes - 1} neighbours, and it has them all."
            )
        atomic_write(self._peer_file(peer.name), (peer.encode() + "\n").encode())
        return peer

    def remove_peer(self, name: str) -> None:
        """Forget a neighbour for good, even if the roster makes it one."""
        known = {peer.name for peer in self.neighbours()}
        if name not in known:
            names = ", ".join(sorted(known)) or "none"
            raise DirectoryError(f"there is no neighbour {name!r}; known: {names}.")
        if self.plan.roster_signer is not None:
            atomic_write(self._removed_file(name), b"")
        else:
            self._peer_file(name).unlink(missing_ok=True)
            sync_directory(self.path / "peers")  # or a power cut brings the neighbour back

    def _removed_file(self, name: str) -> Path:
        return self.path / "peers" / f"{name}.removed"

    def _peer_file(self, name: str) -> Path:
        check_name(name)
        return self.path / "peers" / f"{name}.invite"


@contextlib.contextmanager
def new_directory(target: Path) -> Iterator[Path]:
    """Yield a private temporary directory that is renamed to the target if the block succeeds."""
    exists = DirectoryError(
        f"{target} exists. A node is made once: its release must not be drawn again. Choose "
        "another place, or remove it if it never ran."
    )
    if target.exists() or target.is_symlink():
        raise exists
    try:
        with atomic_directory(target, mode=0o700) as fresh:
            yield fresh
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY):  # another process was faster
            raise exists from None
        if error.errno != errno.ENOSPC or target.exists():
            raise
        raise DirectoryError(
            f"{target} was not made: the disk is full. Make room and make it again."
        ) from None


def write_parts(
    fresh: Path, settings: Settings, plan_text: str, identity: Identity, rows: NodeRows
) -> None:
    """Write all of a new node's files but the store."""
    parts = {
        "key.pem": identity.key,
        "certificate.pem": identity.certificate,
        "plan.toml": plan_text.encode(),
        "rows.npz": rows.to_bytes(),
        "node.json": (json.dumps(asdict(settings), indent=2) + "\n").encode(),
    }
    for name, content in parts.items():
        atomic_write(fresh / name, content, private=True)
    (fresh / "peers").mkdir(mode=0o700)
