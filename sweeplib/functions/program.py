"""A program that is no Python as a simulator: a command with the parameters in it, results on its standard output.

    spins = program("./spins --T {T} --L {L} --seed {seed}", energy="J", magnetisation="1")

The program is started without a shell, once for each case, in an empty folder, with no standard input. It writes its
results as JSON, as CSV with a header and one row, or as lines `name = value`; the last text of these forms counts, so
that others may come before it. What it is made of is part of the identity of a case: the command, and the content of
the files that it names.
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
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from sweeplib.engine.files.regular_files import file_bytes
from sweeplib.errors import InputError
from sweeplib.functions.function import FUNCTIONS, RANDOM, Argument, Function, Number, Result

MOST_OUTPUT = 2**26
"""Bytes of output that are read; a program that writes more has failed."""
SAID = 2000
"""The characters of the end of its messages that a reason has."""
LINE = re.compile(r"\s*([A-Za-z_]\w*)\s*[=:]\s*(\S+)\s*")


class _Place(NamedTuple):
    """Where a program is declared: the module, its file, and the folder of the files that the command names."""

    module: str
    file: Path | None
    folder: Path


class Program(Function):
    """A command that sweeps can run.

    folder : the one of the file that defines it, from which files in the command are named.
    """

    def __init__(
        self, name: str, command: str, results: Mapping[str, Result], parameters: Mapping[str, Any], place: _Place
    ) -> None:
        self.name, self.command, self.results = name, command, dict(results)
        self.module, self.file, self.folder, self.parameters = place.module, place.file, place.folder, dict(parameters)
        fields = [field for _, field, _, _ in string.Formatter().parse(command) if field is not None]
        if not all(field.isidentifier() for field in fields):
            raise InputError(f"{name}: not a command", value=command, expected="parameters by name, such as `--T {T}`")
        self.random = "seed" if "seed" in fields else None
        names = [field for field in dict.fromkeys(fields) if field not in RANDOM]
        if unknown := [key for key in parameters if key not in names]:
            raise InputError(f"{name}: the command has no such parameter", value=unknown[0], choices=names)
        self.arguments = {field: _argument(field, parameters.get(field)) for field in names}
        self._refuse_names()
        if shutil.which(self._words[0], path=_path(self.folder)) is None:
            raise InputError(f"{name}: no such program", value=self._words[0], expected="one that can be executed")

    @cached_property
    def _words(self) -> list[str]:
        """The words of the command, with the paths of files beside the file that defines it."""
        words = shlex.split(self.command)
        return [str(self.folder / word) if (self.folder / word).is_file() else word for word in words]

    def source(self) -> str:
        """Return the text of a file that declares it."""
        types = (
            f"{name!r}: {kind.__name__ if isinstance(kind, type) else repr(kind)}"
            for name, kind in self.parameters.items()
        )
        results = (f"{name}={result!r}" for name, result in self.results.items())
        keywords = ", ".join([f"name={self.name!r}", f"parameters={{{', '.join(types)}}}", *results])
        command = shlex.join(self._words)
        return f"from sweeplib import Result, program\n\n{self.name} = program({command!r}, {keywords})\n"

    @cached_property
    def code(self) -> str:
        """A digest of the command, and of the content of the program and the files that the command names."""
        program = str(shutil.which(self._words[0], path=_path(self.folder)))
        files = [word for word in (program, *self._words[1:]) if Path(word).is_file()]
        words = [Path(word).name if word in files else word for word in (program, *self._words[1:])]
        digest = hashlib.blake2b(repr(words).encode(), digest_size=12)
        for file in files:
            digest.update(file_bytes(Path(file).resolve()))
        return digest.hexdigest()

    def __call__(self, **values: Any) -> dict[str, Any]:
        """Return the results of a run; RuntimeError, with the end of its messages, for one that fails."""
        words = [word.format(**values) for word in self._words]
        with tempfile.TemporaryDirectory(prefix="sweeplib-") as folder, tempfile.TemporaryFile() as output:
            with tempfile.TemporaryFile() as messages:
                status = _status(words, folder, output, messages)
                messages.seek(max(0, messages.seek(0, os.SEEK_END) - SAID))
                message = messages.read().decode("utf-8", "replace").strip()
            size = output.seek(0, os.SEEK_END)
            output.seek(0)
            text = output.read(MOST_OUTPUT).decode("utf-8", "replace")
        if status != 0:
            how = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
            raise RuntimeError(f"{shlex.join(words)}: {how}: {message or 'no message'}")
        if size > MOST_OUTPUT:
            raise RuntimeError(f"{shlex.join(words)}: {size} bytes of output; expected at most {MOST_OUTPUT}")
        return parsed_output(text, self.results)


def program(
    command: str, *, name: str | None = None, parameters: Mapping[str, Any] | None = None, **results: str | Result
) -> Program:
    """Return a simulator that runs a command for each case, with its results by name and their units, "1" for none.

    command : the words of a command with the parameters of sweeps in braces, `{T}` or `{T:.3f}`; `{seed}` is a number
        that is a function of the root seed, the values and the replica. Files beside the file of the call are found.
    name : of the simulator, by default that of the program.
    parameters : types and defaults: `{"L": int, "T": 2.27}`; the others are numbers that each sweep must give.

    InputError for a command without such a program, and for names that mean something else.
    """
    around = sys._getframe(1).f_globals  # files of the command are beside the file of the call
    file = Path(around["__file__"]).resolve() if "__file__" in around else None
    place = _Place(str(around["__name__"]), file, Path.cwd() if file is None else file.parent)
    chosen = name or re.sub(r"\W", "_", Path(shlex.split(command)[0]).stem)
    declared = {key: Result(entry) if isinstance(entry, str) else entry for key, entry in results.items()}
    simulated = Program(chosen, command, declared, parameters or {}, place)
    FUNCTIONS.setdefault(chosen, []).append(simulated)
    return simulated


def _argument(name: str, declared: Any) -> Argument:
    """Return a parameter from its type or its default; a number that is needed if it has neither."""
    if declared is None:
        return Argument(name, Number, None, True)
    if isinstance(declared, type):
        return Argument(name, declared, None, True)
    kind = type(declared) if isinstance(declared, bool | str) else Number
    return Argument(name, kind, declared, False)


def _path(folder: Path) -> str:
    return os.pathsep.join([str(folder), os.environ.get("PATH", os.defpath)])


def _status(words: list[str], folder: str, output: Any, messages: Any) -> int:
    """Return the exit status of a program, with whose end all that it has started ends."""
    process = subprocess.Popen(
        words, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=messages, start_new_session=True
    )
    try:
        return process.wait()
    finally:
        _end(process.pid)


def _end(group: int) -> None:
    """End the processes of a group, if there are any."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


