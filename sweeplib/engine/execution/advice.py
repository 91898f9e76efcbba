"""Advice of a plan: which dynamics takes most of the time, and which alternative was measured to be cheaper here.

A layout is all cases of a dynamics of one shape and similar cost; a pilot is a few of its cases, which are measured.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
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


@dataclass(frozen=True)
class Advice:
    """The cost of a dynamics: its `share` (0 to 1) of a sweep's time, and an alternative if there is one.

    yardstick, times : another dynamics of the sweep, and how many times as long a case takes as one of that.
    instead, cheaper : an alternative, as the start of a sentence, and the factor by which it is cheaper.
    where : the points at which it was measured, in words.
    """

    dynamics: str
    share: float
    yardstick: str | None = None
    times: float = 1.0
    instead: str | None = None
    cheaper: float = 1.0
    where: str = ""

    @property
    def text(self) -> str:
        """Return the advice as a sentence."""
        compared = f", a case {_number(self.times)} times as long as one of {self.yardstick}" if self.yardstick else ""
        cost = f"{self.dynamics} takes {100 * self.share:.0f} % of the time{compared}"
        if self.instead is None:
            return cost
        return f"{cost}: {self.where} {self.instead} {_number(self.cheaper)} times cheaper here"


def advice(
    plans: Mapping[str, "DynamicsPlan"], pilots: Mapping[str, Mapping[str, Pilot]], calibration: Calibration
) -> Iterator[Advice]:
    """Yield the advice for each dynamics that takes most of a sweep's time; alternatives are measured for it.

    plans : by dynamics. pilots : by dynamics and layout.
    """
    total = sum(plan.cpu_seconds for plan in plans.values())
    for name, plan in plans.items():
        if total >= ADVISED_SECONDS and plan.cpu_seconds >= LEAST_SHARE * total:
            item = _with_alternative(_cost_share(name, plans, pilots[name], total), plan, pilots[name], calibration)
            if item.instead or len(plans) > 1:
                yield item


def _cost_share(name: str, plans: Mapping[str, "DynamicsPlan"], pilots: Mapping[str, Pilot], total: float) -> Advice:
    """Return the advice for a dynamics, an alternative left out: its share of `total` seconds, and its yardstick.

    A yardstick is another dynamics of the plan with which its time a case is compared.
    pilots : of its layouts, by name.
    """
    plan, hints = plans[name], next(iter(pilots.values())).cases[0].simulator.hints
    share = Advice(name, plan.cpu_seconds / total)
    yardsticks = (other for other in hints.yardsticks(kind_of(name)) if other in plans and plans[other].todo)
    yardstick = next(yardsticks, None)
    if yardstick is None:
        return share
    return replace(share, yardstick=yardstick, times=plan.seconds_a_case / plans[yardstick].seconds_a_case)


def _with_alternative(
    share: Advice, plan: "DynamicsPlan", pilots: Mapping[str, Pilot], calibration: Calibration
) -> Advice:
    """Return the advice `share`, with the cheapest alternative for the layout that takes most of the time, if any."""
    layout = max(plan.layouts, key=lambda name: plan.layouts[name].cpu_seconds)
    first, seconds = pilots[layout].cases[0], plan.layouts[layout].seconds
    hints = first.simulator.hints
    for alternative in hints.alternatives(share.dynamics):
        if other := _cost(alternative, pilots[layout], calibration):
            cheaper = seconds / other
            if cheaper > max(share.cheaper, LEAST_FACTOR):
                instead, where = alternative.description(first), hints.where(pilots[layout].cases)
                share = replace(share, instead=instead, cheaper=cheaper, where=where)
    return share


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
