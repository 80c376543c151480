"""The verdicts as a reader sees them: claim by claim, reading by reading, with intervals drawn.

A claim is tried in several readings (graphs, problems, step sizes, errors, moments) and has a
verdict for each. An interval is drawn around what its estimate is compared with: ratios on a
logarithmic axis around 1, slopes and correlations on a linear one. The rows of one claim share
an axis.

>>> position(2.0, 1.0, 4.0, is_ratio=True), position(1e9, 1.0, 4.0, is_ratio=True)
(0.75, 1.0)
>>> position(-0.5, 0.0, 1.0, is_ratio=False)
0.25
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from walklearn.studies.report.bands import METRIC_LABELS, METRIC_SYMBOLS, PANEL
from walklearn.wording import number

if TYPE_CHECKING:
    import pandas

#: Symbols of verdicts, for readers who do not see colours.
SYMBOLS = {"holds": "✓", "does not hold": "✗", "undecided": "?"}
RATIOS = ("beats", "cost-to-target")
MANY_ROWS = 8  # beyond, they are also shown side by side
WIDEST = 1e4  # ratios beyond are drawn at the edge

_ESTIMATES = {
    "beats": "Ratio: error of {worse} ÷ error of {better}. Holds above 1.",
    "cost-to-target": "Ratio: cost of {worse} ÷ cost of {better}, to the target. Holds above 1.",
    "slope": "Slope of ln(error) over ln(updates). Holds at or below q − 1.",
    "rank": "Spearman's rank correlation of {worse} and error over graphs. Holds above 0.",
}
_SIDES = {  # statement if the claim holds, statement if it does not
    "beats": ("{better} is better", "{worse} is better"),
    "cost-to-target": ("{better} gets there at less cost", "{worse} does"),
    "slope": ("the error falls as fast as claimed", "it falls more slowly"),
    "rank": ("the order is as claimed", "it is the other way round"),
}


@dataclass(frozen=True)
class Row:
    """One verdict: how it came out, by how much, how sure, in which reading, from which rows."""

    verdict: str
    estimate: str
    interval: str
    marks: list[float]  # lower end, estimate, upper end, each between 0 and 1; or nothing
    order: float  # what the column of estimates is sorted by
    reading: str
    metric: str
    metric_title: str
    at: str
    instances: int
    notes: list[str]
    files: list[str]


@dataclass(frozen=True)
class Claim:
    """A claim of one study, and its verdicts."""

    id: str
    text: str
    sides: list[str]  # statement if the claim holds, statement if it does not
    source: str
    estimate: str
    rows: list[Row]

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Error and moment of the readings, if there are many of them to see side by side."""
        found = list(dict.fromkeys((row.metric, row.at) for row in self.rows))
        return found if 1 < len(found) < len(self.rows) > MANY_ROWS else []

    @property
    def lines(self) -> dict[str, dict[tuple[str, str], Row]]:
        """The rows by reading, and for each by error and moment."""
        found: dict[str, dict[tuple[str, str], Row]] = {}
        for row in self.rows:
            found.setdefault(row.reading, {})[row.metric, row.at] = row
        return found

    @property
    def counts(self) -> dict[str, int]:
        """How many readings came out in which way, in the order of `SYMBOLS`."""
        found = Counter(row.verdict for row in self.rows)
        return {verdict: found[verdict] for verdict in SYMBOLS if found[verdict]}

    @property
    def sentence(self) -> str:
        """How it came out over all readings, in a sentence."""
        counts, all_of_them = self.counts, len(self.rows)
        readings = "reading" if all_of_them == 1 else "readings"
        (first, often), *others = sorted(counts.items(), key=lambda item: -item[1])
        if often == all_of_them:
            head = first.capitalize()
        elif 2 * often > all_of_them:
            head = f"Mostly {first}"
        else:
            head = "Depends on the reading"
        said = dict(zip(SYMBOLS, (*self.sides, "it is undecided"), strict=True))
        parts = [f"in {often} of {all_of_them} {readings} {said[first]}"]
        parts += [f"in {count} {said[verdict]}" for verdict, count in others]
        return f"{head}: {', '.join(parts)}."


def claims(
    study: str,
    verdicts: pandas.DataFrame,
    file_of: Callable[[str], str],
    words: Mapping[str, Mapping[str, str]],
) -> list[Claim]:
    """The verdicts of one study, grouped by claim; ``file_of`` names files of its directory.

    words: what the names of graphs, problems and step sizes stand for.
    """
    if verdicts.empty:
        return []
    groups = verdicts.reset_index(drop=True).groupby("claim", sort=False)
    return [_claim(f"{study}-{key}", rows, file_of, words) for key, rows in groups]


