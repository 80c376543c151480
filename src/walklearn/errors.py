"""Errors that code can read: each has fields, and its message is made of them."""

from __future__ import annotations

from typing import Any

#: Optional members of objectives and walks, which parts ask for by name.
CAPABILITIES = {
    "optimum": "optimum() -> w*, the minimiser",
    "smoothness": "smoothness(node) -> L_i, the Lipschitz constant of ∇f_i",
    "local_value": "local_value(node, w, draws) -> φ_i(w), at least 0",
    "is_exact": "gradients that use all rows and no draws",
    "row_gradients": "row_gradients(node, w) -> (rows, size), a gradient for each row",
    "linear_rows": "linear_rows(node, draws) -> (rows, x, slopes), "
    "with ∇φ_i = slopes(w) @ x without draws",
    "answer": "answer(node, w, round_number) -> integers that reveal only their sum over all nodes",
    "has_rounds": "a walk that gives weight 1 to every node once per round",
}


#: Capabilities of walks; all others belong to objectives.
WALK_CAPABILITIES = ("has_rounds", "stationary", "transition_matrix")


class CapabilityError(TypeError):
    """A part needs a member that the objective, or the walk, does not have.

    Parameters
    ----------
    capability
        Name of the member.
    needed_by
        The part that needs it.
    missing_in
        The objective, or the walk, that does not have it.
    remedy
        What to do, as a sentence.

    Examples
    --------
    >>> import walklearn as wl
    >>> raise wl.CapabilityError("smoothness", "Weighted()", "Centre()", "Use Uniform().")
    Traceback (most recent call last):
        ...
    walklearn.errors.CapabilityError: Weighted() needs smoothness(node) -> L_i, the Lipschitz
    constant of ∇f_i. Missing in Centre(). Use Uniform().
    """

    def __init__(self, capability: str, needed_by: object, missing_in: object, remedy: str) -> None:
        self.capability, self.needed_by = capability, needed_by
        self.missing_in, self.remedy = missing_in, remedy
        need = CAPABILITIES.get(capability, capability)
        super().__init__(f"{needed_by} needs {need}. Missing in {missing_in}. {remedy}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the fields: an exception's own way would pass the message alone."""
        return type(self), (self.capability, self.needed_by, self.missing_in, self.remedy)


def check_needs(part: Any, objective: object, walk: object = None) -> None:
    """Raise a CapabilityError for the first of the part's `needs` that is missing."""
    for capability, remedy in part.needs.items():
        source = walk if capability in WALK_CAPABILITIES else objective
        if not getattr(source, capability, None):
            raise CapabilityError(capability, part, source, remedy)


class PrivacyWarning(UserWarning):
    """A use of private rows is not covered by the claimed ε.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("error", PrivacyWarning)  # refuse what would only be warned of
    """
