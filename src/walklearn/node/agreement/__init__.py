"""What all nodes agree on, and the rows of each that fit it."""
