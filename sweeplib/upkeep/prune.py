"""Stale results: what is in a sweep's folder and is not used by its present config; deleted only if asked."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sweeplib.storage.damage import DamageError
from sweeplib.storage.files import read_json, remove
from sweeplib.storage.inventory import inventory
from sweeplib.storage.layout import Layout
from sweeplib.storage.locks import driver_lock
from sweeplib.storage.outcomes import outcomes_path, reasons_path
from sweeplib.storage.remembered import is_of, remembered_files
from sweeplib.storage.run_store import RunStore
from sweeplib.storage.versions import FOLDER, linked_version

if TYPE_CHECKING:
    from rich.table import Table

    from sweeplib.design.sweep import Sweep


@dataclass(frozen=True)
class Stale:
    """Files that the config does not use: what they are, the number of cases whose results they hold (None: none).

    layout, blocks : results that are parts of a layout which the config uses.
    """

    what: str
    paths: tuple[Path, ...]
    cases: int | None = None
    layout: Layout | None = None
    blocks: tuple[int, ...] = ()

    def files(self) -> list[Path]:
        """Return the files."""
        below = [[path] if not path.is_dir() or path.is_symlink() else path.rglob("*") for path in self.paths]
        return [path for found in below for path in found if path.is_file() and not path.is_symlink()]

    @property
    def bytes(self) -> int:
        """Return the size of the files."""
        return sum(path.stat().st_size for path in self.files())

    @property
    def since(self) -> float:
        """Return when a file of these was written last, in seconds since 1970."""
        return max((path.stat().st_mtime for path in self.files()), default=0.0)


def stale(sweep: "Sweep", directory: Path) -> list[Stale]:
    """Return what the config of a sweep does not use, the runs first."""
    found: list[Stale] = []
    for dynamics in sweep.runs:
        store = RunStore(directory, dynamics)
        wanted = inventory(sweep, dynamics, store)
        for number, layout in enumerate(store.layouts.values()):
            found += _of_layout(layout, wanted.row[wanted.layout == number])
    found += _other_dynamics(sweep, directory)
    found += _other_files(sweep, directory)
    return [each for each in found if each.files()]


def _of_layout(layout: Layout, rows: np.ndarray) -> Iterator[Stale]:
    """Yield a layout of which the config needs no row, or its blocks of which it needs none."""
    done = layout.status() > 0
    name = f"{layout.path.parent.name}/{layout.name}"
    if not len(rows):
        yield Stale(f"cases of other configs or of other code: {name}", (layout.path,), int(done.sum()))
        return
    used = set((rows // layout.block_size).tolist())
    blocks = [n for n in range(layout.n_blocks) if n not in used and done[layout.block(n)].any()]
    if blocks:
        files = tuple(file for number in blocks for file in layout.files(number) if file.exists())
        cases = sum(int(done[layout.block(number)].sum()) for number in blocks)
        what = f"cases of other configs or of other code: {len(blocks)} block{'s' * (len(blocks) > 1)} of {name}"
        yield Stale(what, files, cases, layout, tuple(blocks))


def _other_dynamics(sweep: "Sweep", directory: Path) -> Iterator[Stale]:
    for folder in sorted((directory / "runs.zarr").glob("*")):
        if folder.is_dir() and folder.name not in sweep.runs:
            name = folder.name
            journals = (directory / "journal" / f"{name}.jsonl", reasons_path(directory, name))
            beside = (directory / f"{name}.done.json", *journals, outcomes_path(directory, name))
            cases = sum(int((status > 0).sum()) for status in RunStore(directory, name).statuses())
            yield Stale(f"runs of {name}, which is not in the config", (folder, *beside), cases)


def _other_files(sweep: "Sweep", directory: Path) -> Iterator[Stale]:
    """Yield versions, analyses, figures and descriptions of failures that are not those of the config; leftovers."""
    current = linked_version(directory / "dataset.zarr")
    for version in sorted((directory / FOLDER).glob("*.zarr")):
        if current is not None and version.name != current:
            yield Stale(f"the version of the dataset before the present one: {version.name}", (version,))
    for kind, folder, known in (("analysis", "analysis", sweep.analyses), ("figure", "figures", sweep.figures)):
        files = sorted(path for path in (directory / folder).glob("[!.]*") if path.name.split(".")[0] not in known)
        for name in sorted({path.name.split(".")[0] for path in files}):
            paths = tuple(path for path in files if path.name.split(".")[0] == name)
            yield Stale(f"{kind} {name}, which is not in the config", paths)
    old = tuple(path for path in remembered_files(directory) if not is_of(path, sweep))
    yield Stale("identities of the cases of other configs, other code or removed dynamics", old)
    cases = tuple(path for path in sorted((directory / "failures").glob("*.json")) if _is_of_a_case(path))
    yield Stale(f"descriptions of {len(cases)} cases, by an earlier version of sweeplib", cases)
    others = tuple(path for path in sorted((directory / "failures").glob("*.*.json")) if not _is_current(path, sweep))
    yield Stale(f"descriptions of {len(others)} failures that are not of this config", others)
    yield Stale("temporary files of writers that were killed", tuple(_partials(directory)))


def _is_of_a_case(path: Path) -> bool:
    """Return whether a file is the description of a case that did not end ok, as earlier versions wrote one for each.

    They were written as the checksum in it says; a file that somebody else put there has none.
    """
    if not re.fullmatch("[0-9a-f]{32}", path.stem):
        return False
    try:
        return {"problem", "seed", "status"} <= (read_json(path) or {}).keys()
    except DamageError:
        return False


def _is_current(path: Path, sweep: "Sweep") -> bool:
    """Return whether a description of a failed attempt is of the config, or not of an analysis or a figure."""
    kind, _, name = path.name.removesuffix(".json").partition(".")
    known = {"analysis": sweep.analyses, "figure": sweep.figures}
    return kind not in known or name in known[kind]


def _partials(directory: Path) -> Iterable[Path]:
    for folder, folders, files in os.walk(directory):
        yield from sorted(Path(folder, name) for name in (*folders, *files) if name.endswith(".partial"))
        folders[:] = [name for name in folders if not name.endswith(".partial")]


def delete_stale(sweep: "Sweep", directory: Path, found: Sequence[Stale]) -> None:
    """Delete what is stale; InputError while a driver runs."""
    with ExitStack() as locks:
        for dynamics in sweep.runs:
            locks.enter_context(driver_lock(directory, dynamics))
        for each in found:
            if each.layout is not None:
                each.layout.forget(each.blocks)
            else:
                for path in each.paths:
                    remove(path)


def table(found: Sequence[Stale]) -> "Table":
    """Return what is stale as a table with the total size."""
    from sweeplib.process.terminal import table as made

    rows = [
        [
            each.what,
            "" if each.cases is None else f"{each.cases:,}",
            size(each.bytes),
            datetime.fromtimestamp(each.since).astimezone().strftime("%Y-%m-%d %H:%M"),
        ]
        for each in found
    ]
    caption = f"in all {size(sum(each.bytes for each in found))}"
    return made(("stale", "cases", "size", "last written"), rows, caption=caption)


def size(nbytes: float) -> str:
    """Return a number of bytes in words."""
    for unit in ("B", "kB", "MB"):
        if nbytes < 1000:
            return f"{nbytes:.0f} {unit}"
        nbytes /= 1000
    return f"{nbytes:.1f} GB"
