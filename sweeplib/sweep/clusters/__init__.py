"""Where the blocks run: one kind of Dask cluster a file."""

from sweeplib.registry import import_modules
from sweeplib.sweep.clusters.cluster import CLUSTERS, ClusterSettings

__all__ = ["CLUSTERS", "ClusterSettings"]

import_modules(__name__, __path__)
