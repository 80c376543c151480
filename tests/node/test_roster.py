"""The roster: what the roster signer signs, who may change it, and whose neighbours it makes."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.running import invoke
from walklearn.node.disk.roster_signer import change_roster, key_file, new_roster
from walklearn.node.wire.identity import Identity, IdentityError, Invite
from walklearn.node.wire.roster import Roster, RosterError

SIGNER, ALICE, BOB, CAROL = (Identity.create(n) for n in ("signer", "alice", "bob", "carol"))
PEOPLE = [
    Invite("alice", "192.0.2.1:7447", ALICE.public_key),
    Invite("bob", "", BOB.public_key),
    Invite("carol", "", CAROL.public_key),
]
ROSTER = Roster.new(SIGNER).with_participants(*PEOPLE).signed(SIGNER)


@cache
def some_key(number: int) -> bytes:
    """Not all of them are points of the curve, which the rule of neighbours does not look at."""
    return b"\x02" + number.to_bytes(32, "big")


@pytest.mark.parametrize("damage", ["half of it", "a byte", "no certificate", "garbage", "empty"])
def test_a_damaged_signers_key_is_told_with_its_name(tmp_path: Path, damage: str) -> None:
    new_roster(tmp_path / "roster")
    key = key_file(tmp_path / "roster")
    whole = key.read_bytes()
    key.write_bytes({
        "half of it": whole[: len(whole) // 2],
        "a byte": whole[:60] + bytes([whole[60] ^ 1]) + whole[61:],
        "no certificate": whole.partition(b"-----BEGIN CERTIFICATE")[0],
        "garbage": bytes(range(256)),
        "empty": b"",
    }[damage])  # fmt: skip
    result = invoke("node", "roster", "add", tmp_path / "roster", PEOPLE[0].encode())
    assert result.exit_code == 2
    assert str(key) in result.output


def test_a_signers_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    new_roster(tmp_path / "roster")
    key = key_file(tmp_path / "roster")
    key.chmod(0o644)
    with pytest.raises(RosterError, match=r"key.*644"):
        change_roster(tmp_path / "roster", lambda roster: roster)
    key.chmod(0o600)
    assert change_roster(tmp_path / "roster", lambda roster: roster).number == 0


def test_a_roster_survives_its_file_and_says_who_signed_what() -> None:
    read = Roster.decode(ROSTER.encode(), SIGNER.fingerprint)
    assert read == ROSTER
    assert read.by_fingerprint[BOB.fingerprint].name == "bob"
    signature = BOB.sign(b"line 5")
    assert read.verify(BOB.fingerprint, b"line 5", signature)
    assert not read.verify(ALICE.fingerprint, b"line 5", signature)
    assert not read.verify(BOB.fingerprint, b"line 6", signature)
    assert not read.verify(SIGNER.fingerprint, b"line 5", SIGNER.sign(b"line 5"))  # no participant
    assert not read.verify(BOB.fingerprint, b"line 5", b"")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("number", 7),
        ("seed", "00"),
        ("degree", 6),
        ("edges", [["alice", "bob"]]),
        ("participants", []),
        (
            "former",
            [{"name": "eve", "key": json.loads(ROSTER.encode())["roster_signer"], "address": ""}],
        ),
        ("signature", ""),
    ],
)
def test_what_the_signer_did_not_sign_is_refused(key: str, value: object) -> None:
    changed = {**json.loads(ROSTER.encode()), key: value}
    with pytest.raises(RosterError, match="changed"):
        Roster.decode(json.dumps(changed).encode(), SIGNER.fingerprint)


def test_another_signer_is_refused() -> None:
    forged = replace(ROSTER, signer=ALICE.public_key).signed(ALICE)
    with pytest.raises(RosterError, match=f"roster signer {SIGNER.fingerprint[:16]}"):
        Roster.decode(forged.encode(), SIGNER.fingerprint)
    with pytest.raises(RosterError, match="this key"):
        ROSTER.signed(ALICE)


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_anything_else_is_refused(content: bytes) -> None:
    with pytest.raises(IdentityError):
        Roster.decode(content, SIGNER.fingerprint)


WILD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@settings(deadline=None)
@given(st.sampled_from(sorted(json.loads(ROSTER.encode()))), WILD)
def test_the_right_keys_with_wild_values_are_refused(key: str, value: object) -> None:
    """In Python's JSON an infinity and a NaN are numbers as well."""
    plain = json.loads(ROSTER.encode())
    assume(value != plain[key])
    with pytest.raises(IdentityError):
        Roster.decode(json.dumps({**plain, key: value}).encode(), SIGNER.fingerprint)


