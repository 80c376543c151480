"""Theory of a walk before it is run: its spectrum, the theorems' constants, and warnings."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
