"""`walklearn demo`: the paper's walks, gossip and a walk with memory."""

from __future__ import annotations

from pathlib import Path

import click

from walklearn.cli.console import Console, with_console
from walklearn.wording import align_columns


@click.command()
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), default=Path("walklearn-demo"),
    show_default=True, help="Directory for the picture, the table and the traces.",
)  # fmt: skip
@click.option("--steps", type=click.IntRange(1), default=20_000, show_default=True,
              help="Number of updates of a run.")  # fmt: skip
@click.option("--replicates", type=click.IntRange(1), default=32, show_default=True,
              help="Number of runs of each method.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
@with_console
def demo(out: Path, steps: int, replicates: int, seed: int, console: Console) -> None:
    """Compare the paper's walks, gossip and a walk with memory, in about a minute.

    A uniform walk, a weighted walk and asynchronous gossip train on 100 nodes (Erdős–Rényi, p =
    0.3), on data of high and of low variance. Their step constants are tuned on other seeds. The
    uniform walk with memory (updates.Saga) finds its own step. The picture shows high variance.
    """
    from walklearn.studies.paper import figure2

    console.print(
        "Tuning and running walks and gossip on 100 nodes "
        "(the first time also compiles, about half a minute) …"
    )
    results = {
        f"variance {variance:g}": figure2.compare(variance, steps, replicates, seed)
        for variance in (10.0, 1.0)
    }
    runs = figure2.facts(results)
    header, *rows = figure2.table(runs)
    text = "\n".join(align_columns(header, rows))
    out.mkdir(parents=True, exist_ok=True)
    figure2.draw(results["variance 10"], out / "comparison.png")
    (out / "comparison.txt").write_text(text + "\n", encoding="utf-8")
    for title, lines in results.items():
        for line in lines:
            line.trace.save(out / f"{title} {line.trace.label}.npz".replace(" ", "-"))
    console.document |= {"out": str(out), "runs": runs}
    console.print(text)
    console.print(
        f"\nMedian of {replicates} runs with its confidence interval. The step constant c was "
        "tuned on other seeds;\nthe walk with memory finds its own step. Picture of variance 10: "
        f"{out / 'comparison.png'}"
    )
