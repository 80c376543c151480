"""What autodoc leaves open: types as they are written, links by short names."""

from __future__ import annotations

import inspect
from typing import Any

from sphinx.util.nodes import make_refnode

_AT_TOP = ("class", "exception", "function", "module")


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("autodoc-process-signature", _process_signature)
    app.connect("autodoc-skip-member", _skip_aliases)
    app.connect("missing-reference", _find_in_package)
    return {"version": "1", "parallel_read_safe": True}


def _skip_aliases(
    app: Any, what: str, name: str, obj: Any, skip: bool, options: Any
) -> bool | None:
    """The fields of a named tuple say nothing of themselves."""
    del app, what, name, skip, options
    return True if (getattr(obj, "__doc__", "") or "").startswith("Alias for field") else None


class _AsWritten:
    """An annotation that prints as the source has it."""

    def __init__(self, annotation: Any) -> None:
        text = getattr(annotation, "__forward_arg__", annotation)
        self.text = text if isinstance(text, str) else inspect.formatannotation(text)

    def __repr__(self) -> str:
        return self.text


def _default(value: Any) -> Any:
    """A class by its name, as in dtype=float64; of `empty`, a class too, nothing is shown."""
    by_name = inspect.isclass(value) and value is not inspect.Parameter.empty
    return _AsWritten(value.__name__) if by_name else value


def _process_signature(
    app: Any, what: str, name: str, obj: Any, options: Any, signature: str, returns: str
) -> tuple[str, str] | None:
    """Types as they are written in the source: ArrayLike, and not what it stands for."""
    del app, name, options, returns
    if what not in ("function", "method", "class", "exception") or not signature:
        return None
    found = inspect.signature(obj)
    shown = [
        parameter
        if parameter.annotation is parameter.empty
        else parameter.replace(
            annotation=_AsWritten(parameter.annotation), default=_default(parameter.default)
        )
        for parameter in found.parameters.values()
        if parameter.name not in ("self", "cls")
    ]
    returned = found.return_annotation
    bare = what in ("class", "exception") or returned is found.empty
    arguments = found.replace(parameters=shown, return_annotation=found.empty)
    return str(arguments), "" if bare else repr(_AsWritten(returned))


def _find_in_package(app: Any, env: Any, node: Any, content: Any) -> Any:
    """Link short names, such as walks.Uniform, and leave foreign ones as plain code.

    A role that names something of walklearn which is not there is a mistake: Sphinx says so.
    """
    if node.get("refdomain") != "py":
        return None
    domain, target = env.get_domain("py"), node["reftarget"]
    parts = target.split(".")
    ours = parts[0] == "walklearn"
    for start in range(ours, len(parts)):
        ending = "." + ".".join(parts[start:])
        found = [name for name in domain.objects if name.endswith(ending)]
        if len(parts) == 1:  # `steps` is an argument more often than somebody's attribute
            found = [name for name in found if domain.objects[name].objtype in _AT_TOP]
        if len(found) == 1:
            place = domain.objects[found[0]]
            return make_refnode(
                app.builder, node["refdoc"], place.docname, place.node_id, content, found[0]
            )
        if not ours:
            break
    written = "refwarn" in node and node["reftype"] != "obj"  # as a role, not a type or in `ticks`
    return None if ours and written else content
