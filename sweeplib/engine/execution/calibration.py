"""The cost of a case on this machine, measured on a few real cases in a separate process.

A pilot is a few cases of a layout (all cases of one shape and similar cost), which are measured in its place. A case
may kill its process, hang, or take all memory, in a pilot as in the run. Then the pilot is given up and its cost is
extrapolated; the run identifies the case. The kind of a pilot is what machine code it needs. Lanes are cases that a
kernel computes together, side by side.
"""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise
from threading import Thread, Timer
from typing import Any

import numpy as np

from sweeplib.engine.cases import Case
from sweeplib.engine.execution.child import (
    Child,
    DiedError,
    EndedError,
    Limits,
    MemoryUpError,
    TaskError,
    TimeUpError,
    lent,
)
from sweeplib.engine.execution.clusters.local import places
from sweeplib.engine.execution.estimates import GUESSED, OF_PARTS, OF_WHOLE_RUNS, Cost
from sweeplib.engine.execution.guard import GRACE
from sweeplib.engine.execution.progress import Steps
from sweeplib.engine.process.troubles import Trouble
from sweeplib.engine.process.work_time import seconds_compiled, slowdown
from sweeplib.engine.simulator import Measurement
from sweeplib.engine.storage.store.inventory import Inventory
from sweeplib.errors import SweeplibError

PILOT_SECONDS = 1.5
"""Seconds in which all pilots are measured, about; each dynamics has an equal part."""
PAIR = 2
"""The number of cases with which a kernel is compiled: arrays of a single case have another memory layout."""

HELP_SECONDS = 1.0
"""Seconds of compilation in one process after which others compile what is needed later."""

LEAST_SECONDS, MOST_LIMITS = 0.1, 6.0
"""The seconds for which a pilot is measured at least, and how many times its time that may take."""
HANG_SECONDS = 10.0
"""Seconds by which a measurement may exceed its time before its process is ended."""
SETUP_SECONDS = 60.0
"""Seconds that imports, or the loading of machine code, may take."""
LEAST_ENDED = 0.05
"""The least part of their times after which cases are taken to end."""
MOST_DEATHS = 3
"""The deaths of processes that measure costs after which nothing more is measured."""
SECONDS_A_WORK_UNIT = 1e-10
"""The guessed seconds of a unit of a simulator's work, where no plan was written: it orders layouts by cost."""
MOST_PILOTS = 32
"""The pilots of a kind that are measured: evenly spaced, with the costliest and the cheapest."""
MOST_CASES, FEWEST_CASES, CASES_OF_ALL = 512, 128, 8192
"""The cases of a pilot at most, those that each may have, and about how many all may have."""


@dataclass(frozen=True)
class Pilot:
    """Cases of one layout that represent it and may run together; `name` distinguishes it from the other pilots.

    solutions : the number of solutions of a case of the layout, below 1 where cases have one in common. Those of the
        pilot have none in common.
    """

    name: str
    cases: tuple[Case, ...]
    solutions: float = 1.0

    @property
    def dynamics(self) -> str:
        """Return the name of the dynamics of the cases."""
        return self.cases[0].dynamics

    @property
    def kind(self) -> tuple[Hashable, ...]:
        """Return the properties that determine which machine code is needed."""
        return self.cases[0].simulator.compiled(self.cases[0])

    @property
    def title(self) -> str:
        """Return a description of the measured cases."""
        return self.cases[0].simulator.title(self.cases[0])

    @cached_property
    def work_a_case(self) -> float:
        """Return the nominal work of a case of the layout."""
        return sum(map(self.cases[0].simulator.work, self.cases)) / len(self.cases)


