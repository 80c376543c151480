"""`walklearn reproduce`: the paper's figures, verdicts on its claims, and more experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import walklearn as wl
from walklearn.cli.console import Console, with_console
from walklearn.cli.data_options import with_options
from walklearn.cli.run import WORKERS, run_to_end


@click.command()
@click.argument("names", nargs=-1)
@click.option("--quick", is_flag=True,
              help="Use fewer instances and updates: under a minute for each.")  # fmt: skip
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=Path("results"),
              show_default=True, help="Directory for tables, pictures and the page.")  # fmt: skip
@with_options(WORKERS)
@with_console
def reproduce(
    names: tuple[str, ...], quick: bool, out: Path, console: Console, **workers: Any
) -> None:
    """Reproduce the paper's figures, judge its claims, and run further experiments.

    NAMES are any of: fig1a, fig1b, fig2a, fig2b, fig3 (fig1 and fig2 stand for a and b), slope,
    bounds, heterogeneous, map, topologies, price, communication, methods, memory-private,
    real-data. Default: all.

    Each of them gets a directory in OUT with its tables and its picture (PNG and SVG).
    OUT/report.html shows all results in OUT. Finished parts are not computed again.

    \b
    Examples:
      walklearn reproduce
      walklearn reproduce fig2 --quick
    """
    from walklearn.studies.paper.catalogue import COMPUTED, select, shipped_study, shipped_texts

    chosen = select(names)
    _check(chosen, out, **workers)
    from walklearn.studies.paper import figure1, findings
    from walklearn.studies.paper.panels import PICTURES
    from walklearn.studies.report import write_report
    from walklearn.studies.report.pictures import draw, save
    from walklearn.studies.report.sections import StoredResults

    tallies = []
    for name in chosen:
        if name in COMPUTED:
            console.print(f"{name}: computed, not simulated")
            folder, picture = figure1.compute(name, out)
            save(draw(picture), folder, name)
            continue
        study = shipped_study(name)
        results = run_to_end(study.quick() if quick else study, out, console, **workers)
        picture = PICTURES[name](StoredResults(wl.studies.Results.open(out / name), out))
        save(draw(picture), out / name, name)
        tallies += findings.tally(name, results.verdicts())
    stored = [out / name for name in _shown(chosen, out, console)]
    write_report(stored, out / "report.html", shipped_texts())
    if tallies:
        console.print("\nVerdicts over all readings (details on the page and in verdicts.parquet):")
        console.print_table(findings.HEADER, tallies)
    console.document |= {"chosen": chosen, "report": str(out / "report.html")}
    console.print(f"\nReport: {out / 'report.html'}")


def _check(names: list[str], out: Path, **workers: Any) -> None:
    """Refuse missing packages and results of another version before the long run starts."""
    from walklearn.extras import package
    from walklearn.studies.pools import check_engine

    for needed in ("pandas", "pyarrow", "sklearn", "plotly", "jinja2"):
        package(needed, "experiments", "studies need")
    check_engine(**workers)
    for name in names:
        if (out / name / "about.json").exists():
            wl.studies.Results.open(out / name)  # fails if another version wrote it


def _shown(chosen: list[str], out: Path, console: Console) -> list[str]:
    """Return the names of all results in `out`; the new page shows earlier results, too."""
    from walklearn.studies.paper.catalogue import NAMES

    stored = {file.parent.name for file in out.glob("*/about.json")}
    ordered = [*(name for name in NAMES if name in stored), *sorted(stored.difference(NAMES))]
    return [name for name in ordered if name in chosen or _is_drawable(out / name, console)]


def _is_drawable(folder: Path, console: Console) -> bool:
    """True if a directory has rows to draw, and is not a copy of another."""
    try:
        results = wl.studies.Results.open(folder)
    except wl.studies.ResultsError as error:
        console.print(f"Note: not on the page: {error}")
        return False
    # Computed results, which are not simulated, have no cells.
    has_rows = results.finished_count > 0 or not results.about["cells"]
    return has_rows and results.about["study"] == folder.name
