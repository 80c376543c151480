"""What a reading of a claim is, in words: which graph, which problem, which steps.

A study names its graphs, problems and step sizes as briefly as it likes. What a name stands for is
seen from the settings in which it differs from the others:

>>> settings = {"d2-r2": {"dimension": 2, "domain": {"ball": 2.0, "relative": True}},
...             "d2-wide": {"dimension": 2, "domain": {"ball": 10.0}}}
>>> in_words(settings)
{'d2-r2': 'W a ball of radius 2‖w*‖', 'd2-wide': 'W a ball of radius 10'}
>>> in_words({"only": {"dimension": 2}})
{'only': ''}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from walklearn.studies.report.bands import METRIC_SYMBOLS, PANEL

if TYPE_CHECKING:
    from walklearn.studies.study import Study

Settings = Mapping[str, Mapping[str, Any]]

_WORDS = {
    "dimension": "d = {}",
    "variance": "variance {}",
    "penalty": "λ = {}",
    "noise": "label noise {}",
    "spread": "rows of spread {}",
    "aggregate": "the objective is the {}",
    "data": "{}",
    "family": "{}",
    "nodes": "{} nodes",
    "probability": "p = {}",
    "constant": "step constant c = {}",
    "exponent": "q = {}",
    "tuning_updates": "for {} updates",
}


def readings_of(study: Study) -> dict[str, dict[str, str]]:
    """The words for every name of a graph, a problem and a step size, by what it names."""
    steps = {name: _steps(table, study.metric) for name, table in study.step_sizes.items()}
    both = {"graph": study.graphs, "problem": study.problems, "step_size": steps}
    return {kind: in_words(both[kind]) for kind in PANEL}


def in_words(settings: Settings) -> dict[str, str]:
    """What sets each apart from the others, with its name where that is not unique."""
    if len(settings) == 1:
        return dict.fromkeys(settings, "")
    keys = list(dict.fromkeys(key for table in settings.values() for key in table))
    differing = [key for key in keys if len({repr(one.get(key)) for one in settings.values()}) > 1]
    words = {
        name: ", ".join(_said(key, table[key]) for key in differing if key in table)
        for name, table in settings.items()
    }
    if "" in words.values() or len(set(words.values())) < len(words):
        return {name: f"{name}: {text}" if text else name for name, text in words.items()}
    return words


def _steps(table: Mapping[str, Any], metric: str) -> dict[str, Any]:
    """A step size in words, with what its constant was tuned for in place of the tried ones."""
    found = {key: value for key, value in table.items() if key not in ("constants", "metric")}
    if "constants" in table:
        found = {"tuned": METRIC_SYMBOLS[table.get("metric", metric)], **found}
    return found


def _said(key: str, value: Any) -> str:
    if key == "tuned":
        return f"step tuned for {value}"
    if key == "domain":
        return _domain(value)
    text = f"{value:,g}" if isinstance(value, int | float) else str(value).replace("_", " ")
    return _WORDS.get(key, f"{key.replace('_', ' ')} {{}}").format(text)


def _domain(value: Any) -> str:
    if isinstance(value, Mapping) and "ball" in value:
        return f"W a ball of radius {value['ball']:g}" + "‖w*‖" * bool(value.get("relative"))
    return f"W = {value}"
