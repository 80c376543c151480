"""With a roster, lines and ends count only if a participant has signed them."""

from __future__ import annotations

import asyncio
import contextlib
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.node.made_tokens import changed, made_token
from tests.node.small_network import in_process, log_lines
from tests.node.test_hostile_input import Enemy
from tests.node.test_joining import make, write_down
from tests.running import until
from walklearn.node.process.logs import Log
from walklearn.node.process.seals import Seals
from walklearn.node.protocol.messages import (
    Announcement,
    Greeting,
    Outcome,
    Progress,
    Receipt,
    decode_greeting,
    encode_greeting,
)
from walklearn.node.protocol.record import Place, Record
from walklearn.node.protocol.tokens import Line, Mark, Token, encode_token
from walklearn.node.wire.identity import Identity, Invite
from walklearn.node.wire.roster import Roster
from walklearn.node.wire.session import Refused

SIGNER, ALICE, BOB, CAROL, STRANGER = (Identity.create() for _ in range(5))
ROSTER = (
    Roster.new(SIGNER)
    .with_participants(
        Invite("alice", "192.0.2.7:7447", ALICE.public_key),
        Invite("bob", "", BOB.public_key),
        Invite("carol", "", CAROL.public_key),
    )
    .signed(SIGNER)
)
PLAN = "0" * 64


def seals_of(identity: Identity, roster: Roster | None = ROSTER) -> Seals:
    return Seals(identity, PLAN, lambda: roster, Log("test", io.StringIO()))


def line_of(identity: Identity, updates: int = 3) -> Line:
    return Line(updates, 2, identity.fingerprint, "c" * 32)


def a_token(identity: Identity, final: bool = False) -> Token:
    ended_by = identity.fingerprint if final else ""
    vector = np.zeros(2)
    return made_token(line_of(identity), 1, 9, vector, vector, 1.0, 9.0, final, ended_by=ended_by)


@pytest.mark.parametrize("final", [False, True])
def test_what_a_participant_signed_is_taken_whoever_brings_it(final: bool) -> None:
    sent = seals_of(ALICE).on_token(a_token(ALICE, final))
    passed_on, bob = seals_of(BOB), seals_of(BOB)
    assert passed_on.refusal(sent) == ""
    again = passed_on.on_token(replace(sent, seal=b"", end_seal=b""))  # it knows the seals now
    assert bob.refusal(again) == ""
    assert again.digest == sent.digest == a_token(ALICE, final).digest


def test_what_nobody_in_the_roster_signed_is_not() -> None:
    bob, honest = seals_of(BOB), seals_of(ALICE).on_token(a_token(ALICE, final=True))
    stranger = seals_of(STRANGER).on_token(a_token(STRANGER, final=True))
    assert "signed its generation" in bob.refusal(stranger)
    assert "signed its generation" in bob.refusal(a_token(ALICE))  # unsigned
    assert "signed its generation" in bob.refusal(replace(a_token(ALICE), seal=stranger.seal))
    assert "signed its end" in bob.refusal(replace(honest, end_seal=b""))
    assert "signed its end" in bob.refusal(changed(honest, model=np.ones(2)))
    other_plan = Seals(ALICE, "1" * 64, lambda: ROSTER, Log("test", io.StringIO()))
    assert "signed its generation" in seals_of(BOB).refusal(other_plan.on_token(a_token(ALICE)))
    assert seals_of(BOB, None).refusal(stranger) == ""  # without a roster neighbours are trusted


def logged(seals: Seals) -> list[dict[str, Any]]:
    stream = seals._log._stream
    assert isinstance(stream, io.StringIO)
    return log_lines(stream.getvalue())


def renewed(token: Token) -> Token:
    return replace(token, line=token.line._replace(updates=500))


