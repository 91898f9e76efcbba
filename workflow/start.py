"""Start Snakemake for `sweeplib sweep`, with whose process it ends; an early end is reported in one line."""

import runpy

from sweeplib.front.snakemake import end_with_parent
from sweeplib.process.command import command

with command():
    end_with_parent()
    runpy.run_module("snakemake", run_name="__main__", alter_sys=True)
