"""First passages over seeds, with what was not observed told apart.

Four kinds of runs: exited; `ok` but not exited, right-censored at the run's end; diverged before exiting, which never
exit, however long one waits; failed, killed, timed out or missing, which say nothing and are left out. A diverged run
must not be censored at its divergence: that it diverged says when it would have exited (never), so it stays at risk for
ever, as in the cumulative incidence of competing risks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sweeplib.analysis.cells import require, with_status

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class Passages:
    """First passages of one quantity, `steps` or `time`.

    `exit` is NaN where not reached, `end` is when a run stopped being observed, inf for those that diverged. All have
    the dims of `exit_steps`; `end` is of use only where not `reached`.
    """

    exit: xr.DataArray
    end: xr.DataArray
    used: xr.DataArray
    reached: xr.DataArray

    @property
    def horizon(self) -> xr.DataArray:
        """Per cell, until when every run that is used was observed: the earliest censoring, inf where none is censored.

        Where runs that diverged are the only ones that have not exited it is the last exit.
        """
        censored = self.end.where(self.used & ~self.reached)
        first = censored.min("seed").fillna(np.inf)
        only_diverged = censored.notnull().any("seed") & np.isinf(first)
        return first.where(~only_diverged, self.exit.where(self.used).max("seed"))

    def restricted(self) -> xr.DataArray:
        """min(first passage, horizon) per seed, observed for every run that is used; NaN for the others."""
        return self.exit.fillna(np.inf).clip(max=self.horizon).where(self.used)

    def censored(self) -> xr.DataArray:
        """Where a run is used and has not exited."""
        return self.used & ~self.reached


def passages(ds: xr.Dataset, quantity: str) -> Passages:
    """The first passages of a dataset in `steps` or ODE `time`."""
    exit_name, end_name = f"exit_{quantity}", f"end_{quantity}"
    require(ds, exit_name, end_name)
    exit_, diverged = ds[exit_name], with_status(ds, "diverged")
    used = (with_status(ds, "ok") | diverged).broadcast_like(exit_)
    end = ds[end_name].where(~diverged, np.inf).broadcast_like(exit_)
    order = exit_.dims
    return Passages(exit_, end.transpose(*order), used.transpose(*order), exit_.notnull() & used)
