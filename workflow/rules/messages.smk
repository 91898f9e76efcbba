# What a reader sees: a line a job, and at the end what became of the sweep.
import logging

chatter = ("Select jobs to execute", "Execute ", "Using shell")
logging.getLogger("snakemake.logging").addFilter(lambda record: not str(record.msg).startswith(chatter))


onsuccess:
    import sweeplib.report  # only here: it would take a dry run half a second

    found = sweeplib.report.summary(sweep, directory)
    print(found.text, flush=True)
    if found.failed:
        sys.exit(1)
