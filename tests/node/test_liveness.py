"""The walk goes on: without its holder, among enemies, and undisturbed where nothing is wrong."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import pytest

from tests.node import enemy_network
from tests.node.broken_protocols import keep_the_older_final
from tests.node.enemy_network import holder_gone_for_good
from walklearn.node.protocol import handover
from walklearn.node.protocol.learner import Learner
from walklearn.node.protocol.pace import Bound
from walklearn.node.protocol.state import State
from walklearn.node.protocol.tally import Tally
from walklearn.node.protocol.tokens import Mark
from walklearn.node.protocol.values import replace

Scenario = Callable[[int], object]


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
        "token_swallowed",
        "token_swallowed_and_claimed",
        "lies",
        "small_lies_many",
        "old_news",
    ],
)
def test_there_is_one_end(name: str, seed: int) -> None:
    getattr(enemy_network, name)(seed)


def never_resume(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(State, "resumes_at", property(lambda state: None))


def resume_at_once(patch: pytest.MonkeyPatch) -> None:
    """The patience does not follow what was measured."""
    patch.setattr("walklearn.node.protocol.state.patience", lambda limits, returns: 0.5)


def renew_no_line(patch: pytest.MonkeyPatch) -> None:
    """A walk under way is as old as at its birth, so the larger fingerprint lives."""
    patch.setattr(handover, "_renewed", lambda token: token)


def take_a_twin_for_a_repetition(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(handover, "_is_fork", lambda state, token: False)


def trust_everyone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(State, "distrusts", lambda state, neighbour: False)


def believe_who_claims_to_have_passed_it_on(patch: pytest.MonkeyPatch) -> None:
    """Only what nobody claims to have seen again counts as lost."""
    missed = Tally.and_missed
    patch.setattr(
        Tally, "and_missed", lambda tally, beyond: tally if beyond else missed(tally, beyond)
    )


def believe_everything(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(State, "believes", lambda state, line, updates, now: True)


def forgive_each_claim(patch: pytest.MonkeyPatch) -> None:
    """What was believed beyond the rate is not spent."""

    def and_also(bound: Bound, reached: float, at: float) -> Bound:
        return bound._replace(reached=max(bound.reached, reached), at=at, spare=bound.at_once)

    patch.setattr(Bound, "and_also", and_also)


def believe_any_age(patch: pytest.MonkeyPatch) -> None:
    """The wait begins when a neighbour says that it did."""
    saw = State.saw

    def saw_then(
        state: State, mark: Mark, updates: int, now: float, age_seconds: float = 0.0
    ) -> State:
        after = saw(state, mark, updates, now, age_seconds)
        if after is state or after.seen is None:
            return after
        return replace(after, seen=after.seen._replace(moved_at=now - age_seconds))

    patch.setattr(State, "saw", saw_then)


BROKEN: list[tuple[Callable[[pytest.MonkeyPatch], None], str]] = [
    (never_resume, "holder_gone_for_good"),
    (resume_at_once, "undisturbed"),
    (renew_no_line, "newcomer_begins_a_walk"),
    (keep_the_older_final, "two_parts_end"),
    (take_a_twin_for_a_repetition, "two_tokens_of_one_line"),
    (trust_everyone, "token_swallowed"),
    (believe_who_claims_to_have_passed_it_on, "token_swallowed_and_claimed"),
    (believe_everything, "lies"),
    (forgive_each_claim, "small_lies_many"),
    (believe_any_age, "old_news"),
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
