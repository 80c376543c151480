"""Verdicts for the page: by claim and reading, with their intervals drawn.

A claim has a verdict for each reading (graph, problem, step size, error, point). Its interval is
drawn around the threshold: ratios on a logarithmic axis, slopes and correlations on a linear one.
The rows of one claim share an axis.

>>> position(2.0, 1.0, 4.0, is_ratio=True), position(1e9, 1.0, 4.0, is_ratio=True)
(0.75, 1.0)
>>> position(2.0, 2.0, 4.0, is_ratio=True)
0.5
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
MANY_ROWS = 8  # more than these are also shown side by side
WIDEST = 1e4  # larger ratios are drawn at the edge

# By kind of claim: the estimate, the statement if the claim holds, the statement if it does not.
_WORDS = {
    "beats": (
        "Ratio: error of {worse} ÷ error of {better}. Holds above {factor:g}.",
        "{better} is better", "{worse} is better"),
    "cost-to-target": (
        "Ratio: cost of {worse} ÷ cost of {better}, to the target. Holds above {factor:g}.",
        "{better} reaches the target at less cost", "{worse} does"),
    "slope": (
        "Slope of ln(error) over ln(updates). Holds at or below q − 1.",
        "the error falls as fast as claimed", "it falls more slowly"),
    "rank": (
        "Spearman's rank correlation of {worse} and error over graphs. Holds above 0.",
        "the order is as claimed", "it is reversed"),
}  # fmt: skip
# Both statements where better by a factor is claimed.
_BY_A_FACTOR = "{better} is better by a factor of {factor:g}", "it is not"


@dataclass(frozen=True)
class Row:
    """One verdict: the outcome, the estimate with its interval, the reading, the stored rows."""

    verdict: str
    estimate: str
    interval: str
    marks: list[float]  # lower end, estimate, upper end, each between 0 and 1; or nothing
    order: float  # for sorting by the estimate
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
    outcomes: list[str]  # statement if the claim holds, statement if it does not
    source: str
    estimate: str
    rows: list[Row]

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Error and point of the readings, if there are many to show side by side."""
        columns = list(dict.fromkeys((row.metric, row.at) for row in self.rows))
        return columns if 1 < len(columns) < len(self.rows) > MANY_ROWS else []

    @property
    def lines(self) -> dict[str, dict[tuple[str, str], Row]]:
        """The rows by reading, and for each by error and point."""
        lines: dict[str, dict[tuple[str, str], Row]] = {}
        for row in self.rows:
            lines.setdefault(row.reading, {})[row.metric, row.at] = row
        return lines

    @property
    def counts(self) -> dict[str, int]:
        """The number of readings with each verdict, in the order of `SYMBOLS`."""
        counts = Counter(row.verdict for row in self.rows)
        return {verdict: counts[verdict] for verdict in SYMBOLS if counts[verdict]}

    @property
    def sentence(self) -> str:
        """The outcome over all readings, in a sentence."""
        total = len(self.rows)
        (first, often), *others = sorted(self.counts.items(), key=lambda item: -item[1])
        if often == total:
            head = first.capitalize()
        else:
            head = f"Mostly {first}" if 2 * often > total else "Depends on the reading"
        words = dict(zip(SYMBOLS, (*self.outcomes, "it is undecided"), strict=True))
        readings = "reading" if total == 1 else "readings"
        parts = [f"in {often} of {total} {readings} {words[first]}"]
        parts += [f"in {count} {words[verdict]}" for verdict, count in others]
        return f"{head}: {', '.join(parts)}."


def claims(
    study: str,
    verdicts: pandas.DataFrame,
    file_of: Callable[[str], str],
    words: Mapping[str, Mapping[str, str]],
) -> list[Claim]:
    """Group the verdicts of one study by claim; ``file_of`` names files of its directory.

    words: explanations of the names of graphs, problems and step sizes.
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
    first, reach = rows.iloc[0], _reach(rows)
    # Readings differ in graph, problem and step size, some claims also in the methods compared.
    varying = [side for side in ("better", "worse") if rows[side].nunique() > 1]
    pair = {
        side: f"the “{side}” method" if side in varying else first[side]
        for side in ("better", "worse")
    }

    def row(place: Any, verdict: dict[Any, Any]) -> Row:
        names = [words[kind].get(str(verdict[kind]), str(verdict[kind])) for kind in PANEL]
        label = " · ".join(filter(None, names)) or "the only one"
        reading = " · ".join([*(verdict[side] for side in reversed(varying)), label])
        return _row(place, verdict, reading, reach, file_of)

    estimate, *outcomes = _WORDS[first["kind"]]
    if first["kind"] in RATIOS and first["threshold"] != 1:
        outcomes = [*_BY_A_FACTOR]
    pair["factor"] = first["threshold"]
    estimate, *outcomes = (text.format(**pair) for text in (estimate, *outcomes))
    return Claim(
        id=name,
        text=str(first["text"]),
        outcomes=outcomes,
        source=str(first["source"]),
        estimate=estimate,
        rows=[row(*each) for each in zip(rows.index, rows.to_dict("records"), strict=True)],
    )


def position(value: float, threshold: float, reach: float, *, is_ratio: bool) -> float:
    """The position of a value on an axis from 0 to 1 with the threshold in its middle."""
    if is_ratio and 0 < value < math.inf:
        away = math.log(value / threshold) / math.log(reach)
    elif is_ratio:
        away = math.inf * (value - 1)
    else:
        away = (value - threshold) / reach
    return 0.5 + 0.5 * max(-1.0, min(1.0, float(away)))


def _reach(rows: pandas.DataFrame) -> float:
    """The length of the axis of a claim on either side."""
    ends = [float(end) for side in ("lower", "upper") for end in rows[side]]
    if rows["kind"].iloc[0] in RATIOS:
        ratios = [end / float(rows["threshold"].iloc[0]) for end in ends]
        return max([1.5, *(max(end, 1 / end) for end in ratios if 1 / WIDEST <= end <= WIDEST)])
    thresholds = [float(threshold) for threshold in rows["threshold"]] * 2
    away = [abs(end - middle) for end, middle in zip(ends, thresholds, strict=True)]
    return max([0.1, *filter(math.isfinite, away)])


def _row(
    place: Any, row: dict[Any, Any], reading: str, reach: float, file_of: Callable[[str], str]
) -> Row:
    ends = lower, estimate, upper = [float(row[name]) for name in ("lower", "ratio", "upper")]
    is_ratio = row["kind"] in RATIOS
    marks = []
    if not any(map(math.isnan, ends)):
        marks = [position(end, row["threshold"], reach, is_ratio=is_ratio) for end in ends]
    cells = [file_of(f"cells/{cell}.parquet") for cell in row["cells"]]
    return Row(
        verdict=str(row["verdict"]),
        estimate=number(estimate),
        interval=f"{number(lower)} to {number(upper)}",
        marks=marks,
        order=estimate if math.isfinite(estimate) else math.copysign(1e300, estimate),
        reading=reading,
        metric=METRIC_SYMBOLS[row["metric"]],
        metric_title=METRIC_LABELS[row["metric"]],
        at=_at(row),
        instances=int(row["replicates"]),
        notes=_notes(row, is_ratio),
        files=[f"{file_of('verdicts.parquet')}, row {place}", *cells],
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
        f"{row[side]} diverged or did not reach the target on {row[f'failed_{side}']} instances."
        for side in ("better", "worse")
        if row[f"failed_{side}"]
    ]
    return notes