def test_a_renewed_line_is_signed_by_who_renewed_it_and_logged_by_name() -> None:
    sent, bob, carol = seals_of(ALICE).on_token(a_token(ALICE)), seals_of(BOB), seals_of(CAROL)
    assert bob.refusal(sent) == ""
    passed_on = bob.on_token(renewed(sent))
    assert carol.refusal(passed_on) == ""
    events = [(line["event"], line["by"]) for line in logged(carol)]
    assert events == [("generation begun", "alice"), ("generation renewed", "bob")]
    told = Announcement(2, 1.0, True, passed_on.line)
    for greeting in (carol.on_greeting(Greeting("c", PLAN, told)),):  # it can tell it on
        assert seals_of(ALICE).checked_greeting(greeting) == (greeting, False)
    assert carol.on_token(passed_on).seal == passed_on.seal  # and does not sign for another


def test_progress_is_told_of_a_signed_line_only() -> None:
    """Of a renewed line it is heard before its token; else anyone could tell of a later renewal."""
    sent, bob, carol = seals_of(ALICE).on_token(a_token(ALICE)), seals_of(BOB), seals_of(CAROL)
    assert bob.refusal(sent) == carol.refusal(sent) == ""
    line = bob.on_token(renewed(sent)).line
    told = Announcement(2, 1.0, True, sent.line, progress=Progress(Mark(line, 4), 510, 0.0))
    greeting = bob.on_greeting(Greeting("b", PLAN, told))
    assert carol.checked_greeting(greeting) == (greeting, False)
    again = carol.on_greeting(Greeting("c", PLAN, told))  # and is told on
    assert seals_of(ALICE).checked_greeting(again) == (again, False)
    later = replace(told, progress=Progress(Mark(line._replace(updates=900), 4), 910, 0.0))
    for lie in (replace(greeting, announcement=later), Greeting("c", PLAN, later)):
        bare, wrong = carol.checked_greeting(lie)
        assert wrong
        assert bare.announcement == replace(later, progress=None)


def test_a_renewal_that_nobody_signed_is_refused() -> None:
    sent, bob, eve = seals_of(ALICE).on_token(a_token(ALICE)), seals_of(BOB), seals_of(STRANGER)
    assert bob.refusal(sent) == ""
    assert eve.refusal(sent) == ""
    for forged in (renewed(sent), eve.on_token(renewed(sent)), replace(renewed(sent), seal=b"")):
        assert "signed its generation" in bob.refusal(forged)
        told = Announcement(2, 1.0, True, forged.line, None, Progress(Mark(forged.line, 4), 9, 0.0))
        bare, wrong = bob.checked_greeting(Greeting("e", PLAN, told, newest_seal=forged.seal))
        assert wrong
        assert bare.announcement == replace(told, newest=None, progress=None)
        receipt = Receipt(Outcome.OBSOLETE, newest=forged.line, newest_seal=forged.seal)
        assert not bob.checks_receipt(receipt)
    mixed = seals_of(ALICE).on_token(replace(a_token(ALICE), line=line_of(ALICE, 500)))
    assert bob.refusal(mixed) == ""  # who began it may renew it too
    assert ("generation renewed", "alice") in [(line["event"], line["by"]) for line in logged(bob)]


@pytest.mark.parametrize("final", [False, True])
def test_what_was_signed_holds_when_who_signed_it_is_struck_out(final: bool) -> None:
    """All others are on the walk that it began; with the newer roster they must not be split."""
    sent, newer = seals_of(ALICE).on_token(a_token(ALICE, final)), ROSTER.without("alice")
    read = Roster.decode(newer.signed(SIGNER).encode(), SIGNER.fingerprint)
    assert ALICE.fingerprint not in read.by_fingerprint
    assert seals_of(BOB, read).refusal(sent) == ""
    other_key = ROSTER.with_participants(Invite("alice", "h:1", STRANGER.public_key))
    assert seals_of(BOB, other_key).refusal(sent) == ""


def test_the_disk_keeps_the_seals_of_what_it_tells_of() -> None:
    alice, bob, line = seals_of(ALICE), seals_of(BOB), line_of(ALICE)
    told = Announcement(2, 1.0, True, line)
    bob.checked_greeting(alice.on_greeting(Greeting("alice", PLAN, told)))
    kept = bob.known(line, None)
    again = Seals(BOB, PLAN, lambda: ROSTER, Log("test", io.StringIO()), kept)
    receipt = Receipt(Outcome.OBSOLETE, newest=line)
    assert seals_of(CAROL).checks_receipt(again.on_receipt(receipt))


