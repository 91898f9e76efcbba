"""What every analysis keeps, on synthetic datasets of several kinds of sweeps.

An analysis is not for all sweeps: it refuses a dataset by InputError, as its `outline` refuses it before anything runs.
"""

import inspect
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from sweeplib.analysis import ANALYSES
from sweeplib.analysis.analysis import ENDS, Treated
from sweeplib.analysis.kit.problem_fields import with_constants
from sweeplib.contracts.check import BrokenError, remembered, require, require_equal, require_refusal
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
from sweeplib.engine.storage.dataset.folder import open_dataset, write_dataset
from sweeplib.engine.storage.dataset.outline import Outline, outline_of
from sweeplib.errors import InputError
from sweeplib.networks.views import OverlapView

Result = xr.Dataset | Exception

CHEAPER: dict[str, dict[str, Any]] = {"deviation_sum": {"resamples": 20}}
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
"""Those that have overlap matrices, for the analyses that read them."""


@remembered
def example(words: str, overlaps: bool = False) -> xr.Dataset:
    """Return one of the `DATASETS`, with its variables over units only if `overlaps`."""
    result = DATASETS[words]()
    return result if overlaps else without_units(result)


def dataset_of(name: str, words: str) -> xr.Dataset:
    """Return one of the `DATASETS` as the analysis `name` reads it."""
    return example(words, ANALYSES[name].overlaps and words in UNITS)


def _result(name: str, ds: xr.Dataset) -> xr.Dataset:
    return ANALYSES[name](ds, **CHEAPER.get(name, {}))


@remembered
def analysed(name: str, words: str) -> Result:
    """Return the result of an analysis of a dataset, or the exception that it raises."""
    try:
        return _result(name, dataset_of(name, words).copy(deep=True))
    except Exception as error:
        return error


@remembered
def foreseen(name: str, words: str) -> Outline | Exception | None:
    """Return the outline that an analysis makes of that of a dataset, or the exception that it raises."""
    try:
        return ANALYSES[name].outlined(outline_of(with_constants(dataset_of(name, words))), {})
    except Exception as error:
        return error


def results_by_dataset(made_of: Callable[[str, str], Any], name: str) -> dict[str, Any]:
    """Return the results by dataset, of those from which something can be made; BrokenError if there are none."""
    results = {words: made_of(name, words) for words in DATASETS}
    result = {words: item for words, item in results.items() if not isinstance(item, Exception)}
    if not result:
        problem = "; ".join(f"of {words}: {described(item)}" for words, item in list(results.items())[:3])
        raise BrokenError(f"it takes none of {len(results)} datasets: {problem}")
    return result


def described(error: Exception) -> str:
    """Return an exception in one line."""
    text = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())[:300]


def require_refusals(
    made_of: Callable[[str, str], Any], foretold: Callable[[str, str], Any], name: str, declares: str | None
) -> None:
    """Raise BrokenError for a dataset that fails although it is not refused when a config is loaded.

    If the thing has no function for this (`declares` is None), only datasets count that have the axes and variables of
    one from which it can be made.
    """
    like = {_kind(words) for words in results_by_dataset(made_of, name)}
    for words in DATASETS:
        result, before = made_of(name, words), foretold(name, words)
        if isinstance(before, InputError):
            continue
        if isinstance(before, Exception):
            raise BrokenError(f"`{declares}` fails for {words}: {described(before)}; expected InputError to refuse it")
        if isinstance(result, Exception) and declares is not None:
            raise BrokenError(f"it fails for {words}, which `{declares}` does not refuse: {described(result)}")
        if isinstance(result, Exception) and _kind(words) in like:
            require(isinstance(result, InputError), f"it fails for {words}: {described(result)}")


def _kind(words: str) -> tuple[frozenset[Any], frozenset[Any]]:
    ds = example(words)
    return frozenset(ds.dims), frozenset(ds.variables)


def it_takes_a_dataset(name: str) -> None:
    """Check that it returns a dataset of at least one of the kinds of sweeps."""
    for words, result in results_by_dataset(analysed, name).items():
        require(isinstance(result, xr.Dataset), f"of {words} it returns {type(result).__name__}; expected a Dataset")
        require(bool(result.data_vars), f"of {words} it returns no variables")


def what_it_does_not_take_is_refused_before_anything_runs(name: str) -> None:
    """Check that `outline` refuses it; without one, that an InputError does."""
    declares = None if ANALYSES[name].outline is None else "outline"
    require_refusals(analysed, foreseen, name, declares)


