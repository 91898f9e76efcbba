"""Examination of the run store: every file is read and checked, also beside damaged ones."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from os.path import lexists
from pathlib import Path

import numpy as np

from sweeplib.engine.files.regular_files import file_bytes
from sweeplib.engine.storage.records.files import DAMAGED, LOST, DamageError, is_intact, is_partial
from sweeplib.engine.storage.store.layout import INDEX, Layout, layout_folders
from sweeplib.engine.storage.store.layout_files import intact_metadata, is_of_layout
from sweeplib.engine.storage.store.run_store import RunStore


@dataclass(frozen=True)
class Harm:
    """A damaged or lost file of a layout.

    `block` is the number of the block whose results it has; None for the index and the metadata, without which no case
    of the layout can be read. A block that is not in the layout (-1) is left from an interrupted append.
    """

    file: Path
    problem: str
    block: int | None


@dataclass(frozen=True)
class StoreDamage:
    """The examination of one dynamics.

    groups : damaged metadata of the store itself, which do not depend on the sweep.
    harms : the damaged and lost files of each layout, by the name of the layout.
    chunks : the number of chunks that were read.
    """

    directory: Path
    dynamics: str
    groups: list[Path] = field(default_factory=list)
    harms: dict[str, list[Harm]] = field(default_factory=dict)
    chunks: int = 0

    @property
    def unreadable(self) -> list[str]:
        """Return the layouts without an intact index and intact metadata."""
        return [name for name, harms in self.harms.items() if any(harm.block is None for harm in harms)]

    def blocks(self, layout: str) -> list[int]:
        """Return the damaged blocks of a layout."""
        return _blocks(self.harms.get(layout, ()))

    def readable(self) -> "ReadableStore":
        """Return the intact part of the store: cases of damaged blocks are missing, damaged layouts are absent."""
        return ReadableStore(self)


class ReadableStore(RunStore):
    """The intact part of a run store. It is not for writing."""

    def __init__(self, damage: StoreDamage) -> None:
        self._damage = damage
        super().__init__(damage.directory, damage.dynamics, leave_out=damage.unreadable)

    def statuses(self) -> list[np.ndarray]:
        """Return the status of every row, one array per layout; missing in damaged blocks."""
        return self._statuses

    @cached_property
    def _statuses(self) -> list[np.ndarray]:
        statuses = []
        for name, layout in self.layouts.items():
            status, damaged = np.zeros(len(layout), np.uint8), self._damage.blocks(name)
            for number in range(layout.n_blocks):
                if number not in damaged:
                    status[layout.block(number)] = layout.status(layout.block(number))
            statuses.append(status)
        return statuses


def store_damage(directory: Path, dynamics: str) -> StoreDamage:
    """Return the examination of one dynamics in a sweep's directory. Only while nobody writes."""
    folder = directory / "runs.zarr" / dynamics
    damage, chunks = {}, 0
    for layout in layout_folders(folder):
        files = _files(layout)
        chunks += sum(path.name != "zarr.json" for path in files)
        if harms := [*_harms(layout, files)]:
            damage[layout.name] = harms
    groups = [group for group in (folder.parent / "zarr.json", folder / "zarr.json") if intact_metadata(group) is None]
    return StoreDamage(directory, dynamics, groups if folder.exists() else [], damage, chunks)


def damaged_blocks(layout: Layout) -> list[int]:
    """Return the damaged blocks of a layout, of which every file is read."""
    return _blocks(_harms(layout.path, _files(layout.path)))


def _blocks(harms: Iterable[Harm]) -> list[int]:
    return sorted({harm.block for harm in harms if harm.block is not None and harm.block >= 0})


def _files(layout: Path) -> list[Path]:
    """Return what is in the places of a layout's files, but for folders: also pipes, devices, links to nowhere."""
    paths = (path for path in layout.rglob("*") if is_of_layout(path.relative_to(layout).as_posix()))
    return [path for path in paths if not is_partial(path) and not path.is_dir()]


def _is_whole(file: Path) -> bool:
    """Return whether a file has what was written there; something else than a file has not."""
    if not file.is_file():
        return False
    return intact_metadata(file) is not None if file.name == "zarr.json" else is_intact(file_bytes(file))


def _harms(path: Path, files: list[Path]) -> Iterator[Harm]:
    """Yield the damaged files of a layout, then the lost ones as far as this can be known."""
    layout = _layout_or_none(path)
    damaged = {file for file in files if not _is_whole(file)}
    arrays = (*INDEX, "status", *layout.variables) if layout is not None else INDEX
    lost = [path / name / "zarr.json" for name in ("", *arrays) if not (path / name / "zarr.json").exists()]
    damaged |= {file for file in _of_others(layout, path, arrays) if file not in lost}
    yield from (Harm(file, DAMAGED, _block(layout, path, file)) for file in sorted(damaged))
    yield from (Harm(file, LOST, None) for file in lost if file not in damaged)
    if layout is None or lost or any(file.name == "zarr.json" for file in damaged):
        return
    yield from (Harm(file, LOST, None) for file in layout.index_files() if _is_lost(file))
    for number in range(layout.n_blocks):
        status, *others = layout.files(number)
        if status.is_dir():
            yield Harm(status, DAMAGED, number)
        elif status not in damaged and status.exists() and layout.status(layout.block(number)).any():
            yield from (Harm(file, LOST, number) for file in others if _is_lost(file))


def _is_lost(file: Path) -> bool:
    """Return whether there is nothing in the place of a file, or a folder."""
    return not lexists(file) or file.is_dir()


def _of_others(layout: Layout | None, path: Path, arrays: Iterable[str]) -> Iterator[Path]:
    """Yield the metadata that is not of its place, whole or not."""
    if layout is None:
        yield path / "zarr.json"
        return
    for name in arrays:
        try:
            layout.array(name)
        except (DamageError, OSError):
            yield path / name / "zarr.json"


def _layout_or_none(path: Path) -> Layout | None:
    try:
        return Layout(path)
    except (DamageError, OSError):
        return None


def _block(layout: Layout | None, path: Path, file: Path) -> int | None:
    """Return the block whose results are in a file of a layout; None for index and metadata, -1 beyond its rows."""
    name, *key = file.relative_to(path).parts
    if name in INDEX or file.name == "zarr.json" or layout is None:
        return None
    number = int(key[1]) if key[1:] and key[1].isdigit() else -1
    return number if number < layout.n_blocks else -1
