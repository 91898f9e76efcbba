"""The analysis stage of a sweep."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sweeplib.analysis.analysis import ANALYSES


def write_analysis(name: str, options: Mapping[str, Any], directory: str | Path) -> Path:
    """The path of `analysis/<name>.zarr` in a sweep's directory, computed from its dataset.zarr; then its done.json."""
    from sweeplib.analysis.overlaps import open_with_overlaps
    from sweeplib.storage.dataset import open_dataset, write_dataset
    from sweeplib.storage.files import files_digest, write_json

    directory = Path(directory)
    analysis = ANALYSES[name]
    read = open_with_overlaps if analysis.overlaps else open_dataset
    result = analysis(read(directory / "dataset.zarr"), **options)
    path = directory / "analysis" / f"{name}.zarr"
    write_dataset(result, path)
    write_json(
        path.with_suffix(".done.json"), {"analysis": name, "options": dict(options), "digest": files_digest(path)}
    )
    return path
