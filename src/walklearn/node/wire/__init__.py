"""What crosses the network: messages and their bytes, keys, links."""
