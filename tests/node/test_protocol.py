"""What a node does with each event, one rule at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest

from tests.node.made_tokens import changed, made_token
from walklearn import graphs, walks
from walklearn.node.agreement.plan import Plan, TimeLimits
from walklearn.node.protocol import events, protocol
from walklearn.node.protocol.events import (
    Announced,
    Answered,
    Commit,
    FinalAnswered,
    FinalArrived,
    Greet,
    NeighbourDown,
    NeighbourUp,
    NewNeighbours,
    Note,
    NotSent,
    Remember,
    Reply,
    ResumeWalk,
    SendFinal,
    SendToken,
    Started,
    StartWalk,
    StopAsked,
    StoreFailed,
    Tick,
    TokenArrived,
    Unknown,
    Visit,
)
from walklearn.node.protocol.learner import Draws, Learner
from walklearn.node.protocol.messages import Announcement, Outcome, Progress, Receipt
from walklearn.node.protocol.protocol import handle, recover
from walklearn.node.protocol.record import Place, Record
from walklearn.node.protocol.state import Phase, State
from walklearn.node.protocol.tokens import Line, Mark, Token
from walklearn.privacy.model_noise import ModelNoise

PLAN = Plan.from_text("""
name = "test"
nodes = 3
features = ["x"]
target = "y"
loss = "squared"
domain = { ball = 10.0 }
step_size = { constant = 0.1 }
updates = 10
time_limits = { retry_after_seconds = 2.0, reclaim_after_seconds = 60.0 }
""")
LEARNER = Learner.of_plan(PLAN, [[1.0]], [1.0])
# Whose time limits are what the node measures.
ADAPTIVE = Learner.of_plan(replace(PLAN, time_limits=TimeLimits()), [[1.0]], [1.0])
ME, LEFT, RIGHT = "5" * 64, "1" * 64, "9" * 64
LINE = Line(1, 1, LEFT, "a" * 32)
GO_LEFT, GO_RIGHT = Draws(np.array([0.0])), Draws(np.array([0.5]))
ACCEPTED = Receipt(Outcome.ACCEPTED)


def told(degree: int = 2, reaches_you: bool = True, **more: Any) -> Announcement:
    return Announcement(degree, 1.0, reaches_you, **more)


def up(state: State, neighbour: str, **theirs: Any) -> State:
    """The link works both ways."""
    for _ in range(2):
        event = NeighbourUp(neighbour, state.announcement(neighbour), told(**theirs), 100.0)
        state, _ = handle(state, event)
    return state


def node(record: Record | None = None, learner: Learner = LEARNER) -> State:
    return up(up(recover(ME, learner, [RIGHT, LEFT], record), LEFT), RIGHT)


def token(hop: int = 4, updates: int = 3, line: Line = LINE, final: bool = False) -> Token:
    return made_token(line, hop, updates, np.zeros(1), np.zeros(1), 0.5, float(updates), final)


def arrive(state: State, offered: Token, draws: Draws = GO_RIGHT, sender: str = LEFT) -> Any:
    return handle(state, TokenArrived(sender, offered, draws, 100.0))


def handing_over() -> State:
    """It has a token of hop 5 on its way to the right, since the time 100."""
    state, _ = arrive(node(), token())
    assert state.phase is Phase.HANDING_OVER
    return state


def holding() -> State:
    state, _ = handle(handing_over(), NotSent(Mark(LINE, 5), 100.0))
    assert state.phase is Phase.HOLDING
    return up(state, RIGHT)


def sorts(effects: list[Any]) -> list[type[Any]]:
    return [type(effect) for effect in effects if not isinstance(effect, Note)]


def reply(effects: list[Any]) -> Receipt:
    (receipt,) = (effect.receipt for effect in effects if isinstance(effect, Reply))
    assert isinstance(receipt, Receipt)
    return receipt


def test_every_event_has_a_row_with_every_state() -> None:
    assert set(protocol._TABLE) == set(get_args(events.Event))
    assert all(set(row) == set(Phase) for row in protocol._TABLE.values())


# ── a visit ──────────────────────────────────────────────────────────────────────────────────


def test_arrival_is_one_transaction_before_the_answer_and_the_next_handover() -> None:
    state, effects = arrive(node(), token())
    assert sorts(effects) == [Commit, Reply, SendToken, Greet, Greet]
    commit, answer, sent = effects[:3]
    assert answer.receipt == Receipt(Outcome.ACCEPTED, newest=LINE)
    assert commit.record is state.record
    assert commit.record.token is sent.token
    assert (sent.receiver, sent.token.hop, sent.token.updates) == (RIGHT, 5, 4)
    assert commit.record.newest == Mark(LINE, 5)


def test_a_visit_that_stays_is_not_written() -> None:
    """Nobody has seen it: after a crash it is made again."""
    state = replace(holding(), links={**holding().links, **node().links})
    state, _ = handle(state, NeighbourDown(LEFT))
    after, effects = handle(state, Visit(GO_LEFT, 101.0))
    assert sorts(effects) == []
    assert after.record.token is not None
    assert after.record.token.updates == 5
    assert after.wants_visit


def test_alone_it_rests() -> None:
    """Or a node that restarts would spend all updates before the first neighbour answers."""
    state = holding()
    assert state.wants_visit
    state, _ = handle(state, NeighbourDown(RIGHT))
    state, _ = handle(state, NeighbourDown(LEFT))
    assert not state.wants_visit
    assert up(state, LEFT).wants_visit
    alone, _ = handle(up(state, LEFT), NewNeighbours(()))
    assert not alone.wants_visit  # the plan has other nodes: they will be added
    single = replace(LEARNER, plan=replace(PLAN, nodes=1))
    assert replace(alone, learner=single).wants_visit  # there is nobody to wait for


def test_a_token_whose_update_diverges_is_refused_and_never_sent() -> None:
    wild = Learner.of_plan(
        Plan.from_text("""
