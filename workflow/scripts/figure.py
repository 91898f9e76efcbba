"""One figure of the dataset and its analyses."""

from pathlib import Path

import sweeplib.figures

sweeplib.figures.write_figure(
    snakemake.wildcards.name, snakemake.params.options, directory=Path(snakemake.params.directory)
)
