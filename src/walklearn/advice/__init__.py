"""`advise`: which walk, noise, laziness and step, with the numbers behind it.

ε and δ are the total for everything that leaves a node because of its rows, the model included.
The advice rests on public facts only (the graph, the number of rows, their typical length, ε and
δ). No feature or target value is used, so whoever may publish these facts may publish the advice.

>>> from walklearn import graphs
>>> advice = advise(graphs.ring(20), epsilon=1.0, delta=1e-5, aggregate="mean", features=30,
...                 row_length=5.5, total_rows=5000, intercept=True)
>>> advice.walk, advice.allotment.noise.delta(1.0) <= 1e-5
(Uniform(laziness=0.1), True)
>>> print(advice.reasons[0])
Laziness 0.1: without it the walk would never mix, it alternates between two sides of the graph.
"""

from walklearn.advice.advice import Advice, advise

__all__ = ["Advice", "advise"]
