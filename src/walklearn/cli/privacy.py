"""`walklearn privacy`: calibrate, compare, plot, attack, audit."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

import walklearn as wl
from walklearn.cli.console import Console, with_console
from walklearn.extras import extra
from walklearn.privacy import MECHANISMS
from walklearn.wording import plural

_epsilon = click.option("--epsilon", type=float, required=True, help="Privacy loss ε.")
_delta = click.option(
    "--delta", type=float, required=True,
    help="δ: additive slack, P(outcome) ≤ e^ε · P(outcome with another value) + δ.",
)  # fmt: skip
_BOUNDS: dict[str, Any] = {"type": float, "nargs": 2, "metavar": "LO HI",
                           "help": "Public bounds of the values, 0 < LO < HI."}  # fmt: skip
_bounds = click.option("--bounds", required=True, **_BOUNDS)
_mechanism = click.option(
    "--mechanism", type=click.Choice(MECHANISMS.names), default="clamped-gamma", show_default=True
)


@click.group()
def privacy() -> None:
    """Calibrate, compare, plot, attack and audit the releases of nodes.

    Example: walklearn privacy calibrate --epsilon 3 --delta 0.03 --bounds 1 50
    """


@privacy.command()
@_epsilon
@_delta
@_bounds
@_mechanism
@with_console
def calibrate(
    epsilon: float, delta: float, bounds: tuple[float, float], mechanism: str, console: Console
) -> None:
    """Print the smallest noise that gives (ε, δ) for values within the bounds."""
    from walklearn.privacy.accounting.printing import format_upper

    calibrated = wl.privacy.calibrate(mechanism, epsilon=epsilon, delta=delta, bounds=bounds)
    middle = 0.5 * (bounds[0] + bounds[1])
    document = console.document = {
        "mechanism": repr(calibrated),
        "delta": calibrated.delta(epsilon),
        "epsilon": calibrated.epsilon(delta),
        "middle": middle,
        "mean": float(calibrated.mean(middle)),
        "standard_deviation": float(calibrated.variance(middle)) ** 0.5,
    }
    console.print(
        f"{document['mechanism']}\n"
        f"  delta at epsilon = {format_upper(epsilon)}:  {format_upper(document['delta'])}\n"
        f"  epsilon at delta = {format_upper(delta)}:  {format_upper(document['epsilon'])}\n"
        f"  releases of the value {middle:g} have mean {document['mean']:.4g} and standard "
        f"deviation {document['standard_deviation']:.4g}\n"
        "Compare it with other mechanisms: walklearn privacy compare"
    )


@privacy.command()
@_epsilon
@_delta
@_bounds
@with_console
def compare(epsilon: float, delta: float, bounds: tuple[float, float], console: Console) -> None:
    """Compare the errors of all mechanisms at the same (ε, δ)."""
    comparison = wl.privacy.compare(epsilon=epsilon, delta=delta, bounds=bounds)
    console.print(str(comparison))
    rows = [
        {
            "mechanism": row.kind,
            "feasible": row.mechanism is not None,
            "noise": row.mechanism and row.mechanism.noise,
            "raw_error": row.raw_error,  # NaN if infeasible, which becomes null in JSON
            "shrunk_error": row.shrunk_error,
            "reason": row.reason,
        }
        for row in comparison.rows
    ]
    constant = comparison.constant_error
    console.document |= {"rows": rows, "constant": constant, "verdict": comparison.verdict}


@privacy.command()
@_bounds
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path),
              default=Path("privacy.png"), show_default=True, help="File to write.")  # fmt: skip
@with_console
def plot(bounds: tuple[float, float], out: Path, console: Console) -> None:
    """Draw the paper's Figure 1 for these bounds: δ against ε, and θ against ε.

    Left: δ of the Gamma mechanism, by the paper's lemma (dashed) and exact (solid), and its lower
    bound over all θ. Right: the smallest θ for δ = 0.06, 0.08 and 0.1.
    """
    from walklearn.studies.paper import figure1
    from walklearn.studies.report.pictures import draw

    out.parent.mkdir(parents=True, exist_ok=True)
    draw(figure1.for_bounds(bounds)).savefig(out, dpi=144)
    console.document["picture"] = str(out)
    console.print(f"Picture: {out}")


@privacy.command()
@click.option("--nodes", type=click.IntRange(3), default=50, show_default=True)
@click.option("--steps", type=click.IntRange(1), default=2000, show_default=True)
@click.option("--epsilon", type=float, default=3.0, show_default=True)
@click.option("--delta", type=float, default=1e-3, show_default=True)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
@with_console
def attack(
    nodes: int, steps: int, epsilon: float, delta: float, seed: int, console: Console
) -> None:
    """Recover rows from consecutive tokens, with and without protection.

    The command simulates a uniform walk on a random graph and an attacker who sees every token. The
    protection is (ε, δ) for all rows of a node, with at most 20 contributions per node, clipped
    to 1.
    """
    graph = wl.graphs.erdos_renyi(nodes, min(1.0, 8 / nodes), seed=seed, connected="retry")
    X, y = wl.datasets.two_gaussians(nodes, dimension=10, seed=seed)
    problem = wl.Problem(X, y, penalty=1.0, aggregate="mean")
    noise = wl.privacy.ModelNoise.calibrate(
        epsilon=epsilon, delta=delta, clip=1.0, max_contributions=20, protect="node"
    )
    console.print(f"Uniform walk on {graph}, {plural(steps, 'visit')}, 10 features.")
    for title, protection in (("in the clear", None), (f"with {noise}", noise)):
        walk, step = wl.walks.Uniform(), wl.PowerStep(0.1)
        result = wl.attack(problem, graph, walk, step, steps, protection, seed)
        console.document[title] = {"recovered": result.recovered, "nodes": len(result.nodes)}
        console.print(f"{title}:\n  {result}")


@privacy.command()
@_mechanism
@_epsilon
@_delta
@click.option("--bounds", **_BOUNDS)
@click.option("--walk", "of_walk", is_flag=True,
              help="Audit the contributions of a node to the model.")  # fmt: skip
@click.option("--max-contributions", type=click.IntRange(1), default=5, show_default=True,
              help="With --walk: maximum number of contributions of a node.")  # fmt: skip
@click.option("--protect", type=click.Choice(["rows", "node"]), default="rows",
              show_default=True, help="With --walk: unit of ε.")  # fmt: skip
@click.option("--samples", type=click.IntRange(100),
              help="Number of releases of each value (default: 20,000; simulated: 200,000), or of "
                   "walks (default: 1,000; simulated: 20,000).")  # fmt: skip
@click.option("--confidence", type=click.FloatRange(0, 1, min_open=True, max_open=True),
              default=0.999, show_default=True,
              help="Probability that the lower bounds are true.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0),
              help="Audit simulated noise from this seed. Default: audit real noise.")  # fmt: skip
@with_console
def audit(
    bounds: tuple[float, float] | None, of_walk: bool, console: Console, **options: Any
) -> None:
    """Search for evidence against a privacy claim, by running the code that draws the noise.

    The audit prints lower bounds on δ and ε next to the claim, and the largest ε that it could have
    refuted. It also tests at least 1,000 releases for noise that is missing, too small or repeated,
    and symmetric noise for one-sided or dependent draws. Without --seed it runs the code of real
    releases.

    With --walk it audits a node's contributions to the model, in a fit and in a network. It runs
    many walks on two data sets that differ in one row, and looks at them as a neighbour that sees
    every model.

    The exit code is 1 if the claim is refuted.
    """
    if of_walk:
        _audit_walk(console, **options)
    if bounds is None:
        raise ValueError("an audit needs --bounds LO HI or --walk. Pass one of them.")
    target = {"epsilon": options["epsilon"], "delta": options["delta"]}
    audited = wl.privacy.calibrate(options["mechanism"], **target, bounds=bounds)
    settings = {name: options[name] for name in ("samples", "confidence", "seed")}
    result = wl.privacy.audit(audited, options["epsilon"], **settings)
    console.document |= {"claim": repr(audited), **asdict(result), "verdict": result.verdict}
    console.print(f"{audited}\n{result}")
    raise SystemExit(int(result.violated))


def _audit_walk(console: Console, **options: Any) -> None:
    """Audit the contributions of a node; the exit code is the verdict."""
    names = ("epsilon", "delta", "max_contributions", "protect")
    noise = wl.privacy.ModelNoise.calibrate(clip=1.0, **{name: options[name] for name in names})
    audits = []
    for name in ("released", "node") if options["seed"] is None else ("compiled",):
        code: Any = name
        if name == "node":
            with extra("node", "the audit of a node needs"):
                code = wl.node.observe_visits
        result = wl.audit_walk(
            noise, delta=options["delta"], walks=options["samples"], engine=code,
            confidence=options["confidence"], seed=options["seed"],
        )  # fmt: skip
        audits.append(replace(result, engine=name))
        console.print(str(audits[-1]))
    violated = any(each.violated for each in audits)
    console.document |= {
        "claim": repr(noise),
        "verdict": "VIOLATED" if violated else "consistent",
        "audits": [{**asdict(each), "verdict": each.verdict} for each in audits],
    }
    raise SystemExit(int(violated))
