"""Figures in notebooks."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def shown_in_notebooks(drawing: "Drawing") -> "Drawing":
    """Return the figure; in IPython, notebooks show it when it is the value of a cell, once pyplot is imported."""
    if "IPython" in sys.modules:
        import matplotlib.pyplot as plt  # noqa: F401
    return drawing
