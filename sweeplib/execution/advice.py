"""What a plan says of its cost: which dynamics takes most of it, and what would take less, as measured here."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sweeplib.dynamics import DYNAMICS
from sweeplib.errors import InputError
from sweeplib.execution.calibration import Calibration, Pilot
from sweeplib.execution.child import EndedError
from sweeplib.simulation import Case

if TYPE_CHECKING:
    from sweeplib.execution.plan import DynamicsPlan

ADVISED_SECONDS = 60.0
"""A sweep that takes less of one processor needs no advice."""

LEAST_SHARE, LEAST_FACTOR = 0.5, 2.0
MEASURED_SECONDS = 0.5


@dataclass(frozen=True)
class Alternative:
    """A cheaper dynamics, or the same one with other options, that can take the place of the dynamics `replaced`.

    `is_` says what the other dynamics is. Only cases whose options have the values in `when` are considered.
    """

    replaced: str
    dynamics: str
    options: Mapping[str, float] = field(default_factory=dict)
    is_: str = ""
    when: Mapping[str, bool] = field(default_factory=dict)

    def case(self, case: Case) -> Case | None:
        """The case to run instead; None where the alternative does not apply or changes nothing."""
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
        """The alternative to a case, in words."""
        now = case.numerical_options().model_dump()
        given = {name: "the default" if now[name] is None else _power(now[name]) for name in self.options}
        changed = [f"{name} {_power(value)} instead of {given[name]}" for name, value in self.options.items()]
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
    """A dynamics takes this `share` of a sweep's time.

    Where `sgd` is in the sweep too, a case takes `times_sgd` as long as one of it. Where an alternative was found, it
    is `instead`, and `cheaper` so many times, at input dimensions from the first to the second of `d`.
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
        """The advice in words."""
        beside = f", a case {_number(self.times_sgd)} times as long as one of {self.sgd}" if self.sgd else ""
        says = f"{self.dynamics} takes {100 * self.share:.0f} % of the time{beside}"
        if self.instead is None:
            return says
        first, last = self.d
        where = f"at d = {first}" if first == last else f"at d = {first} to {last}"
        return f"{says}: {where} {self.instead} {_number(self.cheaper)} times cheaper here"


def advice(
    parts: Mapping[str, "DynamicsPlan"], pilots: Mapping[str, Mapping[str, Pilot]], calibration: Calibration
) -> Iterator[Advice]:
    """What is to be said of the parts of a plan, each with the pilots of its layouts; alternatives are measured."""
    total = sum(part.cpu_seconds for part in parts.values())
    for name, part in parts.items():
        if total >= ADVISED_SECONDS and part.cpu_seconds >= LEAST_SHARE * total:
            found = _with_alternative(_of(name, parts, total), part, pilots[name], calibration)
            if found.instead or len(parts) > 1:
                yield found


def _of(name: str, parts: Mapping[str, "DynamicsPlan"], total: float) -> Advice:
    """What a dynamics takes, and what beside one of SGD where it is deterministic."""
    part = parts[name]
    found = Advice(name, part.cpu_seconds / total)
    sgd = next((other for other in ("sgd_chain", "sgd") if other in parts and parts[other].todo), None)
    if sgd is None or DYNAMICS[name].stochastic:
        return found
    return replace(found, sgd=sgd, times_sgd=part.seconds_a_case / parts[sgd].seconds_a_case)


def _with_alternative(
    found: Advice, part: "DynamicsPlan", pilots: Mapping[str, Pilot], calibration: Calibration
) -> Advice:
    """The advice with the cheapest alternative, if there is one, for the layout that takes most of the time."""
    layout = max(part.layouts, key=lambda name: part.layouts[name].cpu_seconds)
    first, seconds = pilots[layout].cases[0], part.layouts[layout].seconds
    for alternative in ALTERNATIVES:
        if alternative.replaced == found.dynamics and (other := _cost(alternative, pilots[layout], calibration)):
            cheaper = seconds / other
            if cheaper > max(found.cheaper, LEAST_FACTOR):
                d = [case.problem.d for case in pilots[layout].cases]
                found = replace(found, instead=alternative.description(first), cheaper=cheaper, d=(min(d), max(d)))
    return found


def _cost(alternative: Alternative, pilot: Pilot, calibration: Calibration) -> float | None:
    """The seconds that a case of a pilot would take; None where it does not apply to all, or cannot be measured."""
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
