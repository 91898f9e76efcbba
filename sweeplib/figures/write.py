"""The figure stage of a sweep."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sweeplib.errors import InputError
from sweeplib.figures.figure import FIGURES


def write_figure(name: str, options: Mapping[str, Any], directory: str | Path) -> list[Path]:
    """The paths of figures/<name>.pdf and .png, drawn from a sweep's dataset.zarr and analysis/*.zarr alone."""
    from sweeplib.figures.style import save
    from sweeplib.storage.dataset import open_dataset

    directory = Path(directory)
    figure = FIGURES[name]
    analyses = {}
    for need in figure.needs:
        path = directory / "analysis" / f"{need}.zarr"
        if not path.exists():
            raise InputError(f"the figure {name!r} needs the analysis", value=need, expected=f"{path}")
        analyses[need] = open_dataset(path).load()
    drawing = figure(open_dataset(directory / "dataset.zarr"), analyses, **options)
    return save(drawing, directory / "figures" / name)
