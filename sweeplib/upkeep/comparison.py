"""Comparison of stored cases with the same cases computed here, bit by bit."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sweeplib.simulation import Case, Records, Status, run_cases
from sweeplib.storage.journal import processors
from sweeplib.storage.layout import Layout
from sweeplib.storage.provenance import cpu_model
from sweeplib.storage.rows import cases_of


@dataclass(frozen=True)
class Difference:
    """A recorded variable of a case whose bits differ: how many of its values, and the first of them."""

    variable: str
    count: int
    size: int
    where: tuple[int, ...]
    stored: float
    computed: float

    def __str__(self) -> str:
        where = f"[{', '.join(map(str, self.where))}]" if self.where else ""
        first = f"{self.variable}{where} is {self.stored!r} in the store, {self.computed!r} here"
        return f"{self.count} of {self.size} values of {self.variable} differ: {first}"


def differences(layout: Layout, row: int, records: Records, place: int) -> list[Difference]:
    """Return how a stored case differs from a computed one, the case `place` of some records."""
    stored = layout.status(slice(row, row + 1)).astype(float)
    computed = records.status[place : place + 1].astype(float)
    found = [_difference("status", stored[0], computed[0])]
    block, place_in_block = divmod(row, layout.block_size)
    for name in layout.variables:
        values = records.data[name][place] if name in records.data else layout.empty(name, 1)[0]
        found.append(_difference(name, layout.block_data(name, block)[place_in_block], values))
    return [difference for difference in found if difference is not None]


def _difference(name: str, stored: np.ndarray, computed: np.ndarray) -> Difference | None:
    own, other = (np.ascontiguousarray(values).reshape(-1) for values in (stored, computed))
    bits = (values.view(np.uint8).reshape(len(values), -1) for values in (own, other))
    differing = np.flatnonzero(np.not_equal(*bits).any(axis=1))
    if not len(differing):
        return None
    first = int(differing[0])
    where = tuple(int(index) for index in np.unravel_index(first, np.shape(stored)))
    return Difference(name, len(differing), len(own), where, float(own[first]), float(other[first]))


@dataclass(frozen=True)
class Compared:
    """A row of a layout that was computed again: its identity, the differences, and the processors that computed it."""

    layout: Layout
    row: int
    identity: bytes
    differences: list[Difference]
    processors: tuple[str, ...]

    @property
    def comparable(self) -> bool:
        """Return whether the case was computed on this type of processor; others may differ in the last bits."""
        return not self.processors or cpu_model() in self.processors


def compared(layout: Layout, rows: Sequence[int], directory: Path, dynamics: str) -> list[Compared]:
    """Return the comparisons of some rows of a layout, whose cases are computed in this process."""
    cases = [cases_of(layout.shared, layout.rows(slice(row, row + 1)))[0] for row in rows]
    by_block = processors(directory, dynamics)
    found = []
    for places in _by_shape(cases):
        try:
            records = run_cases([cases[place] for place in places])
        except Exception:  # that of any plugin; which case raised it is found out one by one
            if len(places) > 1:
                alone = (compared(layout, [rows[place]], directory, dynamics) for place in places)
                found += [outcome for outcomes in alone for outcome in outcomes]
                continue
            records = Records({}, np.array([Status.failed], np.uint8))
        for at, place in enumerate(places):
            block = f"{layout.name}/{rows[place] // layout.block_size}"
            which = differences(layout, rows[place], records, at)
            by = tuple(by_block.get(block, ()))
            found.append(Compared(layout, rows[place], cases[place].identity(), which, by))
    return found


def comparable_rows(status: np.ndarray) -> np.ndarray:
    """Return the rows, from the status of all, that would have the same outcome again: they ended by themselves."""
    return np.flatnonzero(np.isin(status, (Status.ok, Status.diverged, Status.inaccurate)))


def _by_shape(cases: Iterable[Case]) -> list[list[int]]:
    places: dict[Hashable, list[int]] = {}
    for place, case in enumerate(cases):
        places.setdefault(case.shape, []).append(place)
    return list(places.values())
