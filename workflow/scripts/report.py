"""Write the report, one page about the config, the runs and the results."""

import sweeplib.stages

sweeplib.stages.report(snakemake.config["sweep"], snakemake.params.directory)
