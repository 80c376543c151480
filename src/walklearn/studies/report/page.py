"""The report: one HTML file, drawn from stored results.

Scripts and numbers are inside the file; its Content-Security-Policy allows only these scripts, by
their hash, and no network. So a script in the text of a study cannot run: the text is escaped, and
the policy would forbid it.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

from walklearn import __version__
from walklearn.extras import package
from walklearn.files.atomic_write import atomic_write
from walklearn.studies.report.sections import Section, section
from walklearn.studies.report.verdict_table import SYMBOLS
from walklearn.studies.results import Results

POLICY = (
    "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)

MANY_VERDICTS = 40  # more readings are folded under their claim


def write_report(directories: Iterable[Path], target: Path, shipped: Collection[str] = ()) -> Path:
    """Draw the stored results of studies as one page, and write it atomically.

    directories: of studies, or directories with such. shipped: texts of the studies that
    `walklearn reproduce` runs. ValueError if a directory cannot be used.
    """
    results = [Results.open(each) for each in study_directories(directories)]
    names = [one.about["study"] for one in results]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"two directories have results of the study {min(twice)}; give one.")
    sections = [section(one, target.parent, shipped) for one in results]
    command = f"walklearn report {' '.join(one.directory for one in sections)} --out {target.name}"
    content = render(sections, command).encode()
    target.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(target, content)
    return target


def study_directories(directories: Iterable[Path]) -> list[Path]:
    """Return the directories of studies in these directories, in the order of their start."""
    studies: list[Path] = []
    for directory in directories:
        if not directory.is_dir():
            raise ValueError(f"{directory} is not a directory; give the directory of a study.")
        if (directory / "about.json").is_file():
            studies.append(directory)
            continue
        inside = sorted((file.parent for file in directory.glob("*/about.json")), key=_age)
        if not inside:
            raise ValueError(
                f"{directory} holds no results: no about.json in it nor one level below; give a "
                "directory that walklearn run or reproduce has written."
            )
        studies += inside
    return list(dict.fromkeys(studies))


def _age(directory: Path) -> tuple[str, Path]:
    """The time at which a study was started."""
    return str(Results.open(directory).about["started"]), directory


def render(sections: Sequence[Section], command: str) -> str:
    """Return the text of the page; it names the ``command`` that draws it again."""
    jinja2, plotly = (
        package(name, "experiments", "the page needs") for name in ("jinja2", "plotly.offline")
    )
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("walklearn.studies.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}  # keeps the order
    templates = files("walklearn.studies.report") / "templates"
    unpacking, drawing, behaviour, style = (
        (templates / name).read_text(encoding="utf-8")
        for name in ("unpack.js", "figures.js", "page.js", "page.css")
    )
    palette = (files("walklearn.plots") / "pages.css").read_text(encoding="utf-8")
    library: str = plotly.get_plotlyjs()
    # Inside a function, names of the scripts do not clash with those of the browser.
    script = f'"use strict";\n(async () => {{\n{unpacking}{drawing}{behaviour}}})();\n'
    counts = Counter(row.verdict for one in sections for claim in one.claims for row in claim.rows)
    text: str = environment.get_template("page.html").render(
        sections=sections,
        blocks={
            f"{one.name}/{place}": block.plain()
            for one in sections
            for place, block in enumerate(one.blocks)
        },
        library=base64.b64encode(gzip.compress(library.encode(), mtime=0)).decode(),
        script=script,
        policy=POLICY.format(scripts=f"{_fingerprint(library)} {_fingerprint(script)}"),
        style=palette + style,
        symbols=SYMBOLS,
        counts={verdict: counts[verdict] for verdict in SYMBOLS},
        folded=counts.total() > MANY_VERDICTS,
        title="walklearn report" + (f": {sections[0].name}" if len(sections) == 1 else ""),
        command=command,
        footing=("walklearn", "seed", "cells finished", "machine"),
        version=__version__,
        now=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )
    return text


def _fingerprint(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"'sha256-{digest}'"
