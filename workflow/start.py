"""Start Snakemake with its arguments, for `make`; errors and interrupts are reported in one line from the start."""

import runpy

from sweeplib.process.command import command

with command():
    runpy.run_module("snakemake", run_name="__main__", alter_sys=True)
