"""Gap weights: the gradient is scaled by the time since the last visit to its node.

The weight at node i is 1 at its first visit and (k − k_last) / N at visit k. After visits at
k_1 < … < k_r the total weight of the node is 1 + (k_r − k_1) / N: the sum telescopes, for every
walk and every graph. A stationary walk visits i at the rate π_i, and its mean gap there is 1 / π_i
(Kac's lemma), so the mean weight of a node per update is 1 / N. Nobody announces a degree or L_i.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from walklearn.walks.view import View

if TYPE_CHECKING:
    from walklearn.walks.walk import Walk


def gap_weight(view: View, last: Any) -> float:
    """Return the weight of this visit; `last` is the number of the last one, from 1, or 0.

    >>> from walklearn import graphs, walks
    >>> view = walks.view_of(walks.Simple(), graphs.ring(5), 0, visits=9)
    >>> gap_weight(view, 0), gap_weight(view, 3)
    (1.0, 1.4)
    """
    return (view.visits + 1 - int(last)) / view.nodes if last else 1.0


def check_mean(walk: Walk, mean: str) -> None:
    """Refuse to estimate a mean importance, which gap weights do not use."""
    if walk.has_gap_weights and mean == "estimated":
        raise ValueError(
            f"{walk!r} scales gradients by gaps between visits, so there is no mean importance to "
            'estimate. Use mean_importance="exact".'
        )
