"""Snakemake with its arguments, as `make` starts it: it ends in one line from its first moment on."""

import runpy

from sweeplib.process.command import command

with command():
    runpy.run_module("snakemake", run_name="__main__", alter_sys=True)
