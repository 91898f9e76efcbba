"""The report: one page that says what was asked for, what ran, and what came out."""

from pathlib import Path

import sweeplib.config
import sweeplib.report

sweeplib.report.write_report(
    sweeplib.config.load(snakemake.config["sweep"]), directory=Path(snakemake.params.directory)
)