name = "wild"
nodes = 3
features = ["x"]
target = "y"
loss = "squared"
step_size = { constant = 1e299 }
updates = 10
"""),
        [[1.0]],
        [1e70],
    )
    state = node(learner=wild)
    state, effects = arrive(state, token())
    assert reply(effects).outcome is Outcome.REFUSED
    assert "smaller step size" in reply(effects).reason
    assert state.phase is Phase.IDLE
    state, _ = handle(state, StartWalk("b" * 32, np.zeros(1), 100.0))
    state, effects = handle(state, Visit(GO_LEFT, 0.0))
    assert sorts(effects) == []
    assert not state.wants_visit
    assert state.wakes_at == wild.plan.time_limits.retry_after_seconds


# ── exactly once ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("hop", [4, 5, 3])
def test_the_same_handover_twice_is_accepted_and_ignored(hop: int) -> None:
    before = handing_over()
    after, effects = arrive(before, token(hop))
    assert sorts(effects) == [Reply]
    assert reply(effects).outcome is Outcome.ACCEPTED
    assert after is before


def test_a_newer_hop_proves_that_the_offer_arrived() -> None:
    """The token came back before the answer to the offer did."""
    state, effects = arrive(handing_over(), token(hop=7, updates=8), GO_LEFT, RIGHT)
    assert reply(effects).outcome is Outcome.ACCEPTED
    assert state.record.receiver == LEFT
    late, effects = handle(state, Answered(Mark(LINE, 5), ACCEPTED, 101.0))
    assert late is state
    assert effects == []


def test_an_acknowledged_token_is_forgotten_but_its_model_is_kept() -> None:
    state, effects = handle(handing_over(), Answered(Mark(LINE, 5), ACCEPTED, 101.0))
    assert state.phase is Phase.IDLE
    assert sorts(effects) == [Remember]
    assert effects[0].record.place is Place.GONE
    assert state.record.newest_model is not None
    assert state.record.newest_model.updates == 4


def test_no_connection_is_a_rejection_and_the_next_offer_has_a_new_mark() -> None:
    state, effects = handle(handing_over(), NotSent(Mark(LINE, 5), 101.0))
    assert state.phase is Phase.HOLDING
    assert sorts(effects) == [Remember]
    assert not state.is_usable(RIGHT)  # until it answers a greeting
    _, effects = handle(up(state, RIGHT), Visit(GO_RIGHT, 102.0))
    assert sorts(effects) == [Commit, SendToken]
    assert effects[1].token.mark == Mark(LINE, 6)


def test_in_doubt_it_tries_the_same_receiver_again() -> None:
    state, effects = handle(handing_over(), Unknown(Mark(LINE, 5), 101.0))
    assert effects == [Greet(RIGHT)]  # whether it is there
    assert state.wakes_at == 103.0
    assert handle(state, Tick(102.0))[1] == []
    state, effects = handle(state, Tick(103.0))
    assert [(each.receiver, each.token.mark) for each in effects] == [(RIGHT, Mark(LINE, 5))]
    # No connection now says nothing about the first attempt.
    state, effects = handle(state, NotSent(Mark(LINE, 5), 104.0))
    assert state.phase is Phase.HANDING_OVER
    # The receiver is back: at once.
    greeting = NeighbourUp(RIGHT, state.announcement(RIGHT), told(), 100.0)
    state, effects = handle(state, greeting)
    assert SendToken in sorts(effects)
    # It refuses: so it has not taken the first attempt either, and never will.
    state, _ = handle(state, Answered(Mark(LINE, 5), Receipt(Outcome.REFUSED), 105.0))
    assert state.phase is Phase.HOLDING


def test_after_a_restart_an_offer_is_in_doubt() -> None:
    state = node(handing_over().record)
    assert not state.wants_visit
    state, effects = handle(state, Started(5.0))
    assert sorts(effects) == [SendToken]
    state, _ = handle(state, NotSent(Mark(LINE, 5), 6.0))
    assert state.phase is Phase.HANDING_OVER
    assert state.wakes_at == 8.0


def test_after_the_time_to_reclaim_it_goes_on_with_a_new_line() -> None:
    state, _ = handle(handing_over(), Unknown(Mark(LINE, 5), 101.0))
    state, effects = handle(state, Tick(160.0))
    assert sorts(effects) == [Commit, Greet]  # the left one still answers
    assert state.phase is Phase.HOLDING
    assert state.record.token is not None
    assert state.record.token.line == Line(4, 2, ME, LINE.walk)
    assert state.record.token.updates == 4
    # What the doubtful one becomes is nothing to this node any more.
    late, effects = handle(state, Answered(Mark(LINE, 5), ACCEPTED, 161.0))
    assert late is state
    assert effects == []
    # Its line is dead here.
    _, effects = arrive(state, token(hop=50, updates=9))
    assert reply(effects) == Receipt(Outcome.OBSOLETE, newest=Line(4, 2, ME, LINE.walk))


def test_a_neighbour_that_answers_late_stretches_its_own_limits_only() -> None:
    state = node(learner=ADAPTIVE)
    usual = state.greeted_within_seconds(RIGHT, 0)
    late = NeighbourUp(LEFT, state.announcement(LEFT), told(), 100.0, seconds=4.0)
    state, _ = handle(state, late)
    assert state.greeted_within_seconds(LEFT, 0) == 5 * 4.0
    assert state.greeted_within_seconds(RIGHT, 0) == usual < 4.0
    state, _ = arrive(state, token(), GO_RIGHT)
    assert state.reclaims_at == 100.0 + 2.0 * state.answer_within_seconds(RIGHT) < 104.0
    state, _ = handle(state, Answered(Mark(LINE, 5), ACCEPTED, 101.5))
    assert state.greeted_within_seconds(RIGHT, 0) == 5 * 1.5


def test_who_was_given_up_is_waited_for_twice_as_long_the_next_time() -> None:
    """Or a receiver that is slower than anyone thought would be lost again and again."""
    state, _ = arrive(node(learner=ADAPTIVE), token(), GO_RIGHT)
    usual = state.greeted_within_seconds(RIGHT, 0)
    state, _ = handle(state, Unknown(Mark(LINE, 5), 101.0))
    state, effects = handle(state, Tick(state.reclaims_at))
    assert Commit in sorts(effects)
    assert state.phase is Phase.HOLDING
    assert state.greeted_within_seconds(RIGHT, 0) == 2 * usual
    assert state.greeted_within_seconds(LEFT, 0) == usual


def test_a_receiver_that_has_just_come_back_has_time_to_answer() -> None:
    """Once: who comes and goes does not put the reclaim off for ever."""
    state, _ = arrive(node(learner=ADAPTIVE), token(), GO_RIGHT)
    mark, due, usual = Mark(LINE, 5), state.reclaims_at, state.answer_within_seconds(RIGHT)
    for at, reclaims_at in ((due - 0.1, due - 0.1 + usual), (due + 0.1, due)):
        state, _ = handle(state, Unknown(mark, at - 0.05))
        there = NeighbourUp(RIGHT, state.announcement(RIGHT), told(), at, 0.01)
        state, _ = handle(state, there)
        assert state.reclaims_at == pytest.approx(reclaims_at)


def test_who_hears_of_a_newer_line_lets_the_token_die_and_tells_of_it() -> None:
    newer = Line(1, 2, RIGHT, LINE.walk)
    for state in (holding(), handing_over()):
        charged = replace(state, record=replace(state.record, contributions=7))
        after, effects = handle(charged, Announced(LEFT, told(newest=newer), 100.0))
        assert after.phase is Phase.IDLE
        assert after.record.contributions == 7
        assert sorts(effects)[0] is Remember
        assert Greet in sorts(effects)
        assert after.handover is None


def test_an_obsolete_token_is_forgotten() -> None:
    newer = Line(1, 2, RIGHT, LINE.walk)
    answer = Answered(Mark(LINE, 5), Receipt(Outcome.OBSOLETE, newest=newer), 101.0)
    state, effects = handle(handing_over(), answer)
    assert state.phase is Phase.IDLE
    assert state.record.newest_line == newer
    assert sorts(effects)[0] is Remember


def test_obsolete_without_a_newer_line_is_not_believed() -> None:
    answer = Answered(Mark(LINE, 5), Receipt(Outcome.OBSOLETE, newest=LINE), 101.0)
    state, _ = handle(handing_over(), answer)
    assert state.phase is Phase.HANDING_OVER


def test_of_two_walks_begun_at_once_the_larger_fingerprint_lives() -> None:
    state, _ = handle(node(), StartWalk("b" * 32, np.zeros(1), 100.0))
    smaller, larger = Line(0, 1, LEFT, "f" * 32), Line(0, 1, RIGHT, "0" * 32)
    _, effects = arrive(state, token(1, 1, smaller))
    assert reply(effects).outcome is Outcome.OBSOLETE
    after, effects = arrive(state, token(1, 1, larger), sender=RIGHT)
    assert reply(effects).outcome is Outcome.ACCEPTED
    assert after.record.newest_line == larger._replace(updates=2)  # it has left its first node


def test_a_fresh_walk_never_beats_one_under_way() -> None:
    """Whoever began it: the line of a walk that has left its first node was born after it."""
    state, _ = handle(node(), StartWalk("b" * 32, np.zeros(1), 100.0))
    state, effects = handle(state, Visit(GO_RIGHT, 100.0))
    assert effects[1].token.mark == Mark(Line(1, 1, ME, "b" * 32), 1)
    fresh = Line(0, 1, "f" * 64, "f" * 32)
    after, _ = handle(state, Announced(LEFT, told(newest=fresh), 100.0))
    assert after.phase is Phase.HANDING_OVER
    _, effects = arrive(state, token(1, 1, fresh))
    assert reply(effects).outcome is Outcome.OBSOLETE


LONG = replace(PLAN, updates=400_000)


@pytest.mark.parametrize("born", [1, 16, 127, 128, 1000, 100_000])
def test_a_line_is_renewed_when_its_walk_has_come_far(born: int) -> None:
    """So the order of lines, fixed at birth, is that of progress but for an eighth."""
    state = node(learner=Learner.of_plan(LONG, [[1.0]], [1.0]))
    state, effects = handle(state, Announced(LEFT, told(newest=line_of(born)), 100.0))
    far = born + max(16, born // 8)
    early, effects = arrive(state, token(4, far - 2, line_of(born)))
    assert effects[0].record.newest == Mark(line_of(born), 5)
    late, effects = arrive(state, token(4, far - 1, line_of(born)))
    assert effects[0].record.newest == Mark(line_of(far), 1)
    assert late.record.newest > early.record.newest


def line_of(updates: int, counter: int = 1) -> Line:
    return Line(updates, counter, LEFT, LINE.walk)


@pytest.mark.parametrize("seconds", [None, 0.0])
def test_how_far_the_walk_is_is_told_only_where_walks_are_resumed(seconds: float | None) -> None:
    """It shows which way the token went."""
    plan = replace(PLAN, time_limits=TimeLimits(resume_after_seconds=seconds))
    state, _ = arrive(node(learner=Learner.of_plan(plan, [[1.0]], [1.0])), token())
    assert (state.announcement(LEFT, 101.0).progress is None) == (seconds == 0.0)


def test_old_news_told_again_as_new_does_not_make_the_walk_move() -> None:
    state = node()
    for now in (101.0, 130.0):
        news = Progress(Mark(LINE, 4), 3, 0.0)
        state, _ = handle(state, Announced(LEFT, told(newest=LINE, progress=news), now))
        assert state.seen is not None
        assert (state.seen.mark, state.seen.moved_at) == (Mark(LINE, 4), 101.0)


def test_a_token_that_is_back_before_its_receipt_was_handed_over() -> None:
    state, _ = handle(node(), StartWalk("b" * 32, np.zeros(1), 100.0))
    offered, _ = handle(state, Visit(GO_RIGHT, 1.0))
    back = offered.record.token
    back = changed(back, hop=back.hop + 1, updates=back.updates + 1)
    after, effects = arrive(offered, back, sender=RIGHT)
    assert effects.count(Note("handed over")) == 1
    late = Answered(offered.record.newest, Receipt(Outcome.ACCEPTED), 2.0)
    assert handle(after, late) == (after, [])
    final = changed(offered.record.token, updates=PLAN.updates, final=True)
    _, effects = handle(offered, FinalArrived(RIGHT, final, 100.0))
    assert effects.count(Note("handed over")) == 1


# ── refusals ─────────────────────────────────────────────────────────────────────────────────


def test_what_is_refused_stays_refused() -> None:
    full = StoreFailed(TokenArrived(LEFT, token(), GO_RIGHT, 1.0), "disk full", 1.0)
    state, effects = handle(node(), full)
    assert sorts(effects) == [Reply]
    assert reply(effects).outcome is Outcome.REFUSED
    assert "disk full" in reply(effects).reason
    state, effects = arrive(state, token())
    assert reply(effects).outcome is Outcome.REFUSED
    # The sender's next offer has another mark.
    state, effects = arrive(state, token(hop=5))
    assert reply(effects).outcome is Outcome.ACCEPTED


@pytest.mark.parametrize(
    ("offered", "sender", "reason"),
    [
        (token(), "c" * 64, "not a neighbour"),
        (token(updates=10, final=True), LEFT, "final"),
        (token(hop=0), LEFT, "never offered"),
    ],
)
def test_tokens_that_are_not_taken(offered: Token, sender: str, reason: str) -> None:
    state, effects = arrive(node(), offered, sender=sender)
    assert reply(effects).outcome is Outcome.REFUSED
    assert reason in reply(effects).reason
    assert state.phase is Phase.IDLE


def test_a_node_that_stops_takes_no_token_and_lets_its_own_leave() -> None:
    state, _ = handle(node(), StopAsked())
    assert state.may_stop
    state, effects = arrive(state, token())
    assert reply(effects).outcome is Outcome.REFUSED
    state, _ = handle(holding(), StopAsked())
    assert state.wants_visit
    assert not state.may_stop
    state, _ = handle(state, Visit(GO_RIGHT, 101.0))
    assert not state.may_stop
    state, _ = handle(state, Answered(Mark(LINE, 6), ACCEPTED, 101.0))
    assert state.may_stop


def test_a_node_that_stops_alone_keeps_the_token() -> None:
    state, _ = handle(holding(), StopAsked())
    state, _ = handle(state, NeighbourDown(RIGHT))
    state, _ = handle(state, NeighbourDown(LEFT))
    assert state.may_stop


def test_a_failed_write_lets_the_node_go_on() -> None:
    before = holding()
    state, effects = handle(before, StoreFailed(Visit(GO_RIGHT, 9.0), "disk full", 9.0))
    assert sorts(effects) == []
    assert state.record is before.record
    assert not state.wants_visit
    assert state.wakes_at == 11.0
    state, _ = handle(state, Tick(11.0))
    assert state.wants_visit
    for event in (
        StartWalk("b" * 32, np.zeros(1), 100.0),
        FinalArrived(LEFT, token(9, 10, final=True), 100.0),
    ):
        _, effects = handle(node(), StoreFailed(event, "disk full", 9.0))
        assert reply(effects).outcome is Outcome.REFUSED


def test_a_reclaim_that_cannot_be_written_is_tried_again_later() -> None:
    state, _ = handle(handing_over(), Unknown(Mark(LINE, 5), 101.0))
    state, _ = handle(state, StoreFailed(Tick(160.0), "disk full", 160.0))
    assert state.wakes_at == 162.0
    assert handle(state, Tick(161.0))[1] == []
    state, effects = handle(state, Tick(162.0))
    assert sorts(effects)[0] is Commit
    assert state.phase is Phase.HOLDING


# ── neighbours and the law ───────────────────────────────────────────────────────────────────


def test_a_link_is_used_only_when_it_is_up_both_ways() -> None:
    state = recover(ME, LEARNER, [LEFT])
    first = NeighbourUp(LEFT, state.announcement(LEFT), told(reaches_you=False), 100.0)
    state, effects = handle(state, first)
    assert sorts(effects) == [Greet]  # it should hear that it is reached
    assert state.announcement(LEFT).reaches_you
    assert not state.is_usable(LEFT)
    second = NeighbourUp(LEFT, state.announcement(LEFT), told(reaches_you=False), 100.0)
    state, effects = handle(state, second)
    assert sorts(effects) == []
    assert not state.is_usable(LEFT)  # one way only
    state, _ = handle(state, Announced(LEFT, told(), 100.0))
    assert state.is_usable(LEFT)
    state, _ = handle(state, NeighbourDown(LEFT))
    assert not state.is_usable(LEFT)
    assert not state.announcement(LEFT).reaches_you


def test_a_new_degree_is_announced_before_it_is_walked_by() -> None:
    state, effects = handle(node(), NewNeighbours((LEFT, RIGHT, "c" * 64)))
    assert [effect.neighbour for effect in effects] == [LEFT, RIGHT]
    assert not state.is_usable(LEFT)
    assert up(state, LEFT).is_usable(LEFT)
    assert state.neighbours == (LEFT, RIGHT, "c" * 64)
    state, _ = handle(state, NewNeighbours((RIGHT,)))
    assert state.degree == 1
    assert LEFT not in state.links
    unknown = [
        NeighbourUp(LEFT, told(), told(), 100.0),
        Announced(LEFT, told(), 100.0),
        NeighbourDown(LEFT),
    ]
    for event in unknown:
        assert handle(state, event) == (state, [])


@pytest.mark.parametrize("walk", ["uniform", "weighted", "simple"])
def test_silent_neighbours_keep_detailed_balance_on_the_rest(walk: str) -> None:
    """Exactly: π_i P_ij = π_j P_ji on every link that is up, with the law of the whole graph.

    P is read off the protocol's own decision, by bisection of the uniform number it is given.
    """
    graph = graphs.erdos_renyi(9, 0.5, seed=4)
    importance = np.linspace(1.0, 5.0, 9) if walk == "weighted" else np.ones(9)
    silent = {frozenset(edge) for edge in graph.edges().tolist()[::3]}
    states = decided_states(graph, importance, silent, walk)
    moves = np.zeros((9, 9))
    for i, state in enumerate(states):
        for place, j in enumerate(graph.neighbours(i)):
            moves[i, j] = measure(state, place, f"{j:064x}")
    law = graph.degrees if walk == "simple" else importance
    flow = law[:, None] * moves
    np.testing.assert_allclose(flow, flow.T, rtol=0, atol=1e-12)
    kind = {"uniform": walks.Uniform(), "simple": walks.Simple()}
    whole = kind.get(walk, walks.Weighted(importance)).transition_matrix(graph).toarray()
    for i, j in graph.edges():
        wanted = 0.0 if frozenset((int(i), int(j))) in silent else whole[i, j]
        assert moves[i, j] == pytest.approx(wanted, abs=1e-12)


def decided_states(graph: Any, importance: Any, silent: set[frozenset[int]], walk: str) -> Any:
    """Nodes that know each other's degree and importance, on links some of which are down."""
    private = '[privacy]\nmechanism = "in the clear"' if walk == "weighted" else ""
    text = f"""
name = "balance"
nodes = 9
features = ["x"]
target = "y"
loss = "squared"
step_size = {{ constant = 0.1 }}
updates = 10
walk = "{walk}"
{private}
"""
    plan, degrees = Plan.from_text(text), graph.degrees
    for i in range(9):
        learner = Learner.of_plan(plan, [[1.0]], [1.0], float(importance[i]))
        neighbours = [int(j) for j in graph.neighbours(i)]
        state = recover(f"{i:064x}", learner, [f"{j:064x}" for j in neighbours])
        for j in neighbours:
            theirs = Announcement(int(degrees[j]), float(importance[j]), True)
            name = f"{j:064x}"
            for _ in range(2):
                state, _ = handle(state, NeighbourUp(name, state.announcement(name), theirs, 100.0))
            if frozenset((i, j)) in silent:
                state, _ = handle(state, NeighbourDown(name))
        yield state


