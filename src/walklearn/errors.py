"""Errors that code can read: each has fields, and its message is made of them."""

from __future__ import annotations

from typing import Any

#: Optional members of objectives and walks, which parts ask for by name.
CAPABILITIES = {
    "optimum": "optimum() -> w*, the minimiser",
    "smoothness": "smoothness(node) -> L_i, the Lipschitz constant of ∇f_i",
    "local_value": "local_value(node, w, draws) -> φ_i(w), at least 0",
    "is_exact": "gradients that use all rows and no draws",
    "is_double": "models of type float64",
    "row_gradients": "row_gradients(node, w) -> (rows, size), a gradient for each row",
    "linear_rows": "linear_rows(node, draws) -> (rows, x, slopes), "
    "with ∇φ_i = slopes(w) @ x without draws",
    "answer": "answer(node, w, round_number) -> integers that reveal only their sum over all nodes",
    "has_rounds": "a walk that gives weight 1 to every node once per round",
}


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
        super().__init__(capability, needed_by, missing_in, remedy)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the parts as text, because an objective under noise cannot be pickled."""
        return type(self), (
            self.capability, str(self.needed_by), str(self.missing_in), self.remedy
        )  # fmt: skip

    def __str__(self) -> str:
        need = CAPABILITIES.get(self.capability, self.capability)
        return f"{self.needed_by} needs {need}. Missing in {self.missing_in}. {self.remedy}"


def check_needs(part: Any, objective: object, walk: object = None) -> None:
    """Raise a CapabilityError for the first of the part's `needs` that is missing."""
    if not isinstance(part.needs, dict):
        raise TypeError(f"needs of {part!r} must be a dict from capability to remedy.")
    for capability, remedy in part.needs.items():
        source = walk if capability == "has_rounds" else objective
        if not getattr(source, capability, None):
            raise CapabilityError(capability, part, source, remedy)


class InputError(ValueError):
    """A value in a file, or in a table of settings, is wrong.

    Parameters
    ----------
    problem
        What is wrong and what to do, continuing a sentence that begins with the key.
    key
        The key of the value, with dots between nested keys; empty if there is none.
    place
        The file and the line.

    Examples
    --------
    >>> import walklearn as wl
    >>> raise wl.InputError("must be at least 1; it is 0.", "updates", "plan.toml, line 3")
    Traceback (most recent call last):
        ...
    walklearn.errors.InputError: plan.toml, line 3: updates must be at least 1; it is 0.
    """

    def __init__(self, problem: str, key: str = "", place: str = "") -> None:
        self.problem, self.key, self.place = problem, key, place
        super().__init__(problem, key, place)

    def __str__(self) -> str:
        separator = "" if not self.key or self.problem.startswith(":") else " "
        text = f"{self.key}{separator}{self.problem}"
        return f"{self.place}: {text}" if self.place else text.removeprefix(": ")


class MissingExtraError(ImportError):
    """A package of an optional extra is not installed.

    Parameters
    ----------
    extra
        Name of the extra.
    package
        Name of the package, as pip knows it.
    needed_by
        What needs it, with a verb: "to_networkx needs".

    Examples
    --------
    >>> import walklearn as wl
    >>> raise wl.MissingExtraError("networkx", "networkx", "to_networkx needs")
    Traceback (most recent call last):
        ...
    walklearn.errors.MissingExtraError: to_networkx needs networkx. In the clone of walklearn:
    pip install '.[networkx]'
    """

    def __init__(self, extra: str, package: str, needed_by: str) -> None:
        self.extra, self.package, self.needed_by = extra, package, needed_by
        super().__init__(extra, package, needed_by)

    def __str__(self) -> str:
        install = f"pip install '.[{self.extra}]'"
        return f"{self.needed_by} {self.package}. In the clone of walklearn: {install}"


class InterruptedWarning(UserWarning):
    """Training was interrupted; the model so far is kept.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("error", InterruptedWarning)  # interrupted training raises an error
    """


class PrivacyWarning(UserWarning):
    """A use of private rows is not covered by the claimed ε.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("error", PrivacyWarning)  # raise an error instead
    """
