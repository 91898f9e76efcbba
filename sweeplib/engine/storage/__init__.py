"""Storage of results: the run store of a running sweep, and the final labelled dataset."""

from typing import Any

__all__ = ["open_dataset"]


def __getattr__(name: str) -> Any:
    """Return `open_dataset`, imported at the first access because xarray and zarr are slow to load."""
    if name == "open_dataset":
        from sweeplib.engine.storage.dataset.folder import open_dataset

        return open_dataset
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