def parsed_output(text: str, results: Mapping[str, Any]) -> dict[str, Any]:
    """Return the results that an output has, as JSON, CSV or lines `name = value`; ValueError if it lacks one."""
    for read in (_json, _lines, _csv):
        values = read(text)
        if results.keys() <= values.keys():
            return {name: values[name] for name in results}
    end = text.strip()[-SAID:] or "no output"
    raise ValueError(f"no {', '.join(results)} in the output, as JSON, CSV or lines `name = value`: {end}")


def _json(text: str) -> dict[str, Any]:
    """Return the last object of JSON: the whole text, or a line of it."""
    for line in (text, *reversed(text.splitlines())):
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            return value
    return {}


def _lines(text: str) -> dict[str, Any]:
    """Return the values of lines `name = value`, the last of each name."""
    matches = (LINE.fullmatch(line) for line in text.splitlines())
    return {match[1]: _number(match[2]) for match in matches if match is not None}


def _csv(text: str) -> dict[str, Any]:
    """Return the last two lines as names and values."""
    lines = [line for line in text.splitlines() if line.strip()][-2:]
    if len(lines) < 2:
        return {}
    names, values = ([cell.strip() for cell in row] for row in csv.reader(lines))
    return {name: _number(value) for name, value in zip(names, values, strict=False)}


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text
