"""What runs without an exit by their horizon say of a longer one: by when others exited, and whether the risk falls."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sweeplib.analysis.kit.passages import Passages, passages
from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.networks.simulation.labels import time_text
from sweeplib.statistics.seed_means import FEWEST_SEEDS

RARE, ENOUGH = 0.1, 10.0
"""No more runs will exit if in the second half of the horizon so few do, of those that would at the rate of the first
half, and the number of the latter from which on this tells."""
CLEARLY = 3.0
"""The standard errors by which a risk has fallen."""
SAID_OF_LONGER = {
    True: "a longer horizon has more exits",
    False: "hardly any exit in the second half of the horizon, so that a longer one cannot help",
    None: "a longer horizon may help",
}
"""What is said of a longer horizon, by whether exits go on."""


def exits_go_on(steps: Array) -> bool | None:
    """Return whether runs would exit beyond the horizon, from min(exit, horizon) (n,); None if these do not tell.

    Compared are the exits in the second half with those that the rate of the first half predicts for it.
    """
    horizon = steps.max()
    early, later = int((steps <= 0.5 * horizon).sum()), int(((steps > 0.5 * horizon) & (steps < horizon)).sum())
    expected = (len(steps) - early) * early / len(steps)
    if later > RARE * expected:
        return True
    return False if expected >= ENOUGH else None


class UnexitedRuns:
    """The runs of a dataset without an exit, read when they are first asked for."""

    def __init__(self, ds: xr.Dataset, max_lost: float) -> None:
        self.ds, self._max_lost = ds, max_lost

    def why(self, place: Mapping[str, int]) -> str:
        """Return in words how many runs of a cell did not exit, and whether a longer horizon or a median would help.

        place : the index of the cell by dimension.
        """
        sample = self._sample
        used, reached, end, steps = (
            np.asarray(array.isel(place, missing_dims="ignore").values)
            for array in (sample.used, sample.reached, sample.end, self._restricted)
        )
        unexited = used & ~reached
        never, censored = unexited & np.isinf(end), unexited & np.isfinite(end)
        phrases = [f"{unexited.sum()} of {used.sum()}"]
        if never.any():
            phrases.append(f"{never.sum()} diverged and never will")
        if censored.any():
            goes_on = exits_go_on(steps[np.isfinite(steps)])
            phrases.append(SAID_OF_LONGER[goes_on] + (self._of_the_level(censored, place) if goes_on is None else ""))
        if unexited.sum() < 0.5 * used.sum():
            phrases.append("a median may have an answer")
        return "; ".join(phrases)

    def _of_the_level(self, unexited: NDArray[np.bool_], place: Mapping[str, int]) -> str:
        """Return in words whether the quantity that runs exit on still falls at the end; "" if that is not known.

        unexited (seeds,) : the runs that count. It is compared at the last time and at half of it.
        """
        name = self.ds.attrs.get("exit_on", "risk")
        if name not in self.ds or "time" not in self.ds[name].dims or self.ds.sizes["time"] < 2:
            return ""
        times = self.ds["time"].values
        before = int(np.searchsorted(times, 0.5 * times[-1], "right")) - 1
        if before < 1:
            return f": more `times` would tell whether their {name} still falls"
        runs = self.ds[name].isel(place, missing_dims="ignore").transpose("seed", "time", ...)
        values = np.asarray(runs.values)[unexited]
        fall = values[:, before] - values[:, -1]
        if fall.ndim != 1 or len(fall) < FEWEST_SEEDS or not np.isfinite(fall).all():
            return ""
        falls = fall.mean() > CLEARLY * fall.std(ddof=1) / np.sqrt(len(fall))
        attrs = self.ds["time"].attrs
        when = time_text(float(f"{times[before]:.3g}"), attrs)
        since = f"since {when}" if "clock" in attrs else f"since t = {when}"
        least = f", unless they are at their least {name}, which has not fallen {since}"
        return f": their {name} has fallen {since}" if falls else least

    @cached_property
    def _sample(self) -> Passages:
        return passages(self.ds, "steps", self._max_lost)

    @cached_property
    def _restricted(self) -> xr.DataArray:
        return self._sample.restricted
