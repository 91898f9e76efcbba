"""First passages over seeds, with what was not observed told apart.

- A run that exited has a first passage.
- One that ended, or ran out of time, without an exit is right-censored at its end: a time limit counts seconds, and
  knows nothing of what a run would have done next, so that the others stand for it from there on.
- One that diverged before exiting never exits, however long one waits. It must not be censored at its divergence: that
  it diverged says when it would have exited (never), so it stays at risk for ever, as in the cumulative incidence of
  competing risks.
- One that failed or was killed is lost: nothing of it is known, and what ended it may have to do with its exit. The
  others stand for it where few are lost (`lost_runs`); else no run of its cell is used: the cell has no statistics.
- A missing one was not asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sweeplib.analysis.lost_runs import MOST_LOST, made, too_many
from sweeplib.analysis.recorded import require
from sweeplib.analysis.status import with_status
from sweeplib.analysis.survival import restricted_values

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class Passages:
    """First passages of one quantity, `steps` or `time`.

    `exit` is NaN where not reached, `end` is when a run stopped being observed, inf for those that diverged; `refused`
    tells, per cell, that too many runs were lost. All but that have the dims of `exit_steps`; `end` is of use only
    where not `reached`.
    """

    exit: xr.DataArray
    end: xr.DataArray
    used: xr.DataArray
    reached: xr.DataArray
    refused: xr.DataArray

    @property
    def watched(self) -> xr.DataArray:
        """Per cell, until when every run that is used was observed: the earliest censoring, inf where none is censored.

        Where runs that diverged are the only ones that have not exited it is the last exit.
        """
        first = self.end.where(self.censored()).min("seed")
        return first.where(np.isfinite(first), self.horizon)

    @property
    def horizon(self) -> xr.DataArray:
        """Per cell, the last time at which a run that is used was observed; inf where all exited."""
        seen = self.exit.fillna(self.end).where(self.used)
        last = seen.where(np.isfinite(seen)).max("seed")
        return last.where(self.censored().any("seed"), np.inf)

    def restricted(self) -> xr.DataArray:
        """min(first passage, horizon) per seed; NaN for runs that are not used.

        Where runs were censored before the horizon, pseudo-values in their place, whose mean is that of the
        Kaplan-Meier curve (`restricted_values`).
        """
        import xarray as xr

        horizon = self.horizon
        values = self.exit.fillna(np.inf).clip(max=horizon).where(self.used)
        if not bool((self.censored() & (self.end < horizon)).any()):
            return values
        seen = self.exit.fillna(self.end).where(self.used)
        pseudo: xr.DataArray = xr.apply_ufunc(
            restricted_values, seen, self.reached, horizon, input_core_dims=[["seed"], ["seed"], []],
            output_core_dims=[["seed"]], vectorize=True, output_dtypes=[float],
        )  # fmt: skip
        return pseudo.transpose(*values.dims)

    def censored(self) -> xr.DataArray:
        """Where a run is used and has not exited."""
        return self.used & ~self.reached


def passages(ds: xr.Dataset, quantity: str, max_lost: float = MOST_LOST) -> Passages:
    """The first passages of a dataset in `steps` or ODE `time`; none in cells where more than `max_lost` are lost."""
    exit_name, end_name = f"exit_{quantity}", f"end_{quantity}"
    require(ds, exit_name, end_name)
    exit_, diverged = ds[exit_name], with_status(ds, "diverged")
    refused = too_many(with_status(ds, "failed", "killed"), made(ds), max_lost)
    used = ((with_status(ds, "ok", "timeout") | diverged) & ~refused).broadcast_like(exit_)
    end = ds[end_name].where(~diverged, np.inf).broadcast_like(exit_)
    order = exit_.dims
    return Passages(exit_, end.transpose(*order), used.transpose(*order), exit_.notnull() & used, refused)