def test_lines_in_greetings_and_receipts_are_signed_too() -> None:
    alice, line = seals_of(ALICE), line_of(ALICE)
    told = Announcement(2, 1.0, True, line, line, Progress(Mark(line, 4), 9, 0.0))
    greeting = alice.on_greeting(Greeting("alice", PLAN, told))
    assert seals_of(BOB).checked_greeting(greeting) == (greeting, False)
    bare, wrong = seals_of(BOB).checked_greeting(Greeting("alice", PLAN, told))
    assert wrong
    assert bare.announcement == Announcement(2, 1.0, True)
    receipt = Receipt(Outcome.OBSOLETE, newest=line)
    assert seals_of(BOB).checks_receipt(alice.on_receipt(receipt))
    assert not seals_of(BOB).checks_receipt(receipt)
    only_final = replace(told, newest=None, progress=None)
    assert seals_of(BOB).checked_greeting(Greeting("alice", PLAN, only_final))[1]


def test_what_was_taken_is_not_taken_back_for_want_of_a_seal() -> None:
    """Only that there is a newer line is worth a signature: else there would be two tokens."""
    accepted = Receipt(Outcome.ACCEPTED, newest=line_of(STRANGER))
    assert seals_of(BOB).checks_receipt(accepted)
    assert not seals_of(BOB).checks_receipt(replace(accepted, outcome=Outcome.OBSOLETE))


def test_a_line_that_is_renewed_here_is_on_the_disk_with_its_seal(tmp_path: Path) -> None:
    """A crash between the commit and the handover leaves nothing that nobody can prove."""
    one, other = make(tmp_path, 2)
    content = write_down(tmp_path, one, other)
    for each in (one, other):
        each.join(content)
    friend = Seals(other.identity, one.plan.digest, lambda: one.roster, Log("test", io.StringIO()))

    async def renew() -> tuple[Line, dict[Line, bytes]]:
        node, _ = in_process(one)
        async with node.started():
            runtime = node._runtime
            arrived = friend.on_token(a_token(other.identity))
            assert runtime._seals is not None
            assert runtime._seals.refusal(arrived) == ""
            token = renewed(arrived)
            leaving = Record(token.mark, token, Place.LEAVING, other.identity.fingerprint)
            runtime._keep_seals(leaving)
            return token.line, dict(runtime._store.seals)

    line, seals = asyncio.run(renew())
    assert friend.checks_receipt(Receipt(Outcome.OBSOLETE, newest=line, newest_seal=seals[line]))


def test_a_line_that_was_only_heard_of_is_signed_for_after_a_restart_too(tmp_path: Path) -> None:
    one, other = make(tmp_path, 2)
    content = write_down(tmp_path, one, other)
    for each in (one, other):
        each.join(content)
    line = Line(9, 2, other.identity.fingerprint, "c" * 32)
    log = Log("test", io.StringIO())
    friend = Seals(other.identity, one.plan.digest, lambda: one.roster, log)

    async def meet(newest: Line | None) -> Greeting:
        enemy, (node, _) = Enemy(other.identity, one), in_process(one)
        told = Announcement(1, 1.0, True, newest)
        greeting = Greeting("node1", one.plan.digest, told, one.plan.canonical)
        async with node.started():
            answer = await enemy.say("Hello", encode_greeting(friend.on_greeting(greeting)))
            await enemy.transport.close(0.0)
        return decode_greeting(answer)

    assert asyncio.run(meet(line)).announcement.newest == line
    again = asyncio.run(meet(None))
    assert again.announcement.newest == line
    checked = Seals(other.identity, one.plan.digest, lambda: one.roster, log)
    assert checked.checked_greeting(again) == (again, False)


