from sweeplib.simulation import *  # noqa
from sweeplib.simulation.labelled import STATUS_LABELS  # noqa
