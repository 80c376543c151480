"""A whole network on one machine, to try it: what `walklearn up` starts."""
