"""A function of one's own as a simulator: its signature says its parameters, the decorator says its results.

    @simulator(magnetisation="1", energy="J")
    def ising(rng, T: float = 2.27, L: int = 16, sweeps: int = 1000):
        ...
        return {"magnetisation": m, "energy": e}

Two designs were sketched. A class with methods (`parameters`, `results`, `run`) says the same in three places, which
can differ. A decorator with the units of the results takes all else from the signature, and leaves the function
callable: it is kept.

A function may take the recording times of a sweep, `times`, and yield its results at one after the other.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from sweeplib.engine.base.budget import NAME_LENGTH
from sweeplib.engine.code.user_code import remember_imports
from sweeplib.engine.files.regular_files import file_bytes
from sweeplib.engine.storage.records.provenance import ATTRIBUTES
from sweeplib.engine.variable import END_STATE
from sweeplib.errors import InputError
from sweeplib.functions.arguments import argument_of, is_length, refuse_without_name
from sweeplib.functions.results import LENGTH, Result, declared_results

RANDOM = ("rng", "seed")
"""The arguments with which a function takes random numbers: a generator, or the number of the replica."""
TIMES = "times"
"""The argument with which a function takes the times at which it records."""
TIME = "time"
"""The dimension of results at these times."""
STATE = "state"
"""The argument with which a function that yields its results gets the state from which it goes on."""
NAMES = (
    *("case", "clock", "coordinates", "dynamics", END_STATE, "function", "options", "pair_by", "point", "reason"),
    *("recording", "root_seed", "round", "runs", "seed", "simulator", "status", "zip"),
)
"""Names with a meaning of their own in datasets and configs."""
ENDS = ("_low", "_high", "_error")
"""What analyses add to the name of a result, for the ends of its interval and for its standard error."""
STORED = {"case_id", "problem"}
"""Names of columns of the run store that arguments may have, and results not."""
EXITS = {"exit_steps", "exit_time"}
"""Names of results that figures take for the exits of networks."""
OF_DATASETS = {*ATTRIBUTES, "fraction", "rank", "requested", "value"}
"""Names that parameters may not have: those of attributes of datasets, and of what figures draw."""
MAIN = "__main__"
"""The name of the module of a script or a notebook."""


class TimeUpError(Exception):
    """A call takes longer than it may."""


class Source(NamedTuple):
    """A module's text, with the files of the values that it loads, by their names beside it.

    compared : the names whose values the statements give, where a call may have changed them.
    """

    text: str
    files: Mapping[str, bytes] = {}
    compared: frozenset[str] = frozenset()


class Function:
    """A function that sweeps can run; called, it is the function itself.

    module, file : where it is defined, None where that is no file.
    files : what it is made from, beside modules of Python. content : that of its file when it was defined.
    arguments, results : its parameters and its results, by name.
    random : "rng" or "seed", the argument by which it takes random numbers; None without one.
    takes_times, yields, goes_on : whether it takes the recording times, whether it yields its results, and whether it
        yields a state with them from which it can go on.
    """

    module: str
    file: Path | None
    files: Sequence[Path] = ()
    takes_times: bool = False
    yields: bool = False
    goes_on: bool = False

    def __init__(self, function: Callable[..., Any], results: Mapping[str, Result]) -> None:
        """Read the signature of a function; InputError if a sweep cannot call it, or if names do not fit together."""
        _refuse_no_function(function)
        functools.update_wrapper(self, function)
        self.function, self.name, self.results = function, function.__name__, dict(results)
        self.module, self.file = function.__module__, Path(inspect.unwrap(function).__code__.co_filename).resolve()
        arguments = inspect.signature(function).parameters
        self.content = file_bytes(self.file) if self.file.is_file() else b""
        remember_imports()
        self.random, self.takes_times = next((name for name in RANDOM if name in arguments), None), TIMES in arguments
        if {*RANDOM} <= {*arguments}:
            raise InputError(f"{self.name} takes rng and seed", value=list(RANDOM), expected="one of the two")
        self.yields = inspect.isgeneratorfunction(function)
        self.goes_on = self.yields and STATE in arguments
        not_swept = (*RANDOM, TIMES, *([STATE] if self.goes_on else []))
        parameters = {name: argument for name, argument in arguments.items() if name not in not_swept}
        for argument in arguments.values():
            refuse_without_name(self.name, argument)
        names = inspect.unwrap(function).__globals__
        self.arguments = {name: argument_of(self.name, argument, names) for name, argument in parameters.items()}
        self._refuse_names()
        self._refuse_ends()

    @functools.cached_property
    def code(self) -> str:
        """A digest of the code that makes the numbers: the function's, and what it reaches in the user's files."""
        from sweeplib.functions.source import code_of

        return code_of(self)

    def source(self) -> Source:
        """Return a module with the function and all that it reaches, and the files that it needs beside it."""
        from sweeplib.functions.source import source_of

        return source_of(self)

    def code_files(self) -> Sequence[Path]:
        """Return the files whose content decides the code: its own and the user's that it imports."""
        from sweeplib.functions.source import code_files_of

        return code_files_of(self)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Return what the function returns."""
        return self.function(*arguments, **named)

    def called(self, timeout: float | None, **arguments: Any) -> Any:
        """Return what the function returns, whatever the limit; only a program raises TimeUpError after `timeout` s."""
        return self(**arguments)

    def __repr__(self) -> str:
        return f"<simulator {self.name}({', '.join(self.arguments)}) of {', '.join(self.results)}>"

    def _refuse_names(self) -> None:
        """Raise InputError if names or dimensions of the function do not fit together.

        Results need names that no parameter has, and none that means something else in a dataset or is too long for a
        file.
        """
        if not self.results:
            expected = '@simulator(energy="J"), the names of the results with their units'
            raise InputError(f"{self.name} has no results", expected=expected)
        reserved = {*NAMES, *self.results.keys() & (STORED | EXITS), *self.arguments.keys() & OF_DATASETS}
        for name in (*self.arguments, *self.results, *(dim for result in self.results.values() for dim in result.dims)):
            if not name.isidentifier() or name in reserved:
                raise InputError(f"{self.name}: this name has another meaning", value=name, expected="another name")
            if len(name.encode()) > NAME_LENGTH:
                raise InputError(f"{self.name}: too long a name", value=name, expected=f"at most {NAME_LENGTH} bytes")
        for name, result in self.results.items():
            if name in self.arguments:
                raise InputError(
                    f"{self.name}: a parameter has this name", value=name, expected="another result's name"
                )
            self._refuse_dims(result)

    def _refuse_dims(self, result: Result) -> None:
        """Raise InputError if a dimension of a result has another's name, or a length that is none."""
        for dim, size in result.dims.items():
            if dim in self.arguments or dim in self.results:
                problem = f"{self.name}: a parameter or a result has the name of a dimension"
                raise InputError(problem, value=dim, expected="another name")
            if (dim == TIME) != (size == TIMES) or (size == TIMES and not self.takes_times):
                expected = '{"time": "times"}, of a function with the argument `times`'
                raise InputError(f"{self.name}: not the dimension of times", value={dim: size}, expected=expected)
            if isinstance(size, str) and size not in (*self.arguments, TIMES):
                problem = f"{self.name}: no parameter has the length of {dim}"
                raise InputError(problem, value=size, choices=self.arguments)
            default = self.arguments[size].default if size in self.arguments else 0
            if not (is_length(default) or self.arguments[str(size)].is_needed):
                problem = f"{self.name}: the default of {size} is not the length of {dim}"
                raise InputError(problem, value=default, expected=LENGTH)

    def _refuse_ends(self) -> None:
        """Raise InputError for a result whose name is that of the error, or an end of the interval, of another."""
        for name, of, end in product(self.results, self.results, ENDS):
            if name == f"{of}{end}":
                problem = f"{self.name}: averages have this name for an end of the interval, or the error, of {of}"
                raise InputError(problem, value=name, expected="another name")