def measure(state: State, place: int, neighbour: str) -> float:
    """How many of the uniform numbers lead to that neighbour."""
    walk, view = state.learner.plan.metropolis.bound(scale=np.ones(9)), state.view(token())

    def leads_there(u: float) -> bool:
        number = walk.hop(view, {}, {}, np.array([u])).node
        return state.next_holder(number)[0] == neighbour

    low, high = place / state.degree, (place + 1) / state.degree
    if not leads_there(low):
        return 0.0
    if leads_there(float(np.nextafter(high, 0.0))):
        return 1.0 / state.degree
    first = low
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if leads_there(middle) else (low, middle)
    return low - first


# ── the end, and beginning again ─────────────────────────────────────────────────────────────


def test_the_last_update_ends_the_walk_and_the_final_model_floods() -> None:
    state, effects = arrive(node(), token(hop=4, updates=9))
    assert state.phase is Phase.FINISHED
    assert sorts(effects)[:4] == [Commit, Reply, SendFinal, SendFinal]
    assert {effect.neighbour for effect in effects if isinstance(effect, SendFinal)} == {
        LEFT,
        RIGHT,
    }
    assert state.record.final is not None
    assert state.record.final.final
    # Told once, unless it did not arrive; then when the neighbour answers again.
    again = NeighbourUp(LEFT, state.announcement(LEFT), told(), 100.0)
    assert sorts(handle(state, again)[1]) == []
    state, _ = handle(state, FinalAnswered(LEFT, None))
    state, effects = handle(state, again)
    assert sorts(effects) == [SendFinal]
    state, _ = handle(state, FinalAnswered(LEFT, ACCEPTED))
    assert sorts(handle(state, again)[1]) == []


