"""Analyses: from the dataset of a sweep to smaller labelled datasets, one per file.

`sweeplib.analysis.NAME(ds, **options)` calls the analysis NAME of the registry `ANALYSES`.
Exits are found while a run goes on (`networks.kernels`). `kit.passages` says what a run without one counts as, and
finds passages of other quantities in what was recorded.
"""

from sweeplib.analysis.analysis import ANALYSES, Analysis
from sweeplib.analysis.write import write_analysis
from sweeplib.engine.base.registry import import_modules

__all__ = ["ANALYSES", "Analysis", "write_analysis"]

import_modules(__name__, __path__)
globals().update(ANALYSES)
