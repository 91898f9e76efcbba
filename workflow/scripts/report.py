"""The report: one page that says what was asked for, what ran, and what came out."""

import sweeplib.stages

sweeplib.stages.report(snakemake.config["sweep"], snakemake.params.directory)
