"""Simulator: all that the engine asks of what computes cases; networks are one.

The engine plans, stores, hands out, guards and labels cases of which it knows an identity, a shape and a cost. What
they mean is known to their simulator alone: the engine imports none, and finds one by the name in the cases' store.

    layout.simulator.run(cases, timeout=60.0)    # -> Records

A layout is all cases of one shape and similar work; a group is all whose arrays have the same lengths (`groups`).
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

from sweeplib.engine.base.late_modules import IMPORTING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
    from pathlib import Path

    import numpy as np

    from sweeplib.engine.cases import Cases, Recording
    from sweeplib.engine.hints import Hints
    from sweeplib.engine.parameters import Parameters
    from sweeplib.engine.records import Begun, Checkpoints, Records
    from sweeplib.engine.variable import Variable

NETWORKS = "networks"
"""The simulator of stores that name none."""
FUNCTIONS = "functions"
"""The simulators of functions: `functions.NAME` calls the function of that name."""
HOMES = {NETWORKS: "sweeplib.networks.simulator", FUNCTIONS: "sweeplib.functions.simulator"}
"""The modules of simulators; each has a function `simulator_of`, of what stands behind a full stop in the name."""


class Measurement(NamedTuple):
    """The `seconds` of a processor that a case takes, without compilation.

    ended : the part of its way after which a case ended, 1 at the horizon.
    whole : whether runs were measured to their ends; otherwise the cost follows from their first parts.
    """

    seconds: float
    ended: float = 1.0
    whole: bool = True


class Simulator(ABC):
    """What computes the cases of some kinds of runs, and what the engine must know of them before.

    What the engine can do without has a default, as for one of which nothing is known but its results.
    """

    name: str
    """The name that is stored with its cases."""
    about: str
    """What a sweep of it is of, in words."""
    ends: tuple[str, ...]
    """The variables that say how far a run came."""
    parameters: Parameters
    """The parameters of its cases."""
    hints: Hints
    """What it says of its cases beside their numbers."""
    files: Sequence[Path] = ()
    """Files of the user that it runs, beside plugins."""

    def counted(self, dim: str) -> Mapping[str, Any] | None:
        """Return the attributes of a coordinate 0, 1, ... along a dimension of variables; None if it has none."""
        return None

    def shares(self, dims: Collection[str]) -> bool:
        """Return whether variables with some dimensions have the same shape in all groups of cases, or are padded."""
        return True

    @abstractmethod
    def run(
        self,
        cases: Sequence[Any],
        *,
        timeout: float | None = None,
        begun: Begun | None = None,
        checkpoints: Checkpoints | None = None,
    ) -> Records:
        """Return the records of cases of one shape. The result of a case does not depend on the others.

        timeout : the mean time in seconds that a case may take; None: any.
        begun : a run for each case, from whose end it goes on; None: from its start.
        checkpoints : where cases keep their states on their way, and go on from those that are there; None: nowhere.
        """

    def kept_names(self, cases: Any) -> Sequence[str]:
        """Return the names under which states of cases are kept (`Checkpoints`); none if the simulator keeps none."""
        return ()

    def own_labels(self) -> Mapping[str, Mapping[str, str]]:
        """Return units and labels that the user's code gives to variables, by name; none if the library gives all."""
        return {}

    @abstractmethod
    def variables(self, case: Any) -> dict[str, Variable]:
        """Return what is stored of a case: the variables that it records, and `end_state` if runs go on from it."""

    def group(self, case: Any) -> Mapping[str, int]:
        """Return the sizes, by name, on which shapes of variables depend that are not the same in all cases: p, k."""
        return {}

    def work(self, case: Any) -> float:
        """Return the work of a case, in a unit of its own; cases of more work take longer."""
        return 1.0

    def seconds(self, case: Any) -> float:
        """Return the seconds of a case by a model that is the same on every machine; 1 without a model."""
        return 1.0

    def run_openly(self, case: Any) -> Records:
        """Return the records of one case; exceptions of the user's code are passed on, as a debugger needs them."""
        return self.run([case])

    def checks(self) -> Sequence[Callable[[Any], None]]:
        """Return functions that raise InputError for a case that cannot run; each reads few parameters of a case.

        They are called before any work, once for each combination of what they read.
        """
        return ()

    @abstractmethod
    def cases_at(self, points: Any, columns: Mapping[str, Any]) -> Cases:
        """Return a case at each of some points.

        points : the table of the values of a grid's names. columns : those of a run: dynamics, recording, seed, clock
        and options among others, by the names of fields of `Case`.
        """

    def steps(self, case: Any) -> float:
        """Return the number of steps of a case, 0 if it has none, or this is not known."""
        return 0.0

    def memory(self, case: Any) -> int:
        """Return the bytes of the large arrays that a case has in memory while it runs; 0 if this is not known."""
        return 0

    @abstractmethod
    def peak_memory(self, case: Any) -> int:
        """Return the bytes that a case takes at most, before it runs or while it does."""

    def lanes(self, case: Any) -> tuple[int, int]:
        """Return the smallest and the largest number of cases that are computed together."""
        return 1, 1

    def compiled(self, case: Any) -> tuple[Hashable, ...]:
        """Return what determines which machine code a case needs, its kind; () if it needs none."""
        return ()

    @abstractmethod
    def title(self, case: Any) -> str:
        """Return what a case is, in words without numbers that only change its cost."""

    @abstractmethod
    def sizes(self, case: Any) -> Mapping[str, Any]:
        """Return the values on which the memory of a case depends, for a message."""

    def warm_up(self, cases: Sequence[Any]) -> None:  # noqa: B027
        """Compile what cases need, or load it; by default nothing."""

    @abstractmethod
    def measured(self, cases: Sequence[Any], limit: float, ended: float) -> Measurement:
        """Return the cost of a case, measured for about `limit` seconds on cases that may be computed together.

        ended : the part of their way after which similar cases ended, for cases too long to be measured as a whole.
        """

    @abstractmethod
    def label(self, name: str) -> dict[str, Any]:
        """Return the `long_name`, `units` and `symbol` of a coordinate; of an unknown one its name as `long_name`."""

    @abstractmethod
    def coordinates(self, sweep: Any, case: Any) -> Sequence[Any]:
        """Return the coordinates of a sweep's dataset (`Coordinate`): what varies over it, and the axes of results.

        `case`, any of the sweep, has the values of what the sweep does not set.
        """

    @abstractmethod
    def constants(self, sweep: Any, case: Any) -> dict[str, int | float | str]:
        """Return what is the same at all points of a sweep, by name."""

    @abstractmethod
    def index(self, cases: Any) -> dict[str, np.ndarray]:
        """Return the columns (n,) from which `cases` makes cases again: `problem`, a text, `seed` and `clock`."""

    @abstractmethod
    def shared(self, case: Any) -> dict[str, Any]:
        """Return all of a case that is not in `index` and that its layout shares, as plain values of JSON."""

    @abstractmethod
    def cases(self, shared: Mapping[str, Any], index: Mapping[str, np.ndarray]) -> Cases:
        """Return the cases of a layout from what they share (`shared`) and their columns (`index`), as stored."""

    @abstractmethod
    def recording(self, shared: Mapping[str, Any]) -> Recording | None:
        """Return the recording in what cases share; None if it has something that is not known here."""


def networks() -> Simulator:
    """Return the simulator of networks, that of sweeps that name none."""
    return simulator_named(NETWORKS)


def home_of(simulator: Simulator) -> str:
    """Return the module of a simulator."""
    return HOMES[simulator.name.partition(".")[0]]


def simulator_of_cases(shared: Mapping[str, Any]) -> Simulator:
    """Return the simulator of stored cases, by what all of them share.

    Two functions may have one name: the code tells them apart, if the one that computed the cases is still here.
    """
    # the rows of networks do not name theirs
    return simulator_named(shared.get("simulator", NETWORKS), shared.get("code"))


def simulator_named(name: str, code: str | None = None) -> Simulator:
    """Return a simulator by its name. Its module is imported when it is first asked for: the engine needs none.

    code : which one of several of this name is preferred, if it is here.
    """
    kind, _, name_there = name.partition(".")
    with IMPORTING:
        simulator: Simulator = importlib.import_module(HOMES[kind]).simulator_of(name_there, code)
    return simulator
