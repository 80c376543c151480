"""Cost of releases: δ(ε) of single ones, compositions, ledgers and the total over all runs."""
