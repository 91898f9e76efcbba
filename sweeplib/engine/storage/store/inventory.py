"""Inventory: the cases of one dynamics that a sweep needs, and their state in the run store, as columns.

`places` are indices of cases in these columns. Two of a sweep's cases may be the same one, with one identity, as where
a point does not depend on an axis: `distinct` has the first of each. A layout is all cases of one shape and similar
work.

The columns of many cases are kept in the file `inventory/<dynamics>.npz`, since it takes seconds to make them. It holds
a digest of the sweep's description, of identities at some points, and of the code of sweeplib and plugins, and is used
only while all these are the same. Positions hold as long as the store has exactly the segments that are named in the
file, which never change.
"""

import hashlib
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile, ZipFile

import numpy as np

from sweeplib.engine.base.table import Column
from sweeplib.engine.cases import Case, Cases
from sweeplib.engine.code.plugins import plugins_digest
from sweeplib.engine.code.sources import package_digest
from sweeplib.engine.files.regular_files import open_bytes
from sweeplib.engine.groups import group_name
from sweeplib.engine.status import Status
from sweeplib.engine.storage.records.files import partial, remove_partials
from sweeplib.engine.storage.store.earlier_store import has_earlier_store
from sweeplib.engine.storage.store.run_store import RunStore, by_segment, first_places, whole

if TYPE_CHECKING:
    from sweeplib.engine.design.design import Design, RunPoints

CLASSES = 1024
"""More than there are classes of cost: the exponents of doubles."""
AT_ONCE = 4096
"""The number of points whose identities are computed together."""
FEWEST = 20_000
"""The number of cases from which on they are kept in a file; fewer are computed as fast."""
FOLDER = "inventory"
KEPT = ("ids", "flat", "segment", "row", "status")
"""The columns of an inventory that are kept in its file."""
_UNREADABLE = (OSError, ValueError, KeyError, BadZipFile, EOFError, zlib.error, NotImplementedError)
"""What reading a damaged file may raise."""


def cost_class(work: float | np.ndarray) -> Any:
    """Return floor(log4(work)), at least 0, of a number or an array, from the exponent's bits: all machines agree."""
    return np.maximum(0, np.frexp(work)[1] - 1) // 2


def order_of_work(case: Case) -> float:
    """Return the largest power of 4 that the work of a case reaches, at least 1."""
    return float(4.0 ** cost_class(case.simulator.work(case)))


def layout_name(case: Case, work: float) -> str:
    """Return the name of the layout of a case of this work: a readable part and a hash of the shared fields.

    The shared fields include the names, dimensions, shapes and types of the recorded variables.
    """
    stored = case.simulator.variables(case).items()
    variables = [(name, variable.dims, variable.shape, str(variable.dtype)) for name, variable in stored]
    shared = repr((case.shape, case.recording.key, case.root_seed, case.pair_by, variables))
    digest = hashlib.blake2b(shared.encode(), digest_size=6).hexdigest()
    return f"{group_name(case.simulator.group(case))}_w{cost_class(work)}-{digest}"


