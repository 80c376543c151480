"""What an estimator saw on its way, as a trace."""

from __future__ import annotations

from typing import Any

import numpy as np

from walklearn import __version__
from walklearn.estimators.accounts import published
from walklearn.estimators.seeds import Seeds
from walklearn.estimators.training import Walked
from walklearn.simulation.trace import Trace
from walklearn.updates.walk_sgd import WalkSetting
from walklearn.walks import ReleasedWeighted


def trace_of(estimator: Any, setting: WalkSetting, walked: Walked, seeds: Seeds) -> Trace:
    """Losses, messages and models. Nobody solved for w*, so there are no errors."""
    problem, walk = setting.problem, setting.walk
    inner = walk.innermost
    drawn = inner if isinstance(inner, ReleasedWeighted) else None
    unknown = np.full((1, len(walked.updates)), np.nan)
    announcements = 2 * setting.graph.edge_count if walk.announced_numbers else 0
    counts = walked.contributions
    return Trace(
        label=repr(walk),
        spec={
            "walklearn": __version__,
            "estimator": type(estimator).__name__,
            "problem": problem.describe(),
            "graph": repr(setting.graph),
            "method": repr(walk),
            "step_size": repr(setting.step_size),
            "steps": walked.updates[-1],
            "average": estimator.average,
            "replicates": 1,
            "seed": seeds.walk.entropy if seeds.simulated else None,
        },
        updates=np.array(walked.updates),
        messages=np.array([walked.messages]),
        message_bytes=problem.model_bytes,
        distance=unknown,
        average_distance=unknown,
        gap=unknown,
        average_gap=unknown,
        loss=np.array([walked.values]),
        average_loss=np.array([walked.average_values]),
        models=estimator.weights_[None],
        averages=estimator.average_[None],
        visits=walked.visits,
        announcements=announcements,
        announcement_bytes=announcements * walk.announced_numbers * 8,
        released=None if drawn is None else drawn.visit_weights(setting.graph)[None],
        contributions=None if counts is None else counts[None],
        privacy=published(
            walk, setting.model_noise, problem.node_count, drawn.outside if drawn else 0
        ),
    )