def test_a_neighbour_that_returns_is_told_the_final_model() -> None:
    """Its greeting says that it has none."""
    final = token(9, 10, final=True)
    state = recover(ME, LEARNER, [LEFT], Record(Mark(LINE, 9), None, Place.GONE, None, final))
    _, effects = handle(state, NeighbourUp(LEFT, state.announcement(LEFT), told(), 100.0))
    assert SendFinal in sorts(effects)
    has = told(final=LINE, newest=LINE, final_digest=final.digest)
    _, effects = handle(state, NeighbourUp(LEFT, state.announcement(LEFT), has, 100.0))
    assert SendFinal not in sorts(effects)


def test_of_two_ends_of_one_line_all_keep_the_one_with_the_larger_hash() -> None:
    ends = [changed(token(9, 10, final=True), model=np.full(1, value)) for value in (0.25, 0.5)]
    larger = max(end.digest for end in ends)
    for first, second in (ends, ends[::-1]):
        state, _ = handle(node(), FinalArrived(LEFT, first, 100.0))
        state, effects = handle(state, FinalArrived(RIGHT, second, 100.0))
        assert state.record.final_digest == larger
        kept = reply(effects).outcome is Outcome.ACCEPTED
        assert kept == (second.digest == larger)


def test_who_has_the_same_final_model_is_kept_by_its_last_word() -> None:
    final = token(9, 10, final=True)
    state = recover(ME, LEARNER, [LEFT], Record(Mark(LINE, 9), None, Place.GONE, None, final))
    has = told(final=LINE, newest=LINE, final_digest=final.digest)
    state, effects = handle(state, Announced(LEFT, has, 100.0))
    assert Remember in sorts(effects)
    assert state.record.confirmed_by == [LEFT]
    state, effects = handle(state, Announced(LEFT, has, 101.0))
    assert Remember not in sorts(effects)
    for word in (replace(has, final_digest="ab" * 32), told(newest=LINE)):
        after, _ = handle(state, Announced(LEFT, word, 102.0))
        assert after.record.confirmed_by == []


