"""What is in a dataset on disk, in its `contents.json`: the size of each chunk, a digest of each zarr.json.

Chunks have checksums of their own; that one is lost, or that metadata have changed, is told by these.
"""

import hashlib
from pathlib import Path

from sweeplib.storage.damage import damaged, lost
from sweeplib.storage.sealed import read_sealed, write_sealed

NAME = "contents.json"


def has_contents(dataset: Path) -> bool:
    """Whether a dataset says what is in it; those of other writers do not."""
    return (dataset / NAME).exists()


def write_contents(dataset: Path) -> None:
    """Write down what is in a dataset."""
    files = (file for file in dataset.rglob("*") if file.is_file())
    entries = {file.relative_to(dataset).as_posix(): _entry(file) for file in files}
    write_sealed(dataset / NAME, {"files": entries}, "files")


def check_contents(dataset: Path, remedy: str) -> None:
    """DamageError naming a file that is lost, has another size or, of metadata, another content."""
    for name, entry in read_sealed(dataset / NAME, remedy, "files")["files"].items():
        file = dataset / name
        if not file.exists():
            raise lost(file, remedy)
        if _entry(file) != entry:
            raise damaged(file, remedy)


def _entry(file: Path) -> int | str:
    is_metadata = file.name == "zarr.json"
    return hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest() if is_metadata else file.stat().st_size
