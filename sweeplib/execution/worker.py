"""What a local worker imports before it connects: all that its first block needs. Dask imports this module by name."""

import sweeplib.execution.blocks
import sweeplib.execution.probe  # noqa: F401
from sweeplib.process.command import end_without_collection

end_without_collection()
