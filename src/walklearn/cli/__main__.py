"""`python -m walklearn.cli`."""

from walklearn.cli import main

main(prog_name="walklearn")
