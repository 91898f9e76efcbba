"""Analysis: a named function from the dataset of a sweep to a smaller, labelled dataset.

An outline is the structure of a dataset without its numbers: it is known before anything runs. From that of the dataset
an analysis tells that of its result, by its hook `outline`, so that a sweep that does not suit it is refused in time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from sweeplib.analysis.kit.labels import labels_of_made, relabelled
from sweeplib.analysis.kit.options import checked_options
from sweeplib.analysis.kit.problem_fields import with_constants, without_constants
from sweeplib.analysis.kit.variables import stops_at_exits
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.base.registry import Registry
from sweeplib.engine.storage.dataset.outline import Outline, outline_of
from sweeplib.engine.variable import stored_attributes
from sweeplib.errors import InputError
from sweeplib.networks.simulation.labels import exit_words


class Treated(Enum):
    """What an analysis makes of runs that end before their horizon."""

    left_out = "statistics that need their missing values are NaN, where they are more than the fraction `max_lost`"
    censored = "passages that were not seen are censored at the end of the run"
    never = "they never exit"
    compared = "they are compared with runs that end in the same way, as far as they went"
    refused = "InputError, before anything runs"


ENDS = ("exit", "timeout", "diverged", "lost", "missing")
"""The ways in which a run may end before its horizon.

It stops at its exit (`stop: exit`), which says when it would have made later passages; a time limit, or an error above
its bound, stops it, whatever it would have done; it diverges; it fails or is killed; it was not requested, and does not
count as a run.
"""
EXITS_ONLY = {"timeout": Treated.censored, "diverged": Treated.never}
"""The treatment of runs by analyses of first passages, which do not need what a run does after its exit."""


@dataclass(frozen=True)
class Analysis:
    """An analysis. Called with a dataset and its options, it returns a Dataset in which every variable is labelled.

    function : function (ds, **options). Every option has a default and an annotation, which gives its type. Fields that
        are the same at all points of the dataset are coordinates of `ds`.
    doc : one line that describes the result.
    overlaps : whether the analysis reads the overlap matrices, if the dataset has them.
    outline : function (ds, **options) that returns the outline of the result, given the outline of the dataset. It
        raises InputError if the analysis does not apply. It is called before anything runs. None: no check.
    ends : what it makes of runs that end in one of the ways ENDS; they are left out if it does not say. Left out means:
        each number is that of the same runs had they gone on, or NaN.
    headline : the variable that is put into words when a sweep is done, with its interval `<headline>_low`,
        `<headline>_high`. None: no such lines.
    label : the variable that names the kind of each point, by flags (CF conventions) of which 0 is undecided.
    decidable : the variable with the probability that more seeds decide the label of a point. None: they always may.
    quantities : the variables that the general figures draw under a name of their own: name and variable.
    averages : whether it has an interval of each observable that its outline says is `averaged`.
    """

    name: str
    function: Callable[..., xr.Dataset]
    doc: str
    overlaps: bool = False
    outline: Callable[..., Outline] | None = None
    ends: Mapping[str, Treated] = field(default_factory=dict)
    headline: str | None = None
    label: str | None = None
    decidable: str | None = None
    quantities: Mapping[str, str] = field(default_factory=dict)
    averages: bool = False

    def __call__(self, ds: xr.Dataset, **options: Any) -> xr.Dataset:
        """Return the labelled result; InputError for a wrong option or an unsuitable dataset."""
        # a dataset may have lost its attribute `stop`: an analysis that leaves out runs that end early is NaN then,
        # but one that censors them would give wrong numbers
        censors = self.treatment("timeout") is Treated.censored
        if "stop" not in ds.attrs and censors and self.treatment("exit") is Treated.refused and stops_at_exits(ds):
            ds = ds.assign_attrs(stop="exit")
        dataset = relabelled(with_constants(ds))
        outline = self.outlined(outline_of(dataset), options)
        # a constant that has the name of a variable of the result would come along with every coordinate
        alike = [] if outline is None else [name for name in dataset.coords if _is_hidden(dataset, str(name), outline)]
        constant = {str(name): dataset[name].item() for name in alike}
        dataset = dataset.drop_vars(alike).assign_attrs(constant)
        result = without_constants(self.function(dataset, **options), ds).copy()
        single = [name for name in ds.coords if not ds.variables[name].ndim and name not in result.variables]
        result = result.assign_coords({name: ds.variables[name] for name in single})
        of_what = exit_words(ds.attrs.get("exit_on", "risk"))
        for key, variable in result.variables.items():
            # xarray of 2025 loses some
            of_axis = dataset.variables[key].attrs if key in dataset.coords else labels_of_made(str(key))
            variable.attrs = stored_attributes(variable.attrs or of_axis)
            if "exit" in (name := variable.attrs.get("long_name", "")) and of_what not in name:
                variable.attrs["long_name"] = name + of_what
        return result.assign_attrs(title=self.doc, analysis=self.name)

    def check(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return all options, defaults included; InputError, naming the key, for an unknown name or a wrong type."""
        return checked_options(self.function, f"option of the analysis {self.name!r}", options, arguments=1)

    def numbers(self, ds: Outline, options: Mapping[str, Any]) -> list[str]:
        """Return the names of the variables with an interval, the headline first, for the outline of a dataset.

        InputError if they depend on what was recorded (`averages`), and the analysis does not apply.
        """
        declared = [*([self.headline] if self.headline else []), *self.quantities.values()]
        if not self.averages:
            return list(dict.fromkeys(declared))
        outline = self.outlined(ds, options)
        return declared if outline is None else [*declared, *outline.attrs["averaged"].split()]

    def treatment(self, end: str) -> Treated:
        """Return what the analysis makes of runs with this `end`, one of ENDS."""
        return self.ends.get(end, Treated.left_out)

    def outlined(self, ds: Outline, options: Mapping[str, Any]) -> Outline | None:
        """Return the outline of the result, or None without `outline`; InputError if the analysis does not apply."""
        complete = self.check(options)
        if ds.attrs.get("stop") == "exit" and self.treatment("exit") is Treated.refused:
            problem = f"runs stop at their exits, and {self.name} needs what they do later"
            raise InputError(problem, value="stop: exit", expected="`stop: end`")
        if self.outline is None:
            return None
        result = self.outline(ds, **complete)
        for axis in ds.axes:
            if result.variables.get(axis, (axis,)) != (axis,):
                problem = f"an axis has the name of a variable of {self.name}"
                raise InputError(problem, key="grid", value=axis, expected="another name of the parameter")
        return result


def _is_hidden(ds: xr.Dataset, name: str, outline: Outline) -> bool:
    """Return whether a coordinate is a constant of which the name is that of a variable in the outline of a result."""
    return not ds.variables[name].ndim and name not in outline.axes and bool(outline.variables.get(name))


def analysis_of(
    function: Callable[..., Any], doc: str, *, quantities: Iterable[str] | Mapping[str, str] = (), **settings: Any
) -> Analysis:
    """Return the analysis of a function, under its name; `settings` are other fields of `Analysis`.

    quantities : names of variables, which are drawn under these names, or variables by the names to draw them under.
    """
    named = quantities if isinstance(quantities, Mapping) else {name: name for name in quantities}
    return Analysis(function.__name__, function, doc, quantities=named, **settings)


ANALYSES: Registry[Analysis] = Registry("analysis")


def declared_quantities() -> dict[str, tuple[str, str]]:
    """Return the analysis and its variable for each quantity that analyses declare, by the name of the quantity."""
    return {
        name: (analysis, variable)
        for analysis, declaring in ANALYSES.items()
        for name, variable in declaring.quantities.items()
    }
