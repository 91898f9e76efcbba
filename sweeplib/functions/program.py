"""A program that is no Python as a simulator: a command with the parameters in it, results on its standard output.

    spins = program("./spins --T {T} --L {L} --seed {seed}", energy="J", magnetisation="1")

The program is started without a shell, once for each case, in an empty folder, with no standard input. It writes its
results as JSON, as lines `name = value`, or as CSV with a header and one row; the first of these forms that has all
results counts, and of several texts of a form the last. The identity of a case has the command, and the content of
the files that it names. A config has the same in `simulator: {command: ..., results: ...}`; other processes then read
the declaration as a plugin, `sweeplib.functions.program:JSON`.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import string
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property, partial
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

import pydantic

from sweeplib.engine.code.user_code import command_of, file_in, files_in, located_command, words_of
from sweeplib.engine.files.regular_files import file_bytes
from sweeplib.engine.process.children import end, with_descendants
from sweeplib.errors import InputError
from sweeplib.functions.arguments import Argument, Real, checked_argument, type_of_default
from sweeplib.functions.function import FUNCTIONS, RANDOM, TIMES, Function, Source, TimeUpError
from sweeplib.functions.results import Result, declared_results

MOST_OUTPUT = 2**26
"""Bytes that a program may write to its standard output, and to its standard error; more is a failure."""
LOOKS = 0.05
"""Seconds between two looks at how much a program has written."""
TYPES = {"int": int, "float": Real, "str": str, "bool": bool}
"""The types of parameters, by the names that they have in a config."""
KEYS = ("type", "default", "units", "label", "ge", "gt", "le", "lt")
"""What may be declared of a parameter."""
SIGNALS = {number.value: number.name for number in signal.Signals}
"""The names of signals; some have none."""
SAID = 2000
"""The characters of the end of a program's messages that an error shows."""
FORTRAN = re.compile(r"([+-]?(?:\d+\.\d*|\.\d+))[dD]?([+-]\d+)|([+-]?\d+\.?\d*)[dD](\d+)")
"""A number as Fortran writes it, with D before the exponent, or nothing where the exponent has three digits."""


class _Place(NamedTuple):
    """Where a program is declared: the module, its file, and the folder of the files that the command names."""

    module: str
    file: Path | None
    folder: Path