@dataclass(frozen=True)
class Inventory:
    """The n cases of one dynamics that a sweep needs, in the sweep's order, all seeds of a point together.

    store : the run store, as it was when the cases were looked up in it.
    ids (n,) : identities, 16 bytes each.
    flat (n,) : flat indices over (grid dims, seed).
    segment, row (n,) : the number of the segment in the store, and the row in it, -1 where a case is not stored.
    status (n,) : how each ended, or `missing`.
    points : the points of the dynamics, if they were made for the identities; made when they are asked for otherwise.
    """

    sweep: "Design"
    store: RunStore
    ids: np.ndarray
    flat: np.ndarray
    segment: np.ndarray
    row: np.ndarray
    status: np.ndarray
    points: "RunPoints | None" = None

    @property
    def dynamics(self) -> str:
        """The name of the dynamics."""
        return self.store.dynamics

    def column(self, name: str, places: slice | np.ndarray = slice(None)) -> np.ndarray:
        """Return the values (m,) of a name of the grid, or of "seed" or "dynamics", of the cases at some places."""
        flat = self.flat[places]
        if name == "dynamics":
            return np.full(len(flat), self.dynamics, object)
        *index, seed = np.unravel_index(flat, self.sweep.shape)
        points = np.array(index, np.int64).reshape(len(index), len(flat)).T
        column = (
            Column(self.sweep.seeds, seed) if name == "seed" else self.sweep.grid.table(points, (name,)).column(name)
        )
        # an array of objects keeps lists and numbers as they are
        values = np.empty(len(flat), object)
        values[:] = column.items()
        return values

    def rows(self) -> dict[str, list[Any]]:
        """Return the cases as columns of plain values: the names that vary, the seed, the status, the identity."""
        grid = self.sweep.grid
        names = (*(name for name in grid.names if name not in grid.fixed), "seed")
        others = {
            "status": [Status(code).name for code in self.status],
            "identity": [whole(identity).hex() for identity in self.ids.tolist()],
        }
        return {name: self.column(name).tolist() for name in names} | others

    @cached_property
    def distinct(self) -> np.ndarray:
        """The first place (m,) of each different case, ascending."""
        return first_places(self.ids)

    def counts(self) -> dict[str, int]:
        """Return the number of different cases with each status."""
        numbers = np.bincount(self.status[self.distinct], minlength=len(Status))
        return {state.name: int(numbers[state]) for state in Status}

    def refreshed(self) -> "Inventory":
        """Return the same cases with their positions and status in the store as it is now."""
        return _located(self.sweep, RunStore(self.store.directory, self.dynamics), self.ids, self.flat, self.points)

    def by_segment(self) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Yield the number of each segment with needed cases, their rows (m,), ascending, and their places (m,)."""
        return by_segment(self.segment, self.row)

    def remember(self) -> None:
        """Keep the columns in a file for later inventories of the same sweep, if there are many cases and a folder."""
        if len(self.ids) < FEWEST or not self.store.directory.exists():
            return
        if has_earlier_store(self.store.directory, self.dynamics) or self.store.leaves_out:
            return  # the numbers of segments are others
        path = _path(self.store.directory, self.dynamics)
        with suppress(OSError):  # without the file everything works, only slower
            path.parent.mkdir(exist_ok=True)
            remove_partials(path)
            beside = partial(path)
            with beside.open("wb") as file:
                texts = {"key": np.array(_key(self.sweep, self.dynamics)), "names": np.array(self.store.names, "U")}
                np.savez(file, **texts | {name: getattr(self, name) for name in KEPT})
            beside.replace(path)

    @cached_property
    def _points(self) -> "RunPoints":
        """The points of the dynamics, made if need be."""
        return self.points or self.sweep.points(self.dynamics)

    def _point(self, places: slice | np.ndarray) -> np.ndarray:
        """Return the point (m,) of each case at some places, as its index among `_points`."""
        # the flat index of a point is that of its first seed: the last one that is not behind the case
        after: np.ndarray = np.searchsorted(self._points.flat, self.flat[places], side="right")
        return after - 1

    def cases(self, places: slice | np.ndarray) -> Cases:
        """Return the cases at some places."""
        seed = Column(self.sweep.seeds, self.flat[places] % len(self.sweep.seeds))
        return self._points.cases.at(self._point(places)).replaced(seed=seed.at(slice(None)))

    @cached_property
    def _solutions(self) -> np.ndarray:
        """The first point that has the solution of each point with the same seed."""
        return self._points.cases.solutions()

    @property
    def shares_solutions(self) -> bool:
        """Whether cases of several points have one solution."""
        return bool((self._solutions != np.arange(len(self._solutions))).any())

    def solved(self, places: np.ndarray) -> np.ndarray:
        """Return those of some places, in their order, whose solution no place before them has."""
        seed = self.flat[places] % len(self.sweep.seeds)
        solution = self._solutions[self._point(places)]
        return places[np.sort(np.unique(solution * len(self.sweep.seeds) + seed, return_index=True)[1])]

    @cached_property
    def missing(self) -> dict[str, np.ndarray]:
        """The places (m,) of the different cases that are missing, by the name of their layout, the costliest first."""
        places = self.distinct[self.status[self.distinct] == Status.missing]
        if not len(places):
            return {}
        point, points = self._point(places), self._points.cases
        work, (shapes, shape) = points.works(), points.shapes()
        numbers = {case_shape: number for number, case_shape in enumerate(dict.fromkeys(shapes))}
        # one number for shape and class of cost; `shape`, `work` and `kind` are of points, then of the missing cases
        kind = (np.array([numbers[case_shape] for case_shape in shapes])[shape] * CLASSES + cost_class(work))[point]
        # cases of one solution stand side by side: points that have it with the same seed
        seed = self.flat[places] % len(self.sweep.seeds)
        order = np.lexsort((seed, self._solutions[point], -work[point], kind))
        groups = np.split(order, np.flatnonzero(np.diff(kind[order])) + 1)
        first = [int(point[group[0]]) for group in groups]
        names = [layout_name(points[at], float(work[at])) for at in first]
        return dict(sorted((name, places[group]) for name, group in zip(names, groups, strict=True)))


def inventory(sweep: "Design", dynamics: str, store: RunStore) -> Inventory:
    """Return the inventory of a sweep's cases of one dynamics, from its file if that is of this sweep and store."""
    columns = _columns_in_file(sweep, dynamics, store.directory)
    if columns is None:
        return _located(sweep, store, *identities_of_cases(sweep, dynamics))
    if columns["names"].tolist() != store.names:
        return _located(sweep, store, columns["ids"], columns["flat"])
    store.pin()
    return Inventory(
        sweep, store, columns["ids"], columns["flat"], columns["segment"], columns["row"], columns["status"]
    )


