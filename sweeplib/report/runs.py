"""What became of the runs: counts by status at each point of a sweep, and what they cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr


def run_counts(dataset: xr.Dataset, data: xr.Dataset) -> xr.DataArray:
    """In words the runs at each point of `data`, which came from `dataset`: '128 ok', '120 ok, 8 diverged', 'none'.

    Axes that `data` has no more are summed over; where a run was not asked for it is not counted.
    """
    status = dataset["status"]
    kept = [dim for dim in status.dims if dim in data.dims and dim != "seed"]
    over = [dim for dim in status.dims if dim not in kept]
    meanings = status.attrs["flag_meanings"].split()
    counts = {}
    for code, meaning in zip(status.attrs["flag_values"], meanings, strict=True):
        if meaning != "missing":
            number = (status == code).sum(over).reset_coords(drop=True)
            counts[meaning] = number.reindex({dim: data[dim] for dim in kept}, fill_value=0).transpose(*kept)
    table = np.stack([count.values for count in counts.values()], axis=-1)
    rows, place = np.unique(table.reshape(-1, len(counts)), axis=0, return_inverse=True)
    texts = np.array([_text(row.tolist(), list(counts)) for row in rows])
    shape = [data.sizes[dim] for dim in kept]
    return xr.DataArray(texts[place].reshape(shape), dims=kept, attrs={"long_name": "runs by status"})


def _text(numbers: list[int], meanings: list[str]) -> str:
    return (
        ", ".join(f"{number} {meaning}" for number, meaning in zip(numbers, meanings, strict=True) if number) or "none"
    )


@dataclass(frozen=True)
class Journal:
    """What the journal of a dynamics says: the processor time of its blocks, one core each, and who computed them."""

    seconds: float
    workers: frozenset[str]


def journals(directory: Path, dynamics: Iterable[str]) -> list[Journal]:
    """The journals of some dynamics in a sweep's directory; empty ones where there is no file."""
    return [_journal(directory / "journal" / f"{name}.jsonl") for name in dynamics]


def _journal(path: Path) -> Journal:
    from sweeplib.storage.files import read_lines

    lines = read_lines(path)
    seconds = sum(float(line.get("seconds", 0.0)) for line in lines)
    return Journal(seconds, frozenset(str(line["worker"]) for line in lines if "worker" in line))


def duration(seconds: float) -> str:
    """A time as one says it: '26 s', '4.5 min', '3.2 h'."""
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.2g} s"
