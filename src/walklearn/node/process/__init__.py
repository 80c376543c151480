"""A node as a process: it drives the protocol over wire and disk, and answers its owner."""
