"""Linear models: a loss of the score x · w for each row, on the rows of each node."""
