"""Updates inside kernels: one file per update and kind of row."""
