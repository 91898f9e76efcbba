"""The simulator of a function, as the engine asks for it (`engine.simulator`), with its parameters and hints."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.engine.base.table import Column, Table
from sweeplib.engine.design.questions import RowCounts
from sweeplib.engine.execution.machine import unfit
from sweeplib.engine.hints import Headline, Hints
from sweeplib.engine.parameters import Parameters
from sweeplib.engine.process.troubles import Trouble
from sweeplib.engine.process.work_time import seconds_at_work
from sweeplib.engine.records import Begun, Checkpoints, Records
from sweeplib.engine.simulator import FUNCTIONS, Measurement, Simulator
from sweeplib.engine.status import Status
from sweeplib.engine.storage.dataset.coordinates import (
    Constant,
    Coordinate,
    attribute_value,
    grid_coordinates,
    round_coordinates,
    run_coordinates,
)
from sweeplib.engine.variable import Variable
from sweeplib.errors import InputError
from sweeplib.functions.arguments import is_length, is_text, value_of_json
from sweeplib.functions.cases import FunctionCase, FunctionCases, WholeRun, generator_of, lengths_of, stream_of
from sweeplib.functions.courses import course_results, kept_names
from sweeplib.functions.function import OF_DATASETS, TIME, TIMES, Function, TimeUpError, registered
from sweeplib.functions.global_generators import BYTES, global_states_kept, seed_globals
from sweeplib.functions.results import LENGTH, checked_results

if TYPE_CHECKING:
    from sweeplib.engine.design.design import Design

LARGEST_SEED = 2**31
"""Seeds of one's own generators are below: C, R and scikit-learn take them. Of n replicas n²/2³² pairs share one."""
FEWEST, LONG = 2, 4.0
"""The calls that are measured after the first, and how many times the limit a call may take for others to follow."""


class FunctionParameters(Parameters):
    """The arguments of a function."""

    kind, section = "parameter of the function", "parameters"

    def __init__(self, function: Function) -> None:
        self.function = function
        self.needed = tuple(name for name, argument in function.arguments.items() if argument.is_needed)

    def names(self) -> Collection[str]:
        """Return the names of the arguments."""
        return self.function.arguments.keys()

    def type_of(self, name: str) -> Any:
        """Return the type of an argument."""
        return self.function.arguments[name].type if name in self.function.arguments else None

    def texts(self) -> Collection[str]:
        """Return the arguments whose values are texts."""
        return [name for name, argument in self.function.arguments.items() if is_text(argument.type)]

    def check(self, points: Table, refuse: Callable[[InputError, int], None]) -> None:
        """Check that the parameters that are lengths of results are whole numbers from 0 on."""
        dims = {size: dim for result in self.function.results.values() for dim, size in result.dims.items()}
        for name in dims.keys() & points.columns.keys():
            problem = f"{self.function.name}: not the length of {dims[name]}"
            for row, value in enumerate(points.column(str(name)).items()):
                if not is_length(value):
                    refuse(InputError(problem, key=str(name), value=value, expected=LENGTH), row)

    def is_reserved(self, name: str) -> bool:
        """Return whether a name is that of a result, of a dimension of one, or of what datasets and figures have."""
        results = self.function.results
        return name in {*results, *OF_DATASETS} or any(name in result.dims for result in results.values())


class FunctionHints(Hints):
    """What can be said of calls of a function."""

    def __init__(self, function: Function) -> None:
        self.function = function

    def values(self, case: FunctionCase) -> Mapping[str, Any]:
        """Return the values of the arguments."""
        return dict(case.values)

    def headline(self, recording: Any, variables: Mapping[str, Collection[str]]) -> Headline | None:
        """Return the first result that is a number."""
        name = next((name for name, result in self.function.results.items() if not result.dims), None)
        return None if name is None else Headline(name, f"Mean {name.replace('_', ' ')}", False)