class Program(Function):
    """A command that sweeps can run.

    files : the program, and the files that the command names.
    parameters : by name, the types and defaults that were declared (`parameter_entry`).
    _words : the command, split, with the absolute paths of its files; parameters are in braces.
    random, takes_times, arguments : as in `Function`. module, file : where the program is declared.
    """

    def __init__(
        self, name: str, command: str, results: Mapping[str, Result], parameters: Mapping[str, Any], place: _Place
    ) -> None:
        """Read a command with parameters in braces; InputError if it is none, or if names do not fit together.

        parameters : what is declared of some of them (`parameter_entry`). place : where the program is declared.
        """
        self.name, self.command, self.results = name, command, dict(results)
        self.module, self.file, self.parameters = place.module, place.file, dict(parameters)
        self._words = words_of(located_command(command, place.folder))
        try:
            pieces = [piece for piece in string.Formatter().parse(command) if piece[1] is not None]
        except ValueError:  # of a brace without its other one
            pieces = [("", "", "", None)]
        fields = [str(field) for _, field, _, _ in pieces]
        if not self._words or not all(field.isidentifier() for field in fields):
            raise InputError(f"{name}: not a command", value=command, expected="parameters by name, such as `--T {T}`")
        if "rng" in fields:
            raise InputError(f"{name}: this name has another meaning", value="{rng}", expected="{seed}, a number")
        self.random, self.takes_times = "seed" if "seed" in fields else None, TIMES in fields
        names = [field for field in dict.fromkeys(fields) if field not in (*RANDOM, TIMES)]
        if unknown := [key for key in parameters if key not in names]:
            raise InputError(f"{name}: the command has no such parameter", value=unknown[0], choices=names)
        self.arguments = {field: _argument(name, field, parameters.get(field)) for field in names}
        for _, field, form, _ in pieces:
            if form:
                _refuse_format(name, str(field), form, self.arguments[str(field)].type if field in names else int)
        self._refuse_names()
        program = shutil.which(file_in(self._words[0])[1] or self._words[0])
        if program is None:
            raise InputError(f"{name}: no such program", value=self._words[0], expected="one that can be executed")
        self.files = [Path(program).absolute(), *map(Path, files_in(self._words[1:]))]

    def source(self) -> Source:
        """Return a Python file that declares the program."""
        results = (f"{name}={result!r}" for name, result in self.results.items())
        keywords = ", ".join([f"name={self.name!r}", f"parameters={_written(self.parameters)!r}", *results])
        command = shlex.join(self._words)
        return Source(f"from sweeplib import Result, program\n\nsimulated = program({command!r}, {keywords})\n")

    def code_files(self) -> Sequence[Path]:
        """Return the program, and the files that the command names."""
        return self.files

    @cached_property
    def code(self) -> str:
        """A digest of the command, and of the content of the program and the files that the command names."""
        # names, not paths: the code is the same wherever the files are
        words = [self.files[0].name, *(before + Path(path).name for before, path in map(file_in, self._words[1:]))]
        digest = hashlib.blake2b(repr(words).encode(), digest_size=12)
        for file in self.files:
            digest.update(file_bytes(file.resolve()))
        return digest.hexdigest()

    def __call__(self, **values: Any) -> dict[str, Any]:
        """Return the results of a run; RuntimeError, with the end of its messages, for one that fails."""
        return self.called(None, **values)

    def called(self, timeout: float | None, **values: Any) -> dict[str, Any]:
        """Return the results of a run; TimeUpError if it takes longer than some seconds."""
        if self.takes_times:
            values[TIMES] = ",".join(map(repr, values[TIMES].tolist()))
        words = [word.format(**values) for word in self._words]
        # files, not pipes: a program that writes much need not be read meanwhile
        with tempfile.TemporaryDirectory(prefix="sweeplib-") as folder, tempfile.TemporaryFile() as output:
            with tempfile.TemporaryFile() as messages:
                failure = _failure(words, folder, (output, messages), timeout)
                messages.seek(max(0, messages.seek(0, os.SEEK_END) - SAID))
                message = messages.read().decode("utf-8", "replace").strip()
            output.seek(0)
            text = output.read(MOST_OUTPUT).decode("utf-8", "replace")
        if failure is not None:
            raise RuntimeError(f"{shlex.join(words)}: {failure}: {message or 'no message'}")
        return parsed_output(text, self.results)


def program(
    command: str | list[Any],
    *,
    name: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    **results: str | Result,
) -> Program:
    """Return a simulator that runs a command for each case, with its results by name and their units, "1" for none.

    command : the words of a command, a text or a list, with the parameters of sweeps in braces, `{T}` or `{T:.3f}`;
        `{seed}` is a number that is a function of the root seed, the values and the replica. Files beside the file of
        the call are found.
    name : of the simulator, by default that of the program; letters, digits and _.
    parameters : types and defaults: `{"L": int, "T": 2.27}`; the others are numbers that each sweep must give.

    InputError for a command without such a program, and for names that mean something else.
    """
    around = sys._getframe(1).f_globals  # files of the command are beside the file of the call
    file = Path(around["__file__"]).resolve() if "__file__" in around else None
    place = _Place(str(around["__name__"]), file, Path.cwd() if file is None else file.parent)
    words = words_of(command)
    chosen = re.sub(r"\W", "_", Path(next(iter(words), "")).stem) if name is None else name
    if not re.fullmatch(r"\w+", chosen):
        problem = "not a command" if name is None else "not a name"
        expected = "a program and its arguments" if name is None else "letters, digits and _"
        raise InputError(f"program: {problem}", value=command if name is None else name, expected=expected)
    types: Any = parameters or {}
    if not isinstance(types, Mapping):
        expected = '{"L": int, "T": 2.27}, types or defaults by name'
        raise InputError(f"{chosen}: not the parameters", value=parameters, expected=expected)
    simulated = Program(chosen, command_of(words), declared_results(chosen, results), types, place)
    FUNCTIONS.setdefault(chosen, []).append(simulated)
    return simulated


