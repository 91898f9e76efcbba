"""Advice of a plan: which dynamics takes most of the time, and which alternative was measured to be cheaper here."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sweeplib.design.design import Design
from sweeplib.design.questions import RowCounts, without_rows
from sweeplib.dynamics import DYNAMICS
from sweeplib.errors import InputError
from sweeplib.execution.calibration import Calibration, Pilot
from sweeplib.execution.child import EndedError
from sweeplib.simulation import Case

if TYPE_CHECKING:
    from sweeplib.execution.plan import DynamicsPlan

ADVISED_SECONDS = 60.0
"""CPU seconds below which a sweep gets no advice."""

LEAST_SHARE, LEAST_FACTOR = 0.5, 2.0
MEASURED_SECONDS = 0.5


@dataclass(frozen=True)
class Alternative:
    """A cheaper dynamics, or the same dynamics with other options, that can replace the dynamics `replaced`.

    `is_` completes the sentence "DYNAMICS ... cheaper". Only cases whose options have the values `when` are considered.
    """

    replaced: str
    dynamics: str
    options: Mapping[str, float] = field(default_factory=dict)
    is_: str = ""
    when: Mapping[str, bool] = field(default_factory=dict)

    def case(self, case: Case) -> Case | None:
        """Return the alternative case; None if the alternative does not apply or changes nothing."""
        now = case.numerical_options().model_dump()
        if any(now[name] != value for name, value in self.when.items()):
            return None
        if any(now[name] is not None and now[name] >= value for name, value in self.options.items()):
            return None
        options = {**dict(case.options), **self.options} if self.dynamics == self.replaced else {}
        other = replace(case, dynamics=self.dynamics, options=tuple(sorted(options.items())))
        try:
            other.check()
        except InputError:
            return None
        return other

    def description(self, case: Case) -> str:
        """Return the start of a sentence about the alternative to a case."""
        now = case.numerical_options().model_dump()
        present = {name: "the default" if now[name] is None else _power(now[name]) for name in self.options}
        changed = [f"{name} {_power(value)} instead of {present[name]}" for name, value in self.options.items()]
        return f"{self.dynamics} {self.is_}" if not changed else " and ".join(changed) + " is"


ALTERNATIVES = (
    Alternative("sgd", "sgd_chain", is_="is exact in law and"),
    Alternative("sde", "sgd_chain", is_="is exact in law and"),
    Alternative("ode", "sgd_chain", is_="has these means, over its seeds, and is", when={"finite_d": True}),
    Alternative("ode", "ode", {"rtol": 1e-6}),
    Alternative("gradient_flow", "gradient_flow", {"rtol": 1e-6}),
)


@dataclass(frozen=True)
class Advice:
    """The cost of a dynamics: its `share` of a sweep's time, and an alternative if there is one.

    If the sweep also has `sgd`, a case takes `times_sgd` as long as a case of `sgd`. `instead` describes an alternative
    that is cheaper by the factor `cheaper`, at input dimensions from the first to the second entry of `d`.
    """

    dynamics: str
    share: float
    sgd: str | None = None
    times_sgd: float = 1.0
    instead: str | None = None
    cheaper: float = 1.0
    d: tuple[int, int] = (0, 0)

    @property
    def text(self) -> str:
        """Return the advice as a sentence."""
        beside = f", a case {_number(self.times_sgd)} times as long as one of {self.sgd}" if self.sgd else ""
        says = f"{self.dynamics} takes {100 * self.share:.0f} % of the time{beside}"
        if self.instead is None:
            return says
        first, last = self.d
        where = f"at d = {first}" if first == last else f"at d = {first} to {last}"
        return f"{says}: {where} {self.instead} {_number(self.cheaper)} times cheaper here"


def advice(
    plans: Mapping[str, "DynamicsPlan"], pilots: Mapping[str, Mapping[str, Pilot]], calibration: Calibration
) -> Iterator[Advice]:
    """Yield the advice for the parts of a plan, each with the pilots of its layouts; alternatives are measured."""
    total = sum(plan.cpu_seconds for plan in plans.values())
    for name, plan in plans.items():
        if total >= ADVISED_SECONDS and plan.cpu_seconds >= LEAST_SHARE * total:
            item = _with_alternative(_cost_share(name, plans, total), plan, pilots[name], calibration)
            if item.instead or len(plans) > 1:
                yield item


def _cost_share(name: str, plans: Mapping[str, "DynamicsPlan"], total: float) -> Advice:
    """Return the share of a dynamics and, if it is deterministic, its cost relative to SGD."""
    plan = plans[name]
    share = Advice(name, plan.cpu_seconds / total)
    sgd = next((other for other in ("sgd_chain", "sgd") if other in plans and plans[other].todo), None)
    if sgd is None or DYNAMICS[name].stochastic:
        return share
    return replace(share, sgd=sgd, times_sgd=plan.seconds_a_case / plans[sgd].seconds_a_case)


def _with_alternative(
    share: Advice, plan: "DynamicsPlan", pilots: Mapping[str, Pilot], calibration: Calibration
) -> Advice:
    """Return the advice with the cheapest alternative, if any, for the layout that takes most of the time."""
    layout = max(plan.layouts, key=lambda name: plan.layouts[name].cpu_seconds)
    first, seconds = pilots[layout].cases[0], plan.layouts[layout].seconds
    for alternative in ALTERNATIVES:
        if alternative.replaced == share.dynamics and (other := _cost(alternative, pilots[layout], calibration)):
            cheaper = seconds / other
            if cheaper > max(share.cheaper, LEAST_FACTOR):
                d = [case.problem.d for case in pilots[layout].cases]
                share = replace(share, instead=alternative.description(first), cheaper=cheaper, d=(min(d), max(d)))
    return share


def _cost(alternative: Alternative, pilot: Pilot, calibration: Calibration) -> float | None:
    """Return the seconds per case of an alternative; None if it does not apply to all cases or cannot be measured."""
    cases = [other for case in pilot.cases if (other := alternative.case(case))]
    if len(cases) < len(pilot.cases):
        return None
    instead = Pilot(f"{pilot.name} by {alternative.dynamics}", tuple(cases))
    try:
        calibration.compile(instead)
        with calibration.steps.step(f"measuring {instead.title} instead of {alternative.replaced}"):
            return calibration.cost(instead, MEASURED_SECONDS)
    except EndedError:
        return None


def _number(factor: float) -> str:
    return f"{factor:.0f}" if factor >= 9.5 else f"{factor:.2g}"


def _power(value: float) -> str:
    return f"{value:g}".replace("e-0", "e-")


def round_lines(sweep: Design) -> tuple[str, ...]:
    """Return a line about the cases of a sweep that its rounds have added; none without rounds."""
    if not isinstance(sweep.replicas, RowCounts):
        return ()
    without, rounds = without_rows(sweep), len(sweep.replicas.rounds)
    added = sum(sweep.size_of(name) - without.size_of(name) for name in sweep.runs)
    return (f"{added:,} of the cases are those of rows that {rounds} round{'s' * (rounds != 1)} added",)
