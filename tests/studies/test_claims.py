"""Claims are read with errors that name key and line, and judged on data with known truth."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from walklearn.files.checked_table import CheckedTable
from walklearn.studies import StudyError
from walklearn.studies.claims import Claim, read_claims
from walklearn.studies.report import verdict_table
from walklearn.studies.verdicts import Verdict, judge

STUDY = """
metric = "gap"
[graphs]
ring = { family = "ring" }
star = { family = "star" }
[problems.easy]
[methods]
uniform = { walk = "uniform" }
weighted = { walk = "weighted" }
gossip = { gossip = "asynchronous" }
[step_sizes]
printed = { constant = 1.0 }
tuned = { constants = [0.1, 1.0], tuning_updates = 500 }
[[claims]]
"""
FIRST_LINE = STUDY.count("\n") + 1
BEATS = 'kind = "beats"\ntext = "t"\nbetter = "weighted"\nworse = "uniform"\n'


def read(text: str) -> Claim:
    (claim,) = read_claims(CheckedTable.parse(STUDY + text, "study.toml", StudyError))
    return claim


def test_a_claim_is_about_everything_by_default() -> None:
    claim = read(BEATS)
    assert (claim.graphs, claim.problems) == (("ring", "star"), ("easy",))
    assert (claim.step_sizes, claim.metrics) == (("printed", "tuned"), ("gap",))
    assert claim.at == ()


def test_points_may_follow_the_tuning() -> None:
    claim = read(BEATS + 'at = "tuned"')
    assert claim.points("tuned") == (500.0,)
    assert claim.points("printed") == ()


def test_several_methods_and_costs() -> None:
    claim = read('kind = "beats"\ntext = "t"\nbetter = ["weighted", "uniform"]\nworse = "gossip"\n'
                 'cost = ["messages", "bytes"]\nat = [30, 10]')  # fmt: skip
    assert claim.better == ("weighted", "uniform")
    assert claim.costs == ("messages", "bytes")
    assert claim.at == (10.0, 30.0)


def test_steps_tuned_for_one_error_are_not_judged_by_another() -> None:
    claim = read(BEATS + 'metrics = ["gap", "distance"]')  # the study tunes for the gap
    steps = [(step_size, metric) for _, step_size, metric in claim.readings()]
    assert steps == [("printed", "gap"), ("printed", "distance"), ("tuned", "gap")]


@pytest.mark.parametrize(
    ("text", "line", "key", "words"),
    [
        (BEATS + 'step_sizes = ["tuned"]\nmetrics = ["distance"]', 6, "metrics", "judge"),
        ('kind = "wins"\ntext = "t"', 1, "kind", "beats, slope, rank"),
        ('kind = "beats"\nbetter = "weighted"\nworse = "uniform"', 0, "text", "missing"),
        (BEATS.replace('"weighted"', '"wieghted"'), 3, "better", '"weighted"'),
        (BEATS.replace('"uniform"', '"weighted"'), 4, "worse", "better"),
        (BEATS + "at = [0]", 5, "at", "[0]"),
        (BEATS + 'at = "late"', 5, "at", '"late"'),
        (BEATS + 'cost = "watts"', 5, "cost", "updates, messages, bytes"),
        (BEATS + "metrics = []", 5, "metrics", "[]"),
        (BEATS + "factor = 0.6", 5, "factor", "0.6"),
        (BEATS + 'graphs = ["torus"]', 5, "graphs", "ring, star"),
        (BEATS + "target = 3", 5, "target", "beats"),
        (BEATS.replace('"t"', "3"), 2, "text", "3"),
        ('kind = "rank"\ntext = "t"\nby = "luck"', 3, "by", "bound"),
        (BEATS.replace("beats", "cost-to-target"), 0, "target", "missing"),
        (BEATS.replace("beats", "cost-to-target") + "target = -1", 5, "target", "-1"),
        (BEATS.replace("beats", "cost-to-target") + "target = 1\nrelative = 1", 6, "relative", "1"),
    ],
)
def test_bad_claims_are_named_with_their_line(text: str, line: int, key: str, words: str) -> None:
    with pytest.raises(StudyError) as caught:
        read(text)
    assert words in caught.value.problem
    assert caught.value.key == f"claims.0.{key}"
    assert caught.value.place == f"study.toml, line {FIRST_LINE + line - 1}"


def test_claims_must_be_a_list_of_tables() -> None:
    with pytest.raises(StudyError, match=r"write \[\[claims\]\]"):
        read_claims(CheckedTable.parse("claims = 3", "study.toml", StudyError))


UPDATES = np.array([1, 10, 100, 1000])


def runs(method: str, errors: Any, *, graph: str = "ring", messages: float = 1.0) -> pd.DataFrame:
    """Records of one cell from an array (instances, records)."""
    errors = np.asarray(errors, dtype=float)
    instances, records = errors.shape
    return pd.DataFrame(
        {
            "cell": f"hash-{graph}-{method}", "graph": graph, "problem": "easy", "method": method,
            "step_size": "printed", "instance": np.repeat(np.arange(instances), records),
            "replicate": 0, "exponent": 0.6, "updates": np.tile(UPDATES[:records], instances),
            "messages": messages * np.tile(UPDATES[:records], instances), "gap": errors.ravel(),
        }
    )  # fmt: skip


def falling(instances: int, power: float, factor: float = 1.0, seed: int = 1) -> np.ndarray:
    generator = np.random.default_rng(seed)
    noise = generator.lognormal(sigma=0.2, size=(instances, len(UPDATES)))
    return np.asarray(factor * noise * UPDATES**-power)


def pair(instances: int, factor: float = 1.0, messages: float = 1.0) -> list[pd.DataFrame]:
    """Runs of two walks; the errors of the uniform one are multiplied by the factor."""
    uniform = falling(instances, 0.5, factor, seed=2)
    return [runs("weighted", falling(instances, 0.5)), runs("uniform", uniform, messages=messages)]


def verdict_on(claim: Claim, *cells: pd.DataFrame, facts: pd.DataFrame | None = None) -> Verdict:
    table = judge([replace(claim, graphs=("ring",), step_sizes=("printed",))],
                  pd.concat(cells), pd.DataFrame() if facts is None else facts)  # fmt: skip
    (row,) = table.to_dict("records")
    return Verdict(**{str(key): value for key, value in row.items()})


@pytest.mark.parametrize(
    ("factor", "word"), [(3.0, "holds"), (1.0, "undecided"), (1 / 3, "does not hold")]
)
def test_beats(factor: float, word: str) -> None:
    """Noise of 0.2 over 40 instances: a factor of 3 is 25 standard errors."""
    verdict = verdict_on(read(BEATS), *pair(40, factor))
    assert verdict.verdict == word
    assert verdict.ratio == pytest.approx(factor, rel=0.2)
    assert verdict.median_ratio == pytest.approx(factor, rel=0.2)
    assert verdict.lower < verdict.ratio < verdict.upper
    assert (verdict.at, verdict.replicates) == (1000.0, 40)
    assert verdict.cells == ["hash-ring-weighted", "hash-ring-uniform"]


@pytest.mark.parametrize(
    ("factor", "word"), [(3.0, "holds"), (2.0, "undecided"), (1.3, "does not hold")]
)
def test_better_by_a_factor_of_two(factor: float, word: str) -> None:
    claim = read(BEATS + "factor = 2.0")
    verdict = verdict_on(claim, *pair(40, factor))
    assert (verdict.verdict, verdict.threshold) == (word, 2.0)
    rows = pd.DataFrame([asdict(verdict)])
    (shown,) = verdict_table.claims("s", rows, str, {"graph": {}, "problem": {}, "step_size": {}})
    assert shown.estimate.endswith("Holds above 2.")
    assert ("is better by a factor of 2" in shown.sentence) == (word == "holds")
    lower, _, upper = shown.rows[0].marks
    assert (lower > 0.5, upper < 0.5) == (word == "holds", word == "does not hold")


def test_few_instances_decide_nothing() -> None:
    verdict = verdict_on(read(BEATS), *pair(9, 100.0))
    assert verdict.lower > 50
    assert verdict.verdict == "undecided"


def test_missing_cells_decide_nothing() -> None:
    verdict = verdict_on(read(BEATS), runs("weighted", falling(20, 0.5)))
    assert (verdict.verdict, verdict.replicates) == ("undecided", 0)
    assert judge([read(BEATS)], pd.DataFrame(), pd.DataFrame())["verdict"].eq("undecided").all()


def test_failures_are_counted_and_never_help() -> None:
    good, bad = falling(20, 0.5), falling(20, 0.5)
    good[:3, -1] = np.nan
    verdict = verdict_on(read(BEATS), runs("weighted", good), runs("uniform", 3 * bad))
    assert (verdict.failed_better, verdict.failed_worse) == (3, 0)
    assert verdict.verdict == "undecided"  # 17 of 20 wins, and an infinite mean
    assert verdict.wins == 17 / 20


def test_points_that_no_run_reaches_are_clipped() -> None:
    claim = read(BEATS + "at = [10, 1000, 20000]")
    claim = replace(claim, graphs=("ring",), step_sizes=("printed",))
    table = judge([claim], pd.concat(pair(20)), pd.DataFrame())
    assert table["at"].tolist() == [10.0, 1000.0]


def test_per_message_differs_from_per_update() -> None:
    """Equal per update, but one sends ten times as much."""
    claim = read(BEATS + 'cost = "messages"')
    verdict = verdict_on(claim, *pair(30, messages=10))
    assert verdict.at == 1000.0  # messages, which the frugal one needs 1000 updates for
    assert verdict.ratio == pytest.approx(math.sqrt(10), rel=0.2)
    assert verdict.verdict == "holds"


def norms(method: str, instances: int = 30) -> pd.DataFrame:
    return pd.DataFrame(
        {"graph": "ring", "problem": "easy", "method": method, "step_size": "printed",
         "instance": range(instances), "optimum_norm": 2.0}
    )  # fmt: skip


def test_cost_to_target() -> None:
    """Errors k^-½ and 3 k^-½ reach 0.1 after 100 and 900 updates."""
    claim = read(BEATS.replace("beats", "cost-to-target") + "target = 0.1")
    cells = pair(30, 3.0)
    verdict = verdict_on(claim, *cells)
    assert verdict.verdict == "holds"
    assert verdict.median_ratio == pytest.approx(9.0, rel=0.3)
    never = verdict_on(claim, cells[0], runs("uniform", falling(30, 0.0, 3.0)))
    assert (never.ratio, never.lower, never.failed_worse) == (math.inf, math.inf, 30)
    assert never.verdict == "holds"
    some = runs("uniform", np.concatenate([falling(20, 0.5, 1.5), falling(10, 0.0, 3.0)]))
    verdict = verdict_on(claim, cells[0], some)
    assert (verdict.failed_worse, verdict.verdict) == (10, "holds")
    assert 1 < verdict.ratio < math.inf  # two thirds reach it, so the median is finite
    neither = verdict_on(replace(claim, target=1e-9), *cells)
    assert neither.verdict == "undecided"
    assert math.isnan(neither.ratio)


def test_cost_to_a_share_of_the_optimum() -> None:
    claim = read(BEATS.replace("beats", "cost-to-target") + "target = 0.05\nrelative = true")
    cells = pair(30, 3.0)
    facts = pd.concat([norms("weighted"), norms("uniform")])  # ‖w*‖ = 2: to 0.1
    assert verdict_on(claim, *cells, facts=facts).median_ratio == pytest.approx(9.0, rel=0.3)
    assert verdict_on(claim, *cells).verdict == "undecided"  # ‖w*‖ is not known


@pytest.mark.parametrize(("power", "word"), [(0.7, "holds"), (0.1, "does not hold")])
def test_slope(power: float, word: str) -> None:
    """q = 0.6: the theorem promises -0.4."""
    claim = read('kind = "slope"\ntext = "t"\nmethods = ["uniform"]')
    verdict = verdict_on(claim, runs("uniform", falling(50, power)))
    assert verdict.threshold == pytest.approx(-0.4)
    assert verdict.ratio == pytest.approx(-power, abs=0.1)
    assert (verdict.better, verdict.worse) == ("uniform", "O(1/k^0.4)")
    assert verdict.verdict == word


def rank_claim(count: int) -> Claim:
    claim = read('kind = "rank"\ntext = "t"\nmethods = ["uniform"]')
    graphs = tuple(f"g{place}" for place in range(count))
    return replace(claim, graphs=graphs, step_sizes=("printed",))


def rank_tables(predictions: list[float]) -> tuple[pd.DataFrame, pd.DataFrame]:
    graphs = [f"g{place}" for place in range(len(predictions))]
    records = pd.concat(
        [runs("uniform", falling(20, 0.5, 2.0**place, seed=place), graph=graph)
         for place, graph in enumerate(graphs)]
    )  # fmt: skip
    facts = pd.concat(
        [norms("uniform", 20).assign(graph=graph, bound=bound)
         for graph, bound in zip(graphs, predictions, strict=True)]
    )  # fmt: skip
    return records, facts


@pytest.mark.parametrize(
    ("predictions", "value", "word"),
    [([1, 2, 3, 4, 5], 1.0, "holds"), ([5, 4, 3, 2, 1], -1.0, "does not hold"),
     ([7, 7, 7, 7, 7], 0.0, "does not hold"), ([math.nan] * 5, math.nan, "undecided")],
)  # fmt: skip
def test_rank(predictions: list[float], value: float, word: str) -> None:
    claim = rank_claim(5)
    (row,) = judge([claim], *rank_tables(predictions)).to_dict("records")
    assert row["ratio"] == pytest.approx(value, nan_ok=True)
    assert row["verdict"] == word
    assert row["worse"] == "bound"


def test_rank_takes_the_instances_that_all_graphs_have() -> None:
    claim = rank_claim(3)
    records, facts = rank_tables([1, 2, 3])
    for graph, left_out in (("g0", 3), ("g2", 5)):  # no noise would do there, say
        records = records[(records["graph"] != graph) | (records["instance"] != left_out)]
    (row,) = judge([claim], records, facts).to_dict("records")
    assert row["replicates"] == 18
    assert row["ratio"] == pytest.approx(1.0)


def test_the_same_results_give_the_same_verdict() -> None:
    first, second = (verdict_on(read(BEATS), *pair(20)) for _ in range(2))
    assert first == second
