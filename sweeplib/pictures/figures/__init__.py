"""Figures: functions from the dataset of a sweep and its analyses to matplotlib Figures, one per file.

`sweeplib.pictures.figures.NAME(ds, **options)` draws the figure NAME of the registry `FIGURES`. matplotlib
is imported at the first drawing; the global state of pyplot is not changed.
"""

from sweeplib.engine.base.registry import import_modules
from sweeplib.pictures.figures.figure import FIGURES, Figure
from sweeplib.pictures.figures.kit.chart import Chart
from sweeplib.pictures.figures.write import write_figure

__all__ = ["FIGURES", "Chart", "Figure", "write_figure"]

import_modules(__name__, __path__)
globals().update(FIGURES)
