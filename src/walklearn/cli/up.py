"""`walklearn up`: run a network of real node processes on this machine and watch it learn."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from walklearn.cli.console import Console, with_console
from walklearn.cli.data_options import described_graph
from walklearn.cli.user_errors import BadInput, name_options_in_errors
from walklearn.cli.walk_panel import Curve, walk_panel

if TYPE_CHECKING:
    from walklearn.node.trial.local_network import LocalNetwork
    from walklearn.node.trial.two_gaussians import Glimpse, Trial
    from walklearn.node.trial.view import NetworkView

_LOOK_SECONDS = 0.25
MAX_NODES = 200  # processes that one machine runs


@click.command()
@click.option("--nodes", type=click.IntRange(2, MAX_NODES),
              help="Number of processes. Default: 20, or that of the edge list.")  # fmt: skip
@click.option("--graph", default="erdos-renyi", show_default=True,
              help="Family such as ring or barabasi-albert, or an edge-list file.")  # fmt: skip
@click.option("--walk", type=click.Choice(["uniform", "weighted"]), default="uniform",
              show_default=True)  # fmt: skip
@click.option(
    "--epsilon",
    type=click.FloatRange(0, min_open=True),
    help="Protect L_i, which the weighted walk discloses. The model stays unprotected.",
)
@click.option("--delta", type=click.FloatRange(0, 1, max_open=True),
              help="δ of the protection of L_i; required with --epsilon.")  # fmt: skip
@click.option("--updates", type=click.IntRange(1), default=2000, show_default=True)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True,
              help="Seed of graph and data. Keys, noise and walk are never seeded.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), default=Path("walklearn-up"),
              show_default=True, help="Directory for the nodes and the model.")  # fmt: skip
@click.option("--view", is_flag=True,
              help="Serve a page that shows the network and can kill and start nodes.")  # fmt: skip
@with_console
def up(
    nodes: int | None, graph: str, walk: str, epsilon: float | None, delta: float | None,
    updates: int, seed: int, out: Path, view: bool, console: Console,
) -> None:  # fmt: skip
    """Start a whole network on this machine and watch it learn.

    Each node is a process with its own key, rows and directory. Nodes connect only to their
    neighbours, with TLS over loopback. The command ends when all nodes have the final model, or
    with Ctrl-C.

    \b
    Examples:
      walklearn up
      walklearn up --nodes 10 --graph ring
      walklearn up --walk weighted --epsilon 3 --delta 0.03
      walklearn up --view --updates 20000
    """
    _check(walk, epsilon, delta, out)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # leaves `with`, which ends the nodes
    from walklearn.extras import extra

    with extra("node", "nodes need"):
        from walklearn.node.agreement.plan import Plan
        from walklearn.node.trial.local_network import LocalNetwork, LocalNetworkError
        from walklearn.node.trial.two_gaussians import Trial

    privacy = None if epsilon is None or delta is None else (epsilon, delta)
    drawn = described_graph(graph, nodes, seed, default=20)
    if not 2 <= drawn.node_count <= MAX_NODES:
        raise BadInput(
            f"{graph} has {drawn.node_count} nodes, and each is a process on this machine. Use 2 "
            f"to {MAX_NODES} nodes."
        )
    trial = Trial.draw(drawn, walk, updates, privacy, seed)
    # Refuse an unusable plan before the first node is created.
    with name_options_in_errors():
        Plan.from_text(trial.plan, "plan.toml").check_usable()
    if privacy is not None:
        console.print("Not protected: the model, so ε = ∞. Only L_i is released with noise.")
    console.print(f"Making {drawn.node_count} nodes in {out}: keys, rows, invites …")
    with LocalNetwork.create(out, trial.plan, trial.graph, trial.rows()) as network:
        try:
            network.start()
            console.print(f"{drawn.node_count} processes are running.")
            with _view(network, trial, f"{graph}, {walk} walk", view, console) as page:
                console.print(f"The walk starts at {network.directories[0].settings.name}.")
                network.start_walk()
                last, curve = _watch(network, trial, page, console)
                _conclude(network, trial, last, curve, out, console)
                if page is not None:
                    _stay(network, trial, page, console)
        except LocalNetworkError as error:
            raise click.ClickException(str(error)) from error


@contextmanager
def _view(
    network: LocalNetwork, trial: Trial, about: str, wanted: bool, console: Console
) -> Iterator[NetworkView | None]:
    """Serve the page and wait for a browser to open it; yield None if no page is wanted."""
    if not wanted:
        yield None
        return
    from walklearn.node.trial.view import NetworkView

    view = NetworkView(network, trial, about)
    with view.page:
        console.announce(f"Open this page to start the walk: {view.page.address}")
        view.page.opened.wait()
        view.begin()
        yield view


def _check(walk: str, epsilon: float | None, delta: float | None, out: Path) -> None:
    if (epsilon is None) != (delta is None):
        raise BadInput("--epsilon and --delta need each other. Pass both.")
    if epsilon is not None and walk == "uniform":
        raise BadInput(
            "the uniform walk releases nothing that --epsilon could protect. Use --walk weighted."
        )
    if out.exists() and any(out.iterdir()):
        raise BadInput(
            f"{out} is not empty, and nodes are created only once. Remove it, or choose another "
            "--out."
        )


def _watch(
    network: LocalNetwork, trial: Trial, view: NetworkView | None, console: Console
) -> tuple[Glimpse, Curve]:
    """Display the walk until it ends; return the last snapshot and the error after each update."""
    from walklearn.node.trial.two_gaussians import watch

    curve: Curve = []
    begin = time.monotonic()
    with walk_panel(console) as show:
        for glimpse in watch(network, trial):
            if glimpse.error is not None and (not curve or curve[-1][0] < glimpse.updates):
                curve.append((glimpse.updates, glimpse.error))
            show(glimpse, time.monotonic() - begin, curve)
            if view is not None:
                view.show(glimpse)
            time.sleep(_LOOK_SECONDS)
    return glimpse, curve


def _stay(network: LocalNetwork, trial: Trial, view: NetworkView, console: Console) -> None:
    """Serve the page until Ctrl-C."""
    from walklearn.node.trial.two_gaussians import watch

    console.announce("The nodes and the page stay until Ctrl-C.")
    while True:
        for glimpse in watch(network, trial):
            view.show(glimpse)
            time.sleep(_LOOK_SECONDS)


def _conclude(
    network: LocalNetwork, trial: Trial, last: Glimpse, curve: Curve, out: Path, console: Console
) -> None:
    """Print a table of the nodes, check that their models are equal, and write the model."""
    from walklearn.node.disk.kept_model import newest_model

    rows = [
        [node.name, str(len(network.directories[number].neighbours())), str(node.updates),
         str(node.handovers), "yes" if node.final else "no"]
        for number, node in enumerate(last.nodes)
    ]  # fmt: skip
    console.print_table(["node", "neighbours", "updates", "handovers", "final model"], rows)
    finished = [number for number, node in enumerate(last.nodes) if node.final]
    models = [network.newest(number) for number in finished]
    bodies = {None if token is None else token.model.tobytes() for token in models}
    if len(bodies) != 1 or None in bodies:
        raise click.ClickException("the final models of the nodes differ. Please report this.")
    trained, _ = newest_model(network.directories[finished[0]])
    trained.save(out / "model", overwrite=True)
    final = models[0]
    assert final is not None
    error = trial.error(final.model)
    console.document |= {
        "out": str(out),
        "model": str(out / "model"),
        "updates": final.updates,
        "distance": error,
        "distance_at_the_start": curve[0][1],
        "nodes": [{"name": node.name, "updates": node.updates, "handovers": node.handovers,
                   "final": node.final} for node in last.nodes],
    }  # fmt: skip
    every = f"{len(last.nodes)} nodes"
    who = f"All {every}" if len(models) == len(last.nodes) else f"{len(models)} of {every}"
    console.print(
        f"{who} have the same final model, with ‖w − w*‖ = {error:.3g} after {final.updates} "
        f"updates ({curve[0][1]:.3g} at the start)."
    )
    console.print(f"Model: {out / 'model'}.")
