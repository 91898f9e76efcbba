"""Compute the cases that are not in the run store."""

import sweeplib.stages

if __name__ == "__main__":  # Dask's workers import this file too
    sweeplib.stages.simulate(snakemake.config["sweep"], snakemake.params.directory, threads=snakemake.threads)
