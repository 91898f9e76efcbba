"""The labelled dataset of a finished sweep."""

from pathlib import Path

import sweeplib.config
import sweeplib.storage.finalise

sweeplib.storage.finalise.finalise(
    sweeplib.config.load(snakemake.config["sweep"]), directory=Path(snakemake.params.directory)
)
