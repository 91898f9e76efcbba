"""What a student forgets of its first task while it learns the second, and what the first was worth for the second."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import Field

from sweeplib.analysis.analysis import ANALYSES, Treated, analysis_of
from sweeplib.analysis.kit.options import Confidence, LostPart
from sweeplib.analysis.kit.problem_fields import field
from sweeplib.analysis.kit.variables import need_start, require, statistics_outline
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.errors import InputError
from sweeplib.networks.problem import DEFAULTS
from sweeplib.statistics.estimators import Mean
from sweeplib.statistics.labelled import labelled, with_bounds
from sweeplib.statistics.lost_runs import MOST_LOST, has_run, unless_lost, values_of, without_value

RISKS = "risk_of_task"
Later = Annotated[
    float | None,
    Field(gt=0, description="the ODE time after the switch at which forgetting is measured; by default to the end."),
]
ROUNDING = 1e-9
"""The relative difference below which two times are equal."""


def forgetting(
    ds: xr.Dataset, *, after: Later = None, confidence: Confidence = 0.95, max_lost: LostPart = MOST_LOST
) -> xr.Dataset:
    """Return forgetting and transfer of two tasks in turn per dynamics and point: means over `seed` of differences.

    forgetting (_low, _high): R_1 at the last time, or the time `after` the switch, minus R_1 at the switch. transfer:
    R_2 at the start minus R_2 at the switch, what the first task taught of the second. risk_at_switch: R_1 there.
    Intervals (`estimators`) are those of the differences of the same run. seeds_used, seeds_lost: runs used, and
    runs without a value at one of these times; NaN where more than the fraction `max_lost` of all runs is lost.
    The times, and the start, must be recorded.
    """
    run, risks, switch = has_run(ds), values_of(ds, RISKS), field(ds, "switch_time").astype(float)
    last = float(ds["time"][-1]) * field(ds, "clock", 1.0)
    first, second = (risks.isel(task=task, drop=True) for task in (0, 1))
    at_switch, later = _at(first, switch, ds), _at(first, last if after is None else switch + after, ds)
    kinds = {
        "forgetting": (later - at_switch, "forgetting of the first task", r"\mathcal{F}"),
        "transfer": (second.isel(time=0) - _at(second, switch, ds), "transfer to the second task", r"\mathcal{T}"),
        "risk_at_switch": (at_switch, "risk of the first task at the switch", r"\mathcal{R}_1"),
    }
    lost = without_value(kinds["forgetting"][0] + kinds["transfer"][0], run)
    variables: dict[str, xr.DataArray] = {}
    for name, (values, *labels) in kinds.items():
        sample = unless_lost(values.where(run & ~lost), lost, run, max_lost)
        variables |= with_bounds(name, Mean()(sample, confidence), *labels)
    variables["seeds_used"] = labelled((run & ~lost).sum("seed"), "runs used")
    variables["seeds_lost"] = labelled(lost.sum("seed"), "runs without a value at one of the times")
    options = {"after": after} if after is not None else {}
    return xr.Dataset(variables).assign_attrs(confidence=confidence, max_lost=max_lost, **options)


def _at(values: xr.DataArray, time: xr.DataArray, ds: xr.Dataset) -> xr.DataArray:
    """Return the values at an ODE time of each point; InputError if it is not recorded.

    Recording times count units of `clock`, which may differ between points: so does the place of an ODE time.
    """
    is_at_time = abs(ds["time"] * field(ds, "clock", 1.0) - time) <= ROUNDING * time
    recorded = is_at_time.any("time")
    if not bool(recorded.all()):
        missing = float(time.broadcast_like(recorded).where(~recorded).min())
        raise InputError("no record at the time", key="times", value=missing, expected="it among the `times`")
    # selects one time of each point; a NaN at this time remains
    return values.where(is_at_time, 0.0).sum("time", skipna=False)


def _outline(ds: Outline, *, after: float | None, **_: Any) -> Outline:
    """Return the structure of the result, before anything runs: means over seeds, times and tasks.

    InputError unless there are two tasks, in turn, whose start and switch are recorded.
    """
    require(ds, RISKS)
    if ds.axes.get("tasks", [ds.attrs.get("tasks")]) != ["in_turn"] or len(ds.axes["task"]) != 2:
        raise InputError("no two tasks in turn", key="tasks", expected="`in_turn` with one `switch_time`")
    if ds.attrs.get("task_order", DEFAULTS["task_order"]) not in (None, "None", "[1, 2]"):
        expected = "[1, 2], its default"
        raise InputError("another order of tasks", key="task_order", value=ds.attrs["task_order"], expected=expected)
    need_start(ds)
    _check_times(ds, after)
    return statistics_outline(ds, RISKS, "forgetting", "transfer", "risk_at_switch", over=("time", "task"))


def _check_times(ds: Outline, after: float | None) -> None:
    """Raise InputError for a switch that is not recorded, where recording times are ODE times."""
    if "clock" in ds.attrs or "clock" in ds.variables:
        return
    times = np.array(ds.axes["time"], float)
    for switch in map(float, ds.axes.get("switch_time", [ds.attrs.get("switch_time", np.nan)])):
        for time in (switch, switch + (after or 0.0)):
            if not (abs(times - time) <= ROUNDING * time).any():
                expected = f"it among the `times`, the last of which is {times[-1]:g}"
                raise InputError("forgetting needs a record at the time", key="times", value=time, expected=expected)


ANALYSES.add(
    analysis_of(
        forgetting,
        "What is forgotten of the first of two tasks, and what it teaches of the second",
        overlaps=True,
        outline=_outline,
        ends={"exit": Treated.refused},
        headline="forgetting",
        quantities=["forgetting", "transfer"],
    )
)
