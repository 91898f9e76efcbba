"""The sweep's plan: its blocks and what they cost."""

import sweeplib.stages

sweeplib.stages.plan(snakemake.config["sweep"], snakemake.params.directory)