async def test_a_neighbour_that_forges_a_line_or_an_end_does_not_disturb_the_walk(
    tmp_path: Path,
) -> None:
    """Its own lines it may begin: it is a participant. So it forges one of nobody's."""
    nodes = make(tmp_path, 4, updates=1_500)
    content = write_down(tmp_path, *nodes)
    for each in nodes:
        each.join(content)
    liar = nodes[-1]
    name = liar.invite.name
    target = next(each for each in nodes[:-1] if name in {near.name for near in each.neighbours()})

    async def attack(enemy: Enemy) -> None:
        line = Line(9, 2, "f" * 64, "c" * 32)
        told = Announcement(1, 1.0, True, newest=line)
        greeting = Greeting("node3", enemy.plan.digest, told, enemy.plan.canonical)
        under_way, vector = None, np.zeros(2)
        while under_way is None:
            answer = decode_greeting(await enemy.say("Hello", encode_greeting(greeting)))
            under_way = answer.announcement.newest
        forged = made_token(line, 1, 50, vector, vector, 1.0, 50.0)
        renewed = under_way._replace(updates=1_400)
        renewal = changed(forged, updates=1_450, line=renewed, seal=answer.newest_seal)
        end = changed(forged, updates=1_500, final=True, ended_by=liar.identity.fingerprint)
        for method, token in (("Handover", forged), ("Handover", renewal), ("Final", end)):
            with pytest.raises(Refused) as refusal:
                await enemy.say(method, encode_token(token))
            assert refusal.value.reason == "not signed"

    def honest_links_work(node: Any) -> bool:
        """Who is whose neighbour hangs on the keys: the liar may be everybody's."""
        links = node.status()["neighbours"]
        return all(each["usable"] for each in links if each["name"] != liar.invite.name)

    running, logs = zip(*(in_process(each) for each in nodes[:-1]), strict=True)
    async with contextlib.AsyncExitStack() as stack:
        for each in running:
            await stack.enter_async_context(each.started())
        await until(lambda: all(map(honest_links_work, running)))
        await running[0].start_walk()
        enemy = Enemy(liar.identity, target)
        await attack(enemy)
        await until(lambda: all(each.is_finished for each in running))
        await enemy.transport.close(0.0)
        assert {each.final.line.counter for each in running if each.final} == {1}
    events = [line for log in logs for line in log_lines(log.getvalue())]
    assert ("generation begun", "node0") in {(each["event"], each.get("by")) for each in events}
    assert "generation renewed" in {each["event"] for each in events}
    assert "end declared" in {each["event"] for each in events}
    assert ("generation not signed", "node3") in {(e["event"], e.get("neighbour")) for e in events}


def take_lines_unsigned(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Seals, "_knows_line", lambda seals, line, seal: True)


def take_renewals_unsigned(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Seals, "_knows_line", Seals._knows_beginning)


def sign_for_others(patch: pytest.MonkeyPatch) -> None:
    """Who passes a line on vouches for it, whoever renewed it."""
    of_line = Seals._of_line

    def signed(seals: Seals, line: Line, renewed_here: bool = False) -> bytes:
        seals._lines.pop(line, None)
        return of_line(seals, line, renewed_here)

    patch.setattr(Seals, "_of_line", signed)


def take_ends_unsigned(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Seals, "_knows_end", lambda seals, token: True)


def forget_who_is_struck_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Roster, "_signers", property(lambda roster: roster.by_fingerprint))


def keep_no_seals(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Seals, "known", lambda seals, *lines: {})


@pytest.mark.parametrize(
    ("broken", "notices"),
    [
        (take_lines_unsigned, test_what_nobody_in_the_roster_signed_is_not),
        (take_renewals_unsigned, test_a_renewal_that_nobody_signed_is_refused),
        (take_renewals_unsigned, test_progress_is_told_of_a_signed_line_only),
        (sign_for_others, test_a_renewed_line_is_signed_by_who_renewed_it_and_logged_by_name),
        (take_ends_unsigned, test_what_nobody_in_the_roster_signed_is_not),
        (
            forget_who_is_struck_out,
            lambda: test_what_was_signed_holds_when_who_signed_it_is_struck_out(False),
        ),
        (keep_no_seals, test_the_disk_keeps_the_seals_of_what_it_tells_of),
    ],
    ids=lambda it: getattr(it, "__name__", ""),
)
def test_a_rule_of_seals_that_is_broken_on_purpose_is_noticed(
    broken: Callable[[pytest.MonkeyPatch], None],
    notices: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception, KeyError)):
        notices()