@pytest.mark.parametrize("key", ["number", "degree"])
@pytest.mark.parametrize("value", ["1e999", "-1e999", "NaN", "-1", "1.0", "true", '"1"', "null"])
def test_a_number_in_a_roster_is_a_whole_one(key: str, value: str) -> None:
    text = json.dumps({**json.loads(ROSTER.encode()), key: "HERE"}).replace('"HERE"', value)
    with pytest.raises(RosterError, match="damaged"):
        Roster.decode(text.encode(), SIGNER.fingerprint)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.integers(0, 60), st.sampled_from([2, 4, 6]))
def test_the_rule_joins_everybody_and_never_two_that_cannot_be_dialled(
    dialled: int, others: int, degree: int
) -> None:
    people = [
        Invite(f"n{number}", f"h{number}:1" if number < dialled else "", some_key(number))
        for number in range(dialled + others)
    ]
    roster = Roster(SIGNER.public_key, 1, "seed", degree, tuple(people))
    assert roster.parts == 1
    address = {each.name: each.address for each in people}
    assert all(address[one] or address[other] for one, other in roster.edges)
    if not others:  # then no degree is larger; smaller only where rings share an edge
        assert max(map(len, map(roster.neighbours, roster.by_fingerprint))) <= degree


def test_a_newer_roster_changes_few_neighbours() -> None:
    people = [Invite(f"n{n}", f"h{n}:1", some_key(n)) for n in range(100)]
    roster = Roster(
        SIGNER.public_key, 1, "seed", 4, tuple(people)
    )  # of some seeds rings share an edge
    more = roster.with_participants(Invite("new", "new:1", some_key(1000)))
    assert len(set(roster.edges) - set(more.edges)) == 2  # one of each ring
    moved = roster.with_participants(replace(people[0], address="elsewhere:1"))
    assert moved.edges == roster.edges
    assert moved.number == roster.number + 1


def test_who_is_struck_out_has_no_neighbours_and_signed_what_it_signed() -> None:
    signature = BOB.sign(b"line 5")
    moved = ROSTER.with_participants(Invite("carol", "h:1", SIGNER.public_key))  # another key now
    assert [each.name for each in moved.former] == ["carol"]
    struck = moved.without("bob")
    read = Roster.decode(struck.signed(SIGNER).encode(), SIGNER.fingerprint)
    assert [(each.name, each.address) for each in read.former] == [("bob", ""), ("carol", "")]
    assert read.verify(BOB.fingerprint, b"line 5", signature)
    assert read.name_of(BOB.fingerprint) == "bob"
    with pytest.raises(RosterError, match="this node"):
        read.neighbours(BOB.fingerprint)
    back = read.with_participants(PEOPLE[1])
    assert [each.name for each in back.former] == ["carol"]


def test_rosters_that_cannot_be() -> None:
    for message, make in {
        "same key": lambda: ROSTER.with_participants(Invite("eve", "h:1", BOB.public_key)),
        "bob nor carol": lambda: ROSTER.with_edges(("carol", "bob")),
        "nobody": lambda: ROSTER.with_edges(("alice", "nobody")),
        "no participant nobody": lambda: ROSTER.without("nobody"),
        "an even number": lambda: Roster.new(SIGNER, 3),
        "33 bytes": lambda: Invite("eve", "", b"short"),
    }.items():
        with pytest.raises(IdentityError, match=message):
            make()


def test_the_signer_uses_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "hospitals.roster"

    def roster(*arguments: object) -> str:
        done = invoke("node", "roster", *arguments)
        return done.output if done.exit_code == 0 else f"code {done.exit_code}: {done.output}"

    line = roster("new", file).splitlines()[-1]
    assert (tmp_path / "hospitals.roster.key").stat().st_mode & 0o077 == 0
    assert "code 2" in roster("new", file)
    invites = [Invite(name, f"{name}:1", Identity.create().public_key).encode()
               for name in ("alice", "bob", "carol")]  # fmt: skip
    assert "roster 1, 3 participants" in roster("add", file, *invites)
    page = roster("add", file, "--edge", "alice", "bob")
    assert "2 components" in page
    assert "components" not in roster("add", file, "--edge", "alice", "carol")
    assert "2 participants" in roster("add", file, "--remove", "carol")
    assert "nothing to change" in roster("add", file)
    assert f'roster_signer = "{Roster.signer_of(file.read_bytes())}"' == line
    (tmp_path / "hospitals.roster.key").unlink()
    assert "hospitals.roster.key" in roster("add", file, *invites)
    assert roster("show", file).startswith("roster 4, 2 participants")
    assert ": carol" in roster("show", file)
    assert json.loads(roster("show", file, "--json"))["participants"][0]["neighbours"] == ["bob"]