def test_with_a_roster_neighbours_tell_who_else_has_the_final_model() -> None:
    final, far, plan = token(9, 10, final=True), "f" * 64, LEARNER.plan
    record = Record(Mark(LINE, 9), None, Place.GONE, None, final)
    with_roster = replace(LEARNER, plan=replace(plan, roster_signer="ab" * 32))
    has = told(final=LINE, newest=LINE, final_digest=final.digest, confirmed_by=(far, RIGHT, ME))
    for learner, tells in ((with_roster, (LEFT, far)), (LEARNER, ())):
        state = recover(ME, learner, [LEFT, RIGHT], record)
        state, _ = handle(state, Announced(LEFT, has, 100.0))
        assert sorted(state.record.confirmed_by) == sorted((LEFT, far))  # RIGHT speaks for itself
        assert state.announcement(RIGHT).confirmed_by == tuple(sorted(tells))
        other = replace(has, final_digest="ab" * 32)
        after, _ = handle(state, Announced(LEFT, other, 101.0))
        assert after.record.confirmed_by == [far]


def test_of_two_final_models_the_newer_line_wins() -> None:
    old, new = token(9, 10, final=True), token(2, 10, Line(1, 2, ME, "a" * 32), final=True)
    state, effects = handle(node(), FinalArrived(LEFT, old, 100.0))
    assert sorts(effects)[:2] == [Commit, Reply]
    assert [each.neighbour for each in effects if isinstance(each, SendFinal)] == [RIGHT]
    state, effects = handle(state, FinalArrived(RIGHT, new, 100.0))
    assert reply(effects).outcome is Outcome.ACCEPTED
    assert [each.neighbour for each in effects if isinstance(each, SendFinal)] == [LEFT]
    after, effects = handle(state, FinalArrived(LEFT, old, 100.0))
    assert reply(effects).outcome is Outcome.OBSOLETE
    assert after.record.final_digest == new.digest
    _, effects = handle(state, FinalArrived(LEFT, new, 100.0))
    assert sorts(effects) == [Reply]
    assert reply(effects).outcome is Outcome.ACCEPTED


