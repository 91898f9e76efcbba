"""The results of a sweep, read from the run store and arranged on its grid.

A group of cases are those whose arrays have the same lengths, "p4_k1" (`engine.groups`); its name is that of a group of
zarr in the dataset. A variable is shared if all groups have it with one shape; a group of None is all cases. A flat
index is one over (grid dims, seed).
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sweeplib.engine.design.design import Design
from sweeplib.engine.simulator import Simulator
from sweeplib.engine.status import Status
from sweeplib.engine.storage.records.files import DamageError
from sweeplib.engine.storage.records.locks import free_writer
from sweeplib.engine.storage.records.stage_records import forget_record
from sweeplib.engine.storage.store.inventory import Inventory, inventory
from sweeplib.engine.storage.store.run_store import RunStore
from sweeplib.engine.storage.store.segment import Segment, fill_value
from sweeplib.engine.variable import END_STATE
from sweeplib.errors import InputError


@dataclass(frozen=True)
class StoredVariable:
    """A recorded variable as the run store describes it; `dims` are without the case dimension."""

    dims: tuple[str, ...]
    dtype: np.dtype
    attributes: Mapping[str, Any]


class Rows(NamedTuple):
    """The needed rows (n,) of a segment, ascending, and the flat indices (n,) of their cases."""

    segment: Segment
    rows: np.ndarray
    flat: np.ndarray


@dataclass(frozen=True)
class Results:
    """The rows of one dynamics that a sweep needs, all of them done; `used` has them by segment."""

    used: list[Rows]
    wanted: Inventory

    def groups(self) -> set[str]:
        """Return the names of the groups of cases that have a variable whose shape not all cases share."""
        return {
            segment.group
            for segment in self._layouts.values()
            if not all(_is_shared(segment, name) for name in _recorded(segment))
        }

    @cached_property
    def _layouts(self) -> dict[str, Segment]:
        """A segment of each layout: all others of it have the same variables."""
        return {rows.segment.layout: rows.segment for rows in self.used}

    def of_group(self, group: str | None) -> list[Rows]:
        """Return the needed rows of one group, or all."""
        return self.used if group is None else self._by_group.get(group, [])

    @cached_property
    def _by_group(self) -> dict[str, list[Rows]]:
        """The needed rows by the name of their group."""
        by_group: dict[str, list[Rows]] = {}
        for rows in self.used:
            by_group.setdefault(rows.segment.group, []).append(rows)
        return by_group

    def variables(self, group: str | None) -> dict[str, StoredVariable]:
        """Return the recorded variables: the shared ones for None, or the others of one group."""
        return self._variables.get(group, {})

    @cached_property
    def _variables(self) -> dict[str | None, dict[str, StoredVariable]]:
        """The shared variables under None, the others by group; any segment describes a variable."""
        by_group: dict[str | None, dict[str, StoredVariable]] = {}
        for segment in self._layouts.values():
            for name, variable in _described(segment, self.wanted.sweep.simulator).items():
                by_group.setdefault(None if _is_shared(segment, name) else segment.group, {})[name] = variable
        return by_group

    def inner_sizes(self, group: str | None) -> set[tuple[str, int]]:
        """Return the dimensions of `variables(group)` with every length that occurs, as that of particles may vary."""
        variables = self.variables(group)
        segments = [segment for segment in self._layouts.values() if group is None or segment.group == group]
        arrays = [(segment, name) for segment in segments for name in variables if name in segment.variables]
        return {
            size for segment, name in arrays for size in zip(variables[name].dims, segment.shape(name), strict=True)
        }

    @property
    def simulators(self) -> list[str]:
        """Return the dynamics of the segments."""
        return sorted({str(segment.shared["dynamics"]) for segment in self._layouts.values()})

    def cases_of(self, group: str | None) -> np.ndarray:
        """Return the flat indices (n,) of the cases of one group, or of all."""
        return np.concatenate([np.empty(0, np.int64), *(rows.flat for rows in self.of_group(group))])


@dataclass(frozen=True)
class Region:
    """A part of a sweep's array over (grid dims, seed) of a `shape`: the indices `places` (m,) along each of `dims`."""

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    places: Mapping[str, np.ndarray]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return the number of indices along each dimension."""
        return tuple(len(self.places[dim]) for dim in self.dims)

    def inside(self, flat: np.ndarray) -> np.ndarray:
        """Return the flat indices (n,) within the region, from those over the whole array, which must be in it."""
        if self.sizes == self.shape:
            return flat
        index = np.unravel_index(flat, self.shape)
        local = [np.searchsorted(self.places[dim], at) for dim, at in zip(self.dims, index, strict=True)]
        return np.ravel_multi_index(local, self.sizes)

    def values(
        self, results: Results, name: str, variable: StoredVariable, group: str | None, sizes: tuple[int, ...]
    ) -> np.ndarray:
        """Return a variable of one dynamics, for the cases of one group or all, over (region, its own dimensions).

        sizes : the lengths of the array along the variable's own dimensions. It has the fill value where there is no
        case, and beyond the lengths that a case has. One segment is in memory at a time.
        """
        values = np.full((int(np.prod(self.sizes)), *sizes), fill_value(variable.dtype), variable.dtype)
        for segment, rows, flat in results.of_group(group):
            if name in segment.variables:
                inner: tuple[Any, ...] = tuple(slice(size) for size in segment.shape(name))
                values[(self.inside(flat), *inner)] = segment.data(name)[rows]
        return values.reshape(*self.sizes, *sizes)

    def status(self, results: Results) -> np.ndarray:
        """Return the status of each case of one dynamics over the region, the whole array; missing without a case."""
        status = np.full(self.sizes, Status.missing, np.uint8)
        status.flat[results.wanted.flat] = results.wanted.status
        return status

    def simulators(self, results: Results, names: Sequence[str]) -> np.ndarray:
        """Return which dynamics ran each point (*grid dims), counted from 1 among `names`; 0 where there is no case.

        The region must be the whole array.
        """
        numbers = np.zeros(self.sizes, np.uint8)
        for segment, _, flat in results.used:
            numbers.flat[flat] = 1 + names.index(segment.shared["dynamics"])
        return numbers.max(axis=-1)  # the last axis is that of the seeds, which one dynamics runs


def results_of(sweep: Design, dynamics: str, directory: Path) -> Results:
    """Return the results of one dynamics; InputError if a case is missing, DamageError if a segment is damaged.

    Then an existing record is removed, so that a workflow runs the dynamics again.
    """
    try:
        store = RunStore(directory, dynamics)
        wanted = replace(inventory(sweep, dynamics, store), points=None)
    except DamageError:
        _forget_done(directory, dynamics)
        raise
    missing = wanted.counts()["missing"]
    if missing:
        _forget_done(directory, dynamics)
        problem = f"{missing} cases of {dynamics} have not been run yet"
        expected = "`sweeplib sweep CONFIG` or `sweeplib run CONFIG` first, again if the config changed meanwhile"
        raise InputError(problem, file=directory, expected=expected)
    used = [Rows(store.segments[number], rows, wanted.flat[places]) for number, rows, places in wanted.by_segment()]
    return Results(used, wanted)


def results_of_all(sweep: Design, directory: Path) -> dict[str, Results]:
    """Return the results of a sweep by their name in the dataset; InputError if a case is missing."""
    return {
        name: _joined(name, [results_of(sweep, run, directory) for run in runs]) for name, runs in sweep.laws.items()
    }


def _joined(law: str, parts: list[Results]) -> Results:
    """Return the results of the runs of one law, as of a dynamics with its name; the runs are at different points."""
    if len(parts) == 1:
        return parts[0]
    wanted = [results.wanted for results in parts]
    ids, flat, status = (
        np.concatenate([getattr(cases, name) for cases in wanted]) for name in ("ids", "flat", "status")
    )
    nowhere = np.full(len(ids), -1, np.int32)  # their segments are of different stores
    used = [rows for results in parts for rows in results.used]
    store = RunStore(wanted[0].store.directory, law)  # which has nothing
    return Results(used, Inventory(wanted[0].sweep, store, ids, flat, nowhere, nowhere, status))


def _forget_done(directory: Path, dynamics: str) -> None:
    """Remove the record of a dynamics, unless a driver is at work on it."""
    # in a read-only directory nothing could be run again
    with suppress(OSError), free_writer(directory, dynamics) as is_free:
        if is_free:
            forget_record(directory, f"simulate.{dynamics}")


def region_of(sweep: Design, cases: Iterable[np.ndarray] | None = None) -> Region:
    """Return the region of the whole (grid, seed) array, or the smallest one that contains the flat indices `cases`."""
    dims, shape = (*sweep.grid.dims, "seed"), sweep.shape
    if cases is None:
        return Region(dims, shape, {dim: np.arange(size) for dim, size in zip(dims, shape, strict=True)})
    index = np.unravel_index(np.concatenate(list(cases)), shape)
    return Region(dims, shape, {dim: np.unique(at) for dim, at in zip(dims, index, strict=True)})


def _recorded(segment: Segment) -> list[str]:
    """Return the variables of a segment that datasets have."""
    return [name for name in segment.variables if name != END_STATE]


def _is_shared(segment: Segment, name: str) -> bool:
    """Return whether a variable of a segment has the same shape in all groups of cases."""
    return segment.simulator.shares(segment.dims(name))


def _described(segment: Segment, simulator: Simulator) -> dict[str, StoredVariable]:
    """Return the variables of a segment, with the labels and the names of dimensions that the code has now.

    An edit of these makes no new cases, so that segments of one sweep may have others. simulator : of the sweep.
    """
    cases = simulator.cases(segment.shared, {name: column[:1] for name, column in segment.index.items()})
    described, now = segment.variables, simulator.variables(cases[0])
    variables = {}
    for name in _recorded(segment):
        dims, attributes = tuple(described[name]["dims"]), dict(described[name]["attrs"])
        if name in now and len(now[name].dims) == len(dims):
            dims, attributes = now[name].dims, dict(now[name].attrs)
        variables[name] = StoredVariable(dims, np.dtype(described[name]["dtype"]), attributes)
    return variables
