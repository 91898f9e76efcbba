"""Write the labelled dataset of a finished sweep."""

import sweeplib.stages

sweeplib.stages.finalise(snakemake.config["sweep"], snakemake.params.directory)
