"""What every analysis keeps, on synthetic datasets of several kinds of sweeps.

An analysis is not for all sweeps: it refuses a dataset by InputError, as its `outline` refuses it before anything runs.

Public functions of `name`, the registered name of an analysis, that return nothing are checks: each raises BrokenError
with what is wrong, and its own name is the sentence that it checks. A `dataset` is the name of one of DATASETS.
"""

import inspect
import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from sweeplib.analysis import ANALYSES
from sweeplib.analysis.analysis import ENDS, Treated
from sweeplib.analysis.kit.problem_fields import with_constants
from sweeplib.contracts.check import (
    BrokenError,
    remembered,
    require,
    require_equal,
    require_refusal,
    warnings_as_errors,
)
from sweeplib.contracts.datasets import (
    cut_short,
    giant_steps_dataset,
    norms_dataset,
    one_axis_dataset,
    regime_dataset,
    sweep_dataset,
    with_truth_values,
    without_units,
)
from sweeplib.engine.files.regular_files import file_text
from sweeplib.engine.storage.dataset.folder import open_dataset, write_dataset
from sweeplib.engine.storage.dataset.outline import Outline, outline_of
from sweeplib.errors import InputError
from sweeplib.networks.views import OverlapView

Result = xr.Dataset | Exception
"""The result of an analysis, or the exception that was raised in its place."""

CHEAPER: dict[str, dict[str, Any]] = {"deviation_sum": {"resamples": 40}}
"""Options of analyses that take long with their defaults."""

DATASETS: dict[str, Callable[[], xr.Dataset]] = {
    "gamma": one_axis_dataset,
    "gamma, one value and one seed": lambda: one_axis_dataset(gamma=(0.1,), seeds=1),
    "gamma and spherical": lambda: with_truth_values(one_axis_dataset()),
    "gamma, d and Delta": lambda: sweep_dataset(seeds=6, derived=False),
    "gamma, d and Delta, one value each": lambda: sweep_dataset(
        ratios=(1.0,), d=(300,), Delta=(0.0,), seeds=6, derived=False
    ),
    "derived gamma": lambda: sweep_dataset(seeds=6),
    "gradient flow": lambda: sweep_dataset(seeds=6, Delta=(0.0,), dynamics=("ode", "gradient_flow", "sgd_chain")),
    "batch sizes": giant_steps_dataset,
    "norms": norms_dataset,
    "delta and kappa": lambda: regime_dataset((-1.0, 0.0, 1.0), (0.0, 0.5), (100, 1000), seeds=6),
}
"""Synthetic datasets, by the axes that they vary."""

INNER = frozenset({"time", "threshold", "quantile", "knot", *OverlapView.dims})
"""Axes that no grid has; the outline of an analysis need not tell which of them remain."""

COUNTED = ("runs", "pairs", "points", "learning rates")
"""First words of the labels of numbers of runs, points and learning rates."""

UNITS = ("gamma", "gamma, one value and one seed")
"""The datasets that have overlap matrices, for the analyses that read them."""


@remembered
def example(dataset: str, overlaps: bool = False) -> xr.Dataset:
    """Return one of the `DATASETS`, with its variables over units only if `overlaps`."""
    result = DATASETS[dataset]()
    return result if overlaps else without_units(result)


def dataset_of(name: str, dataset: str) -> xr.Dataset:
    """Return one of the `DATASETS` as the analysis `name` reads it."""
    return example(dataset, ANALYSES[name].overlaps and dataset in UNITS)


def _result(name: str, ds: xr.Dataset) -> xr.Dataset:
    """Return the result of an analysis of `ds`, with options that make it cheap."""
    return ANALYSES[name](ds, **CHEAPER.get(name, {}))


@remembered
def analysed(name: str, dataset: str) -> Result:
    """Return the result of an analysis of a dataset, or the exception that it raises."""
    try:
        return _result(name, dataset_of(name, dataset).copy(deep=True))
    except Exception as error:
        return error


@remembered
def foreseen(name: str, dataset: str) -> Outline | Exception | None:
    """Return the outline of the result, as the analysis tells it from that of a dataset, or the exception raised."""
    try:
        return ANALYSES[name].outlined(outline_of(with_constants(dataset_of(name, dataset))), {})
    except Exception as error:
        return error


