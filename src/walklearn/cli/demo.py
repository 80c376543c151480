"""`walklearn demo`: the paper's walks, gossip, and faster methods."""

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
    """Compare the paper's walks, gossip and faster methods, in under a minute.

    A uniform walk, a weighted walk and asynchronous gossip train on 100 nodes (Erdős–Rényi, p =
    0.3), on data of high and of low variance. So does the same update on a walk that goes to the
    node visited least recently (oldest first). Their steps are tuned on other seeds. SAGA and
    Finito compute their own steps. The picture shows high variance.
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
            name = f"{title} {line.trace.label}.npz".replace(",", "").replace(" ", "-")
            line.trace.save(out / name)
    console.document |= {"out": str(out), "runs": runs}
    console.print(text)
    console.print(
        f"\nMedian of {replicates} runs with its confidence interval. Steps c / k^q were tuned on "
        "other seeds;\nSAGA and Finito compute their own. Picture of variance 10: "
        f"{out / 'comparison.png'}"
    )
