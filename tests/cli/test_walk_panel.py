"""The panel of `walklearn up`: every line is there and whole, whatever the terminal's width."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from walklearn.cli.walk_panel import Curve, panel, sparkline
from walklearn.node.trial.two_gaussians import Glimpse, NodeGlimpse

CURVE: Curve = [(step, 10.0 / step) for step in range(1, 400)]


def glimpse(nodes: int) -> Glimpse:
    seen = [NodeGlimpse(f"node-{number:03}", "waiting", 10) for number in range(nodes)]
    seen[1] = replace(seen[1], phase="down")
    return Glimpse(updates=1_234_567, of=2_000_000, holder=0, error=0.01234, nodes=tuple(seen))


def drawn(width: int, shown: Glimpse, curve: Curve = CURVE) -> list[str]:
    """The lines of the panel in a terminal of that width, without their frame."""
    console = Console(width=width, file=io.StringIO(), color_system=None, force_terminal=True)
    console.print(panel(shown, 12.34, curve, min(100, width)))
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert "the walk" in lines[0]
    assert {line[0] + line[-1] for line in lines[1:-1]} == {"││"}
    assert {len(line) for line in lines} == {min(100, width)}
    return [line[1:-1].strip() for line in lines[1:-1]]


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("nodes", [4, 200])
def test_every_line_is_there_and_not_cropped(width: int, nodes: int) -> None:
    bar, done, error, curve, *dots = drawn(width, glimpse(nodes))
    assert set(bar) <= set("━╸╺ ")
    assert len(bar) > 0.5 * min(100, width)
    assert done == "1,234,567 of 2,000,000 updates in 12.3 s"
    assert error == "distance to the optimum 0.01234, token at node-000"
    assert curve == sparkline(CURVE, min(100, width) - 4)
    assert "".join(dots) == "◆○" + (nodes - 2) * "●"


def test_what_is_not_known_yet_and_the_end_are_told() -> None:
    early = replace(glimpse(4), updates=0, holder=None, error=None)
    lines = drawn(80, early, [])
    assert "distance to the optimum ?, no token yet" in lines
    ended = replace(early, nodes=tuple(replace(node, final=True) for node in early.nodes))
    assert "distance to the optimum ?, final model on 4 of 4 nodes" in drawn(80, ended, [])


def test_a_sparkline_is_as_wide_as_it_may_be_and_shows_both_ends() -> None:
    assert len(sparkline(CURVE, 30)) == 30
    assert sparkline(CURVE, 30)[0] == "█"
    assert sparkline(CURVE, 30)[-1] == "▁"
    assert sparkline([(1, 2.0)], 30) == "▁"
    assert sparkline([(1, 1.0), (2, 0.0)], 30) == "█▁"  # an error of 0 has no logarithm
