"""Write the plan of a sweep: its blocks and their cost."""

import sweeplib.stages

sweeplib.stages.plan(snakemake.config["sweep"], snakemake.params.directory)
