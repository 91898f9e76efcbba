"""One analysis of the dataset."""

from pathlib import Path

import sweeplib.analysis

sweeplib.analysis.write_analysis(
    snakemake.wildcards.name, snakemake.params.options, directory=Path(snakemake.params.directory)
)
