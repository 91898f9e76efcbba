"""`python -m sweeplib` is the command `sweeplib`."""

from sweeplib.cli import main

main()