def results_by_dataset(result_of: Callable[[str, str], Any], name: str) -> dict[str, Any]:
    """Return the results, by dataset, that are no exceptions; BrokenError if there are none.

    result_of : function of `name` and a dataset that returns what is made of it, or the exception that was raised.
    """
    results = {dataset: result_of(name, dataset) for dataset in DATASETS}
    result = {dataset: item for dataset, item in results.items() if not isinstance(item, Exception)}
    if not result:
        problem = "; ".join(f"of {dataset}: {described(item)}" for dataset, item in list(results.items())[:3])
        raise BrokenError(f"it takes none of {len(results)} datasets: {problem}")
    return result


def described(error: Exception) -> str:
    """Return an exception in one line."""
    text = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())[:300]


def require_refusals(
    result_of: Callable[[str, str], Any], foreseen_of: Callable[[str, str], Any], name: str, declares: str | None
) -> None:
    """Raise BrokenError if an analysis or a figure `name` fails for a dataset that it did not refuse before.

    result_of, foreseen_of : functions of `name` and a dataset. They return the result, or what is foreseen of it before
    anything runs; or the exception that was raised.
    declares : the name of the hook that foresees, `outline` or `arrange`. If it has none (None), only datasets count
    that have the dims and variables of one of which a result was made.
    """
    accepted_kinds = {_kind(dataset) for dataset in results_by_dataset(result_of, name)}
    for dataset in DATASETS:
        result, before = result_of(name, dataset), foreseen_of(name, dataset)
        if isinstance(before, InputError):
            continue
        if isinstance(before, Exception):
            raise BrokenError(
                f"`{declares}` fails for {dataset}: {described(before)}; expected InputError to refuse it"
            )
        if isinstance(result, Exception) and declares is not None:
            raise BrokenError(f"it fails for {dataset}, which `{declares}` does not refuse: {described(result)}")
        if isinstance(result, Exception) and _kind(dataset) in accepted_kinds:
            require(isinstance(result, InputError), f"it fails for {dataset}: {described(result)}")


def _kind(dataset: str) -> tuple[frozenset[Any], frozenset[Any]]:
    """Return the dims and variables of a dataset, by which two are of one kind."""
    ds = example(dataset)
    return frozenset(ds.dims), frozenset(ds.variables)


def it_takes_a_dataset(name: str) -> None:
    """Check that it returns a dataset of at least one of the kinds of sweeps."""
    for dataset, result in results_by_dataset(analysed, name).items():
        require(isinstance(result, xr.Dataset), f"of {dataset} it returns {type(result).__name__}; expected a Dataset")
        require(bool(result.data_vars), f"of {dataset} it returns no variables")


def what_it_does_not_take_is_refused_before_anything_runs(name: str) -> None:
    """Check that `outline` refuses it; without one, that an InputError does, of datasets like those that it takes."""
    declares = None if ANALYSES[name].outline is None else "outline"
    require_refusals(analysed, foreseen, name, declares)


def its_outline_is_that_of_its_result(name: str) -> None:
    """Check that the result has the axes of `outline` with their values, and no others of the dataset."""
    for dataset, result in results_by_dataset(analysed, name).items():
        before, of_result = foreseen(name, dataset), outline_of(result)
        if not isinstance(before, Outline):
            continue
        for axis, values in before.axes.items():
            if axis in INNER:
                continue
            axes = ", ".join(of_result.axes)
            require(axis in of_result.axes, f"of {dataset} `outline` has the axis {axis!r}; the result has {axes}")
            same = list(values) == list(of_result.axes[axis])
            require(same, f"of {dataset} `outline` has other values of {axis!r} than the result")
        remaining = {axis for axis in of_result.axes if axis in example(dataset).dims} - set(before.axes) - INNER
        require(
            not remaining,
            f"of {dataset} the result has the axis {', '.join(sorted(remaining))}, which `outline` does not have",
        )


def everything_is_labelled(name: str) -> None:
    """Check that each variable and coordinate has a `long_name`.

    Only times may have the unit of the recording times, `scale` and `clock`, which arithmetic passes on.
    """
    for dataset, result in results_by_dataset(analysed, name).items():
        for variable in result.variables:
            unit = {"scale", "clock"}.intersection(result[variable].attrs)
            require(not unit or variable == "time", f"of {dataset}, {variable} has the unit of the recording times")
            problem = f"of {dataset}, {variable} has no `long_name`; `keep_attrs=True` keeps that of a mean"
            require(bool(result[variable].attrs.get("long_name")), problem)