def test_a_final_model_ends_the_doubt_about_an_older_handover() -> None:
    state, _ = handle(handing_over(), FinalArrived(RIGHT, token(9, 10, final=True), 100.0))
    assert state.phase is Phase.FINISHED
    assert state.wakes_at is None


def test_a_final_model_ends_the_walk_of_a_newer_line_too() -> None:
    newer, final = Line(1, 2, RIGHT, LINE.walk), token(9, 10, final=True)
    state, _ = arrive(node(), token(line=newer), GO_LEFT, RIGHT)
    state, effects = handle(state, FinalArrived(LEFT, final, 100.0))
    assert reply(effects).outcome is Outcome.ACCEPTED
    assert state.phase is Phase.FINISHED
    assert state.handover is None
    assert state.record.newest_model is state.record.final
    # And a node that has finished takes no token.
    state, _ = handle(node(), FinalArrived(LEFT, final, 100.0))
    state, effects = arrive(state, token(line=newer), sender=RIGHT)
    assert reply(effects).outcome is Outcome.REFUSED
    assert state.phase is Phase.FINISHED
    # Nor does a line that it hears of begin anything.
    state, _ = handle(state, Announced(RIGHT, told(newest=Line(1, 5, RIGHT, LINE.walk)), 100.0))
    assert state.phase is Phase.FINISHED
    assert state.wakes_at is None