def _claim(
    name: str,
    rows: pandas.DataFrame,
    file_of: Callable[[str], str],
    words: Mapping[str, Mapping[str, str]],
) -> Claim:
    first = rows.iloc[0]
    reach = _reach(rows)
    # Readings differ in graph, problem and step size, some claims also in who is compared.
    names = rows[list(PANEL)].astype(str)
    worded = [
        names[kind].map(lambda name, kind=kind: words[kind].get(name, name)) for kind in PANEL
    ]
    labels = names["problem"].copy()
    for place in labels.index:
        labels[place] = " · ".join(filter(None, (one[place] for one in worded))) or "as it is"
    pair = {side: " / ".join(rows[side].unique()) for side in ("better", "worse")}
    for side in ("better", "worse"):
        if rows[side].nunique() > 1:
            labels = rows[side] + " · " + labels
            pair[side] = f"the “{side}” method"
    return Claim(
        id=name,
        text=str(first["text"]),
        sides=[side.format(**pair) for side in _SIDES[first["kind"]]],
        source=str(first["source"]),
        estimate=_ESTIMATES[first["kind"]].format(**pair),
        rows=[
            _row(place, row, label, reach, file_of)
            for (place, label), row in zip(labels.items(), rows.to_dict("records"), strict=True)
        ],
    )


def position(value: float, threshold: float, reach: float, *, is_ratio: bool) -> float:
    """Where a value stands on an axis from 0 to 1 that has the threshold in its middle."""
    if is_ratio:
        away = math.log(value) / math.log(reach) if 0 < value < math.inf else math.inf * (value - 1)
    else:
        away = (value - threshold) / reach
    return 0.5 + 0.5 * max(-1.0, min(1.0, float(away)))


def _reach(rows: pandas.DataFrame) -> float:
    """How far the axis of a claim goes on either side."""
    ends = [float(end) for side in ("lower", "upper") for end in rows[side]]
    if rows["kind"].iloc[0] in RATIOS:
        return max([1.5, *(max(end, 1 / end) for end in ends if 1 / WIDEST <= end <= WIDEST)])
    thresholds = [float(threshold) for threshold in rows["threshold"]] * 2
    away = [abs(end - middle) for end, middle in zip(ends, thresholds, strict=True)]
    return max([0.1, *filter(math.isfinite, away)])


def _row(
    place: Any, row: dict[Any, Any], reading: str, reach: float, file_of: Callable[[str], str]
) -> Row:
    ends = [float(row[name]) for name in ("lower", "ratio", "upper")]
    is_ratio = row["kind"] in RATIOS
    marks = []
    if not any(map(math.isnan, ends)):
        marks = [position(end, row["threshold"], reach, is_ratio=is_ratio) for end in ends]
    file = file_of("verdicts.parquet")
    return Row(
        verdict=str(row["verdict"]),
        estimate=number(ends[1]),
        interval=f"{number(ends[0])} to {number(ends[2])}",
        marks=marks,
        order=ends[1] if math.isfinite(ends[1]) else math.copysign(1e300, ends[1]),
        reading=reading,
        metric=METRIC_SYMBOLS[row["metric"]],
        metric_title=METRIC_LABELS[row["metric"]],
        at=_at(row),
        instances=int(row["replicates"]),
        notes=_notes(row, is_ratio),
        files=[
            f"{file}, row {place}",
            *(file_of(f"cells/{cell}.parquet") for cell in row["cells"]),
        ],
    )


def _at(row: dict[Any, Any]) -> str:
    if math.isnan(row["at"]):
        return str(row["cost"])
    if row["kind"] == "cost-to-target":
        return f"{row['cost']} to {row['at']:g}"
    return f"{row['at']:,.0f} {row['cost']}"


def _notes(row: dict[Any, Any], is_ratio: bool) -> list[str]:
    notes = [f"{100 * row['confidence']:.0f} % interval: {row['interval']}."]
    if not is_ratio:
        notes.append(f"Compared with {number(row['threshold'])}.")
    elif not math.isnan(row["median_ratio"]):
        notes.append(
            f"Ratio of medians {number(row['median_ratio'])}; {row['better']} wins on "
            f"{100 * row['wins']:.0f} % of the instances; one instance carries up to "
            f"{100 * row['largest_share']:.0f} % of a mean."
        )
    notes += [
        f"{row[side]} diverged or never got there on {row[f'failed_{side}']} instances."
        for side in ("better", "worse")
        if row[f"failed_{side}"]
    ]
    return notes
