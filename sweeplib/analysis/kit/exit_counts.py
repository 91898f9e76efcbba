"""How many runs of each dynamics exited by the horizon, over all points and seeds, and by when half of them did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
        """Return the number of runs that exited, and that of all: '41 of 128'."""
        return f"all {self.runs:,}" if self.exited == self.runs > 1 else f"{self.exited:,} of {self.runs:,}"

    @property
    def details(self) -> str:
        """Return what follows the number: by when half of the runs exited, and how many could not."""
        half = [f"half by {self.median:.4g}"] if self.median is not None else []
        others = {"diverged before": self.diverged, "stopped early": self.stopped}
        return "".join(f", {text}" for text in [*half, *(f"{n:,} {end}" for end, n in others.items() if n)])


def exit_counts(ds: xr.Dataset) -> list[ExitCount]:
    """Return the numbers of each dynamics and threshold of a dataset; none without thresholds.

    Failed and killed runs are no runs here. The median is that of Kaplan and Meier, of the runs of all points together.
    """
    if "exit_time" not in ds or not ds.sizes.get("threshold"):
        return []
    sample, unit = passages(ds, "time", max_lost=1.0), field(ds, "clock", 1.0)
    dims = sample.exit.dims
    whole = {
        "exit": sample.exit / unit,
        "end": sample.end / unit,
        "used": sample.used & with_status(ds, "ok", "diverged", *STOPPED),
        "diverged": with_status(ds, "diverged"),
        "stopped": with_status(ds, *STOPPED),
    }
    parts = {name: values.broadcast_like(sample.exit).transpose(*dims) for name, values in whole.items()}
    names, levels = ds["dynamics"].values.tolist(), ds["threshold"].values.tolist()
    counts = [_count(parts, name, float(level)) for name in names for level in levels]
    return [count for count in counts if count.runs]


def _count(parts: dict[str, Any], dynamics: str, threshold: float) -> ExitCount:
    """Return the numbers of a dynamics at a threshold, from the exits, ends and states of all runs."""
    exit_, end, used, diverged, stopped = (
        values.sel(dynamics=dynamics, threshold=threshold).values.ravel() for values in parts.values()
    )
    unexited = used & ~np.isfinite(exit_)
    median = medians(exit_[None], end[None], used[None], 0.95)[0].item()
    return ExitCount(
        dynamics,
        threshold,
        runs=int(used.sum()),
        exited=int((used & ~unexited).sum()),
        diverged=int((unexited & diverged).sum()),
        stopped=int((unexited & stopped).sum()),
        median=float(median) if np.isfinite(median) else None,
    )


def exit_lines(ds: xr.Dataset) -> list[str]:
    """Return a line about each dynamics: how many of its runs exit by the horizon; none without thresholds."""
    counts = exit_counts(ds)
    if not counts:
        return []
    time, names = ds["time"], [count.dynamics for count in counts]
    by = f"by the horizon {time_text(time.values[-1].item(), time.attrs)}"
    return [_line([count for count in counts if count.dynamics == name], by) for name in dict.fromkeys(names)]


def _line(counts: list[ExitCount], by: str) -> str:
    """Return the line about a dynamics, from its counts at all thresholds."""
    first, *others = counts
    if not others:
        return f"{first.dynamics}: {first.number} runs exit {by}{first.details}"
    parts = [f"{count.number} at T = {count.threshold:g}{count.details}" for count in counts[:SHOWN]]
    parts += [f"{len(counts) - SHOWN} more thresholds"] * (len(counts) > SHOWN)
    return f"{first.dynamics}: runs exit {by}: {'; '.join(parts)}"