def it_measures_something(name: str) -> None:
    """Check that at least one of its numbers is finite."""
    values = results_by_dataset(analysed, name).values()
    numbers = [result[variable] for result in values for variable in result if result[variable].dtype.kind in "biuf"]
    require(any(bool(np.isfinite(item).any()) for item in numbers), "all its numbers are NaN on the test's datasets")


def it_survives_the_disk(name: str) -> None:
    """Check that its result, written and opened again, has the same numbers, and that the file is JSON for others."""
    dataset, result = next(iter(results_by_dataset(analysed, name).items()))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "result.zarr")
        write_dataset(result, path)
        for metadata in sorted(path.rglob("zarr.json")):
            json.loads(file_text(metadata), parse_constant=_refuse_constant)
        again = open_dataset(path).load()
        for variable in result.variables:
            if result[variable].dtype.kind in "biuf":
                require_equal(again[variable], result[variable], f"of {dataset}, {variable} on disk")


def _refuse_constant(number: str) -> None:
    """Raise BrokenError for a number that only Python's JSON has: NaN, Infinity."""
    raise BrokenError(f"an attribute is {number}, which is no JSON: write the last time, the largest size")


def it_gives_the_same_again_and_leaves_its_input_alone(name: str) -> None:
    """Check that a second result is identical and the dataset unchanged: random numbers need a seed."""
    dataset, result = next(iter(results_by_dataset(analysed, name).items()))
    values = dataset_of(name, dataset).copy(deep=True)
    again = _result(name, values)
    require(values.identical(dataset_of(name, dataset)), f"it changes the dataset of {dataset}")
    require(again.identical(result), f"of {dataset} it gives another result the second time")


def it_takes_dask_arrays(name: str) -> None:
    """Check that a dataset opened with `xr.open_zarr` gives the same numbers, and no warning."""
    dataset, result = _several_seeds(name)
    with warnings_as_errors():
        values = _result(name, dataset_of(name, dataset).chunk(seed=2))
    require(values.identical(result), f"of {dataset} in Dask arrays it gives another result")


def its_options_have_types_and_defaults(name: str) -> None:
    """Check that each parameter after the dataset has an annotation and a default, and that others are refused."""
    require_options(ANALYSES[name].function, arguments=1)
    require_refusal(lambda: ANALYSES[name].check({"optoin": 1}), "it takes unknown options")


def require_options(function: Callable[..., Any], *, arguments: int) -> None:
    """Raise BrokenError if a parameter behind the first `arguments` ones has no default or no annotation."""
    parameters: Mapping[str, inspect.Parameter] = inspect.signature(function).parameters
    for key, parameter in list(parameters.items())[arguments:]:
        require(parameter.kind is not inspect.Parameter.VAR_KEYWORD, f"options as `**{key}` have no names")
        require(parameter.default is not inspect.Parameter.empty, f"the option {key!r} has no default")
        require(parameter.annotation is not inspect.Parameter.empty, f"the option {key!r} has no annotation, its type")


def it_says_what_it_is(name: str) -> None:
    """Check that `name` is the registered one, and `doc` a line."""
    analysis = ANALYSES[name]
    require(analysis.name == name, f"its name is {analysis.name!r}")
    require(bool(analysis.doc) and "\n" not in analysis.doc, "its `doc` is not one line")


def it_says_what_it_makes_of_runs_that_end_early(name: str) -> None:
    """Check that `ends` has known ways and treatments, and refuses only exits, which a config tells."""
    analysis = ANALYSES[name]
    wrong = [end for end, treated in analysis.ends.items() if end not in ENDS or not isinstance(treated, Treated)]
    require(not wrong, f"`ends` has {wrong}; expected {', '.join(ENDS)}, each with a `Treated`")
    refused = [end for end in ENDS[1:] if analysis.treatment(end) is Treated.refused]
    require(not refused, f"`ends` refuses {refused}, which no config tells; expected `left_out`")


