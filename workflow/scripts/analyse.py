"""One analysis of the dataset."""

from pathlib import Path

import sweeplib.analysis
import sweeplib.config

sweeplib.analysis.write_analysis(
    sweeplib.config.load(snakemake.config["sweep"]),
    snakemake.wildcards.name,
    directory=Path(snakemake.params.directory),
)
