"""The kinds of Dask clusters on which blocks run, one per file."""

from sweeplib.design.cluster import CLUSTERS, ClusterSettings
from sweeplib.design.design import Design
from sweeplib.registry import import_modules

__all__ = ["CLUSTERS", "ClusterSettings", "cluster_of"]

import_modules(__name__, __path__)


def cluster_of(sweep: Design) -> ClusterSettings:
    """Return the cluster settings of a sweep: by default this machine with all of its cores."""
    return sweep.cluster or CLUSTERS["local"]()
