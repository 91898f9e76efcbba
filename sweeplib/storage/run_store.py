"""The run store of a sweep, `runs.zarr`: a group per dynamics, a layout per shape and cost, a row per case.

A row takes 8 bytes per recorded number before compression, and about 25 bytes of index (docs/scaling.md).
"""

from collections.abc import Collection
from pathlib import Path

import numpy as np

from sweeplib.simulation import Case
from sweeplib.storage.layout import Layout, create_layout, layouts
from sweeplib.storage.sealed import read_sealed, write_sealed


def write_group(path: Path) -> None:
    """Write the metadata of the store itself or of the group of a dynamics; they have no content."""
    write_sealed(path, {"attributes": {}, "node_type": "group", "zarr_format": 3})


class RunStore:
    """The rows of one dynamics under a sweep's `directory`."""

    def __init__(self, directory: Path, dynamics: str, *, leave_out: Collection[str] | None = None) -> None:
        """Open the store; DamageError if it is damaged, but for the layouts to `leave_out` if this is given."""
        self.directory = directory
        self.dynamics = dynamics
        self.path = directory / "runs.zarr" / dynamics
        self._groups = [folder / "zarr.json" for folder in (self.path.parent, self.path)]
        for group in self._groups:
            if group.exists() and leave_out is None:
                read_sealed(group, f"delete {group}: the next run writes it again")
        self.layouts = {layout.name: layout for layout in layouts(self.path, leave_out or ())}
        self._index()

    def _index(self) -> None:
        parts = [layout.ids for layout in self.layouts.values()]
        ids = np.concatenate(parts) if parts else np.empty(0, "S16")
        self._order = np.argsort(ids, kind="stable")
        self._sorted = ids[self._order]
        self._layout = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        self._row = np.concatenate([np.arange(len(part)) for part in parts]) if parts else np.empty(0, np.int64)

    def locate(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the layout number (in the order of `layouts`) and the row of each identity; -1 and -1 if unknown."""
        if not len(self._sorted):
            return np.full(len(ids), -1), np.full(len(ids), -1)
        place = np.minimum(np.searchsorted(self._sorted, ids), len(self._sorted) - 1)
        found, at = self._sorted[place] == ids, self._order[place]
        return np.where(found, self._layout[at], -1), np.where(found, self._row[at], -1)

    def create(self, name: str, case: Case, block_size: int) -> Layout:
        """Return the new layout `name`, created for cases like `case`."""
        for group in self._groups:
            if not group.exists():
                write_group(group)
        self.layouts[name] = create_layout(self.path / name, case, block_size)
        return self.layouts[name]

    def statuses(self) -> list[np.ndarray]:
        """Return the status of every row, one array per layout, in the order of `layouts`."""
        return [layout.status() for layout in self.layouts.values()]

    def refreshed(self) -> "RunStore":
        """Return the current store on disk."""
        return RunStore(self.directory, self.dynamics)
