"""Theory of a walk before it is run: its spectrum, the theorems' constants, and warnings.

>>> from walklearn import graphs, theory, walks
>>> round(theory.spectral_gap(graphs.complete(5), walks.Uniform(laziness=0.5)), 3)
0.625
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