def its_outline_is_that_of_its_result(name: str) -> None:
    """The axes that `outline` promises, with their values, and those of the variables that it names."""
    for words, result in results_by_dataset(analysed, name).items():
        before, own_outline = foreseen(name, words), outline_of(result)
        if not isinstance(before, Outline):
            continue
        for axis, values in before.axes.items():
            if axis in INNER:
                continue
            axes = ", ".join(own_outline.axes)
            require(axis in own_outline.axes, f"of {words} `outline` has the axis {axis!r}; the result has {axes}")
            same = list(values) == list(own_outline.axes[axis])
            require(same, f"of {words} `outline` has other values of {axis!r} than the result")
        remaining = {axis for axis in own_outline.axes if axis in example(words).dims} - set(before.axes) - INNER
        require(
            not remaining,
            f"of {words} the result has the axis {', '.join(sorted(remaining))}, which `outline` does not have",
        )


def everything_is_labelled(name: str) -> None:
    """`long_name` of each variable and coordinate, and `units` of those that have a dimension.

    Only times have the unit of the recording times, `scale` and `clock`, which arithmetic passes on.
    """
    for words, result in results_by_dataset(analysed, name).items():
        for variable in result.variables:
            unit = {"scale", "clock"}.intersection(result[variable].attrs)
            require(not unit or variable == "time", f"of {words}, {variable} has the unit of the recording times")
            problem = f"of {words}, {variable} has no `long_name`; `keep_attrs=True` keeps that of a mean"
            require(bool(result[variable].attrs.get("long_name")), problem)


def it_measures_something(name: str) -> None:
    """At least one number is finite."""
    values = results_by_dataset(analysed, name).values()
    numbers = [result[variable] for result in values for variable in result if result[variable].dtype.kind in "biuf"]
    require(any(bool(np.isfinite(item).any()) for item in numbers), "all its numbers are NaN on the test's datasets")


def it_survives_the_disk(name: str) -> None:
    """Written and opened again, it has the same numbers."""
    words, result = next(iter(results_by_dataset(analysed, name).items()))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "result.zarr")
        write_dataset(result, path)
        again = open_dataset(path).load()
        for variable in result.variables:
            if result[variable].dtype.kind in "biuf":
                require_equal(again[variable], result[variable], f"of {words}, {variable} on disk")


def it_gives_the_same_again_and_leaves_its_input_alone(name: str) -> None:
    """Random numbers, of a bootstrap, need a seed; an assignment needs a copy."""
    words, result = next(iter(results_by_dataset(analysed, name).items()))
    values = dataset_of(name, words).copy(deep=True)
    again = _result(name, values)
    require(values.identical(dataset_of(name, words)), f"it changes the dataset of {words}")
    require(again.identical(result), f"of {words} it gives another result the second time")


def it_takes_dask_arrays(name: str) -> None:
    """Check that a dataset opened with `xr.open_zarr` gives the same numbers, and no warning."""
    words, result = _several_seeds(name)
    with warnings.catch_warnings(action="error"):
        values = _result(name, dataset_of(name, words).chunk(seed=2))
    require(values.identical(result), f"of {words} in Dask arrays it gives another result")


def its_options_have_types_and_defaults(name: str) -> None:
    """Each parameter after the dataset."""
    require_options(ANALYSES[name].function, arguments=1)
    require_refusal(lambda: ANALYSES[name].check({"optoin": 1}), "it takes unknown options")


def require_options(function: Callable[..., Any], *, arguments: int) -> None:
    """Raise BrokenError for a parameter after the first ones that has no default or no annotation."""
    parameters: Mapping[str, inspect.Parameter] = inspect.signature(function).parameters
    for key, parameter in list(parameters.items())[arguments:]:
        require(parameter.kind is not inspect.Parameter.VAR_KEYWORD, f"options as `**{key}` have no names")
        require(parameter.default is not inspect.Parameter.empty, f"the option {key!r} has no default")
        require(parameter.annotation is not inspect.Parameter.empty, f"the option {key!r} has no annotation, its type")


def it_says_what_it_is(name: str) -> None:
    """`name` is the registered one, `doc` a line."""
    analysis = ANALYSES[name]
    require(analysis.name == name, f"its name is {analysis.name!r}")
    require(bool(analysis.doc) and "\n" not in analysis.doc, "its `doc` is not one line")


