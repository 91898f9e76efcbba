"""The identities of a large sweep's cases, and where these are stored, in a file: both take seconds to find out.

The file `inventory/<dynamics>.npz` holds a digest of the sweep's description, of identities at some points, and of the
code of sweeplib, and is used only while all three are the same. Positions hold as long as the store has exactly the
segments that are named in the file, which never change.
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

if TYPE_CHECKING:
    from sweeplib.engine.design.design import Design

FEWEST = 20_000
"""The number of cases from which on they are remembered; fewer are computed as fast."""
FOLDER = "inventory"
_UNREADABLE = (OSError, ValueError, KeyError, BadZipFile, EOFError, zlib.error, NotImplementedError)
"""What reading a damaged file may raise."""


class WantedCases(NamedTuple):
    """The n cases of one dynamics of a sweep, as columns (n,) of an `Inventory`.

    ids, flat : identities, and flat indices over (grid dims, seed).
    segment, row : positions in the store, -1 where a case is not there. status : of each case.
    names : of the segments in which they were looked up, in the order of their numbers.
    """

    ids: np.ndarray
    flat: np.ndarray
    segment: np.ndarray
    row: np.ndarray
    status: np.ndarray
    names: list[str]


def write_identities(sweep: "Design", dynamics: str, directory: Path, cases: WantedCases) -> None:
    """Write the identities and positions of a sweep's cases to their file, if there are many and the folder exists."""
    if len(cases.ids) < FEWEST or not directory.exists():
        return
    path = _path(directory, dynamics)
    with suppress(OSError):  # without the file everything works, only slower
        path.parent.mkdir(exist_ok=True)
        remove_partials(path)
        beside = partial(path)
        with beside.open("wb") as file:
            texts = {"key": np.array(_key(sweep, dynamics)), "names": np.array(cases.names, "U")}
            np.savez(file, **cases._asdict() | texts)
        beside.replace(path)


def read_identities(sweep: "Design", dynamics: str, directory: Path) -> WantedCases | None:
    """Return the cases in the file of a sweep; None if there is none, or it is of another sweep or damaged."""
    path = _path(directory, dynamics)
    if not path.exists():
        return None
    try:
        with open_bytes(path) as opened, np.load(opened, allow_pickle=False) as file:
            if str(file["key"]) != _key(sweep, dynamics):
                return None
            return WantedCases(**{name: file[name] for name in WantedCases._fields} | {"names": file["names"].tolist()})
    except _UNREADABLE:
        return None


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
    """Return whether a file has the identities of a sweep's present cases; any other file is not used."""
    try:
        with open_bytes(path) as opened, np.load(opened, allow_pickle=False) as file:
            return path.stem in sweep.runs and str(file["key"]) == _key(sweep, path.stem)
    except _UNREADABLE:
        return False


def _path(directory: Path, dynamics: str) -> Path:
    return directory / FOLDER / f"{dynamics}.npz"


def _key(sweep: "Design", dynamics: str) -> str:
    """Return the digest by which a file is known to be of the sweep as it is now, and of this code."""
    digest = hashlib.blake2b(digest_size=16)
    for text in (package_digest(), sweep.description(dynamics), sweep.numerics(dynamics)):
        digest.update(f"{text}\0".encode())
    return digest.hexdigest()
