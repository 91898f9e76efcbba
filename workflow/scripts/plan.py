"""The sweep's plan: its blocks and what they cost."""

from pathlib import Path

import sweeplib.config
import sweeplib.sweep.plan

sweeplib.sweep.plan.write_plan(
    sweeplib.config.load(snakemake.config["sweep"]), directory=Path(snakemake.params.directory)
).show()
