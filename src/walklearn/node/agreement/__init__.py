"""The plan that all nodes share, and the rows of a node."""
