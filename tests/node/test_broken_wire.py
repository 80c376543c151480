"""The wire and the roster with one rule broken at a time: some test of theirs must notice."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.node import test_joining, test_roster, test_transport
from walklearn.node.disk.directory import NodeDirectory
from walklearn.node.wire import door, roster
from walklearn.node.wire.door import Door
from walklearn.node.wire.handshake import welcome
from walklearn.node.wire.identity import Invite
from walklearn.node.wire.links import Link
from walklearn.node.wire.session import Session, Undelivered
from walklearn.node.wire.transport import Transport


def only_who_dialled_calls(patch: pytest.MonkeyPatch, _: Path) -> None:
    async def let_in(here: Transport, wire: socket.socket, certificate: bytes, link: Link) -> None:
        session = link.new_session(certificate)
        await welcome(here._identity, wire, certificate, session)
        session.say_ready()

    patch.setattr(Transport, "_welcome", let_in)
    asyncio.run(test_transport.test_either_end_may_dial_and_both_then_call())


def two_sessions_remain(patch: pytest.MonkeyPatch, _: Path) -> None:
    patch.setattr(Session, "retire", lambda _: None)
    asyncio.run(test_transport.test_two_that_dial_at_once_end_with_one_session(patch))


def a_neighbour_has_as_many_sessions_as_it_likes(patch: pytest.MonkeyPatch, _: Path) -> None:
    patch.setattr(Session, "retire", lambda _: None)
    patch.setattr(Session, "abort", lambda _: None)
    few = test_transport.test_a_neighbour_has_few_sessions_however_often_it_dials
    asyncio.run(few("alice", "bob"))


def an_address_takes_all_the_room(patch: pytest.MonkeyPatch, _: Path) -> None:
    patch.setattr(door, "MAX_OF_ADDRESS", 10**6)
    silent = test_transport.test_hundreds_of_silent_connections_do_not_keep_a_neighbour_out
    silent("127.0.0.2", claims=False)


def the_room_has_no_end(patch: pytest.MonkeyPatch, _: Path) -> None:
    patch.setattr(door, "MAX_WAITING", 10**6)
    silent = test_transport.test_hundreds_of_silent_connections_do_not_keep_a_neighbour_out
    silent("127.0.0.1", claims=False)


def known_addresses_count_no_more_than_others(patch: pytest.MonkeyPatch, _: Path) -> None:
    patch.setattr(Door, "known", property(lambda _: set(), lambda *_: None), raising=False)
    test_transport.test_who_claims_to_be_a_neighbour_elsewhere_does_not_drive_it_out(60)


def one_address_claims_as_often_as_it_likes(patch: pytest.MonkeyPatch, _: Path) -> None:
    patch.setattr(door, "MAX_PROVING", 10**6)
    test_transport.test_who_claims_to_be_a_neighbour_elsewhere_does_not_drive_it_out(1)


def any_signature_is_believed(patch: pytest.MonkeyPatch, _: Path) -> None:
    patch.setattr(roster, "verified", lambda *_: True)
    test_roster.test_what_the_signer_did_not_sign_is_refused("number", 7)


def any_signer_is_believed(patch: pytest.MonkeyPatch, _: Path) -> None:
    anybody = type("Anybody", (str,), {"__ne__": lambda *_: False, "__hash__": str.__hash__})
    patch.setattr(roster, "fingerprint_of_key", lambda key: anybody(key.hex()))
    test_roster.test_another_signer_is_refused()


def an_older_roster_takes_the_place_of_a_newer(patch: pytest.MonkeyPatch, folder: Path) -> None:
    patch.setattr(NodeDirectory, "roster", property(lambda _: None))
    test_joining.test_an_older_roster_does_not_take_the_place_of_a_newer(folder)


def whoever_stands_side_by_side_is_joined(patch: pytest.MonkeyPatch, _: Path) -> None:
    def ring(order: list[Invite]) -> set[tuple[str, str]]:
        names = [each.name for each in order]
        pairs = zip(names, names[1:] + names[:1], strict=True)
        return {(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]}

    patch.setattr(roster, "_ring", ring)
    test_roster.test_the_rule_joins_everybody_and_never_two_that_cannot_be_dialled()


BROKEN: list[Callable[[pytest.MonkeyPatch, Path], None]] = [
    only_who_dialled_calls,
    two_sessions_remain,
    a_neighbour_has_as_many_sessions_as_it_likes,
    an_address_takes_all_the_room,
    the_room_has_no_end,
    known_addresses_count_no_more_than_others,
    one_address_claims_as_often_as_it_likes,
    any_signature_is_believed,
    any_signer_is_believed,
    an_older_roster_takes_the_place_of_a_newer,
    whoever_stands_side_by_side_is_joined,
]


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.__name__)
def test_a_broken_rule_is_found_out(
    broken: Callable[[pytest.MonkeyPatch, Path], None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Each breaks one rule, then runs the test of that rule, which must fail."""
    until = test_transport.until
    monkeypatch.setattr(test_transport, "until", lambda condition: until(condition, 1.0))
    with pytest.raises((AssertionError, TimeoutError, Undelivered, pytest.fail.Exception)):
        broken(monkeypatch, tmp_path)
    gc.collect()  # a test that failed leaves connections open
