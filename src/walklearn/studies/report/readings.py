"""The settings of a reading in words: its graph, its problem, its steps.

Names of graphs, problems and step sizes may be short. The settings in which they differ explain
them:

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

from walklearn.studies.report.bands import METRIC_SYMBOLS

if TYPE_CHECKING:
    from walklearn.studies.study import Study

Settings = Mapping[str, Mapping[str, Any]]

_WORDS = {
    "tuned": "step tuned for {}",
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
    """Explain every name of a graph, a problem and a step size."""
    steps, hidden = {}, ("constants", "exponents", "metric", "tuning_instances")
    for name, table in study.step_sizes.items():
        rest = {key: value for key, value in table.items() if key not in hidden}
        is_tuned = "constants" in table
        tuned = {"tuned": METRIC_SYMBOLS[table.get("metric", study.metric)]} if is_tuned else {}
        steps[name] = tuned | rest
    kinds = {"graph": study.graphs, "problem": study.problems, "step_size": steps}
    return {kind: in_words(settings) for kind, settings in kinds.items()}


def in_words(settings: Settings) -> dict[str, str]:
    """Describe the differences between settings, with the name where they are not unique."""
    if len(settings) == 1:
        return dict.fromkeys(settings, "")
    keys = dict.fromkeys(key for table in settings.values() for key in table)
    differing = [key for key in keys if len({repr(one.get(key)) for one in settings.values()}) > 1]
    words = {
        name: ", ".join(_phrase(key, table[key]) for key in differing if key in table)
        for name, table in settings.items()
    }
    if "" in words.values() or len(set(words.values())) < len(words):
        return {name: f"{name}: {text}" if text else name for name, text in words.items()}
    return words


def _phrase(key: str, value: Any) -> str:
    if key == "domain" and isinstance(value, Mapping) and "ball" in value:
        return f"W a ball of radius {value['ball']:g}" + "‖w*‖" * bool(value.get("relative"))
    if key == "domain":
        return f"W = {value}"
    text = f"{value:,g}" if isinstance(value, int | float) else str(value).replace("_", " ")
    return _WORDS.get(key, f"{key.replace('_', ' ')} {{}}").format(text)
