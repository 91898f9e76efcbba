"""The results of a sweep, read from the run store and arranged on its grid."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sweeplib.engine.design.design import Design
from sweeplib.engine.status import Status
from sweeplib.engine.storage.records.files import DamageError
from sweeplib.engine.storage.records.locks import free_writer
from sweeplib.engine.storage.store.inventory import Inventory, inventory
from sweeplib.engine.storage.store.layout import Layout
from sweeplib.engine.storage.store.rows import by_block
from sweeplib.engine.storage.store.run_store import RunStore
from sweeplib.engine.variable import END_STATE
from sweeplib.errors import InputError


@dataclass(frozen=True)
class StoredVariable:
    """A recorded variable as the run store describes it; `dims` are without the case dimension."""

    dims: tuple[str, ...]
    dtype: np.dtype
    fill_value: Any
    attributes: Mapping[str, Any]


@dataclass(frozen=True)
class Results:
    """The rows of one dynamics that a sweep needs, all of them done."""

    layouts: list[Layout]
    wanted: Inventory
    _placed: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    @cached_property
    def used(self) -> list[tuple[int, Layout]]:
        """Return the layouts that have a needed row, with their numbers."""
        return [(int(number), self.layouts[number]) for number in np.unique(self.wanted.layout)]

    def groups(self) -> set[str]:
        """Return the names of the groups of cases that have a variable whose shape not all cases share."""
        return {
            layout.group for _, layout in self.used if not all(_is_shared(layout, name) for name in _recorded(layout))
        }

    def of_group(self, group: str | None) -> list[tuple[int, Layout]]:
        """Return the layouts of one group that have a needed row, or of all, with their numbers."""
        return self.used if group is None else self._layouts_by_group.get(group, [])

    @cached_property
    def _layouts_by_group(self) -> dict[str, list[tuple[int, Layout]]]:
        layouts: dict[str, list[tuple[int, Layout]]] = {}
        for number, layout in self.used:
            layouts.setdefault(layout.group, []).append((number, layout))
        return layouts

    def variables(self, group: str | None) -> dict[str, StoredVariable]:
        """Return the recorded variables: those that all shapes share, or the others of one group."""
        return self._variables.get(group, {})

    @cached_property
    def _variables(self) -> dict[str | None, dict[str, StoredVariable]]:
        last: dict[str | None, dict[str, Layout]] = {}
        for _, layout in self.used:
            for name in _recorded(layout):
                last.setdefault(None if _is_shared(layout, name) else layout.group, {})[name] = layout
        return {
            group: {name: _variable(layout, name) for name, layout in those.items()} for group, those in last.items()
        }

    def inner_sizes(self, group: str | None) -> set[tuple[str, int]]:
        """Return the dimensions of `variables` with every length that occurs; the number of particles may vary."""
        names = self.variables(group)
        layouts = [layout for _, layout in self.of_group(group)]
        arrays = [
            (layout.variables[name], layout.array(name))
            for layout in layouts
            for name in names
            if name in layout.variables
        ]
        return {size for dims, array in arrays for size in zip(dims, array.shape[1:], strict=True)}

    def rows_and_places(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the needed rows (n,) of a layout, ascending, and the flat indices (n,) of their cases."""
        if number not in self._placed:
            here = np.flatnonzero(self.wanted.layout == number)
            here = here[np.argsort(self.wanted.row[here], kind="stable")]
            self._placed[number] = self.wanted.row[here], self.wanted.flat[here]
        return self._placed[number]

    @property
    def simulators(self) -> list[str]:
        """Return the dynamics of the layouts."""
        return sorted({str(layout.shared["dynamics"]) for _, layout in self.used})

    def cases_of(self, group: str | None) -> np.ndarray:
        """Return the flat indices over (grid, seed) of the cases of one group, or of all."""
        flat = [np.empty(0, np.int64), *(self.rows_and_places(number)[1] for number, _ in self.of_group(group))]
        return np.concatenate(flat)


