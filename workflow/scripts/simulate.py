"""The cases that the run store does not have yet."""

from pathlib import Path

import sweeplib.config
import sweeplib.sweep.run

if __name__ == "__main__":  # Dask's workers import this file, too
    sweeplib.sweep.run.run_sweep(
        sweeplib.config.load(snakemake.config["sweep"]),
        directory=Path(snakemake.params.directory),
        workers=snakemake.threads,
    )
