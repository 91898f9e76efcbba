# Messages on the terminal: one line per job, and the summary of the sweep at the end. An early end stops all processes.
import logging

import snakemake.persistence

import sweeplib.engine.process.messages

sweeplib.engine.process.messages.install(logging.getLogger("snakemake.logging"))
shell.prefix("trap '' INT; ")  # Ctrl-C reaches all processes; jobs ignore it, and Snakemake ends them
# Else Snakemake would import pandas to record parameters, which are never of pandas. Its releases name the class differently.
for persistence in vars(snakemake.persistence).values():
    if hasattr(persistence, "_serialize_param_pandas"):
        persistence._serialize_param_pandas = persistence._serialize_param_builtin


onsuccess:
    sweeplib.commands.stages.ended(sweep, directory)