@dataclass(frozen=True)
class Region:
    """A part of a sweep's (grid, seed) array of the given `shape`: the indices `places` along each of `dims`."""

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    places: Mapping[str, np.ndarray]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return the number of indices along each dimension."""
        return tuple(len(self.places[dim]) for dim in self.dims)

    def inside(self, flat: np.ndarray) -> np.ndarray:
        """Return the indices in the region of flat indices over the whole array."""
        if self.sizes == self.shape:
            return flat
        index = np.unravel_index(flat, self.shape)
        local = [np.searchsorted(self.places[dim], at) for dim, at in zip(self.dims, index, strict=True)]
        return np.ravel_multi_index(local, self.sizes)

    def values(
        self, results: Results, name: str, variable: StoredVariable, group: str | None, sizes: tuple[int, ...]
    ) -> np.ndarray:
        """Return a variable of one dynamics, for the cases of one group or all, over this region.

        The array has these `sizes` along the variable's own dimensions. It has the fill value where there is no case,
        and beyond the length of a case's own dimensions. One block of the run store is in memory at a time.
        """
        values = np.full((int(np.prod(self.sizes)), *sizes), variable.fill_value, variable.dtype)
        for number, layout in results.of_group(group):
            if name in layout.variables:
                rows, flat = results.rows_and_places(number)
                inside = self.inside(flat)
                inner: tuple[Any, ...] = tuple(slice(size) for size in layout.array(name).shape[1:])
                for block, some, positions in by_block(rows, layout.block_size):
                    values[(inside[some], *inner)] = layout.block_data(name, block)[positions]
        return values.reshape(*self.sizes, *sizes)

    def status(self, results: Results) -> np.ndarray:
        """Return the status of each case of one dynamics over the region; missing where there is no case."""
        status = np.full(self.sizes, Status.missing, np.uint8)
        status.flat[results.wanted.flat] = results.wanted.status
        return status

    def simulators(self, results: Results, names: Sequence[str]) -> np.ndarray:
        """Return the number of the dynamics that ran each point, of `names` from 1; 0 where there is no case."""
        numbers = np.zeros(self.sizes, np.uint8)
        for number, layout in results.used:
            numbers.flat[results.rows_and_places(number)[1]] = 1 + names.index(layout.shared["dynamics"])
        return numbers.max(axis=-1)


def results_of(sweep: Design, dynamics: str, directory: Path) -> Results:
    """Return the results of one dynamics; InputError if a case is missing.

    In that case an existing done.json is removed, so that a workflow runs the dynamics again.
    """
    try:
        store = RunStore(directory, dynamics)
        for layout in store.layouts.values():
            layout.check_index()
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
    return Results(list(store.layouts.values()), wanted)


def results_of_all(sweep: Design, directory: Path) -> dict[str, Results]:
    """Return the results of a sweep by their name in the dataset; InputError if a case is missing."""
    return {
        name: _joined(name, [results_of(sweep, run, directory) for run in runs]) for name, runs in sweep.laws.items()
    }


def _joined(law: str, parts: list[Results]) -> Results:
    """Return the results of several runs, at different points, as those of one."""
    if len(parts) == 1:
        return parts[0]
    layouts, wanted = [layout for results in parts for layout in results.layouts], [results.wanted for results in parts]
    first = np.cumsum([0, *(len(results.layouts) for results in parts)]).tolist()
    numbers = [inventory.layout + number for inventory, number in zip(wanted, first, strict=False)]
    ids, flat, row, status = (
        np.concatenate([getattr(inventory, name) for inventory in wanted]) for name in ("ids", "flat", "row", "status")
    )
    return Results(layouts, Inventory(wanted[0].sweep, law, ids, flat, np.concatenate(numbers), row, status))


def _forget_done(directory: Path, dynamics: str) -> None:
    # in a read-only directory nothing could be run again
    with suppress(OSError), free_writer(directory, dynamics) as is_free:
        if is_free:
            (directory / f"{dynamics}.done.json").unlink()


def region_of(sweep: Design, cases: Iterable[np.ndarray] | None = None) -> Region:
    """Return the region of the whole (grid, seed) array, or the smallest one that contains the flat indices `cases`."""
    dims, shape = (*sweep.grid.dims, "seed"), sweep.shape
    if cases is None:
        return Region(dims, shape, {dim: np.arange(size) for dim, size in zip(dims, shape, strict=True)})
    index = np.unravel_index(np.concatenate(list(cases)), shape)
    return Region(dims, shape, {dim: np.unique(at) for dim, at in zip(dims, index, strict=True)})


def _recorded(layout: Layout) -> list[str]:
    """Return the variables of a layout that datasets have."""
    return [name for name in layout.variables if name != END_STATE]


def _is_shared(layout: Layout, name: str) -> bool:
    """Return whether a variable of a layout has the same shape in all groups of cases."""
    return layout.simulator.shares(layout.variables[name])


def _variable(layout: Layout, name: str) -> StoredVariable:
    array = layout.array(name)
    dims = tuple(layout.variables[name])
    # a label that was edited since the cases ran makes no new cases
    labels = layout.simulator.own_labels().get(name, {})
    return StoredVariable(dims, array.dtype, array.fill_value, {**array.attrs.asdict(), **labels})
