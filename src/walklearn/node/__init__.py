"""Real nodes that talk only to their neighbours: the plan they share, keys, wire and walk."""