def test_an_older_final_model_hides_no_newer_token_from_memory() -> None:
    """Neither what was sent, or the sender would seem to have forgotten it, nor what was had."""
    newer = Line(1, 2, RIGHT, LINE.walk)
    state, _ = arrive(node(), token(line=newer), GO_RIGHT, LEFT)
    sent, had = state.sent_to[RIGHT], state.record.memory.had[LEFT]
    assert sent == Mark(newer, 5)
    state, effects = handle(state, FinalArrived(LEFT, token(9, 10, final=True), 100.0))
    assert [each.neighbour for each in effects if isinstance(each, SendFinal)] == [RIGHT]
    assert state.sent_to[RIGHT] == sent
    assert state.record.memory.had[LEFT] == had


@pytest.mark.parametrize(
    ("sender", "final", "reason"),
    [("c" * 64, True, "not a neighbour"), (LEFT, False, "not final")],
)
def test_final_models_that_are_not_taken(sender: str, final: bool, reason: str) -> None:
    state, effects = handle(node(), FinalArrived(sender, token(9, 10, final=final), 100.0))
    assert reason in reply(effects).reason
    assert state.record.final is None


def test_a_walk_begins_once() -> None:
    state, effects = handle(node(), StartWalk("b" * 32, np.ones(1), 100.0))
    assert sorts(effects)[:2] == [Commit, Reply]
    assert state.record.token is not None
    assert state.record.token.mark == Mark(Line(0, 1, ME, "b" * 32), 0)
    assert state.wants_visit
    for known in (state, handing_over()):
        _, effects = handle(known, StartWalk("c" * 32, np.ones(1), 100.0))
        assert reply(effects).outcome is Outcome.REFUSED
        assert "--resume" in reply(effects).reason


