"""Draw one figure of the dataset and its analyses."""

import sweeplib.stages

sweeplib.stages.figure(snakemake.config["sweep"], snakemake.params.directory, snakemake.wildcards.name)
