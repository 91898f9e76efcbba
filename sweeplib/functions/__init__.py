"""Functions: simulators that are functions of one's own (`@simulator`)."""

from sweeplib.functions.function import Result, simulator

__all__ = ["Result", "simulator"]
