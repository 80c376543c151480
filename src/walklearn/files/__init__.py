"""Files: TOML tables with line numbers in errors, and atomic writes."""
