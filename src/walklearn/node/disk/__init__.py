"""A node's directory: how it is made, what survives a crash, the model that is kept there."""
