"""Transport of bytes to a neighbour and to nobody else: keys, certificates, links over TLS."""
