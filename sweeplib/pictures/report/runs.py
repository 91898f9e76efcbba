"""The outcome of the runs: counts by status at each point of a sweep, and the processor time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from sweeplib.analysis.kit.problem_fields import has_direction
from sweeplib.analysis.kit.rows import runs_by_status
from sweeplib.engine.base.late_modules import xarray as xr


def run_counts(dataset: xr.Dataset, data: xr.Dataset) -> xr.DataArray:
    """Return the outcomes at each point of `data`, derived from `dataset`, as text: '120 ok, 8 diverged', 'none'.

    Counts are summed over axes that `data` no longer has; runs that were not requested are not counted. A direction
    that the teacher does not have has none.
    """
    counts = runs_by_status(dataset, data)
    axes = next(iter(counts.values())).dims
    table = np.stack([count.values for count in counts.values()], axis=-1)
    rows, place = np.unique(table.reshape(-1, len(counts)), axis=0, return_inverse=True)
    texts = np.array([_text(row.tolist(), list(counts)) for row in rows])
    shape = [data.sizes[dim] for dim in axes]
    runs = xr.DataArray(texts[place].reshape(shape), dims=axes)
    runs = runs.where(has_direction(data, dataset).reset_coords(drop=True), "none")
    return runs.assign_attrs(long_name="runs by status")


def _text(numbers: list[int], meanings: list[str]) -> str:
    return (
        ", ".join(f"{number} {meaning}" for number, meaning in zip(numbers, meanings, strict=True) if number) or "none"
    )


@dataclass(frozen=True)
class Computation:
    """How the cases of a dynamics were computed: the processor time of their tasks, one core each, and their workers.

    copies : the number of cases that were taken from each other sweep, by its name.
    """

    seconds: float
    workers: frozenset[str]
    copies: Mapping[str, int] = field(default_factory=dict)


def computations(directory: Path, dynamics: Iterable[str]) -> list[Computation]:
    """Return how the stored cases of some dynamics in a sweep's directory were computed."""
    return [_computation(directory, name) for name in dynamics]


def _computation(directory: Path, dynamics: str) -> Computation:
    from sweeplib.engine.storage.store.origins import taken_cases, taken_from
    from sweeplib.engine.storage.store.run_store import RunStore

    store, others = RunStore(directory, dynamics, leave_out_damaged=True), taken_from(directory, dynamics)
    headers = [segment.header for segment in store.segments if segment.name not in others]
    seconds = sum(float(header.get("seconds", 0.0)) for header in headers)
    workers = frozenset(worker for header in headers for worker in header.get("workers", ()))
    return Computation(seconds, workers, taken_cases(directory, dynamics))
