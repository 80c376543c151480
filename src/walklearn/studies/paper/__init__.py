"""One file per figure or claim: the question, the grid, the drawing."""
