"""The parts of a problem, and the rule for what they read: what no part of a run reads is not accepted.

A kind of parts, such as "data", is also the parameter that names the part. What a part acts on are the parameters on
which it depends, its own and others.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from sweeplib.errors import InputError
from sweeplib.networks.problem.base_parameters import CORE
from sweeplib.networks.problem.data import DATA
from sweeplib.networks.problem.data.data import TEACHER_FIELDS, DataLaw
from sweeplib.networks.problem.losses import LOSSES
from sweeplib.networks.problem.parameters import DEFAULTS, PARAMETERS, Part
from sweeplib.networks.problem.starts import STARTS
from sweeplib.networks.problem.targets import TARGETS, target
from sweeplib.networks.problem.targets.target import TARGET_FIELDS
from sweeplib.networks.problem.tasks import TASKS
from sweeplib.networks.problem.updates import UPDATES

if TYPE_CHECKING:
    from sweeplib.networks.problem.problem import Problem

Reads = Mapping[str, frozenset[str]]
"""The names of parameters that parts act on, by the names of the parts."""


def read_by(registry: Mapping[str, Part]) -> Callable[["Problem"], Reads]:
    """Return the function for `READERS` of a registry of parts: what each acts on, whatever the problem is."""
    return lambda problem: {name: part.acts_on for name, part in registry.items()}


OF_PROBLEM: dict[str, Mapping[str, Part]] = {"loss": LOSSES, "update": UPDATES, "tasks": TASKS}
"""The registries of parts that every problem names, by kind, which is the parameter that has the name."""
_REGISTRIES: dict[str, Mapping[str, Part]] = {"data": DATA, "start": STARTS, "target": TARGETS, **OF_PROBLEM}
READERS: dict[str, Callable[["Problem"], Reads]] = {kind: read_by(registry) for kind, registry in _REGISTRIES.items()}
"""By kind, what all registered parts act on in a problem; dynamics and observables add themselves."""
OFFERS = {
    "data": "a data law that acts on it: {}",
    "dynamics": "a dynamics that acts on it: {} (`where` gives each dynamics its part of a grid)",
    "loss": "a loss that acts on it: {}",
    "observables": "an observable that acts on it: {}",
    "start": "a start that acts on it: {}",
    "update": "an update that acts on it: {}",
    "target": "a target that acts on it: {}",
    "tasks": "tasks that act on it: {}",
}
"""By kind, the words of a message that offers other parts, whose names are filled in."""

_DECIDED: dict[str, tuple[str, ...]] = {
    name: ("data", "target") if name in TARGET_FIELDS else ("data",) for name in sorted(TEACHER_FIELDS)
}
"""The parameters of a teacher, each with the kinds of parts that must all act on it: data laws, or also targets."""


def parts_of(problem: "Problem") -> dict[str, Part]:
    """Return the parts that a problem names, by kind; with a data law without a teacher there is no target."""
    law = DATA[problem.data]
    taught: dict[str, Part] = {"target": target(problem.target)} if law.teacher else {}
    problem_parts = {kind: registry[getattr(problem, kind)] for kind, registry in OF_PROBLEM.items()}
    return {"data": law, "start": STARTS[problem.student_start]} | problem_parts | taught


def meaningful(parts: Sequence[Part]) -> list[str]:
    """Return the parameters that have a meaning with some parts: a problem's own, and those of the parts.

    The parameters of a teacher have none unless a data law among the parts has a teacher.
    """
    taught = any(isinstance(part, DataLaw) and part.teacher for part in parts)
    meaningless = frozenset() if taught else TEACHER_FIELDS
    of_parts = {name for part in parts for name in part.parameter_names}
    return [name for name in PARAMETERS if name in of_parts or (name in CORE and name not in meaningless)]


def refuse_of_parts(problem: "Problem", parts: Mapping[str, Part]) -> None:
    """Raise InputError for a value that another data law, start, target, loss or step would read, not its own."""
    differing = problem.differing_names
    names = [(name, (PARAMETERS[name].owner,)) for name in sorted(differing) if name in PARAMETERS and name not in CORE]
    deciding: list[tuple[str, tuple[str, ...]]] = [*names, *((name, kinds) for name, kinds in _DECIDED.items())]
    for name, kinds in deciding:
        for kind in kinds:
            if kind in parts and name not in parts[kind].acts_on:
                refuse_unread(problem, [name], kind, {parts[kind].name: parts[kind].acts_on})


def refuse_unread(
    problem: "Problem", names: Iterable[str], kind: str, acting: Reads, reasons: Mapping[str, str] | None = None
) -> None:
    """Raise InputError for the first of the parameters `names` that has a value and that no acting part reads.

    kind : the kind of the parts. acting : what each acting part reads, by its name.
    reasons : by parameter, why it means nothing to the acting parts.
    The message names the parts of this kind that read the parameter, and its default, which is accepted.
    """
    differing = problem.differing_names
    for name in names:
        if name in differing and not any(name in reads for reads in acting.values()):
            reading = ", ".join(other for other, reads in READERS[kind](problem).items() if name in reads)
            which = f"the {kind} " if kind in ("start", "target", *OF_PROBLEM) else ""
            who, does = which + (" and ".join(acting) or "nothing recorded"), "do" if len(acting) > 1 else "does"
            expected = f"{json.dumps(DEFAULTS[name])}, its default; or {OFFERS[kind].format(reading or 'none yet')}"
            why = f": {reasons[name]}" if reasons and name in reasons else ""
            text = f"{who} {does} not act on {name}{why}"
            raise InputError(text, key=name, value=problem.resolved(name), expected=expected)
