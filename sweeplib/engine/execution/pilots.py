"""Pilots: a few cases of a layout (all cases of one shape and similar cost) that represent it where costs are measured.

Lanes are cases that a kernel computes together, side by side.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sweeplib.engine.cases import Case
from sweeplib.engine.storage.store.inventory import Inventory

MOST_PILOTS = 32
"""The pilots of a kind that are measured: evenly spaced, with the costliest and the cheapest."""
MOST_CASES, FEWEST_CASES, CASES_OF_ALL = 512, 128, 8192
"""The cases of a pilot at most, those that each may have, and about how many all may have."""


@dataclass(frozen=True)
class Pilot:
    """Cases of one layout that represent it and may run together; `name` distinguishes it from the other pilots.

    solutions : the number of solutions of a case of the layout, below 1 where cases have one in common. Those of the
        pilot have none in common.
    """

    name: str
    cases: tuple[Case, ...]
    solutions: float = 1.0

    @property
    def dynamics(self) -> str:
        """Return the name of the dynamics of the cases."""
        return self.cases[0].dynamics

    @property
    def kind(self) -> tuple[Hashable, ...]:
        """Return the properties that determine which machine code is needed."""
        return self.cases[0].simulator.compiled(self.cases[0])

    @property
    def title(self) -> str:
        """Return a description of the measured cases."""
        return self.cases[0].simulator.title(self.cases[0])

    @cached_property
    def work_a_case(self) -> float:
        """Return the nominal work of a case of the layout."""
        return sum(map(self.cases[0].simulator.work, self.cases)) / len(self.cases)


def evenly_spaced(count: int, most: int = MOST_PILOTS) -> list[int]:
    """Return `most` places or fewer among `count`, ascending and evenly spaced, with the first and the last."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(int)).tolist()


def beside_others(count: int, most: int, width: int) -> list[int]:
    """Return `most` places or fewer among `count`, in evenly spaced groups of `width` places side by side."""
    width = min(width, most, count)
    groups = min(most, count) // width
    if width == 1:
        return evenly_spaced(count, most)
    firsts = ((np.arange(groups) + 0.5) * (count - width) / groups).astype(int)
    return np.unique(np.add.outer(firsts, np.arange(width))).tolist()


def pilots_of(wanted: Inventory, size: int | None) -> dict[str, Pilot]:
    """Return the pilot of each layout with missing cases, by its name: cases in evenly spaced groups of lanes.

    size : the number of cases of a block if the config sets it, which a pilot does not exceed: a case takes longer
    beside fewer others.
    """
    most = max(FEWEST_CASES, min(MOST_CASES, CASES_OF_ALL // max(1, len(wanted.missing))))
    pilots = {}
    for name, missing in wanted.missing.items():
        [first], solved = wanted.cases(missing[:1]), wanted.solved(missing)
        places = solved[beside_others(len(solved), min(most, size or most), first.simulator.lanes(first)[1])]
        share = len(solved) / len(missing)
        pilots[name] = Pilot(f"{wanted.dynamics}/{name}", tuple(wanted.cases(places)), share)
    return pilots
