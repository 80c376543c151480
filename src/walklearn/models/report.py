"""`report.md`: a model described for people."""

from __future__ import annotations

from typing import Any

from walklearn.models.model import Model
from walklearn.models.score import Score

MAX_FEATURES = 40


def report_of(model: Model) -> str:
    """Return the report in Markdown."""
    lines = [f"# A {model.kind} of {model.target!r}", "", *_facts(model), ""]
    if model.details:
        known = {name: value for name, value in model.details.items() if value is not None}
        lines += ["## Training", "", *(_fact(*each) for each in known.items()), ""]
    lines += ["## Privacy", "", *_privacy(model), "", "## Weights", "", *_weights(model), ""]
    lines += ["## Use it", "", "```sh", "walklearn predict <this directory> new.csv", "```"]
    return "\n".join(lines) + "\n"


def _facts(model: Model) -> list[str]:
    facts: dict[str, Any] = {
        "loss": model.loss,
        "penalty": model.penalty,
        "classes": None if model.classes is None else list(map(str, model.classes)),
        "columns": [column.name for column in model.encoding.columns],
        "features": model.encoding.feature_count,
        "intercept": model.intercept,
        "walk": model.walk or None,
        "updates": model.updates,
        "predicts with": "the average w̄" if model.iterate == "average" else "the last iterate w",
    }
    return [_fact(name, value) for name, value in facts.items() if value is not None]


def _fact(name: str, value: Any, indent: str = "") -> str:
    head = f"{indent}- {name.replace('_', ' ')}:"
    if isinstance(value, dict) and set(value) == set(Score._fields):
        return f"{head} {Score(**value)}"
    if isinstance(value, dict):
        return "\n".join([head, *(_fact(*each, indent + "  ") for each in value.items())])
    return f"{head} {_in_words(value)}"


def _in_words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(_in_words, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _privacy(model: Model) -> list[str]:
    if not model.privacy:
        return ["Nothing is recorded, and nothing is claimed."]
    lines = [f"- claim: {model.claim}"]
    for name, value in model.privacy.items():
        if isinstance(value, list):
            lines += ["", f"{name.replace('_', ' ').capitalize()}:", ""] if value else []
            lines += [f"- {sentence}" for sentence in value]
        elif value is not None and name not in model.claim.to_dict():
            lines.append(_fact(name, value))
    return lines


def _weights(model: Model) -> list[str]:
    names = [*model.encoding.feature_names, *(["(intercept)"] if model.intercept else [])]
    scores = [""] if len(model.used) == 1 else [f" of {name}" for name in model.classes or ()]
    lines = ["| feature |" + "".join(f" weight{score} |" for score in scores)]
    lines.append("|---|" + "---:|" * len(scores))
    for at, name in list(enumerate(names))[:MAX_FEATURES]:
        cells = "".join(f" {row[at]:.6g} |" for row in model.used)
        lines.append(f"| {name.replace('|', chr(92) + '|')} |{cells}")
    if len(names) > MAX_FEATURES:
        lines.append(f"\nand {len(names) - MAX_FEATURES} more, in weights.npz.")
    return lines