def it_says_what_it_makes_of_runs_that_end_early(name: str) -> None:
    """`ends` has ways and treatments that are known; left out are all whose numbers could be wrong."""
    analysis = ANALYSES[name]
    wrong = [end for end, treated in analysis.ends.items() if end not in ENDS or not isinstance(treated, Treated)]
    require(not wrong, f"`ends` has {wrong}; expected {', '.join(ENDS)}, each with a `Treated`")
    refused = [end for end in ENDS[1:] if analysis.treatment(end) is Treated.refused]
    require(not refused, f"`ends` refuses {refused}, which no config tells; expected `left_out`")


def runs_that_end_early_do_not_change_its_numbers(name: str) -> None:
    """Check that numbers are those of the runs had they gone on, or NaN, where these are left out or refused."""
    words, whole = _several_seeds(name)
    for end in ENDS[:-1]:
        treated, short = ANALYSES[name].treatment(end), cut_short(dataset_of(name, words), end)
        try:
            result = _result(name, short)
        except InputError as error:
            foretold = end == "exit" and "stop" in str(error)  # by `ends`, or unless an option says until when
            require(foretold, f"of runs that end by {end} it fails: {described(error)}")
            continue
        require(treated is not Treated.refused, f"it takes runs that end by {end}, which `ends` refuses")
        if treated is Treated.left_out:
            _require_same_or_nothing(result, whole, f"runs that end by {end}")


def missing_seeds_are_no_seeds(name: str) -> None:
    """Its numbers are those of the other seeds, or NaN; those that depend on `random_seed` may differ."""
    words, whole = _several_seeds(name)
    ds = dataset_of(name, words)
    fewer, result = _result(name, ds.isel(seed=slice(2, None))), _result(name, cut_short(ds, "missing"))
    for variable in (item for item in fewer.data_vars if fewer[item].dtype.kind == "f"):
        present = result[variable].notnull()
        require(bool((fewer[variable].notnull() | ~present).all()), f"of missing seeds only, {variable} is known")
        if _reseeded(name, words)[variable].equals(whole[variable]):
            expected, subject = fewer[variable].where(present), f"of missing seeds, {variable}"
            require_equal(result[variable], expected, subject, rtol=1e-9, atol=1e-12)


def exits_at_the_start_are_no_error(name: str) -> None:
    """Runs that start beyond a threshold have exit times of 0, whose mean has no logarithm."""
    words, whole = _several_seeds(name)
    ds = dataset_of(name, words)
    exits = [variable for variable in ds.data_vars if str(variable).startswith("exit_")]
    for some in (ds["seed"] >= 0, ds["seed"] == 0):
        at_start = {str(item): ds[item].where(~some, 0.0 * ds[item]).assign_attrs(ds[item].attrs) for item in exits}
        result = _result(name, ds.assign(at_start))
        infinite = [item for item in result if result[item].dtype.kind == "f" and bool(np.isinf(result[item]).any())]
        new = [str(item) for item in infinite if not bool(np.isinf(whole[item]).any())]
        require(not new, f"of exits at the start it has infinite {', '.join(new)}")


def _several_seeds(name: str) -> tuple[str, xr.Dataset]:
    """Return the smallest of the datasets with several seeds that an analysis takes, and its result."""
    values = {
        words: result
        for words, result in results_by_dataset(analysed, name).items()
        if example(words).sizes["seed"] > 2
    }
    require(bool(values), "it takes no dataset of several seeds")
    return min(values.items(), key=lambda item: dataset_of(name, item[0]).nbytes)


@remembered
def _reseeded(name: str, words: str) -> xr.Dataset:
    """Return the result of an analysis with another `random_seed`, if it has this option."""
    has = "random_seed" in inspect.signature(ANALYSES[name].function).parameters
    options = CHEAPER.get(name, {}) | ({"random_seed": 1} if has else {})
    return ANALYSES[name](dataset_of(name, words), **options)


def _require_same_or_nothing(result: xr.Dataset, whole: xr.Dataset, subject: str) -> None:
    """Raise BrokenError for a number that is neither that of `whole` nor NaN, other than numbers of runs or points."""
    for variable in whole.data_vars:
        number = str(whole[variable].attrs["long_name"]).startswith(COUNTED)
        on_same = all(result[dim].equals(whole[dim]) for dim in whole[variable].dims)  # not bins of other values
        if whole[variable].dtype.kind != "f" or number or not on_same:
            continue
        same = np.isclose(result[variable], whole[variable], rtol=1e-9, atol=1e-12, equal_nan=True)
        require(
            bool((same | np.isnan(result[variable])).all()), f"of {subject}, {variable} is neither as before nor NaN"
        )
