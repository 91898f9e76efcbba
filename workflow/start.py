"""Snakemake with its arguments, as `make` starts it: Ctrl-C ends it without a traceback while it loads, too."""

import runpy
import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)
runpy.run_module("snakemake", run_name="__main__", alter_sys=True)
