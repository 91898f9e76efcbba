"""Figures in notebooks."""

import sys
from importlib import import_module
from typing import Any

from sweeplib.pictures.figures.kit.late_matplotlib import mpl


def shown_in_notebooks(drawing: "mpl.figure.Figure") -> "mpl.figure.Figure":
    """Return the figure, which a notebook then shows if it is the value of a cell.

    IPython draws the figures of pyplot only; here it is told to draw all, as PNG, unless it was told otherwise.
    """
    shell = import_module("IPython").get_ipython() if "IPython" in sys.modules else None
    if shell is not None and not any(type(drawing) in formatter.type_printers for formatter in _formatters(shell)):
        import_module("IPython.core.pylabtools").select_figure_formats(shell, {"png"})
    return drawing


def _formatters(shell: Any) -> list[Any]:
    return list(shell.display_formatter.formatters.values())
