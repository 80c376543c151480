r"""From the house style of docstrings to reStructuredText, for autodoc.

Docstrings here are written to be read in the source: arguments as "name: what it is" lines,
formulas indented, code in `backticks`, and w* or L_i as they stand. This makes of them what
Sphinx wants: field lists, literal blocks, links, and escaped asterisks.

>>> print("\n".join(to_rest(["Draw w*.", "", "rows: how many, at least 1.", "seed: of `draw`."],
...                         ["rows", "seed"])))
Draw w\*.
<BLANKLINE>
:param rows: how many, at least 1.
:param seed: of :py:obj:`draw`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from typing import Any

from sphinx.ext.napoleon import NumpyDocstring
from sphinx.util.nodes import make_refnode

_CODE = re.compile(r"(:[\w:]+:)?(`+)(.+?)\2")
_AT_TOP = ("class", "exception", "function", "module")
_UNDERLINE = re.compile(r"^-{3,}$")


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("autodoc-process-docstring", _process_docstring, priority=400)
    app.connect("autodoc-process-signature", _process_signature)
    app.connect("autodoc-skip-member", _skip_aliases)
    app.connect("missing-reference", _find_in_package)
    return {"version": "1", "parallel_read_safe": True}


def _process_docstring(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    del app, what, name, options
    if any(_UNDERLINE.match(line.strip()) for line in lines):  # some have NumPy's sections
        lines[:] = NumpyDocstring(list(lines)).lines()
    else:
        lines[:] = to_rest(lines, _names_of(obj))


def _skip_aliases(
    app: Any, what: str, name: str, obj: Any, skip: bool, options: Any
) -> bool | None:
    """The fields of a named tuple say nothing of themselves."""
    del app, what, name, skip, options
    return True if (getattr(obj, "__doc__", "") or "").startswith("Alias for field") else None


def to_rest(lines: Sequence[str], names: Sequence[str] = ()) -> list[str]:
    """The docstring in reStructuredText; `names` are the arguments that it may explain."""
    result: list[str] = []
    for paragraph in _paragraphs(lines):
        first = paragraph[0]
        if first.startswith((">>>", "..")) or first.lstrip().startswith((">>>", "- ", "* ")):
            result += paragraph
        elif first.startswith(" "):
            result += ["::", "", *paragraph]
        else:
            result += _arguments(paragraph, names) or [_inline(line) for line in paragraph]
        result.append("")
    return result[:-1]


def _paragraphs(lines: Sequence[str]) -> Iterator[list[str]]:
    """Runs of lines between empty ones; indented runs that follow each other are one."""
    paragraph: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            paragraph.append(line)
        elif paragraph:
            yield paragraph
            paragraph = []


def _arguments(paragraph: Sequence[str], names: Sequence[str]) -> list[str]:
    """Field lists for "name: text" sentences; nothing if the paragraph has none."""
    if not names:
        return []
    known = "|".join(map(re.escape, names))
    start = re.compile(rf"(?:^|(?<=\. )|(?<=\n))((?:{known})(?:, (?:{known}))*): ")
    text = "\n".join(paragraph)
    if not start.match(text):
        return []
    _, *pieces = start.split(text)
    fields = []
    for name, words in zip(pieces[::2], pieces[1::2], strict=True):
        fields.append(f":param {name}: {_inline(' '.join(words.split()))}")
    return fields


def _inline(line: str) -> str:
    """Code becomes a link where there is something to link to; the rest is escaped."""
    result, end = "", 0
    for match in _CODE.finditer(line):
        result += _escaped(line[end : match.start()])
        role, ticks, code = match.groups()
        linkable = role is None and re.fullmatch(r"[A-Za-z_][\w.]*", code)
        if linkable:
            result += f":py:obj:`{code}`"
        else:
            result += match.group() if role or len(ticks) > 1 else f"``{code}``"
        end = match.end()
    return result + _escaped(line[end:])


def _escaped(text: str) -> str:
    """Asterisks, bars and trailing underscores mean something to Sphinx; *stress* stays."""
    kept = re.split(r"(\*\*[^*]+\*\*|(?<!\w)\*[^*\s][^*]*\*(?!\w))", text)
    for at in range(0, len(kept), 2):
        kept[at] = re.sub(r"(?<=\w)_(?!\w)", r"\\_", re.sub(r"([*|\\])", r"\\\1", kept[at]))
    return "".join(kept)


def _names_of(obj: Any) -> list[str]:
    """The arguments of a function; of a class also its fields."""
    try:
        names = list(inspect.signature(obj).parameters)
    except (TypeError, ValueError):
        names = []
    if inspect.isclass(obj):
        for kind in obj.__mro__:
            names += getattr(kind, "__annotations__", {})
            names += [name for name, value in vars(kind).items() if isinstance(value, property)]
    return [name for name in dict.fromkeys(names) if not name.startswith("_")]


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