FUNCTIONS: dict[str, list[Function]] = {}
"""The functions that files have defined, by name, the last one last: a notebook defines one again and again."""


def registered(name: str, code: str | None = None, preferred: str | None = None) -> Function:
    """Return the last function that was defined with a name, and with this code if given; InputError if none was.

    preferred : the code of the one that is taken, if it is here, where `code` is not given.
    """
    functions = FUNCTIONS.get(name, [])
    if not functions:
        raise InputError("no such simulator", value=name, choices=FUNCTIONS)
    # the last one says the labels and dimensions of now, which are no code; a function of a script or notebook reads
    # what these change later: the file that was written of it does not
    imported = [function for function in reversed(functions) if function.module != MAIN]
    if wanted := code or preferred:
        for function in imported:
            if function.code == wanted:
                return function
    if code is not None:
        raise _other_code(functions[-1])
    return next(iter(imported), functions[-1])


def make_last(function: Function) -> None:
    """Make a function the last one of its name: a notebook may undo an edit, whose file was read before."""
    functions = FUNCTIONS[function.name]
    functions.remove(function)
    functions.append(function)


def _other_code(function: Function) -> InputError:
    """Return the error that a function has another code here; it names the file of it that was written last."""
    problem = f"{function.name} has another code here than where the run began"
    times = {path: path.stat().st_mtime for path in function.code_files() if path.is_file()}
    last = max(times, key=times.__getitem__, default=None)
    if last is not None:
        problem += f"; of its files this one was written last, at {datetime.fromtimestamp(times[last]):%H:%M:%S}"
    return InputError(problem, file=last, expected="no edit during a run, and a command that names no file it writes")


def simulator(**results: str | Result) -> Callable[[Callable[..., Any]], Function]:
    """Return a decorator that makes a function a simulator, with its results by name and their units, "1" for none.

    The parameters of the function are those of sweeps: values are checked by their annotations (`Literal["a", "b"]`,
    `Annotated[float, Field(gt=0, description="temperature"), "K"]` with units), defaults are used where a sweep says
    nothing. `rng` is a NumPy Generator, a function of the sweep's root seed, the values of the parameters and the
    number of the replica; with `seed` the function gets a number instead, from which it makes its own. A function with
    neither is deterministic. It returns its results by name, or one value if it has one: numbers, or arrays of the
    declared lengths (`Result`). It may also yield them, one recording time after the other, and with them a state from
    which a call with this `state` goes on.

    InputError for a lambda, a function inside of another one, and names that mean something else.
    """

    def decorated(function: Callable[..., Any]) -> Function:
        """Return the function as one that a sweep can call, and remember it under its name."""
        simulated = Function(function, declared_results(getattr(function, "__name__", "simulator"), results))
        FUNCTIONS.setdefault(simulated.name, []).append(simulated)
        return simulated

    return decorated


def _refuse_no_function(function: Callable[..., Any]) -> None:
    """Raise InputError for what is no plain function, and for one that other processes cannot find by its name."""
    name = getattr(function, "__qualname__", type(function).__name__)
    problem = None
    no_results = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    if not inspect.isfunction(inspect.unwrap(function)) or no_results:
        problem = f"{name} is no function that returns or yields its results"
    elif function.__name__ == "<lambda>" or "<locals>" in name:
        problem = f"{name} cannot be sent to other processes"
    if problem:
        raise InputError(problem, expected="a function that `def` defines at the top level of a file or a notebook")