def evenly_spaced(count: int, most: int = MOST_PILOTS) -> list[int]:
    """Return `most` places or fewer among `count`, ascending and evenly spaced, with the first and the last."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(int)).tolist()


def beside_others(count: int, most: int, width: int) -> list[int]:
    """Return `most` places or fewer among `count`, in evenly spaced groups of `width` places side by side."""
    width = min(width, most, count)
    groups = min(most, count) // width
    if width == 1:
        return evenly_spaced(count, most)
    firsts = ((np.arange(groups) + 0.5) * (count - width) / groups).astype(int)
    return np.unique(np.add.outer(firsts, np.arange(width))).tolist()


def pilots_of(wanted: Inventory, size: int | None) -> dict[str, Pilot]:
    """Return the pilot of each layout with missing cases, by its name: evenly spaced cases, in whole groups of lanes.

    size : the number of cases of a block if the config sets it, which a pilot does not exceed: a case takes longer
    beside fewer others.
    """
    most = max(FEWEST_CASES, min(MOST_CASES, CASES_OF_ALL // max(1, len(wanted.missing))))
    pilots = {}
    for name, missing in wanted.missing.items():
        [first], solved = wanted.cases(missing[:1]), wanted.solved(missing)
        places = solved[beside_others(len(solved), min(most, size or most), first.simulator.lanes(first)[1])]
        share = len(solved) / len(missing)
        pilots[name] = Pilot(f"{wanted.dynamics}/{name}", tuple(wanted.cases(places)), share)
    return pilots


def warm_up(cases: Sequence[Case]) -> tuple[float, float]:
    """Compile what cases need, or load it, and return the seconds of each; the process that measures costs calls it."""
    before = seconds_compiled(), time.thread_time()
    cases[0].simulator.warm_up(cases)
    compilation = seconds_compiled() - before[0]
    return compilation, time.thread_time() - before[1] - compilation


def measured(cases: Sequence[Case], limit: float, ended: float = 1.0) -> tuple[Measurement, float]:
    """Return the cost of a case, and the seconds of compilation beside it; the process that measures costs calls it.

    limit, ended : those of `Simulator.measured`: seconds, and the part of their way after which like cases ended.
    """
    before = seconds_compiled()
    return cases[0].simulator.measured(cases, limit, ended), seconds_compiled() - before


class Calibration:
    """A process that measures costs; it starts with the first measurement, and most plans with more seeds need none.

    compilation : the seconds that the process and its helpers have compiled so far.
    loading : the seconds in which the process loaded machine code, by dynamics; neither is in a cost.
    memory : the bytes above which a pilot is ended; None: none.
    hang_seconds : how much longer than its measurement a pilot may take: ten seconds, or a case's `timeout` if less.
    setup_seconds : that may pass until machine code is loaded.
    module : that of the simulator, imported once.
    """

    def __init__(
        self,
        plugins: Sequence[str] = (),
        steps: Steps | None = None,
        memory: int | None = None,
        timeout: float | None = None,
        module: str | None = None,
    ) -> None:
        """Start nothing yet; see the class for the arguments."""
        self.plugins, self.module = tuple(plugins), module
        self.steps, self.memory = steps or Steps(), memory
        self.hang_seconds = HANG_SECONDS if timeout is None else min(HANG_SECONDS, timeout + GRACE)
        self.setup_seconds = SETUP_SECONDS if timeout is None else self.hang_seconds
        self._lent = ExitStack()  # holds the process that measures
        self._deaths = 0  # of processes that measured
        self._costs: dict[str, Cost] = {}  # by pilot: measured, or interpolated
        self._least: dict[str, float] = {}  # by pilot that exceeded its time: the seconds that a case takes at least
        self._ended: dict[str, float] = {}  # by dynamics: the part of their way after which cases ended
        self._compiled: set[tuple[Hashable, ...]] = set()  # kinds
        self._given_up: set[tuple[Hashable, ...]] = set()  # kinds of which a pilot took too long
        self._beside = _Beside(self.plugins, module, Limits(self.setup_seconds, memory))
        self._compilation, self.loading = 0.0, defaultdict[str, float](float)

    @property
    def compilation(self) -> float:
        """Return the seconds of compilation."""
        return self._compilation + sum(self._beside.compilation)

    def __enter__(self) -> "Calibration":
        """Return this object; the process starts with the first measurement."""
        return self

    def __exit__(self, *raised: Any) -> None:
        """Give the process back, for the next context; after an exception it ends, even while it computes."""
        self._beside.end()
        self._lent.__exit__(*raised)

    @cached_property
    def child(self) -> Child:
        """Return the process, which may be one that is ready from an earlier context."""
        return self._lent.enter_context(lent(self.plugins, self.module))

    def costs(self, pilots: Iterable[Pilot]) -> dict[str, Cost]:
        """Return the cost of a case by the pilot's name; measures for 1.5 s in total, and at least 0.1 s per pilot.

        Of many pilots `MOST_PILOTS` are measured, and the costs of the others lie between theirs.
        Compilation comes first and is not counted; it leaves the kernels in numba's cache, where the workers find them.
        """
        ordered = sorted(pilots, key=lambda pilot: (pilot.kind, pilot.work_a_case))
        # the first kind is compiled by this process at once
        self._beside.waiting.extend([*{pilot.kind: pilot for pilot in ordered}.values()][1:])
        seconds = PILOT_SECONDS / max(1, len({pilot.dynamics for pilot in ordered}))
        for _, group in groupby(ordered, key=lambda pilot: pilot.dynamics):
            of_dynamics = list(group)
            self._measure(of_dynamics, max(LEAST_SECONDS, seconds / min(len(of_dynamics), MOST_PILOTS)))
        return _extrapolated(ordered, self._costs, self._least)

    def _measure(self, pilots: Sequence[Pilot], seconds: float) -> None:
        """Measure pilots of a dynamics, the cheapest of each kind first, for some seconds each, until one exceeds them.

        A pilot that dies, or takes too much memory, has no cost; the next one is measured.
        """
        for _, group in groupby(pilots, key=lambda pilot: pilot.kind):
            of_kind = list(group)
            chosen = [of_kind[at] for at in evenly_spaced(len(of_kind))]
            others = f" and {len(chosen) - 1} more" if len(chosen) > 1 else ""
            try:
                self.compile(chosen[0])
                with self.steps.step(f"measuring {chosen[0].title}{others}"):
                    for pilot in chosen:
                        with suppress(DiedError, MemoryUpError):
                            self._costs[pilot.name] = self.cost(pilot, seconds)
            except TimeUpError:
                return
            except EndedError:
                continue
            finally:
                self._interpolate(of_kind)

    def _interpolate(self, pilots: Sequence[Pilot]) -> None:
        """Set the costs of pilots of one kind between two that were measured: linear in the work of a case.

        pilots : by ascending work; those at `evenly_spaced` places were measured, unless the process ended.
        The factor within which a cost in between is known is the larger of the two.
        """
        for first, last in pairwise(evenly_spaced(len(pilots))):
            ends = [pilots[first], pilots[last]]
            if all(end.name in self._costs for end in ends):
                work, costs = [end.work_a_case for end in ends], [self._costs[end.name] for end in ends]
                seconds, factor = [cost.seconds for cost in costs], max(cost.factor for cost in costs)
                for pilot in pilots[first + 1 : last]:
                    between = float(np.interp(pilot.work_a_case, work, seconds))
                    self._costs[pilot.name] = Cost(between, factor=factor)

    def compile(self, pilot: Pilot) -> None:
        """Let the process compile what a pilot needs, unless it has compiled its kind. EndedError if it ends.

        Other processes compile what later pilots need meanwhile.
        """
        if pilot.kind and pilot.kind not in self._compiled:
            self._compiled.add(pilot.kind)
            with self.steps.step(f"compiling {pilot.title}"):
                self.result(pilot, self.setup_seconds, bool)  # its imports are no compilation
                with self._beside.started():
                    self.loading[pilot.dynamics] += self._warm_up(pilot)

    def _warm_up(self, pilot: Pilot) -> float:
        """Compile or load what a pilot needs; return the seconds of loading, and add those of compilation."""
        compilation, loading = self.result(pilot, self.setup_seconds, warm_up, pilot.cases[:PAIR])
        self._compilation += compilation
        return float(loading)

    def cost(self, pilot: Pilot, seconds: float) -> Cost:
        """Return the cost of a case of a pilot, measured for `seconds`. EndedError, after a line, if the process ends.

        The next pilot is measured in a new process then. A case of a pilot whose time was up costs at least the time
        over the number of cases that run together.
        """
        self._warm_up(pilot)
        limit, earlier = MOST_LIMITS * seconds + self.hang_seconds, self._ended.get(pilot.dynamics, 1.0)
        try:
            measurement, compilation = self.result(pilot, slowdown() * limit, measured, pilot.cases, seconds, earlier)
        except TimeUpError:
            self._least[pilot.name] = limit / pilot.cases[0].simulator.lanes(pilot.cases[0])[1]
            raise
        self._compilation += compilation
        self._ended[pilot.dynamics] = max(measurement.ended, LEAST_ENDED)
        return Cost(pilot.solutions * measurement.seconds, factor=OF_WHOLE_RUNS if measurement.whole else OF_PARTS)

    def result(self, pilot: Pilot, seconds: float, task: Callable[..., Any], *args: Any) -> Any:
        """Return `task(*args)`, computed in the process for a pilot in at most `seconds`, not counting compilation.

        EndedError, after a line, if the process ends. TimeUpError if it takes longer, and from then on for every task
        of the pilot's kind, which is not begun. DiedError, too, once `MOST_DEATHS` processes died.
        """
        if self._deaths >= MOST_DEATHS:
            raise DiedError(Trouble("too many processes died"))
        if pilot.kind in self._given_up:
            raise TimeUpError(Trouble("pilots of its kind take too long"))
        try:
            return self.child.call(task, *args, limits=Limits(seconds, self.memory))
        except EndedError as error:
            if isinstance(error, TimeUpError):
                self._given_up.add(pilot.kind)
            else:
                self._deaths += 1
            self.steps.say(f"{pilot.title}: {error}; the cost of its cases is extrapolated")
            raise


class _Beside:
    """Processes that compile what the `waiting` pilots need, the last first, while another compiles the first ones.

    They put kernels into numba's cache, where whoever compiles the same kernel at the same time waits for it. Their
    errors are not reported: each pilot is compiled again in the process that measures it.

    compilation : the seconds of each compilation. plugins, module : what each process imports.
    _children : the processes, which start once.
    """

    def __init__(self, plugins: Sequence[str], module: str | None, limits: Limits) -> None:
        self.waiting, self.compilation = deque[Pilot](), list[float]()
        self._plugins, self._module, self._limits = plugins, module, limits
        self._children: list[Child] = []

    @contextmanager
    def started(self) -> Iterator[None]:
        """A context that starts a process for each further processor, once, if it lasts longer than `HELP_SECONDS`."""
        timer = Timer(HELP_SECONDS, self._start)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()

    def _start(self) -> None:
        """Start a process, with a thread that gives it work, for each other processor; none if they were started."""
        for _ in range(0 if self._children else min(places() - 1, len(self.waiting))):
            with suppress(OSError):
                self._children.append(Child(self._plugins, self._module))
                Thread(target=self._compile, args=(self._children[-1],), daemon=True).start()

    def _compile(self, child: Child) -> None:
        """Let a process compile what the waiting pilots need, one after another, and note the seconds of each."""
        with suppress(IndexError, OSError, ValueError):  # none is left, or the process is ended
            while True:
                with suppress(TaskError, SweeplibError):
                    compilation, _ = child.call(warm_up, self.waiting.pop().cases[:PAIR], limits=self._limits)
                    self.compilation.append(compilation)

    def end(self) -> None:
        """End the processes."""
        self.waiting.clear()
        for child in self._children:
            child.close()


def _extrapolated(pilots: Sequence[Pilot], measured: Mapping[str, Cost], least: Mapping[str, float]) -> dict[str, Cost]:
    """Return the cost of a case of each pilot: measured, or its work at the rate of the costliest measured pilot.

    Rates are per dynamics; without one, costs are those of the simulator's model.

    measured, least : by the pilot's name: costs, and lower bounds of the seconds of pilots that exceeded their time.
    """
    rates: dict[str, float] = {}
    seconds = {**least, **{name: cost.seconds for name, cost in measured.items()}}
    for pilot in sorted(pilots, key=lambda pilot: pilot.work_a_case):
        # the last, of the most work, stays; a run of no step has no work, and no rate
        if pilot.name in seconds and pilot.work_a_case > 0.0:
            rates[pilot.dynamics] = seconds[pilot.name] / pilot.work_a_case

    def guess(pilot: Pilot) -> float:
        """Return the seconds of a case: by the rate of its dynamics, or the simulator's guess if none is known."""
        if pilot.dynamics in rates:
            return pilot.work_a_case * rates[pilot.dynamics]
        return pilot.cases[0].simulator.seconds(pilot.cases[0])

    return {
        pilot.name: measured.get(pilot.name) or Cost(least.get(pilot.name, guess(pilot)), False, GUESSED)
        for pilot in pilots
    }
