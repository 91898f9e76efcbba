"""The identities of a large sweep's cases in a file, `inventory/<dynamics>.npz`: they take seconds to compute.

The file is used only for the sweep that it was made for: it has a digest of its description, of identities at some
points, and of the code of sweeplib. Positions in the run store are compared to the identities there. If the file is
lost, damaged or of another sweep, everything is computed again.
"""

import hashlib
import zlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from zipfile import BadZipFile, ZipFile

import numpy as np

from sweeplib.engine.code.sources import package_digest
from sweeplib.engine.files.regular_files import open_bytes
from sweeplib.engine.storage.records.files import partial, remove_partials
from sweeplib.engine.storage.store.run_store import RunStore

if TYPE_CHECKING:
    from sweeplib.engine.design.design import Design

FEWEST = 20_000
"""The number of cases from which on they are remembered; fewer are computed as fast."""


FOLDER = "inventory"
_UNREADABLE = (OSError, ValueError, KeyError, BadZipFile, EOFError, zlib.error, NotImplementedError)
"""What reading a damaged file may raise."""


class CasePositions(NamedTuple):
    """Identities, flat indices, and positions in the store (n,), of the n cases of one dynamics of a sweep."""

    ids: np.ndarray
    flat: np.ndarray
    layout: np.ndarray
    row: np.ndarray


def write_identities(sweep: "Design", store: RunStore, cases: CasePositions) -> None:
    """Write the file for a sweep, if it is large and its folder exists."""
    if len(cases.ids) < FEWEST or not store.directory.exists():
        return
    path = _path(store)
    with suppress(OSError):  # without the file everything works, only slower
        path.parent.mkdir(exist_ok=True)
        remove_partials(path)
        beside = partial(path)
        names = np.array(list(store.layouts), "U") if store.layouts else np.empty(0, "U1")
        key = np.array(_key(sweep, store.dynamics))
        with beside.open("wb") as file:
            np.savez(file, key=key, names=names, ids=cases.ids, flat=cases.flat, layout=cases.layout, row=cases.row)
        beside.replace(path)


def read_identities(sweep: "Design", store: RunStore) -> CasePositions | None:
    """Return what the file has, with positions in the present store; None without a file for the present sweep."""
    path = _path(store)
    if not path.exists():
        return None
    try:
        with open_bytes(path) as opened, np.load(opened, allow_pickle=False) as file:
            if str(file["key"]) != _key(sweep, store.dynamics):
                return None
            cases = CasePositions(file["ids"], file["flat"], file["layout"], file["row"])
            names = file["names"].tolist()
    except _UNREADABLE:
        return None
    return _checked_positions(store, cases, names)


def identity_files(directory: Path) -> list[Path]:
    """Return the files of remembered identities in a sweep's folder, each named by its dynamics."""
    return sorted((directory / FOLDER).glob("*.npz"))


def is_whole(path: Path) -> bool:
    """Return whether all arrays of a file have the content that was written, by their checksums."""
    try:
        with open_bytes(path) as opened, ZipFile(opened) as file:
            return file.testzip() is None
    except _UNREADABLE:
        return False


def is_of(path: Path, sweep: "Design") -> bool:
    """Return whether a file has the identities of a sweep's present cases; those of others are not used."""
    try:
        with open_bytes(path) as opened, np.load(opened, allow_pickle=False) as file:
            return path.stem in sweep.runs and str(file["key"]) == _key(sweep, path.stem)
    except _UNREADABLE:
        return False


def _checked_positions(store: RunStore, cases: CasePositions, names: list[str]) -> CasePositions:
    """Return the cases with positions that are true: remembered ones are checked, all others are looked up."""
    layout, row = np.full(len(cases.ids), -1, np.int32), np.full(len(cases.ids), -1, np.int32)
    numbers = {name: number for number, name in enumerate(store.layouts)}
    for number, name in enumerate(names):
        if name in numbers:
            ids = store.layouts[name].ids
            here = np.flatnonzero((cases.layout == number) & (cases.row < len(ids)))
            here = here[ids[cases.row[here]] == cases.ids[here]]
            layout[here], row[here] = numbers[name], cases.row[here]
    unknown = np.flatnonzero(layout < 0)
    if len(unknown):
        layout[unknown], row[unknown] = store.locate(cases.ids[unknown])
    return CasePositions(cases.ids, cases.flat, layout, row)


def _path(store: RunStore) -> Path:
    return store.directory / FOLDER / f"{store.dynamics}.npz"


def _key(sweep: "Design", dynamics: str) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for text in (package_digest(), sweep.description(dynamics), sweep.numerics(dynamics)):
        digest.update(f"{text}\0".encode())
    return digest.hexdigest()
