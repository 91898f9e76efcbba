"""How many runs of each dynamics exited by the horizon, over all points and seeds, and by when half of them did."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import partial

import numpy as np

from sweeplib.analysis.kit.passages import passages
from sweeplib.analysis.kit.problem_fields import field
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.networks.simulation.labels import time_text
from sweeplib.statistics.lost_runs import STOPPED, with_status
from sweeplib.statistics.survival import medians

SHOWN = 4
"""The thresholds of a dynamics whose numbers are shown in a line."""


@dataclass(frozen=True)
class ExitCount:
    """The numbers of runs of a dynamics that exited at a threshold by the horizon, and that ended before an exit.

    runs : all that were computed and neither failed nor were killed.
    diverged, stopped : runs that diverged, or were stopped by a time limit or their error, before an exit.
    median : the time by which half of all runs exit, in the unit of the recording times; None where fewer did.
    """

    dynamics: str
    threshold: float
    runs: int
    exited: int
    diverged: int
    stopped: int
    median: float | None

    @property
    def number(self) -> str:
        """Return the number of runs that exited out of all, in words: "41 of 128" or "all 128"."""
        return f"all {self.runs:,}" if self.exited == self.runs > 1 else f"{self.exited:,} of {self.runs:,}"

    @property
    def details(self) -> str:
        """Return in words what follows `number`: by when half of the runs exited, and how many could not."""
        half = [f"half by {self.median:.4g}"] if self.median is not None else []
        others = {"diverged before": self.diverged, "stopped early": self.stopped}
        return "".join(f", {text}" for text in [*half, *(f"{n:,} {end}" for end, n in others.items() if n)])


def exit_counts(ds: xr.Dataset) -> list[ExitCount]:
    """Return the numbers of each dynamics and threshold of a dataset; none without thresholds.

    Failed and killed runs are no runs here. The median is that of Kaplan and Meier, of the runs of all points together.
    """
    if "exit_time" not in ds or not ds.sizes.get("threshold"):
        return []
    # counts are of the runs that there are, however many were lost
    sample, unit = passages(ds, "time", max_lost=1.0), field(ds, "clock", 1.0)
    used = sample.used & with_status(ds, "ok", "diverged", *STOPPED)
    unexited, over = used & ~sample.reached, [dim for dim in used.dims if dim not in ("dynamics", "threshold")]
    numbers = {
        "runs": used.sum(over),
        "exited": (used & sample.reached).sum(over),
        "diverged": (unexited & with_status(ds, "diverged")).sum(over),
        "stopped": (unexited & with_status(ds, *STOPPED)).sum(over),
        "median": medians_of(sample.exit / unit, sample.end / unit, used, over),
    }
    points = [(name, level) for name in ds["dynamics"].values.tolist() for level in ds["threshold"].values.tolist()]
    counts = []
    for name, level in points:
        values = {key: number.sel(dynamics=name, threshold=level).item() for key, number in numbers.items()}
        has_median = np.isfinite(values["median"])
        counts.append(ExitCount(name, float(level), **values | ({} if has_median else {"median": None})))
    return [count for count in counts if count.runs]


def medians_of(exits: xr.DataArray, ends: xr.DataArray, used: xr.DataArray, over: list[Hashable]) -> xr.DataArray:
    """Return the Kaplan-Meier medians of first passages (`Passages`), of all runs along the axes `over` together."""
    samples = (array.stack(run=over, create_index=False) for array in xr.broadcast(exits, ends, used))
    statistic, core = partial(medians, confidence=0.95), [["run"]] * 3
    median: xr.DataArray = xr.apply_ufunc(statistic, *samples, input_core_dims=core, output_core_dims=[()] * 3)[0]
    return median


def exit_lines(ds: xr.Dataset) -> list[str]:
    """Return a line about each dynamics: how many of its runs exit by the horizon; none without thresholds."""
    counts = exit_counts(ds)
    if not counts:
        return []
    time, names = ds["time"], [count.dynamics for count in counts]
    by = f"by the horizon {time_text(time.values[-1].item(), time.attrs)}"
    return [_line([count for count in counts if count.dynamics == name], by) for name in dict.fromkeys(names)]


def _line(counts: list[ExitCount], by: str) -> str:
    """Return the line about a dynamics, from its counts at all thresholds; `by` says "by the horizon ..."."""
    first, *others = counts
    if not others:
        return f"{first.dynamics}: {first.number} runs exit {by}{first.details}"
    parts = [f"{count.number} at T = {count.threshold:g}{count.details}" for count in counts[:SHOWN]]
    parts += [f"{len(counts) - SHOWN} more thresholds"] * (len(counts) > SHOWN)
    return f"{first.dynamics}: runs exit {by}: {'; '.join(parts)}"
