"""The roster: who takes part, by which key and at which address, signed by the roster signer.

The plan names the roster signer by its fingerprint. So everybody who has the plan can check a
roster, whoever brought it; and everybody who has the roster can check what a participant signed,
and knows its own neighbours, without a paste for each edge. A newer roster of the same signer has a
larger number and replaces the older one. Who is struck out takes part no more, and its key stays in
the roster: what it signed while it took part, a walk that all others are on, must not fall with it.

>>> signer, alice, bob = (Identity.create(name) for name in ("signer", "alice", "bob"))
>>> roster = Roster.new(signer)
>>> roster = roster.with_participants(Invite("alice", "192.0.2.7:7447", alice.public_key),
...                               Invite("bob", "", bob.public_key)).signed(signer)
>>> read = Roster.decode(roster.encode(), signer.fingerprint)
>>> [each.name for each in read.neighbours(alice.fingerprint)]
['bob']
>>> read.verify(bob.fingerprint, b"a line", bob.sign(b"a line"))
True
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, TypeVar

from walklearn.node.wire.identity import (
    Identity,
    IdentityError,
    Invite,
    fingerprint_of_key,
    from_text,
    no_address,
    to_text,
    verified,
)

FORMAT, VERSION = "walklearn roster", 2
LARGEST_ROSTER = 1_000_000  # bytes: some five thousand participants
DEGREE = 4

T = TypeVar("T")


class RosterError(IdentityError):
    """A roster that cannot be used, and why."""


@dataclass(frozen=True)
class Roster:
    """The participants of a network, and who is whose neighbour.

    Parameters
    ----------
    signer
        The public key of who signs the roster.
    number
        Of two rosters of one signer the one with the larger number counts.
    seed, degree
        What the rule of `edges` draws the neighbours from.
    participants
        The participants by name, as their invites have them.
    given_edges
        Pairs of names instead of that rule.
    former
        Who took part once, by a key that does so no more; without addresses.
    signature
        The roster signer's signature; empty before it is signed.

    Examples
    --------
    >>> signer, alice = Identity.create("signer"), Identity.create("alice")
    >>> invite = Invite("alice", "192.0.2.7:7447", alice.public_key)
    >>> [each.name for each in Roster.new(signer).with_participants(invite).participants]
    ['alice']
    """

    signer: bytes
    number: int
    seed: str
    degree: int = DEGREE
    participants: tuple[Invite, ...] = ()
    given_edges: tuple[tuple[str, str], ...] = ()
    former: tuple[Invite, ...] = ()
    signature: bytes = b""

    @classmethod
    def new(cls, signer: Identity, degree: int = DEGREE) -> Self:
        """Make an empty roster of this roster signer, signed.

        Parameters
        ----------
        signer
            Who keeps the roster, with the private key.
        degree
            How many neighbours the rule gives a participant: an even number of at least 2.

        Returns
        -------
        Roster
            With the number 0.
        """
        if degree < 2 or degree % 2:
            raise RosterError(f"the degree is an even number of at least 2, it is {degree}.")
        return cls(signer.public_key, 0, secrets.token_hex(16), degree).signed(signer)

    @cached_property
    def by_fingerprint(self) -> dict[str, Invite]:
        """The participants by what they are known by."""
        return {each.fingerprint: each for each in self.participants}

    def verify(self, fingerprint: str, message: bytes, signature: bytes) -> bool:
        """True if a participant, or a former one, signed a message.

        Parameters
        ----------
        fingerprint
            Who is said to have signed it.
        message
            What was signed.
        signature
            What `Identity.sign` gave.

        Returns
        -------
        bool
            False also for who is not in the roster.
        """
        who = self._signers.get(fingerprint)
        return who is not None and verified(who.public_key, message, signature)

    def name_of(self, fingerprint: str) -> str:
        """The name of a participant, or a former one."""
        return self._signers[fingerprint].name

    @cached_property
    def _signers(self) -> dict[str, Invite]:
        return {each.fingerprint: each for each in (*self.former, *self.participants)}

    def with_participants(self, *more: Invite) -> Self:
        """The next roster, where these have joined, or have another address or key now."""
        names = {each.name: each for each in (*self.participants, *more)}
        return self._next(names.values(), self.given_edges)

    def without(self, *names: str) -> Self:
        """The next roster, where these take part no more."""
        unknown = set(names) - {each.name for each in self.participants}
        if unknown:
            raise RosterError(f"the roster has no participant {', '.join(sorted(unknown))}.")
        left = [each for each in self.participants if each.name not in names]
        edges = [each for each in self.given_edges if not set(each) & set(names)]
        return self._next(left, edges)

    def with_edges(self, *more: tuple[str, str]) -> Self:
        """The next roster, with these edges too; once edges are given the rule counts no more."""
        return self._next(self.participants, {*self.given_edges, *(_pair(*pair) for pair in more)})

    def _next(self, who: Iterable[Invite], edges: Iterable[tuple[str, str]]) -> Self:
        ordered = tuple(sorted(who, key=lambda each: each.name))
        keys = {each.public_key for each in ordered}
        past = {replace(each, address="") for each in self._signers.values()}
        former = sorted(past, key=lambda each: (each.name, each.public_key))
        return replace(
            self, number=self.number + 1, participants=ordered, given_edges=tuple(sorted(edges)),
            former=tuple(each for each in former if each.public_key not in keys), signature=b"",
        )._checked()  # fmt: skip

    def signed(self, signer: Identity) -> Self:
        """The same roster with the roster signer's signature."""
        if signer.public_key != self.signer:
            raise RosterError("this key is not the one of the roster signer.")
        return replace(self, signature=signer.sign(self._content))

    def neighbours(self, fingerprint: str) -> list[Invite]:
        """The neighbours of a participant.

        Parameters
        ----------
        fingerprint
            Whose; a `RosterError` is raised for who does not take part.

        Returns
        -------
        list of Invite
            In the order of the roster's participants.
        """
        if fingerprint not in self.by_fingerprint:
            raise RosterError(
                "this node is not in the roster: the roster signer adds it by its invite."
            )
        own = self.by_fingerprint[fingerprint].name
        others = {name for edge in self.edges if own in edge for name in edge} - {own}
        return [each for each in self.participants if each.name in others]

    @cached_property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Return all pairs of neighbours: the given edges, or those of this rule.

        The degree is twice the number of rings. In each ring the participants stand in the order
        of SHA-256(seed, number of the ring, fingerprint), and everybody joins the one before and
        the one after that have an address; those two are joined themselves unless exactly one
        without an address stands between them. So two without an address are never neighbours,
        the graph is connected, it is about as regular and as well mixed as a random regular
        one, and a newer roster changes no more than it must.
        """
        if self.given_edges:
            return self.given_edges
        found = set[tuple[str, str]]()
        for number in range(self.degree // 2):
            found |= _ring(sorted(self.participants, key=lambda each: self._place(number, each)))
        return tuple(sorted(found))

    def _place(self, ring: int, who: Invite) -> str:
        return hashlib.sha256(f"{self.seed} {ring} {who.fingerprint}".encode()).hexdigest()

    @cached_property
    def signer_fingerprint(self) -> str:
        """The fingerprint by which the plan names the roster signer."""
        return fingerprint_of_key(self.signer)

    def encode(self) -> bytes:
        """The roster as the bytes of its file."""
        content = {**self._plain, "signature": to_text(self.signature)}
        return (json.dumps(content, indent=1, ensure_ascii=True) + "\n").encode()

    @classmethod
    def decode(cls, content: bytes, signer: str) -> Self:
        """Read the roster in a file or message, if the roster signer signed it.

        Parameters
        ----------
        content
            What `encode` gave.
        signer
            The fingerprint of the roster signer, as the plan names it.

        Returns
        -------
        Roster
            A `RosterError` is raised if another one signed it, or it was changed or is damaged.
        """
        roster = cls._read(content)
        if roster.signer_fingerprint != signer:
            raise RosterError(
                f"the roster is signed by {roster.signer_fingerprint[:16]}…, and the plan names "
                f"the roster signer {signer[:16]}…"
            )
        if not verified(roster.signer, roster._content, roster.signature):
            raise RosterError(
                "the roster was changed after the roster signer signed it: get it again."
            )
        return roster._checked()

    @classmethod
    def _read(cls, content: bytes) -> Self:
        if len(content) > LARGEST_ROSTER:
            raise RosterError(f"the roster has {len(content)} bytes, at most are {LARGEST_ROSTER}.")
        try:
            plain = json.loads(content)
            if plain["format"] != FORMAT or plain["version"] != VERSION:
                raise RosterError(f"this walklearn reads {FORMAT!r} version {VERSION} only.")
            participants, former = (
                tuple(
                    Invite(str(each["name"]), str(each["address"]), from_text(each["key"]))
                    for each in _exactly(list, plain[key])
                )
                for key in ("participants", "former")
            )
            edges = _exactly(list, plain["edges"])
            number, degree = _exactly(int, plain["number"]), _exactly(int, plain["degree"])
            if number < 0 or degree < 0:
                raise ValueError("a number in it is negative")
            return cls(
                from_text(plain["roster_signer"]), number, str(plain["seed"]), degree, participants,
                tuple((str(one), str(other)) for one, other in edges), former,
                from_text(plain["signature"]),
            )  # fmt: skip
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            if isinstance(error, IdentityError):
                raise
            raise RosterError(
                "this is not a roster of participants, or damaged: get it again from the roster "
                "signer."
            ) from error

    @classmethod
    def signer_of(cls, content: bytes) -> str:
        """Fingerprint that the roster states as its signer's, for a reader without a plan."""
        return cls._read(content).signer_fingerprint

    @property
    def parts(self) -> int:
        """Return the number of components of the graph: 1 if the walk reaches everybody."""
        part = {each.name: each.name for each in self.participants}
        for one, other in self.edges:
            old, new = part[one], part[other]
            part = {name: new if which == old else which for name, which in part.items()}
        return len(set(part.values()))

    @property
    def _plain(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "version": VERSION,
            "roster_signer": to_text(self.signer),
            "number": self.number,
            "seed": self.seed,
            "degree": self.degree,
            "edges": [list(edge) for edge in self.given_edges],
            "participants": [_plain(each) for each in self.participants],
            "former": [_plain(each) for each in self.former],
        }

    @property
    def _content(self) -> bytes:
        """The bytes that the roster signer signs."""
        plain = json.dumps(self._plain, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return b"roster\n" + plain.encode()

    def _checked(self) -> Self:
        """Return the roster itself, if names and keys differ and everybody can be reached."""
        addresses = {each.name: each.address for each in self.participants}
        if len(addresses) < len(self.participants):
            raise RosterError("two participants have the same name.")
        if len(self.by_fingerprint) < len(self.participants):
            raise RosterError("two participants have the same key: one of them copied a node.")
        for edge in self.given_edges:
            if set(edge) - addresses.keys() or len(set(edge)) < 2:
                raise RosterError(f"an edge joins two participants, and {' '.join(edge)} does not.")
            if not any(addresses[name] for name in edge):
                raise RosterError(no_address(*edge))
        return self


def _plain(who: Invite) -> dict[str, str]:
    return {"name": who.name, "key": to_text(who.public_key), "address": who.address}


def _exactly(kind: type[T], value: Any) -> T:
    """Return the value if it is exactly of this kind; a subclass could bring surprises."""
    if type(value) is not kind:
        raise TypeError(f"{kind.__name__} is expected, not {type(value).__name__}")
    return value


def _ring(order: list[Invite]) -> set[tuple[str, str]]:
    """The edges of one ring; see `Roster.edges`."""
    dialled = [place for place, each in enumerate(order) if each.address]
    found = set[tuple[str, str]]()
    for start, end in zip(dialled, dialled[1:] + dialled[:1], strict=True):
        between = (end - start - 1) % len(order)
        for step in range(1, between + 1):
            other = order[(start + step) % len(order)].name
            found |= {_pair(order[start].name, other), _pair(other, order[end].name)}
        if between != 1 and start != end:
            found.add(_pair(order[start].name, order[end].name))
    return found


def _pair(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)
