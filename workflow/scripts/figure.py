"""One figure of the dataset and its analyses."""

from pathlib import Path

import sweeplib.config
import sweeplib.figures

sweeplib.figures.write_figure(
    sweeplib.config.load(snakemake.config["sweep"]),
    snakemake.wildcards.name,
    directory=Path(snakemake.params.directory),
)
