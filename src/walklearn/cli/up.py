"""`walklearn up`: a network of real node processes on this machine, watched while it learns."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from walklearn.cli.bad_input import BadInput, plainly

if TYPE_CHECKING:
    from walklearn.node.trial.local_network import LocalNetwork
    from walklearn.node.trial.two_gaussians import Glimpse, Trial

_LOOK_SECONDS = 0.25
_LINE_SECONDS = 2.0  # between two lines, where there is no terminal


@click.command()
@click.option("--nodes", type=click.IntRange(2, 200), default=20, show_default=True)
@click.option("--graph", default="erdos-renyi", show_default=True,
              help="A family such as ring or barabasi-albert, or an edge-list file.")  # fmt: skip
@click.option("--walk", type=click.Choice(["uniform", "weighted"]), default="uniform",
              show_default=True)  # fmt: skip
@click.option("--epsilon", type=float, help="Protect what the weighted walk releases.")
@click.option("--delta", type=float, help="Goes with --epsilon.")
@click.option("--updates", type=click.IntRange(1), default=2000, show_default=True)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True,
              help="Of graph and data; keys, noise and walk are never seeded.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), default=Path("walklearn-up"),
              show_default=True, help="For the nodes, the model and the picture.")  # fmt: skip
@plainly
def up(
    nodes: int, graph: str, walk: str, epsilon: float | None, delta: float | None, updates: int,
    seed: int, out: Path,
) -> None:  # fmt: skip
    """Start a whole network on this machine and watch it learn.

    Every node is a process with its own key, rows and directory; they talk over loopback with
    TLS, to their neighbours only. Ends when all of them have the final model; Ctrl-C ends them.

    \b
    Examples:
      walklearn up
      walklearn up --nodes 10 --graph ring
      walklearn up --walk weighted --epsilon 3 --delta 0.03
    """
    _check(walk, epsilon, delta, out)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the nodes are ended too
    from walklearn.files.extras import extra
    from walklearn.graphs import as_graph

    with extra("node", "nodes need"):
        from walklearn.node.trial.local_network import LocalNetwork, LocalNetworkError
        from walklearn.node.trial.two_gaussians import Trial

    privacy = None if epsilon is None or delta is None else (epsilon, delta)
    trial = Trial.draw(as_graph(graph, nodes=nodes, seed=seed), walk, updates, privacy, seed)
    click.echo(f"Making {nodes} nodes in {out}: keys, rows, invites …")
    with LocalNetwork.create(out, trial.plan, trial.graph, trial.rows()) as network:
        try:
            network.start()
            click.echo(
                f"{nodes} processes run; the walk begins at {network.directories[0].settings.name}."
            )
            network.start_walk()
            curve = _watch(network, trial, updates)
            _conclude(network, trial, curve, out)
        except LocalNetworkError as error:
            raise click.ClickException(str(error)) from error


def _check(walk: str, epsilon: float | None, delta: float | None, out: Path) -> None:
    if (epsilon is None) != (delta is None):
        raise BadInput("--epsilon and --delta go together: a promise needs both.")
    if epsilon is not None and walk == "uniform":
        raise BadInput(
            "the uniform walk releases nothing that --epsilon could protect: use --walk weighted."
        )
    if out.exists() and any(out.iterdir()):
        raise BadInput(
            f"{out} is not empty, and nodes are made once. Remove it, or choose another --out."
        )


def _watch(network: LocalNetwork, trial: Trial, updates: int) -> list[tuple[int, float]]:
    """Show the walk until it ends; returns the error as it fell."""
    from walklearn.node.trial.two_gaussians import watch

    curve: list[tuple[int, float]] = []
    begin = time.monotonic()
    with _display(updates) as show:
        for glimpse in watch(network, trial):
            if glimpse.error is not None and (not curve or curve[-1][0] < glimpse.updates):
                curve.append((glimpse.updates, glimpse.error))
            show(glimpse, time.monotonic() - begin, curve)
            time.sleep(_LOOK_SECONDS)
    return curve


def _conclude(
    network: LocalNetwork, trial: Trial, curve: list[tuple[int, float]], out: Path
) -> None:
    """The table, whether all nodes agree, the model and the picture."""
    from walklearn.cli.tables import show
    from walklearn.node.disk.kept_model import newest_model
    from walklearn.node.trial.two_gaussians import draw

    statuses = network.statuses()
    made = [status["counters"].get("updates", 0) for status in statuses]
    rows = [
        [status["name"], str(len(status["neighbours"])), str(count),
         str(status["counters"].get("handovers_sent", 0)), "yes" if status["final"] else "no"]
        for status, count in zip(statuses, made, strict=True)
    ]  # fmt: skip
    show(["node", "neighbours", "updates", "handovers", "final model"], rows)
    models = [network.newest(number) for number in range(len(statuses))]
    bodies = {None if token is None else token.model.tobytes() for token in models}
    if len(bodies) != 1 or None in bodies:
        raise click.ClickException("the nodes do not hold the same model: please report this.")
    trained, _ = newest_model(network.directories[0])
    trained.save(out / "model", overwrite=True)
    law = [status["importance"] for status in statuses]
    draw(trial, made, law, curve, out / "network.png")
    final = models[0]
    assert final is not None
    click.echo(
        f"All {len(models)} nodes hold the same final model, at ‖w − w*‖ = "
        f"{trial.error(final.model):.3g} after {final.updates} updates "
        f"(began at {curve[0][1]:.3g})."
    )
    click.echo(f"Picture: {out / 'network.png'}. Model: {out / 'model'}.")


Show = Callable[["Glimpse", float, list[tuple[int, float]]], None]


class _display:
    """A panel that is drawn again in a terminal; a line now and then where there is none."""

    def __init__(self, updates: int) -> None:
        self._updates, self._said = updates, -_LINE_SECONDS
        self._live: Any = None

    def __enter__(self) -> Show:
        if not sys.stdout.isatty():
            return self._line
        from rich.live import Live

        self._live = Live(refresh_per_second=8, transient=True)
        self._live.__enter__()
        return self._panel

    def __exit__(self, *error: Any) -> None:
        if self._live is not None:
            self._live.__exit__(*error)

    def _line(self, glimpse: Glimpse, seconds: float, curve: list[tuple[int, float]]) -> None:
        if seconds - self._said >= _LINE_SECONDS:
            self._said = seconds
            click.echo(_text(glimpse, seconds))

    def _panel(self, glimpse: Glimpse, seconds: float, curve: list[tuple[int, float]]) -> None:
        from rich.console import Group
        from rich.panel import Panel
        from rich.progress_bar import ProgressBar
        from rich.text import Text

        bar = ProgressBar(total=glimpse.of, completed=glimpse.updates)
        lines = Group(bar, Text(_text(glimpse, seconds)), Text(_sparkline(curve), style="cyan"))
        self._live.update(Panel(lines, title="the walk", expand=False, width=78))


def _text(glimpse: Glimpse, seconds: float) -> str:
    error = "?" if glimpse.error is None else f"{glimpse.error:.4g}"
    where = f"token at {glimpse.holder}" if glimpse.holder else "token on its way"
    if glimpse.finished:
        where = f"final model on {glimpse.finished} nodes"
    return (
        f"{seconds:5.1f} s  {glimpse.updates:>6,} of {glimpse.of:,} updates  "
        f"‖w − w*‖ = {error:<8}  {where}"
    )


def _sparkline(curve: list[tuple[int, float]], width: int = 72) -> str:
    """The error so far, on a logarithmic scale, as blocks of eight heights.

    >>> _sparkline([(1, 1.0), (2, 0.2), (3, 0.01)])
    '█▆▁'
    """
    import numpy as np

    if not curve:
        return ""
    errors = np.log(np.maximum([error for _, error in curve], 1e-300))
    if len(errors) > width:
        errors = errors[np.linspace(0, len(errors) - 1, width).astype(int)]
    span = float(errors.max() - errors.min()) or 1.0
    heights = np.round((errors - errors.min()) / span * 7).astype(int)
    return "".join("▁▂▃▄▅▆▇█"[height] for height in heights)
