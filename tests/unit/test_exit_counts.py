"""How many runs exit by the horizon: of each dynamics and threshold, with why others did not."""

from typing import Any

import numpy as np
import pytest
import xarray as xr

from sweeplib.analysis.kit.exit_counts import exit_counts, exit_lines
from sweeplib.engine.status import STATUS_LABELS, Status
from sweeplib.networks.simulation.labels import time_attributes

HORIZON = 10.0


def dataset(exits: Any, status: Any, ends: Any, **time: Any) -> xr.Dataset:
    """Return a dataset of exit times (dynamics, seed, threshold), NaN where there was none."""
    dims, names = ("dynamics", "seed"), ["sgd_chain", "ode"][: len(exits)]
    return xr.Dataset(
        {
            "exit_time": ((*dims, "threshold"), np.array(exits, float)),
            "end_time": (dims, np.array(ends, float)),
            "status": (dims, np.array(status, np.uint8), STATUS_LABELS),
        },
        {"dynamics": names, "threshold": [0.1, 0.5][: np.shape(exits)[2]], "time": ("time", [0.0, HORIZON], time)},
    )


def test_runs_that_diverged_or_were_stopped_are_said_apart_and_those_that_failed_are_none() -> None:
    """Half of six runs exit by the third exit, though one that was stopped before might have come earlier."""
    nan, ok = np.nan, Status.ok
    exits = [[[1.0], [2.0], [4.0], [nan], [nan], [nan], [nan], [nan]]]
    status = [[ok, ok, ok, ok, Status.diverged, Status.timeout, Status.failed, Status.missing]]
    ends = [[HORIZON] * 4 + [3.0, 6.0, nan, nan]]
    ds = dataset(exits, status, ends)
    [count] = exit_counts(ds)
    assert (count.runs, count.exited, count.diverged, count.stopped, count.median) == (6, 3, 1, 1, 4.0)
    words = "3 of 6 runs exit by the horizon 10, half by 4, 1 diverged before, 1 stopped early"
    assert exit_lines(ds) == [f"sgd_chain: {words}"]
    fewer = dataset([exits[0][1:]], [status[0][1:]], [ends[0][1:]])
    assert exit_lines(fewer) == [f"sgd_chain: {words.replace('3 of 6', '2 of 5').replace(', half by 4', '')}"]


def test_each_dynamics_has_a_line_with_all_its_thresholds_in_the_unit_of_the_times() -> None:
    exits = [[[2.0, 6.0], [4.0, np.nan], [8.0, np.nan]], [[2.0, 8.0]] * 3]
    ds = dataset(exits, np.ones((2, 3)), np.full((2, 3), HORIZON), **time_attributes("samples", "d"))
    assert exit_lines(ds.assign_attrs(clock=2.0)) == [
        "sgd_chain: runs exit by the horizon 10 d samples: all 3 at T = 0.1, half by 2; 1 of 3 at T = 0.5",
        "ode: runs exit by the horizon 10 d samples: all 3 at T = 0.1, half by 1; all 3 at T = 0.5, half by 4",
    ]


@pytest.mark.parametrize("ds", [dataset(np.empty((1, 2, 0)), np.ones((1, 2)), np.ones((1, 2))), xr.Dataset()])
def test_without_thresholds_nothing_is_said(ds: xr.Dataset) -> None:
    assert exit_counts(ds) == exit_lines(ds) == []
