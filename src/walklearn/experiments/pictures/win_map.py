"""Which walk wins where: ratios of errors over the spread of L and the noise of the targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from walklearn.experiments.findings import number
from walklearn.experiments.pictures.panels import ERRORS, figure_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from walklearn.studies import Results

_MARKS = {"holds": "✓", "does not hold": "✗", "undecided": "?"}
_MOST = 3.0  # decades that the colours tell apart


def win_map(results: Results) -> Figure:
    """A panel for each comparison; colour and number are the ratio, the mark is the verdict."""
    study, verdicts = results.study, results.verdicts()
    spreads = sorted({table["spread"] for table in study.problems.values()})
    noises = sorted({table["noise"] for table in study.problems.values()})
    pairs = list(verdicts.groupby(["better", "worse"], sort=False))
    figure, panels = figure_of(1, len(pairs), width=5.2, height=4.0)
    for axes, ((better, worse), rows) in zip(panels[0], pairs, strict=True):
        ratios = np.full((len(noises), len(spreads)), np.nan)
        for _, row in rows.iterrows():
            table = study.problems[row["problem"]]
            place = noises.index(table["noise"]), spreads.index(table["spread"])
            ratios[place] = np.clip(np.log10(row["ratio"]), -_MOST, _MOST)
            ink = "white" if abs(ratios[place]) > 0.6 * _MOST else "black"
            said = {"ha": "center", "va": "center", "color": ink}
            axes.text(*reversed(place), f"{_short(row['ratio'])} {_MARKS[row['verdict']]}", **said)
            interval = f"{_short(row['lower'])} to {_short(row['upper'])}"
            axes.text(place[1], place[0] - 0.25, interval, fontsize="x-small", **said)
        image = axes.imshow(
            ratios, cmap="RdBu", vmin=-_MOST, vmax=_MOST, origin="lower", aspect="auto"
        )
        axes.set_xticks(range(len(spreads)), [f"{spread:g}" for spread in spreads])
        axes.set_yticks(range(len(noises)), [f"{noise:g}" for noise in noises])
        axes.set(xlabel="spread of ln ‖x‖", ylabel="noise of the targets",
                 title=f"error of {worse} / error of {better}")  # fmt: skip
    bar = figure.colorbar(image, ax=panels[0].tolist(), shrink=0.8)
    bar.set_ticks(range(-3, 4), labels=["≤ 0.001", "0.01", "0.1", "1", "10", "100", "≥ 1,000"])
    figure.supxlabel(
        f"{ERRORS[study.metric]} after {study.updates:,} updates, {study.instances} instances; "
        "ratio of means over its 95 % interval; ✓ the second wins, ✗ the first does, ? undecided",
        fontsize="small", color="#555555",
    )  # fmt: skip
    return figure


def _short(value: float) -> str:
    """A number that fits a cell of the map.

    >>> _short(0.43), _short(3.2e29), _short(1e-300)
    ('0.43', '1e29', '0')
    """
    if value < 1e-3:
        return "0" if value < 1e-99 else f"1e{np.log10(value):.0f}"
    return number(value) if value < 1e5 else f"1e{np.floor(np.log10(value)):.0f}"
