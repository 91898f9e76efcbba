"""What a simulator's runs return and go on from: Records, the results; Begun, earlier runs; Checkpoints, states."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.engine.process.troubles import Trouble
from sweeplib.engine.status import Excess


@dataclass(frozen=True, eq=False)
class Records:
    """The results of n cases: arrays (n, ...) by name of the variable, and the status (n,).

    data : empty if nothing is known of the cases.
    excess : why cases are inaccurate, by their index.
    raised : why cases failed, by their index, where a simulator runs them one by one.
    """

    data: dict[str, Array]
    status: NDArray[np.uint8]
    excess: Mapping[int, Excess] = field(default_factory=dict)
    raised: Mapping[int, Trouble] = field(default_factory=dict)

    @classmethod
    def joined(cls, parts: Sequence["Records"]) -> "Records":
        """The records of several groups of cases, one after the other, as one; NaN for groups without data."""
        data_of_any = next((piece.data for piece in parts if piece.data), {})
        data = {
            name: np.concatenate([piece.data[name] if piece.data else _no_data(values, piece) for piece in parts])
            for name, values in data_of_any.items()
        }
        excess, raised, start = dict[int, Excess](), dict[int, Trouble](), 0
        for piece in parts:
            excess |= {start + at: reason for at, reason in piece.excess.items()}
            raised |= {start + at: reason for at, reason in piece.raised.items()}
            start += len(piece.status)
        return cls(data, np.concatenate([piece.status for piece in parts]), excess, raised)


@dataclass(frozen=True, eq=False)
class Begun:
    """n runs that ended ok at an earlier horizon, from which n cases go on.

    data : what they stored, arrays (n, ...) as their cases have them, NaN at later times, with `END_STATE`.
    times : how many of their cases' recording times they reached.
    """

    data: Mapping[str, Array]
    times: int

    def at(self, places: NDArray[np.intp] | slice) -> "Begun":
        """The runs at some places."""
        return Begun({name: values[places] for name, values in self.data.items()}, self.times)


@runtime_checkable
class Checkpoints(Protocol):
    """Where cases keep their states, by name, from which they go on."""

    @property
    def seconds(self) -> float:
        """The time between two states of a case, at least."""

    @property
    def keep_ends(self) -> bool:
        """Whether the last state of a case stays, from which a longer one goes on."""

    def read(self, name: str) -> bytes | None:
        """Return what is kept under a name; None if there is nothing, or any bit of it has changed."""

    def write(self, name: str, content: bytes) -> None:
        """Keep some bytes under a name, in place of those before."""


def _no_data(like: Array, records: Records) -> Array:
    """NaN for the cases of records without data, in the shape that other cases have."""
    return np.full((len(records.status), *like.shape[1:]), np.nan)