def declared(declaration: str) -> Program:
    """Return the simulator of a text of JSON: `name`, `command` with absolute paths, `parameters`, `results`.

    Processes call it for the plugin as which a config's `simulator: {command: ...}` is read.
    """
    entry = json.loads(declaration)
    results = {name: Result(**result) for name, result in entry["results"].items()}
    place = _Place(__name__, None, Path("/"))
    simulated = Program(entry["name"], entry["command"], results, entry.get("parameters", {}), place)
    FUNCTIONS.setdefault(simulated.name, []).append(simulated)
    return simulated


def parameter_entry(value: Any) -> Any:
    """Return what is declared of a parameter as a mapping with `type` or `default`, as a config may write it.

    value : such a mapping, a type or its name, a list of the texts that it may be, or its default.
    """
    if isinstance(value, Mapping) or value is None:
        return value or {}
    is_type = isinstance(value, type | list) or (isinstance(value, str) and value in TYPES)
    return {"type" if is_type else "default": value}


def _written(declared: Any) -> Any:
    """Return what is declared of parameters as a file can have it: types by their names."""
    if isinstance(declared, Mapping):
        return {key: _written(value) for key, value in declared.items()}
    return declared.__name__ if isinstance(declared, type) else declared


def _argument(of: str, name: str, declared: Any) -> Argument:
    """Return a parameter of the program `of` from what is `declared` of it; if nothing is, a number without default."""
    entry = dict(parameter_entry(declared))
    for key in entry:
        if key not in KEYS:
            raise InputError(f"{of}: not a key of the parameter {name}", value=key, choices=KEYS)
    if entry.get("type") == []:
        problem = f"{of}: no texts that the parameter {name} may be"
        raise InputError(problem, value=[], expected="such as `[fast, exact]`")
    is_needed, default = "default" not in entry, entry.pop("default", None)
    kind, units, label = entry.pop("type", None), entry.pop("units", "1"), entry.pop("label", None)
    if isinstance(kind, list):
        kind = Literal[tuple(kind)]
    elif kind is None:
        kind = type_of_default(default)
    kind = TYPES.get(kind.__name__ if isinstance(kind, type) else str(kind), kind)
    bounded: Any = Annotated[kind, pydantic.Field(**entry)]
    return checked_argument(of, Argument(name, bounded, default, is_needed, units, label or ""))


def _refuse_format(of: str, name: str, form: str, kind: Any) -> None:
    """Raise InputError for a format of a parameter, such as `.3f`, that none of its values can have.

    of : the program. kind : the type of the values.
    """
    problem = f"{of}: not a format of {name}"
    if "{" in form:
        raise InputError(problem, value=form, expected="one without parameters, such as `.3f`")
    choices = [value for entry in (kind, *get_args(kind)) if get_origin(entry) is Literal for value in get_args(entry)]
    values_of, errors, fits = pydantic.TypeAdapter(kind), [], False
    for value in (1, 1.5, True, "text", *choices):
        try:
            format(values_of.validate_python(value, strict=True), form)
            fits = True
        except pydantic.ValidationError:
            continue
        except ValueError as error:
            errors.append(str(error))
    if errors and not fits:
        raise InputError(f"{problem}: {errors[0]}", value=form, expected="one of its type, such as `.3f` of floats")


