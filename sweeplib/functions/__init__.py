"""Functions: simulators that are functions of one's own.

`function` has the decorator `@simulator`, `program` runs programs of any language, and `simulator` is what the engine
asks. Functions that yield are in `courses`, and their states, from which they go on, in `states`.
"""

from sweeplib.functions.function import simulator
from sweeplib.functions.results import Result

__all__ = ["Result", "simulator"]
