"""The walk goes on: without its holder, among enemies, and undisturbed where nothing is wrong."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import pytest

from tests.node import enemy_network
from tests.node.broken_protocols import (
    believe_a_second_at_once,
    believe_any_age,
    believe_everything,
    believe_who_claims_to_have_passed_it_on,
    blame_who_is_not_there,
    forget_what_was_asked,
    forgive_each_claim,
    forgive_who_leaves_tokens_unanswered,
    keep_the_older_final,
    let_false_progress_stand,
    never_resume,
    never_wait_to_be_believed,
    take_a_twin_for_a_repetition,
    take_any_twin,
    trust_everyone,
)
from tests.node.enemy_network import holder_gone_for_good
from walklearn.node.protocol import handover
from walklearn.node.protocol.learner import Learner
from walklearn.node.protocol.state import State
from walklearn.node.protocol.tally import FURTHEST, LOSSES, LOSSES_WITHIN, Tally


def test_a_walk_outlives_its_holder() -> None:
    """Seconds of the simulated clock, on which a message takes 10 ms."""
    seconds = [holder_gone_for_good(seed) for seed in range(5)]
    assert statistics.median(seconds) < 10.0


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "name",
    [
        "undisturbed",
        "newcomer_begins_a_walk",
        "two_parts_end",
        "two_tokens_of_one_line",
        "token_of_long_ago",
        "token_swallowed",
        "token_left_unanswered",
        "away_when_the_token_comes",
        "token_swallowed_and_claimed",
        "token_given_back_now_and_then",
        "lies",
        "end_forged_in_a_short_plan",
        "faster_than_is_believed",
        "parts_that_went_on_meet",
        "small_lies_many",
        "old_news",
        "progress_inflated",
    ],
)
def test_there_is_one_end(name: str, seed: int) -> None:
    getattr(enemy_network, name)(seed)


def resume_at_once(patch: pytest.MonkeyPatch) -> None:
    """The patience does not follow what was measured."""
    patch.setattr("walklearn.node.protocol.pace.patience", lambda limits, returns: 0.5)


def resume_late(patch: pytest.MonkeyPatch) -> None:
    """Each loss of the walk costs more than three times the patience."""
    resumes_at = State.resumes_at.fget
    assert resumes_at is not None

    def late(state: State) -> float | None:
        due = resumes_at(state)
        return None if due is None else due + 9.0

    patch.setattr(State, "resumes_at", property(late))


def test_a_swallower_that_claims_may_keep_five_tokens_of_six() -> None:
    """And no more: what one neighbour gives it, in a row. In plain sight, one of a hundred."""
    often = Tally()
    for _ in range(1_000):
        for _ in range(LOSSES + FURTHEST - 1):
            often = often.and_sent().and_missed(beyond=10**6)
            assert not often.is_distrusted
        often = often.and_sent().and_back()
    assert often.missed == 5 * often.back
    for _ in range(LOSSES + FURTHEST):
        often = often.and_sent().and_missed(beyond=10**6)
    assert often.is_distrusted
    for between, distrusted in ((LOSSES_WITHIN - 1, False), (LOSSES_WITHIN - 2, True)):
        seldom = Tally().and_sent().and_missed(beyond=0)
        for _ in range(between):
            seldom = seldom.and_sent().and_back()
        assert seldom.and_sent().and_missed(beyond=0).is_distrusted == distrusted


def renew_no_line(patch: pytest.MonkeyPatch) -> None:
    """A walk under way is as old as at its birth, so the larger fingerprint lives."""
    patch.setattr(handover, "_renewed", lambda token, told: token)


BROKEN: list[tuple[Callable[[pytest.MonkeyPatch], None], str]] = [
    (never_resume, "holder_gone_for_good"),
    (resume_at_once, "undisturbed"),
    (renew_no_line, "newcomer_begins_a_walk"),
    (keep_the_older_final, "two_parts_end"),
    (take_a_twin_for_a_repetition, "two_tokens_of_one_line"),
    (take_any_twin, "token_of_long_ago"),
    (trust_everyone, "token_swallowed"),
    (forgive_who_leaves_tokens_unanswered, "token_left_unanswered"),
    (blame_who_is_not_there, "away_when_the_token_comes"),
    (believe_who_claims_to_have_passed_it_on, "token_swallowed_and_claimed"),
    (resume_late, "token_given_back_now_and_then"),
    (believe_everything, "lies"),
    (believe_a_second_at_once, "end_forged_in_a_short_plan"),
    (never_wait_to_be_believed, "faster_than_is_believed"),
    (forget_what_was_asked, "parts_that_went_on_meet"),
    (forgive_each_claim, "small_lies_many"),
    (believe_any_age, "old_news"),
    (let_false_progress_stand, "progress_inflated"),
]


@pytest.mark.parametrize(("broken", "name"), BROKEN, ids=lambda it: getattr(it, "__name__", it))
def test_without_the_rule_there_is_not(
    broken: Callable[[pytest.MonkeyPatch], None], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some of a few runs shows it."""
    broken(monkeypatch)

    def run() -> None:
        for seed in range(6):
            getattr(enemy_network, name)(seed)

    with pytest.raises((AssertionError, RuntimeError)):
        run()


@pytest.mark.parametrize(
    ("importance", "degree", "wrong"),
    [(1.0, 5, ""), (1.0, 6, "degree 6"), (1.0, 0, "degree 0"), (1e300, 1, "importance 1e+300")],
)
def test_numbers_that_nobody_can_have_are_not_believed(
    importance: float, degree: int, wrong: str
) -> None:
    learner: Learner = enemy_network.network_of().nodes[0].learner
    assert learner.disbelief(importance, degree).startswith(wrong)
    assert bool(learner.disbelief(importance, degree)) == bool(wrong)