def test_a_walk_that_was_only_heard_of_does_not_keep_the_owner_from_beginning() -> None:
    lie = Line(PLAN.updates, 1_000, LEFT, "a" * 32)
    further = told(newest=lie, progress=Progress(Mark(lie, 3), PLAN.updates, 0.0))
    state, _ = handle(node(), Announced(LEFT, further, 100.0))
    _, effects = handle(state, StartWalk("b" * 32, np.ones(1), 100.0))
    assert "--force" in reply(effects).reason
    begun, effects = handle(state, StartWalk("b" * 32, np.ones(1), 100.0, force=True))
    assert reply(effects).outcome is Outcome.ACCEPTED
    assert begun.record.newest_line == Line(PLAN.updates, 1_001, ME, "b" * 32)
    assert begun.record.token is not None
    assert begun.record.token.updates == 0
    # The others take it, also those that the lie has reached.
    offered, _ = handle(up(begun, RIGHT), Visit(GO_RIGHT, 101.0))
    newcomer, _ = handle(node(), Started(99.0))
    for other in (state, newcomer):
        _, effects = arrive(other, offered.record.token, GO_LEFT, RIGHT)
        assert reply(effects).outcome is Outcome.ACCEPTED
    # Where a model has been, it goes on from that one.
    _, effects = handle(handing_over(), StartWalk("c" * 32, np.ones(1), 100.0, force=True))
    assert reply(effects).outcome is Outcome.REFUSED


def test_resume_goes_on_from_the_newest_model_seen() -> None:
    state, _ = handle(handing_over(), Answered(Mark(LINE, 5), ACCEPTED, 101.0))
    for known in (state, handing_over()):
        after, effects = handle(known, ResumeWalk(100.0))
        assert sorts(effects)[:2] == [Commit, Reply]
        assert after.record.token is not None
        assert after.record.token.line == Line(4, 2, ME, LINE.walk)
        assert after.record.token.updates == 4


def test_resume_where_no_model_was_seen_says_so() -> None:
    state, _ = handle(node(), Announced(LEFT, told(newest=LINE), 100.0))
    after, effects = handle(state, ResumeWalk(100.0))
    assert reply(effects).outcome is Outcome.REFUSED
    assert "no model" in reply(effects).reason
    assert after is state


def test_a_walk_that_never_left_its_starter_is_started_anew_without_a_copy() -> None:
    state, _ = handle(node(), Announced(LEFT, told(newest=Line(0, 1, LEFT, LINE.walk)), 100.0))
    due = state.wakes_at
    assert due is not None
    state, effects = handle(state, Tick(due))
    assert sorts(effects)[0] is Commit
    assert state.phase is Phase.HOLDING
    assert state.record.newest_line == Line(0, 2, ME, LINE.walk)
    first = state.record.token
    assert first is not None
    assert first.updates == 0
    assert (first.model == LEARNER.initial_model(LINE.walk)).all()
    # One that was handed over is resumed from copies only.
    state, _ = handle(node(), Announced(LEFT, told(newest=Line(1, 1, LEFT, LINE.walk)), 100.0))
    assert state.wakes_at is None


def test_there_is_nothing_to_resume_at_the_holder_or_after_the_end() -> None:
    finished, _ = handle(node(), FinalArrived(LEFT, token(9, 10, final=True), 100.0))
    for known in (holding(), finished):
        after, effects = handle(known, ResumeWalk(100.0))
        assert reply(effects).outcome is Outcome.REFUSED
        assert after is known


# ── the privacy of the model ─────────────────────────────────────────────────────────────────


def test_contributions_are_charged_in_the_commit_before_anything_leaves() -> None:
    noise = ModelNoise(clip=1.0, noise_multiplier=1.0, max_contributions=2, protect="node")
    learner = Learner.of_plan(PLAN, [[1.0]], [1.0], noise=noise)
    state, charged = node(learner=learner), []
    for visit in range(4):
        draws = Draws(GO_RIGHT.uniforms, np.zeros(1, dtype=np.int64))
        state, effects = arrive(state, token(hop=4 + 2 * visit), draws)
        assert sorts(effects)[:3] == [Commit, Reply, SendToken]
        charged.append(effects[0].record.contributions)
        state, _ = handle(state, Answered(effects[2].token.mark, ACCEPTED, 1.0))
    assert charged == [1, 2, 2, 2]


def test_a_retry_sends_the_same_noise_again_also_after_a_restart() -> None:
    """Two noises on one contribution would be two contributions, of which one is charged."""
    noise = ModelNoise(clip=1.0, noise_multiplier=1.0, max_contributions=2, protect="node")
    learner = Learner.of_plan(PLAN, [[1.0]], [1.0], noise=noise)
    draws = Draws(GO_RIGHT.uniforms, noise.draw(1))
    state, effects = arrive(node(learner=learner), token(hop=4), draws)
    written, sent = effects[0].record, effects[2].token
    state, _ = handle(state, Unknown(sent.mark, 101.0))
    _, effects = handle(state, Tick(103.0))
    assert [each.token.encoded for each in effects] == [sent.encoded]
    _, effects = handle(node(written, learner), Started(5.0))
    assert [each.token.encoded for each in effects] == [sent.encoded]
    assert written.contributions == 1


def test_two_that_go_on_from_the_same_line_never_tie() -> None:
    """Of their lines every node prefers the same one, which bears its beginner's name."""
    mine, theirs = (
        replace(node(Record(newest=Mark(LINE, 4))), fingerprint=name).next_line("a" * 32, 3)
        for name in (ME, RIGHT)
    )
    assert (mine.updates, mine.counter) == (theirs.updates, theirs.counter)
    assert mine < theirs
    assert (mine.reclaimer, theirs.reclaimer) == (ME, RIGHT)
