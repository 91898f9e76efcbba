"""Advice of a plan: which dynamics takes most of the time, and which alternative was measured to be cheaper here.

A layout is all cases of a dynamics of one shape and similar cost; a pilot is a few of its cases, which are measured.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from sweeplib.engine.design.design import Design
from sweeplib.engine.design.questions import RowCounts, without_rows
from sweeplib.engine.execution.calibration import Calibration, Pilot
from sweeplib.engine.execution.child import EndedError
from sweeplib.engine.hints import Alternative
from sweeplib.engine.run_names import kind_of

if TYPE_CHECKING:
    from sweeplib.engine.execution.estimates import DynamicsPlan

ADVISED_SECONDS = 60.0
"""CPU seconds below which a sweep gets no advice."""

LEAST_SHARE, LEAST_FACTOR = 0.5, 2.0
"""The part of a sweep's time from which on a dynamics gets advice; how many times cheaper an alternative must be."""
MEASURED_SECONDS = 0.5
"""Seconds for which the cost of an alternative is measured."""


def advice(
    plans: Mapping[str, "DynamicsPlan"], pilots: Mapping[str, Mapping[str, Pilot]], calibration: Calibration
) -> Iterator[str]:
    """Yield a line for each dynamics that takes most of a sweep's time; alternatives are measured for it.

    plans : by dynamics. pilots : by dynamics and layout.
    """
    total = sum(plan.cpu_seconds for plan in plans.values())
    for name, plan in plans.items():
        if total >= ADVISED_SECONDS and plan.cpu_seconds >= LEAST_SHARE * total:
            instead = _alternative(name, plan, pilots[name], calibration)
            if instead or len(plans) > 1:
                share = f"{name} takes {100 * plan.cpu_seconds / total:.0f} % of the time"
                yield share + _compared(name, plans, pilots[name]) + instead


def _compared(name: str, plans: Mapping[str, "DynamicsPlan"], pilots: Mapping[str, Pilot]) -> str:
    """Return how long a case of a dynamics takes beside one of its yardstick, in words; "" if the plan has none.

    A yardstick is another dynamics of the plan. pilots : of the layouts of the dynamics, by name.
    """
    for other in next(iter(pilots.values())).cases[0].simulator.hints.yardsticks(kind_of(name)):
        if other in plans and plans[other].todo:
            times = plans[name].seconds_a_case / plans[other].seconds_a_case
            return f", a case {_number(times)} times as long as one of {other}"
    return ""


def _alternative(name: str, plan: "DynamicsPlan", pilots: Mapping[str, Pilot], calibration: Calibration) -> str:
    """Return the cheapest alternative for the layout that takes most of the time, in words; "" if there is none."""
    layout = max(plan.layouts, key=lambda layout: plan.layouts[layout].cpu_seconds)
    cases, seconds = pilots[layout].cases, plan.layouts[layout].seconds
    hints, cheaper, words = cases[0].simulator.hints, LEAST_FACTOR, ""
    for alternative in hints.alternatives(name):
        other = _cost(alternative, pilots[layout], calibration)
        if other and seconds / other > cheaper:
            cheaper = seconds / other
            instead = f"{hints.where(cases)} {alternative.description(cases[0])}"
            words = f": {instead} {_number(cheaper)} times cheaper here"
    return words


def _cost(alternative: Alternative, pilot: Pilot, calibration: Calibration) -> float | None:
    """Return the seconds per case of an alternative; None if it does not apply to all cases or ends its process."""
    cases = [replaced for case in pilot.cases if (replaced := alternative.case(case))]
    if len(cases) < len(pilot.cases):
        return None
    instead = Pilot(f"{pilot.name} by {alternative.kind}", tuple(cases), pilot.solutions)
    try:
        calibration.compile(instead)
        with calibration.steps.step(f"measuring {instead.title} instead of {pilot.dynamics}"):
            return calibration.cost(instead, MEASURED_SECONDS).seconds
    except EndedError:
        return None


def _number(factor: float) -> str:
    """Return a factor in words: two digits, or a whole number from ten on."""
    return f"{factor:.0f}" if factor >= 9.5 else f"{factor:.2g}"


def round_lines(sweep: Design) -> tuple[str, ...]:
    """Return a line about the cases of a sweep that its rounds have added; none without rounds."""
    if not isinstance(sweep.replicas, RowCounts):
        return ()
    without, rounds = without_rows(sweep), len(sweep.replicas.rounds)
    added = sum(sweep.size_of(name) - without.size_of(name) for name in sweep.runs)
    return (f"{added:,} of the cases are those of rows that {rounds} round{'s' * (rounds != 1)} added",)
