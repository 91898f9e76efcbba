"""What a local worker imports before it connects: all that its first block needs. Dask imports this module by name."""

# numba is imported while the worker has one thread: two threads that import it hinder each other.
import numba.core.event  # noqa: F401

import sweeplib.engine.execution.blocks
import sweeplib.engine.execution.probe  # noqa: F401
from sweeplib.engine.process.command import end_without_collection

end_without_collection()
