"""Studies small enough to run in a moment, to be varied by the tests."""

from __future__ import annotations

from walklearn.studies import Cell, Study

SMALL = """\
name = "small"
question = "Which walk is better on a ring?"
seed = 3
instances = 4
updates = 200
records = 5
metric = "gap"
quick = { instances = 2, updates = 50 }

[graphs.ring]
family = "ring"
nodes = 9

[problems.two]
data = "two_gaussians"
dimension = 2
variance = 4.0
penalty = 1.0
domain = { ball = 5.0 }

[methods.uniform]
walk = "uniform"

[methods.weighted]
walk = "weighted"

[step_sizes.printed]
constant = 0.1
exponent = 0.75
"""

PRIVATE = """
[methods.private]
walk = "weighted"
mechanism = "laplace"
epsilon = 3.0
delta = 0.0
bounds = [1.0, 300.0]
"""

TUNED = """
[step_sizes.tuned]
constants = [0.001, 0.01, 0.1, 1.0]
exponent = 0.75
tuning_instances = 3
"""

GOSSIP = '[methods.gossip]\ngossip = "asynchronous"\n'

# No Gamma noise reaches this target.
INFEASIBLE = PRIVATE.replace('"laplace"', '"gamma"').replace("delta = 0.0", "delta = 0.03")


def cell(text: str = SMALL, **names: str) -> Cell:
    """The cell with these names; of the weighted walk with printed steps by default."""
    names = {"method": "weighted", "step_size": "printed", **names}
    cells = Study.from_text(text, check=False).cells()
    [match] = [each for each in cells if names.items() <= each.names.items()]
    return match
