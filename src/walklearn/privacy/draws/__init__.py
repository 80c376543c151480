"""Random numbers: exact draws from the system's entropy for releases, and simulated ones."""