def _failure(words: list[str], folder: str, written: Sequence[Any], timeout: float | None) -> str | None:
    """Run a program; return in words how it failed, None if it did not. TimeUpError after `timeout` seconds.

    words : the command. folder : where it runs. written : the files of its output and its messages.
    With its end, all that it has started ends. It ends with this process too, where the system has a way.
    """
    output, messages = written
    until = None if timeout is None else time.monotonic() + timeout
    process = subprocess.Popen(
        [*_with_parent(), *words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=messages,
        start_new_session=True,
    )
    try:
        while (status := _status(process)) is None:
            if until is not None and time.monotonic() > until:
                raise TimeUpError
            if max(os.fstat(file.fileno()).st_size for file in written) > MOST_OUTPUT:
                break
    finally:
        # what it has started too, whether it ended or not; of one that runs also what has a group of its own
        started = with_descendants(process.pid) if process.poll() is None else []
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        end(started)
        process.wait()
    if max(os.fstat(file.fileno()).st_size for file in written) > MOST_OUTPUT:
        return f"over {MOST_OUTPUT} bytes of output"
    if status is not None and status < 0:
        return f"signal {SIGNALS.get(-status, -status)}"
    return f"exit status {status}" if status else None


def _status(process: subprocess.Popen[bytes]) -> int | None:
    """Return the exit status of a process, None if it has not ended after `LOOKS` seconds."""
    try:
        return process.wait(LOOKS)
    except subprocess.TimeoutExpired:
        return None


@cache
def _with_parent() -> tuple[str, ...]:
    """Return the words to put before a command so that it ends with the process that has started it; () if none can."""
    words = ("setpriv", "--pdeathsig", "KILL", "--")
    try:
        done = subprocess.run([*words, "true"], check=False, capture_output=True)
    except OSError:
        return ()
    return words if done.returncode == 0 else ()


def parsed_output(text: str, results: Mapping[str, Any]) -> dict[str, Any]:
    """Return the results that an output has, as JSON, CSV or lines `name = value`; ValueError if it lacks one."""
    lacking = list(results)
    for values in chain(_objects(text), (read(text) for read in (partial(_lines, list(results)), _csv))):
        if results.keys() <= values.keys():
            return {name: values[name] for name in results}
        # of the form that has the most
        lacking = min(lacking, [name for name in results if name not in values], key=len)
    end = text.strip()[-SAID:] or "no output"
    raise ValueError(f"no {', '.join(lacking)} in the output, as JSON, CSV or lines `name = value`: {end}")


def _objects(text: str) -> list[dict[str, Any]]:
    """Return the objects of JSON with which lines begin, the last one first, but for those in another one."""
    decoder, objects, end = json.JSONDecoder(), list[dict[str, Any]](), 0
    for match in re.finditer(r"^[ \t]*(?={)", text, re.MULTILINE):
        if match.end() >= end:
            with suppress(ValueError):
                values, end = decoder.raw_decode(text, match.end())
                objects.append(values)
    return objects[::-1]


def _lines(names: Sequence[str], text: str) -> dict[str, Any]:
    """Return the values of lines `name = value` of some names, the last of each name."""
    name = "|".join(map(re.escape, names))
    lines = re.finditer(rf"^[ \t]*({name})[ \t]*[=:][ \t]*(\S+)\s*?$", text, re.MULTILINE)
    return {line[1]: _number(line[2]) for line in lines}


def _csv(text: str) -> dict[str, Any]:
    """Return the values of the last line of a CSV text, by the names in the line above it."""
    lines = list(islice(filter(str.strip, _from_the_end(text)), 2))[::-1]
    if len(lines) < 2:
        return {}
    names, values = ([cell.strip() for cell in row] for row in csv.reader(lines))
    return {name: _number(value) for name, value in zip(names, values, strict=False)}


def _from_the_end(text: str) -> Iterator[str]:
    """Yield the lines of a text, the last one first."""
    end = len(text)
    while end >= 0:
        begin = text.rfind("\n", 0, end) + 1
        yield text[begin:end]
        end = begin - 1


def _number(text: str) -> Any:
    """Return a text as a number, or unchanged if it is none."""
    if match := FORTRAN.fullmatch(text):
        text = f"{match[1] or match[3]}e{match[2] or match[4]}"
    try:
        return float(text)
    except ValueError:
        return text
