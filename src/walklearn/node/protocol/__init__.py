"""Decisions of a node: messages, visits, and pure functions of its state."""
