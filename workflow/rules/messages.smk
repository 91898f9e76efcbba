# Messages on the terminal: one line per job, and the summary of the sweep at the end. An early end stops all processes.
import logging

import sweeplib.process.messages

sweeplib.process.messages.install(logging.getLogger("snakemake.logging"))
shell.prefix("trap '' INT; ")  # Ctrl-C reaches all processes; jobs ignore it, and Snakemake ends them


onsuccess:
    sweeplib.stages.ended(sweep, directory)
