"""The inventory of a dataset on disk, `contents.json`: the size of each chunk and a digest of each zarr.json.

Each chunk has its own checksum; `contents.json` additionally detects lost chunks and changed metadata.
"""

from pathlib import Path

from sweeplib.storage.damage import DamageError, damaged, lost
from sweeplib.storage.files import digest
from sweeplib.storage.sealed import read_sealed, write_sealed

NAME = "contents.json"


def has_contents(dataset: Path) -> bool:
    """Return whether a dataset has a `contents.json`; datasets of other writers have none."""
    return (dataset / NAME).exists()


def write_contents(dataset: Path) -> None:
    """Write the `contents.json` of a dataset."""
    files = (file for file in dataset.rglob("*") if file.is_file())
    entries = {file.relative_to(dataset).as_posix(): _entry(file) for file in files}
    write_sealed(dataset / NAME, {"files": entries}, "files")


def check_contents(dataset: Path, remedy: str) -> None:
    """Raise DamageError, naming the file, for a file that is lost, has another size, or is metadata that changed."""
    for name, entry in read_sealed(dataset / NAME, remedy, "files")["files"].items():
        file = dataset / name
        if not file.exists():
            raise lost(file, remedy)
        if _entry(file) != entry:
            raise damaged(file, remedy)


def recorded_entries(dataset: Path) -> dict[str, int | str]:
    """Return the size of each chunk and the digest of each zarr.json as they were written; {} if they are not known."""
    try:
        entries = read_sealed(dataset / NAME, "", "files")["files"]
    except DamageError:
        return {}
    return dict(entries)


def _entry(file: Path) -> int | str:
    is_metadata = file.name == "zarr.json"
    return digest(file.read_bytes()) if is_metadata else file.stat().st_size