class FunctionSimulator(Simulator):
    """Calls a function for each case."""

    ends = ()

    def __init__(self, function: Function) -> None:
        """Make the simulator `functions.NAME` of a function."""
        self.function, self.name = function, f"{FUNCTIONS}.{function.name}"
        self.about, self.files = f"the function {function.name}", function.files
        self.parameters, self.hints = FunctionParameters(function), FunctionHints(function)

    def __reduce__(self) -> Any:
        return simulator_of, (f"{self.function.name}.{self.function.code}",)

    @global_states_kept()
    def run(
        self,
        cases: Sequence[FunctionCase],
        *,
        timeout: float | None = None,
        begun: Begun | None = None,
        checkpoints: Checkpoints | None = None,
    ) -> Records:
        """Return the results of calls, one after the other; one that raises harms no other.

        A case that takes longer than `timeout`, or is not begun after `timeout` times their number, has the status
        timeout. begun : None, as functions go on from checkpoints alone.
        """
        variables = self.variables(cases[0])
        data = {name: np.full((len(cases), *variable.shape), np.nan) for name, variable in variables.items()}
        status, raised = np.full(len(cases), Status.timeout, np.uint8), dict[int, Trouble]()
        until = np.inf if timeout is None else time.monotonic() + timeout * len(cases)
        for at, case in enumerate(cases):
            if time.monotonic() > until:
                break
            try:
                for name, values in self.results(case, timeout, checkpoints).items():
                    data[name][at] = values
                status[at] = Status.ok
            except KeyboardInterrupt:
                raise
            except TimeUpError:
                continue
            except BaseException as error:  # includes SystemExit of the function
                # what the file imports at its top was tried when the worker began; a call imports what its values need
                if fault := unfit(error, imports_of_case=True):
                    raise fault from None
                status[at], raised[at] = Status.failed, Trouble.from_exception(error)
        return Records(data, status, raised=raised)

    @global_states_kept()
    def run_openly(self, case: FunctionCase) -> Records:
        """Return the results of one call; exceptions of the function are passed on."""
        data = {name: np.array([values], float) for name, values in self.results(case).items()}
        return Records(data, np.array([Status.ok], np.uint8))

    def kept_names(self, cases: Sequence[FunctionCase]) -> Sequence[str]:
        """Return the identities of the cases without their times, if the function yields states, else ()."""
        return kept_names(cases) if self.function.goes_on else ()

    def results(
        self, case: FunctionCase, timeout: float | None = None, checkpoints: Checkpoints | None = None
    ) -> dict[str, np.ndarray]:
        """Return the results of one call; exceptions of the function are passed on.

        timeout : as in `run`. checkpoints : as in `run`, for a function that yields its results.
        """
        process = os.getpid()
        try:
            return self._results(case, timeout, checkpoints)
        finally:
            # the child of a function that forks, if it returns: what runs cases must not go on twice
            if os.getpid() != process:
                os._exit(0)

    def _results(
        self, case: FunctionCase, timeout: float | None, checkpoints: Checkpoints | None
    ) -> dict[str, np.ndarray]:
        """Return the results of one call, in this process or in one that the function has forked."""
        values, random = dict(case.values), dict[str, Any]()
        times = {TIMES: np.array(case.recording.times)} if self.function.takes_times else {}
        if self.function.random == "rng":
            random = {"rng": generator_of(case)}
        elif self.function.random == "seed":
            random = {"seed": int(generator_of(case).integers(LARGEST_SEED))}
        seed_globals(stream_of(case, BYTES))
        if self.function.yields:
            returned = course_results(self.function, case, random, timeout, checkpoints)
        else:
            returned = self.function.called(timeout, **random, **times, **values)
        return checked_results(self.function, returned, lengths_of(case))

    def own_labels(self) -> Mapping[str, Mapping[str, str]]:
        """Return the attributes of parameters and results, which the signature and the decorator say."""
        return {name: dict(self.label(name)) for name in (*self.function.arguments, *self.function.results)}

    def variables(self, case: FunctionCase) -> dict[str, Variable]:
        """Return the results, with the lengths that they have for this case."""
        values = lengths_of(case)
        return {
            name: Variable(tuple(result.dims), result.shape(values), self.label(name))
            for name, result in self.function.results.items()
        }

    def counted(self, dim: str) -> Mapping[str, Any] | None:
        """Return the labels of the coordinate along a dimension of results, but for that of times."""
        return None if dim == TIME else self.label(dim)

    def peak_memory(self, case: FunctionCase) -> int:
        """Return the bytes of the results."""
        return sum(8 * int(np.prod(variable.shape)) for variable in self.variables(case).values())

    def title(self, case: FunctionCase) -> str:
        """Return the name of the function."""
        return self.function.name

    def sizes(self, case: FunctionCase) -> Mapping[str, Any]:
        """Return the values of the arguments."""
        return dict(case.values)

    def measured(self, cases: Sequence[FunctionCase], limit: float, ended: float = 1.0) -> Measurement:
        """Return the mean seconds of calls that are evenly spaced among the cases: of more and more, as there is time.

        The first one, which may compile or load, does not count unless it takes much longer than `limit`, or all others
        that there is time for failed, which may have been at once.
        """
        seconds, until = self._seconds(cases[:1]), seconds_at_work() + limit
        count = min(FEWEST, len(cases)) if seconds < limit else 1
        while count and seconds < LONG * limit:
            places = ((np.arange(count) + 0.5) * len(cases) / count).astype(int).tolist()
            seconds = self._seconds([cases[at] for at in places], seconds)
            # four times as many, if there are so many cases and there is time; else the mean so far stays
            next_count = min(len(cases), 4 * count, int((until - seconds_at_work()) / seconds))
            count = next_count if next_count > count else 0
        return Measurement(seconds)

    def _seconds(self, cases: Sequence[FunctionCase], least: float = 1e-9) -> float:
        """Call the function for some cases, and return the mean seconds of a call; `least` if all failed sooner."""
        begun = seconds_at_work()
        try:
            have_failed = bool((self.run(cases).status != Status.ok).all())
        except KeyboardInterrupt:  # the function's own: the keyboard does not reach the processes that measure
            have_failed = True
        return max((seconds_at_work() - begun) / len(cases), least if have_failed else 1e-9)

    def cases_at(self, points: Table, columns: Mapping[str, Column]) -> FunctionCases:
        """Return the cases at some points: arguments that the grid does not name have their defaults.

        columns : as in `Simulator.cases_at`; a function has neither a clock nor options.
        """
        arguments = self.function.arguments
        values = {
            name: points.column(name) if name in points.columns else points.constant(argument.default)
            for name, argument in arguments.items()
        }
        fields = {name: columns[name] for name in ("recording", "seed", "root_seed", "pair_by")}
        # the engine files a run under its dynamics: of a function that is its name
        named = {"dynamics": points.constant(self.function.name), "code": points.constant(self.function.code)}
        return FunctionCases(values | fields | named, len(points))

    def label(self, name: str) -> dict[str, Any]:
        """Return the labels of a result, an argument or a coordinate."""
        if name in self.function.results:
            result = self.function.results[name]
            return {"long_name": result.label or _words(name), "units": result.units, "symbol": result.symbol}
        argument = self.function.arguments.get(name)
        if argument is not None:
            return {"long_name": argument.label or _words(name), "units": argument.units, "symbol": ""}
        return {"long_name": LABELS.get(name, _words(name)), "units": "1", "symbol": ""}

    def coordinates(self, sweep: Design, case: FunctionCase) -> list[Coordinate]:
        """Return what varies over the sweep, the run, the seeds, and what rounds asked for."""
        listed = [coordinate for coordinate in grid_coordinates(sweep) if coordinate.dims] + run_coordinates(sweep)
        if times := sweep.recording.times:
            listed.append(Coordinate("time", ("time",), lambda: times, self.label("time")))
        if isinstance(sweep.replicas, RowCounts):
            listed += round_coordinates(sweep, sweep.replicas)
        return listed

    def constants(self, sweep: Design, case: FunctionCase) -> dict[str, Constant]:
        """Return the function's name, and by name the arguments and derived numbers that are the same at all points."""
        fixed = {coordinate.name: coordinate.column() for coordinate in grid_coordinates(sweep) if not coordinate.dims}
        fixed |= {name: value for name, value in case.values if name not in sweep.grid.names}
        fixed["function"] = self.function.name
        return {name: attribute_value(value) for name, value in fixed.items() if value is not None}

    def index(self, cases: FunctionCases) -> dict[str, np.ndarray]:
        """Return the values of the arguments, a text of JSON for each case, the seeds, and clocks of 1."""
        rows = zip(*(cases.column(name).items() for name in self.function.arguments), strict=True)
        texts = [json.dumps(list(row)) for row in rows] if self.function.arguments else ["[]"] * len(cases)
        problems = np.array(texts, object)
        return {"problem": problems, "seed": cases.field("seed", int), "clock": np.ones(len(cases))}

    def shared(self, case: FunctionCase) -> dict[str, Any]:
        """Return the function, its arguments, and what random numbers depend on."""
        pair_by = None if case.pair_by is None else list(case.pair_by)
        return {
            "simulator": self.name,
            "dynamics": case.dynamics,
            "code": case.code,
            "arguments": list(self.function.arguments),
            "root_seed": case.root_seed,
            "pair_by": pair_by,
            "times": list(case.recording.times),
        }

    def cases(self, shared: Mapping[str, Any], index: Mapping[str, np.ndarray]) -> FunctionCases:
        """Return the cases of a layout, with the code that the function has here.

        Cases that were stored with another code have other identities, and do not count.
        """
        rows = [json.loads(text) for text in index["problem"].tolist()]
        columns = {name: Column.of([row[at] for row in rows]) for at, name in enumerate(shared["arguments"])}
        for name in columns.keys() & self.function.arguments.keys():
            if isinstance(values := columns[name].values, list):
                kind = self.function.arguments[name].type
                columns[name] = columns[name]._replace(values=[value_of_json(kind, value) for value in values])
        columns["seed"] = Column.of(index["seed"].tolist())
        shared_by_all = {
            "dynamics": self.function.name,
            "code": self.function.code,
            "root_seed": shared["root_seed"],
            "pair_by": None if shared["pair_by"] is None else tuple(shared["pair_by"]),
            "recording": self.recording(shared),
        }
        return FunctionCases.of_one_value(shared_by_all, len(rows)).replaced(**columns)

    def recording(self, shared: Mapping[str, Any]) -> WholeRun:
        """Return the times at which a layout has results."""
        return WholeRun(tuple(shared["times"]))


LABELS = {
    "dynamics": "function",
    "function": "what was called",
    "point": "row of the table",
    "reason": "why the point was asked for",
    "round": "round that asked for the point",
    "seed": "replica",
}
"""The labels of what is neither an argument nor a result."""


def _words(name: str) -> str:
    """Return a name with blanks, as a label."""
    return name.replace("_", " ")


def simulator_of(name: str, code: str | None = None) -> FunctionSimulator:
    """Return the simulator of a function by its name, or by name and code, `NAME.CODE`; InputError if there is none.

    code : the one that is preferred if the name says none.
    """
    function, _, needed = name.partition(".")
    return FunctionSimulator(registered(function, needed or None, preferred=code))
