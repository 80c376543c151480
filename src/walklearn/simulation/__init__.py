"""A walk or gossip × replicates → `Trace`: the reference, its compiled twins, and recording."""
