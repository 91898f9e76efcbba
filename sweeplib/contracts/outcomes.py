"""The checks of what a plugin registers, one after the other, and their outcomes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Literal

from sweeplib.contracts import (
    activations,
    analyses,
    clusters,
    data_laws,
    dynamics,
    figures,
    losses,
    observables,
    proposers,
    starts,
    targets,
    tasks,
    updates,
)
from sweeplib.contracts.check import BrokenError, Check, LeftOutError, checks_of, forget, sentence
from sweeplib.engine.code.plugins import load_plugins, reason_in_user_code, registered_names
from sweeplib.engine.code.user_code import located
from sweeplib.errors import InputError

CONTRACTS: Mapping[str, ModuleType] = {
    "activation": activations,
    "start": starts,
    "target": targets,
    "data law": data_laws,
    "loss": losses,
    "update": updates,
    "course of tasks": tasks,
    "observable": observables,
    "dynamics": dynamics,
    "analysis": analyses,
    "figure": figures,
    "cluster": clusters,
    "proposer": proposers,
}
"""The module with the checks of each kind of registered things."""


LONGEST = 500
"""The most characters of a problem in an outcome."""


@dataclass(frozen=True)
class Outcome:
    """What one check says of what is registered as `kind` and `name`.

    check : the sentence that is checked. problem : what is wrong, or why the check was left out; "" if all is well.
    """

    kind: str
    name: str
    check: str
    status: Literal["ok", "failed", "left out"]
    problem: str = ""

    def __str__(self) -> str:
        problem = f": {self.problem}" if self.problem else ""
        return f"{self.status:8}  {self.kind} {self.name}: {self.check}{problem}"


def all_outcomes(plugins: Iterable[str]) -> Iterator[Outcome]:
    """Yield the outcomes of some plugins, whose paths are relative to the working directory, after all are loaded.

    InputError if one cannot be loaded, or registers nothing.
    """
    result = located(plugins, Path())
    load_plugins(result)
    for plugin in result:
        yield from outcomes(plugin)


def summary(statuses: Iterable[str]) -> str:
    """Return how many checks have each status, in words."""
    counts = Counter(statuses)
    return f"{counts.total()} checks: " + ", ".join(f"{counts[item]} {item}" for item in ("ok", "failed", "left out"))


def outcomes(plugin: str) -> Iterator[Outcome]:
    """Yield the outcomes of all checks of what a loaded plugin registers; InputError if that is nothing.

    If the first check of a thing fails, the others, which need it, are left out.
    """
    # results of what was registered before under the names of this plugin
    forget()
    order = list(CONTRACTS)
    result = sorted(registered_names(plugin), key=lambda item: order.index(item[0]) if item[0] in order else len(order))
    if not result:
        expected = "a call such as ACTIVATIONS.register(...), see docs/how-to/plugins.md"
        raise InputError("it registers nothing", file=plugin, expected=expected)
    for kind, name in result:
        yield from _of(kind, name)


def _of(kind: str, name: str) -> Iterator[Outcome]:
    """Yield the outcomes of the checks of what is registered as `kind` and `name`."""
    checks = checks_of(CONTRACTS[kind]) if kind in CONTRACTS else ()
    if not checks:
        yield Outcome(kind, name, "it is registered", "left out", "there are no checks of this kind")
    for check in checks:
        outcome = _outcome(kind, name, check)
        yield outcome
        if outcome.status == "failed" and check is checks[0] and len(checks) > 1:
            yield Outcome(kind, name, f"{len(checks) - 1} more checks", "left out", "they need the first")
            return


def _outcome(kind: str, name: str, check: Check) -> Outcome:
    """Return the outcome of one check."""
    try:
        check(name)
    except LeftOutError as reason:
        return Outcome(kind, name, sentence(check), "left out", _line(str(reason)))
    except (BrokenError, InputError) as problem:
        return Outcome(kind, name, sentence(check), "failed", _line(str(problem)))
    except Exception as error:
        # whatever a plugin raises is what is wrong with it
        return Outcome(kind, name, sentence(check), "failed", _line(reason_in_user_code(error)))
    return Outcome(kind, name, sentence(check), "ok")


def _line(text: str) -> str:
    """Return a message in one line of bounded length."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else line[: LONGEST - 3] + "..."
