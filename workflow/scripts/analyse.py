"""Write one analysis of the dataset."""

import sweeplib.stages

sweeplib.stages.analyse(snakemake.config["sweep"], snakemake.params.directory, snakemake.wildcards.name)