def runs_that_end_early_do_not_change_its_numbers(name: str) -> None:
    """Check that numbers are those of the runs had they gone on, or NaN, where these are left out or refused."""
    dataset, whole = _several_seeds(name)
    for end in ENDS[:-1]:
        treated, short = ANALYSES[name].treatment(end), cut_short(dataset_of(name, dataset), end)
        try:
            result = _result(name, short)
        except InputError as error:
            # runs that stop at exits may be refused, by `ends` or unless an option says until when
            is_refusal = end == "exit" and "stop" in str(error)
            require(is_refusal, f"of runs that end by {end} it fails: {described(error)}")
            continue
        require(treated is not Treated.refused, f"it takes runs that end by {end}, which `ends` refuses")
        if treated is Treated.left_out:
            _require_same_or_nothing(result, whole, f"runs that end by {end}")


def missing_seeds_are_no_seeds(name: str) -> None:
    """Check that numbers without some seeds are those of the others, or NaN; with a `random_seed` they may differ."""
    dataset, whole = _several_seeds(name)
    ds = dataset_of(name, dataset)
    fewer, result = _result(name, ds.isel(seed=slice(2, None))), _result(name, cut_short(ds, "missing"))
    for variable in (item for item in fewer.data_vars if fewer[item].dtype.kind == "f"):
        present = result[variable].notnull()
        require(bool((fewer[variable].notnull() | ~present).all()), f"of missing seeds only, {variable} is known")
        if _reseeded(name, dataset)[variable].equals(whole[variable]):
            expected, subject = fewer[variable].where(present), f"of missing seeds, {variable}"
            require_equal(result[variable], expected, subject, rtol=1e-9, atol=1e-12)


def exits_at_the_start_are_no_error(name: str) -> None:
    """Check that exits at 0, of runs that start beyond a threshold, make nothing infinite: 0 has no logarithm."""
    dataset, whole = _several_seeds(name)
    ds = dataset_of(name, dataset)
    exits = [variable for variable in ds.data_vars if str(variable).startswith("exit_")]
    for seeds in (ds["seed"] >= 0, ds["seed"] == 0):  # all of them, and one
        at_start = {str(item): ds[item].where(~seeds, 0.0 * ds[item]).assign_attrs(ds[item].attrs) for item in exits}
        result = _result(name, ds.assign(at_start))
        infinite = [item for item in result if result[item].dtype.kind == "f" and bool(np.isinf(result[item]).any())]
        new = [str(item) for item in infinite if not bool(np.isinf(whole[item]).any())]
        require(not new, f"of exits at the start it has infinite {', '.join(new)}")


def _several_seeds(name: str) -> tuple[str, xr.Dataset]:
    """Return the smallest of the datasets with three seeds or more that an analysis takes, and its result."""
    values = {
        dataset: result
        for dataset, result in results_by_dataset(analysed, name).items()
        if example(dataset).sizes["seed"] > 2
    }
    require(bool(values), "it takes no dataset of several seeds")
    return min(values.items(), key=lambda item: dataset_of(name, item[0]).nbytes)


@remembered
def _reseeded(name: str, dataset: str) -> xr.Dataset:
    """Return the result of an analysis with another `random_seed`, if it has this option."""
    has_option = "random_seed" in inspect.signature(ANALYSES[name].function).parameters
    options = CHEAPER.get(name, {}) | ({"random_seed": 1} if has_option else {})
    return ANALYSES[name](dataset_of(name, dataset), **options)


def _require_same_or_nothing(result: xr.Dataset, whole: xr.Dataset, subject: str) -> None:
    """Raise BrokenError if a number of `result` is neither that of `whole` nor NaN.

    Numbers of runs or points (COUNTED) do not count, and variables whose axes differ, such as bins of other values.
    subject : what the result is of, for the message.
    """
    for variable in whole.data_vars:
        is_count = str(whole[variable].attrs["long_name"]).startswith(COUNTED)
        on_same = all(result[dim].equals(whole[dim]) for dim in whole[variable].dims)
        if whole[variable].dtype.kind != "f" or is_count or not on_same:
            continue
        same = np.isclose(result[variable], whole[variable], rtol=1e-9, atol=1e-12, equal_nan=True)
        require(
            bool((same | np.isnan(result[variable])).all()), f"of {subject}, {variable} is neither as before nor NaN"
        )
