# Messages on the terminal: one line per job, and the summary of the sweep at the end. An early end stops all processes.
import logging

import sweeplib.process.messages

sweeplib.process.messages.install(logging.getLogger("snakemake.logging"))
shell.prefix("trap '' INT; ")  # Ctrl-C reaches all processes; scripts ignore it, and Snakemake ends them


onsuccess:
    import sweeplib.report  # only here: the import would add half a second to a dry run

    found = sweeplib.report.summary(sweep, directory)
    print(found.text, flush=True)
    if found.failed:
        sys.exit(1)