def _located(
    sweep: "Design", store: RunStore, ids: np.ndarray, flat: np.ndarray, points: "RunPoints | None" = None
) -> Inventory:
    """Return the inventory of cases with these identities and flat indices (n,), looked up in a store."""
    segment, row = store.locate(ids)
    return Inventory(sweep, store, ids, flat, segment, row, store.status_at(segment, row), points)


def counts_of_cases(sweep: "Design", directory: Path) -> dict[str, dict[str, int]]:
    """Return the number of cases with each status, by dynamics. It may be called while the sweep runs."""
    return {name: inventory(sweep, name, RunStore(directory, name)).counts() for name in sweep.runs}


def identities_of_cases(sweep: "Design", dynamics: str) -> tuple[np.ndarray, np.ndarray, "RunPoints"]:
    """Return the identities (n,) and the flat indices (n,) of all cases of a dynamics, and its points."""
    # a point has the first of the seeds, as many as its count says; `places` are theirs among all seeds of the sweep
    places, seeds = (np.array(column, np.int64) for column in zip(*sweep.seeds_of(dynamics), strict=True))
    points, ids, flat = sweep.points(dynamics), [np.empty(0, "S16")], [np.empty(0, np.int64)]
    for first in range(0, len(points.flat), AT_ONCE):
        chunk = slice(first, first + AT_ONCE)
        needed = (places < points.counts[chunk, None]).ravel()
        ids.append(points.cases.at(chunk).identities_with(seeds)[needed])
        flat.append(np.add.outer(points.flat[chunk], places).ravel()[needed])
    return np.concatenate(ids), np.concatenate(flat), points


def _columns_in_file(sweep: "Design", dynamics: str, directory: Path) -> Mapping[str, np.ndarray] | None:
    """Return the columns in the file of a sweep, by name; None if there is none, or it is of another one or damaged.

    Beside `KEPT` it has `names`, those of the segments in which cases were looked up, in the order of their numbers.
    """
    path = _path(directory, dynamics)
    if not path.exists():
        return None
    try:
        with open_bytes(path) as opened, np.load(opened, allow_pickle=False) as file:
            is_of_sweep = str(file["key"]) == _key(sweep, dynamics)
            return {name: file[name] for name in (*KEPT, "names")} if is_of_sweep else None
    except _UNREADABLE:
        return None


def inventory_files(directory: Path) -> list[Path]:
    """Return the files of kept inventories in a sweep's folder, each named by its dynamics."""
    return sorted((directory / FOLDER).glob("*.npz"))


def is_whole_file(path: Path) -> bool:
    """Return whether all arrays of a file have the content that was written, by their checksums."""
    try:
        with open_bytes(path) as opened, ZipFile(opened) as file:
            return file.testzip() is None
    except _UNREADABLE:
        return False


def is_file_of(path: Path, sweep: "Design") -> bool:
    """Return whether a file has the identities of a sweep's present cases; any other file is not used."""
    return path.stem in sweep.runs and _columns_in_file(sweep, path.stem, path.parents[1]) is not None


def _path(directory: Path, dynamics: str) -> Path:
    return directory / FOLDER / f"{dynamics}.npz"


def _key(sweep: "Design", dynamics: str) -> str:
    """Return the digest by which a file is known to be of the sweep as it is now, and of this code."""
    digest = hashlib.blake2b(digest_size=16)
    code = package_digest(), plugins_digest(sweep.plugins, "simulate")
    for text in (*code, sweep.description(dynamics), sweep.numerics(dynamics)):
        digest.update(f"{text}\0".encode())
    return digest.hexdigest()
