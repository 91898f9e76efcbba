"""Sweeps of a function from Python: one call from the function to its labelled dataset."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeplib.errors import InputError
from sweeplib.functions.function import Function
from sweeplib.late_modules import xarray as xr

if TYPE_CHECKING:
    from sweeplib.answers import Answer
    from sweeplib.sweeps import Sweep


def sweep(
    function: Function,
    *,
    seeds: Any = 1,
    name: str | None = None,
    results: str | Path = "results",
    workers: int | None = None,
    progress: bool = False,
    config: dict[str, Any] | None = None,
    **parameters: Any,
) -> xr.Dataset:
    """Return the dataset of a function at all combinations of some values of its parameters, with so many replicas.

    parameters : a value, or a list, an array or a spacing (`{"linspace": [2, 3, 11]}`) of values, which is an axis.
    seeds : the number of replicas of each point, or what else the key `seeds` of a YAML file may be.
    name : of the sweep and its folder in `results`; by default that of the function.
    workers, progress : as in `Sweep.run`.
    config : other keys of a YAML file: `points`, `derive`, `root_seed`, `pair_by`, `cluster`, `timeout`, ...

    What was computed before is not computed again: with more seeds or values the dataset grows. The file of a function
    of a script or a notebook is written into the folder. InputError for anything wrong, before any call.
    """
    made = sweep_of(function, seeds=seeds, name=name, results=results, config=config, **parameters)
    return made.run(workers=workers, progress=progress)


def answer(
    function: Function,
    variable: str,
    *,
    to: str | float,
    of: str = "averages",
    refine: Any = "seeds",
    budget: Any = None,
    seeds: int = 64,
    options: dict[str, Any] | None = None,
    **others: Any,
) -> list[Answer]:
    """Return what a function's results are to a precision, by as many calls as that takes: an answer for each point.

    variable, to, of, refine, budget, options : a question, as below `answers` in a YAML file: by default the mean of a
        result, of: "optimum" or "crossing" where along an axis it is least or passes a value (`options`).
    others : the parameters and the keywords of `sweep`.
    """
    config = dict(others.pop("config", None) or {})
    workers, progress = others.pop("workers", None), others.pop("progress", False)
    question: dict[str, Any] = {"of": of, "to": to, "refine": refine, "budget": budget}
    chosen = dict(options or {})
    if of == "averages":
        question["variable"] = variable
    else:
        chosen["of"] = variable
    if chosen:
        question["options"] = chosen
    config["answers"] = {variable: question}
    made = sweep_of(function, seeds=seeds, config=config, **others)
    made.run(workers=workers, progress=progress)
    return made.answers


def sweep_of(
    function: Any,
    *,
    seeds: Any = 1,
    name: str | None = None,
    results: str | Path = "results",
    config: dict[str, Any] | None = None,
    **parameters: Any,
) -> Sweep:
    """Return the sweep of a function, which is not run; the arguments are those of `sweep`."""
    from sweeplib.config.values import plain
    from sweeplib.sweeps import Sweep

    if not isinstance(function, Function):
        expected = '`@simulator(RESULT="units")` before its definition'
        raise InputError("not a simulator", value=getattr(function, "__name__", function), expected=expected)
    name = name or function.name
    values = {key: plain(value) for key, value in parameters.items()}
    axes = {key: value for key, value in values.items() if isinstance(value, list | dict)}
    fixed = {key: value for key, value in values.items() if key not in axes}
    file = _file_of(function, Path(results) / name)
    keys = {"grid": axes, "parameters": fixed, "seeds": plain(seeds), "figures": []} | dict(config or {})
    return Sweep(name=name, results=results, simulator=f"{file}:{function.name}", **keys)


def _file_of(function: Function, directory: Path) -> Path:
    """Return the file that other processes import: the function's own, or one in the folder of a sweep for it."""
    from sweeplib.functions.source import is_importable, source_of
    from sweeplib.storage.records.files import write_text

    if is_importable(function):
        return Path(str(function.function.__code__.co_filename)).resolve()
    function.__dict__.pop("code", None)  # a cell may have changed what the function reaches since
    path = directory.resolve() / "functions" / f"{function.name}_{function.code}.py"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, source_of(function))
    return path
