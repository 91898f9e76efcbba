"""Variable: a recorded array of one case."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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


def stored_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes as datasets have them, without units of "1", which xarray would write as "[1]" on plots.

    By the CF conventions a variable without units is dimensionless, too.
    """
    return {key: value for key, value in attributes.items() if (key, value) != ("units", "1")}
