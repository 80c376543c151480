"""How bytes get to a neighbour and to nobody else: keys, certificates, links over TLS."""
