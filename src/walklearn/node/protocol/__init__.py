"""What a node decides: pure functions of what it knows and what happened."""
