"""The price of privacy: error against ε, and the line to beat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from walklearn.experiments.pictures.panels import ERRORS, Curves, explain, figure_of
from walklearn.plot.axes import colour, dress, plain_ticks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from walklearn.report.bands import Columns
    from walklearn.studies import Results

_REWEIGHTINGS = {"released": "released weights R̄ / R", "as-printed": "printed weights L̄ / L"}


def price(results: Results) -> Figure:
    """A panel for each reweighting: a line per mechanism, a level per walk that is not private."""
    curves = Curves(results)
    methods = curves.study.methods
    figure, panels = figure_of(1, 2, width=4.8, height=4.0)
    kinds = list(
        dict.fromkeys(each["mechanism"] for each in methods.values() if "mechanism" in each)
    )
    for axes, (reweight, title) in zip(panels[0], _REWEIGHTINGS.items(), strict=True):
        for number, kind in enumerate(kinds):
            points = sorted(
                (each["epsilon"], name)
                for name, each in methods.items()
                if each.get("mechanism") == kind and each["reweight"] == reweight
            )
            found = [(e, _last(curves, name)) for e, name in points]
            means = [last[0] for _, last in found]
            spread = [[mean - low for mean, low, _ in (last for _, last in found)],
                      [high - mean for mean, _, high in (last for _, last in found)]]  # fmt: skip
            axes.errorbar([e for e, _ in found], means, yerr=spread, color=colour(number),
                          marker="o", markersize=4, capsize=2, label=kind)  # fmt: skip
        for name, line in (("uniform", "--"), ("weighted", ":")):
            mean, low, high = _last(curves, name)
            axes.axhline(mean, color="black", linestyle=line, label=f"{name} walk, no noise")
            axes.axhspan(low, high, color="grey", alpha=0.15, linewidth=0)
        axes.set(xscale="log", yscale="log", title=title)
        dress(axes, "ε", ERRORS[curves.study.metric])
        plain_ticks(axes.xaxis)
    explain(figure, curves)
    return figure


def _last(curves: Curves, method: str) -> tuple[float, float, float]:
    """The final mean error and its interval."""
    found: Columns | None = curves.get("er", "breast-cancer", method, "tuned")
    if found is None:
        return float("nan"), float("nan"), float("nan")
    metric = curves.study.metric
    mean, low, high = (float(found[f"{metric} mean{end}"][-1]) for end in ("", " lower", " upper"))
    return mean, low, high
