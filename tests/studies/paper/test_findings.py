"""Verdicts in words."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from walklearn.studies.paper.findings import BEGIN, END, insert, lines, readings, tally


def verdicts(**changes: object) -> pd.DataFrame:
    row = {
        "claim": 1, "kind": "beats", "text": "A beats B", "graph": "er", "problem": "easy",
        "step_size": "printed", "metric": "gap", "cost": "updates", "at": 100.0, "better": "a",
        "worse": "b", "ratio": 2.0, "lower": 1.5, "upper": 3.0, "replicates": 30,
        "verdict": "holds",
    }  # fmt: skip
    return pd.DataFrame([row | changes])


def test_tally_counts_readings_and_gives_the_range() -> None:
    table = pd.concat(
        [verdicts(), verdicts(problem="hard", ratio=0.5, verdict="does not hold"),
         verdicts(claim=2, text="B beats C", ratio=float("nan"), verdict="undecided")]
    )  # fmt: skip
    assert tally("mine", table) == [
        ["mine", "A beats B", "1", "1", "0", "0.5 to 2", "30"],
        ["mine", "B beats C", "0", "0", "1", "–", "30"],
    ]


def test_readings_of_the_last_point_and_equal_lists_once() -> None:
    table = pd.concat(
        [
            verdicts(at=10.0, verdict="undecided"),
            verdicts(),
            verdicts(problem="hard", ratio=0.5, verdict="does not hold"),
            verdicts(cost="messages"),
            verdicts(cost="messages", problem="hard", ratio=0.5, verdict="does not hold"),
            verdicts(metric="distance"),
        ],
        ignore_index=True,
    )
    first, second = readings(table)
    measure = "f(w) − f* at equal updates (100)"
    assert first == ("A beats B", measure, ["easy 2", "hard 0.5", "–"])
    assert second[1] == "‖w − w*‖ at equal updates (100)"


@pytest.mark.parametrize(
    ("kind", "measure"),
    [("slope", "slope of f(w) − f*"), ("cost-to-target", "updates until f(w) − f* is reached"),
     ("rank", "rank correlation with f(w) − f* after 100 updates")],
)  # fmt: skip
def test_the_measure_of_every_kind(kind: str, measure: str) -> None:
    assert readings(verdicts(kind=kind))[0][1] == measure


def test_lines_have_estimate_and_interval() -> None:
    (line,) = lines(verdicts())
    assert line == ["A beats B", "", "f(w) − f* at equal updates (100)", "2", "1.5 to 3", "holds"]


def test_insert_replaces_what_is_between_the_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"above\n{BEGIN}\nold\n{END}\nbelow\n", encoding="utf-8")
    for text in ("new\n", "newer\n"):
        insert(page, text)
        assert page.read_text(encoding="utf-8") == f"above\n{BEGIN}\n\n{text}\n{END}\nbelow\n"
    page.write_text("no marks", encoding="utf-8")
    with pytest.raises(ValueError, match="no place"):
        insert(page, "text")
    assert page.read_text(encoding="utf-8") == "no marks"
