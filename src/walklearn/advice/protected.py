"""Advice under a total ε: what follows from it for all that leaves a node, the model included.

The walk is the uniform one, which tells nothing of the rows, so that the whole budget goes to the
model; `allot` says from public facts what that takes.
"""

from __future__ import annotations

from walklearn.advice.advice import Advice, Candidate, choose_laziness
from walklearn.files.wording import plural
from walklearn.graphs import Graph
from walklearn.privacy.budget import Allotment, about_noise
from walklearn.privacy.printing import format_claim
from walklearn.updates.step_sizes import ConstantStep
from walklearn.walks import Uniform


def advise_protected(graph: Graph, allotted: Allotment) -> Advice:
    """Advise the uniform walk, with the noise that the budget asks for."""
    laziness, about_laziness = choose_laziness(graph)
    walk, step = Uniform(laziness=laziness), ConstantStep(allotted.step)
    noise = allotted.noise
    numbers = {"relative noise": allotted.relative_noise}
    candidates = (Candidate("uniform, protected", walk, numbers),)
    reasons = (
        about_laziness,
        "Uniform: it tells neighbours nothing of the rows, so the whole budget goes to the model. "
        "A weighted walk would have to release L_i out of the same budget.",
        f"Noise of {noise.noise_multiplier:.3g} times the clip {noise.clip:.3g} at each visit, and "
        f"at most {plural(noise.max_contributions, 'contribution')} of a node: together they "
        f"are within {format_claim(allotted.epsilon, allotted.delta)}. Training does all this "
        "by itself.",
        f"Step {allotted.step:.3g}, {plural(allotted.updates, 'update')}: from public facts.",
        about_noise(allotted),
    )
    return Advice(walk, step, reasons, candidates, allotment=allotted)
