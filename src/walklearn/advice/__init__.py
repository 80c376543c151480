"""`advise`: which walk, mechanism, laziness and step, with the numbers behind it.

There are two ways to advise. From *public facts* alone (the graph, a bound on the features, ε
and δ) nothing is learnt of anybody's rows, and the advice may be published. By *simulation* on the
data the answer is better, but it depends on the data, so it is not private: use data that need no
protection, or that resemble yours.

>>> from walklearn import graphs
>>> advice = advise(graphs.ring(20), penalty=1.0, feature_bound=2.0, epsilon=1.0, delta=0.01)
>>> advice.walk, advice.mechanism       # the ring alternates, and noise would drown the weights
(Uniform(laziness=0.1), None)
>>> print(advice.reasons[0])
Laziness 0.1: without it the walk would never mix, it alternates between two sides of the graph.
"""

from walklearn.advice.advice import Advice, Candidate, advise

__all__ = ["Advice", "Candidate", "advise"]
