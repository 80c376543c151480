"""`walklearn report`: a page of stored results."""

from __future__ import annotations

from pathlib import Path

import click

from walklearn.cli.console import Console, with_console


@click.command()
@click.argument("results", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path),
              help="File to write. Default: report.html in RESULTS.")  # fmt: skip
@with_console
def report(results: tuple[Path, ...], out: Path | None, console: Console) -> None:
    """Draw the stored RESULTS as one HTML page, without computing them again.

    RESULTS are study directories that `walklearn run` or `walklearn reproduce` wrote, or
    directories that contain several of them. The page works offline.

    \b
    Examples:
      walklearn report results/
      walklearn report results/fig2a results/fig2b --out figure2.html
    """
    from walklearn.studies.paper.catalogue import shipped_texts
    from walklearn.studies.report import write_report

    if out is None:
        if len(results) > 1:
            raise click.UsageError("several RESULTS need --out. Pass the page to write.")
        out = results[0] / "report.html"
    written = write_report(results, out, shipped_texts())
    console.document["report"] = str(written)
    console.print(f"Report: {written}")
