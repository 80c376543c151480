"""What a node says and decides: messages, visits, and pure functions of what it knows."""
