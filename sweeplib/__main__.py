"""`python -m sweeplib` is the command `sweeplib`."""

from sweeplib.cli import app

app(prog_name="sweeplib")
