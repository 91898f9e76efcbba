# What a reader sees: a line a job, and at the end what became of the sweep. What ends the workflow early ends all of it.
import logging

import sweeplib.process.messages

sweeplib.process.messages.install(logging.getLogger("snakemake.logging"))
shell.prefix("trap '' INT; ")  # Ctrl-C reaches all processes at once: scripts leave it to Snakemake, which ends them


onsuccess:
    import sweeplib.report  # only here: it would take a dry run half a second

    found = sweeplib.report.summary(sweep, directory)
    print(found.text, flush=True)
    if found.failed:
        sys.exit(1)
