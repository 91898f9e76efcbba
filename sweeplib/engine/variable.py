"""Variable: a recorded array of one case."""

from dataclasses import dataclass, field

import numpy as np

END_STATE = "end_state"
"""The variable of states from which runs go on; the store has it, datasets do not."""


@dataclass(frozen=True)
class Variable:
    """A recorded array of one case: the names and lengths of its dimensions, its type and labels."""

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    attrs: dict[str, str] = field(hash=False)
    dtype: np.dtype[np.float64] = field(default_factory=lambda: np.dtype(np.float64))
