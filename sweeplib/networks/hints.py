"""What networks say of their cases: cheaper alternatives, exits, where cases are, and what is drawn of runs.

The engine prints it, and asks for it by the name of a dynamics, a `kind`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sweeplib.engine.hints import Alternative, Headline, Hints
from sweeplib.errors import InputError
from sweeplib.networks.dynamics import DYNAMICS
from sweeplib.networks.observables import OBSERVABLES
from sweeplib.networks.problem import Problem, parameters_of
from sweeplib.networks.simulation.cases import Case
from sweeplib.networks.simulation.labels import exit_words, time_text
from sweeplib.networks.simulation.recording import Recording


@dataclass(frozen=True)
class OtherDynamics(Alternative):
    """A cheaper dynamics, or the same dynamics with other options, that can replace the dynamics `replaced`.

    kind, options : the dynamics that replaces it, and options that it has in place of smaller ones of its own.
    is_ : completes the sentence "DYNAMICS ... cheaper". when : values of options of the cases that are considered.
    """

    replaced: str
    kind: str
    options: Mapping[str, float] = field(default_factory=dict)
    is_: str = ""
    when: Mapping[str, bool] = field(default_factory=dict)

    def case(self, case: Case) -> Case | None:
        """Return the alternative to a case; None if it does not apply or changes nothing.

        An option changes nothing if the case has it as large already.
        """
        now = case.numerical_options().model_dump()
        if any(now[name] != value for name, value in self.when.items()):
            return None
        if any(now[name] is not None and now[name] >= value for name, value in self.options.items()):
            return None
        options = {**dict(case.options), **self.options} if self.kind == self.replaced else {}
        other = replace(case, dynamics=self.kind, options=tuple(sorted(options.items())))
        try:
            other.check()
        except InputError:
            return None
        return other

    def description(self, case: Case) -> str:
        """Return the start of a sentence about the alternative: "sgd_chain is exact in law and", before "cheaper"."""
        now = case.numerical_options().model_dump()
        present = {name: "the default" if now[name] is None else _power(now[name]) for name in self.options}
        changed = [f"{name} {_power(value)} instead of {present[name]}" for name, value in self.options.items()]
        return f"{self.kind} {self.is_}" if not changed else " and ".join(changed) + " is"


ALTERNATIVES = (
    OtherDynamics("sgd", "sgd_chain", is_="is exact in law and"),
    OtherDynamics("sde", "sgd_chain", is_="is exact in law and"),
    OtherDynamics("ode", "sgd_chain", is_="has these means, over its seeds, and is", when={"finite_d": True}),
    OtherDynamics("ode", "ode", {"rtol": 1e-6}),
    OtherDynamics("gradient_flow", "gradient_flow", {"rtol": 1e-6}),
)
"""What may be cheaper, in the order in which it is offered."""


class NetworkHints(Hints):
    """What the engine can say of dynamics."""

    def alternatives(self, kind: str) -> Sequence[OtherDynamics]:
        """Return the dynamics, or the options, that could replace a dynamics."""
        return [alternative for alternative in ALTERNATIVES if alternative.replaced == kind]

    def yardsticks(self, kind: str) -> Sequence[str]:
        """Return what a dynamics that is deterministic may be compared with: SGD, by its chain or on the weights."""
        return () if DYNAMICS[kind].stochastic else ("sgd_chain", "sgd")

    def where(self, cases: Sequence[Case]) -> str:
        """Return the range of the dimensions d of some cases, in words."""
        dimensions = [case.problem.d for case in cases]
        first, last = min(dimensions), max(dimensions)
        return f"at d = {first}" if first == last else f"at d = {first} to {last}"

    def values(self, case: Case) -> Mapping[str, Any]:
        """Return the parameters of a case's problem that differ from their defaults, by name."""
        return case.problem.differing()

    def passage(self, case: Case) -> str | None:
        """Return the name of the variable of exits; None without thresholds."""
        return "exit_steps" if case.recording.thresholds else None

    def to_passage(self, case: Case, factor: float) -> Case | None:
        """Return a case that stops at its exits, records nothing else, and may run `factor` times as long.

        Trials of horizons run it. None with an optimal schedule, which depends on the last time: a longer case would
        have another.
        """
        if case.problem.optimal is not None:
            return None
        # recording times are in units of the clock: a longer unit is a later end
        short: dict[str, Any] = {"times": (case.recording.end,), "observables": (), "stop": "exit", "keep_ends": False}
        recording = replace(case.recording, **short)
        # a case is refused that sets a parameter of an observable which it does not record
        read = frozenset[str]().union(*(OBSERVABLES[name].acts_on for name in recording.measured))
        unread = {*parameters_of("observables")} - read
        values = {name: value for name, value in case.problem.differing().items() if name not in unread}
        return replace(case, clock=factor * case.clock, recording=recording, problem=Problem.unchecked(values))

    def end_in_words(self, end: float, attributes: Mapping[str, Any]) -> str:
        """Return the last recording time `end` in words, with its unit, by the attributes of times."""
        return time_text(end, attributes)

    def headline(self, recording: Recording, variables: Mapping[str, Collection[str]]) -> Headline | None:
        """Return what summarises a sweep: exits at the last threshold, or else the first observable that is a number.

        None if there is neither. variables : the dimensions of what is recorded, by name.
        """
        if recording.thresholds:
            whose, threshold = exit_words(recording.exit_on), recording.thresholds[-1]
            return Headline("exit_steps", f"Median exit time in steps{whose}, threshold {threshold:g}", True)
        name = next((name for name in recording.observables if list(variables.get(name, ())) == ["time"]), None)
        return None if name is None else Headline(name, f"Mean {name.replace('_', ' ')} at the last time", False)


def _power(value: float) -> str:
    """A number in words, a power of ten as 1e-6."""
    return f"{value:g}".replace("e-0", "e-")
