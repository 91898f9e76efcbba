"""The questions of a config, checked against its grid and the analyses.

A section of `answers` says what analysis the question is `of`, `to` what precision an answer is wanted, what may be
added to the sweep for it (`refine`), and where it is asked (`at`). Its proposer asks for the rows that are added.

ds : the outlines of the sweep's dataset, by whether variables of overlaps are in them.
options : those of the analysis, of the sweep and of the question.
"""

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sweeplib.config.function_models import FunctionConfig
from sweeplib.config.models import DECIDED, HOURS, PERCENT, AnswerSection, SweepConfig
from sweeplib.config.values import values
from sweeplib.engine.design.axis import POINT, Axis, are_numbers, places_in
from sweeplib.engine.design.design import Design
from sweeplib.engine.design.questions import Precision, Question, Row, with_rows
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.errors import InputError, errors_at, errors_under

if TYPE_CHECKING:
    from sweeplib.analysis.analysis import Analysis

CONFIDENCE = 0.95
"""The confidence of the intervals of answers."""


def with_questions(sweep: Design, config: SweepConfig | FunctionConfig, ds: Mapping[bool, Outline]) -> Design:
    """Return the sweep with the questions of its config, and the analyses that answer them.

    InputError, with its key, for a question that no proposer is made for or that does not fit the grid.
    """
    if not config.answers:
        return sweep
    if isinstance(config.seeds, list | dict):
        expected = "their number, or an expression: rounds add seeds to the first ones"
        raise InputError("seeds that cannot grow", key="seeds", value=config.seeds, expected=expected)
    from sweeplib.analysis.answers import proposer_of  # loads all that runs sweeps
    from sweeplib.analysis.answers.proposer import explained

    questions = {name: _question(name, section, sweep, ds) for name, section in config.answers.items()}
    # analyses that the config does not name are added, with options if they do not apply without them
    added = {
        question.of: {} if _fits(question.of, ds[False], {}) else question.options
        for question in reversed(questions.values())
    }
    analyses = added | dict(sweep.analyses)
    for name, question in questions.items():
        proposer = proposer_of(name, question)
        _refuse_bounds(name, question, sweep)
        _refuse_matrices(name, question, ds, question.options_in(analyses))
        with explained(type(proposer), name):
            proposer.check(ds[False], question.options_in(analyses))
    return replace(sweep, questions=questions, analyses=analyses)


def _fits(of: str, ds: Outline, options: Mapping[str, Any]) -> bool:
    """Return whether an analysis applies to a dataset of this outline."""
    from sweeplib.analysis import ANALYSES

    with suppress(InputError):
        ANALYSES[of].outlined(ds, options)
        return True
    return False


def _question(name: str, section: AnswerSection, sweep: Design, ds: Mapping[bool, Outline]) -> Question:
    """Return the question of a section; InputError, with the key, for bounds or a resolution that it cannot have."""
    key = f"answers.{name}"
    options = {**sweep.analyses.get(section.of, {}), **section.options}
    variable = _variable(key, section, options, ds)
    _refuse_confidence(key, section, options)
    refined = {} if section.refine == "seeds" else section.refine
    bounds = {axis: (value[0], value[1]) for axis, value in refined.items() if isinstance(value, list)}
    resolution = {axis: _width(f"{key}.refine.{axis}", value) for axis, value in refined.items() if axis not in bounds}
    if resolution and section.to != DECIDED:
        [axis, *_] = resolution
        wrong = {"value": refined[axis], "expected": f"two bounds, as [0.02, 2], or `to: {DECIDED}`"}
        raise InputError("a resolution is that of labels", key=f"{key}.refine.{axis}", **wrong)
    to, relative = (None, False) if section.to == DECIDED else _width(f"{key}.to", section.to)
    for axis, (low, high) in bounds.items():
        if not low < high:
            raise InputError("not bounds", key=f"{key}.refine.{axis}", value=[low, high], expected="a lower, a higher")
    axes = _axes_of_answers(section.of, variable, options, sweep, ds[False])
    axes = {axis: column for axis, column in axes.items() if axis not in bounds}
    at = {axis: _values_at(f"{key}.at", axis, wanted, axes) for axis, wanted in section.at.items()}
    cases, seconds = _budget(section.budget)
    return Question(section.of, variable, to, relative, bounds, at, cases, seconds, resolution, section.options)


def _refuse_confidence(key: str, section: AnswerSection, options: Mapping[str, Any]) -> None:
    """Raise InputError for another confidence than that of answers, at the key that gives it."""
    from sweeplib.analysis import ANALYSES

    confidence, wanted = (
        ANALYSES[section.of].check(options).get("confidence", CONFIDENCE),
        f"confidence: {CONFIDENCE:g}",
    )
    if confidence != CONFIDENCE:
        is_own = "confidence" in section.options or "confidence" not in options
        place = f"{key}.options.confidence" if is_own else f"analyses.{section.of}.confidence"
        expected = f"{wanted}, as answers have 95 % intervals; the options of the question may have it"
        raise InputError("not the confidence of answers", key=place, value=confidence, expected=expected)


def _budget(budget: int | str | None) -> tuple[int | None, float]:
    """Return the most cases and the most seconds of processors of a budget: one of the two limits it (None, inf)."""
    time = re.fullmatch(HOURS, budget) if isinstance(budget, str) else None  # its number and its unit
    if time:
        return None, float(time[1]) * (3600.0 if time[2] == "h" else 60.0)
    return None if budget is None else int(budget), math.inf


def _width(key: str, width: float | str) -> Precision:
    """Return the precision `width`, a number in the variable's units or a text in per cent; InputError unless above 0.

    key : the dotted key of the width.
    """
    percent = re.fullmatch(PERCENT, width) if isinstance(width, str) else None
    to = float(percent[1]) / 100.0 if percent else float(width)
    if not 0.0 < to < math.inf:
        raise InputError("not a precision", key=key, value=width, expected="more than 0")
    return Precision(to, percent is not None)


def _variable(key: str, section: AnswerSection, options: Mapping[str, Any], ds: Mapping[bool, Outline]) -> str:
    """Return the variable that a question is about: the section's, or else the label or headline of its analysis.

    InputError, below `key` of the section, for wrong options, and for an analysis that has no such variable.
    """
    from sweeplib.analysis import ANALYSES

    with errors_under(f"{key}.of"):
        analysis = ANALYSES[section.of]
    with errors_under(f"{key}.options"):
        analysis.check(section.options)
    with errors_under(f"{key}.of"):
        variables = _variables(analysis, section, options, ds)
    if not variables:
        lack = "does not label points" if section.to == DECIDED else "has no quantity with an interval"
        fitting = [name for name in ANALYSES if _fits(name, ds[False], {})]
        choices = [name for name in fitting if _variables(ANALYSES[name], section, {}, ds)]
        raise InputError(f"this analysis {lack}", key=f"{key}.of", value=section.of, choices=choices)
    default, kind = (analysis.label, "label") if section.to == DECIDED else (analysis.headline, "quantity")
    variable = section.variable or default or (variables[0] if len(variables) == 1 else None)
    if variable is None or variable not in variables:
        choice: dict[str, Any] = {} if variable is None else {"value": variable}
        problem = "this analysis has several" if variable is None else f"not a {kind} of {section.of}"
        raise InputError(problem, key=f"{key}.variable", choices=variables, **choice)
    return variable


def _variables(
    analysis: "Analysis", section: AnswerSection, options: Mapping[str, Any], ds: Mapping[bool, Outline]
) -> list[str]:
    """Return the variables of an analysis that questions may be about: its label, or its numbers with an interval."""
    if section.to == DECIDED:
        return [analysis.label] if analysis.label else []
    return analysis.numbers(ds[False], options)


def _axes_of_answers(
    of: str, variable: str, options: Mapping[str, Any], sweep: Design, ds: Outline
) -> dict[str, Sequence[Any]]:
    """Return the axes along which answers may differ, with their values: those of the grid and of the variable.

    of, variable : the analysis and its variable.
    ds : the outline without variables of overlaps.
    """
    from sweeplib.analysis import ANALYSES

    axes: dict[str, Sequence[Any]] = {dim.name: dim.values for dim in sweep.grid.axes}
    axes |= {"dynamics": tuple(sweep.laws)}
    axes |= {"threshold": ds.axes["threshold"]} if "threshold" in ds.axes else {}
    with suppress(InputError):  # raised again by later checks, with the key of the analysis
        if (outline := ANALYSES[of].outlined(ds, options)) is not None:
            axes |= {dim: outline.axes[dim] for dim in outline.variables.get(variable, ())}
    return axes


def _values_at(key: str, axis: str, wanted: Any, axes: Mapping[str, Sequence[Any]]) -> tuple[Any, ...]:
    """Return the values of an axis at which a question is asked; InputError for values that the axis does not have.

    wanted : a value, a list or a spacing.
    axes : the values of each axis of the answers.
    """
    if axis not in axes:
        raise InputError("not an axis of the answers", key=key, value=axis, choices=axes)
    chosen = tuple(values(wanted if isinstance(wanted, dict | list) else [wanted], axis))
    with errors_at(f"{key}.{axis}"):
        places_in(axes[axis], axis, chosen)
    return chosen


def _refuse_matrices(name: str, question: Question, ds: Mapping[bool, Outline], options: Mapping[str, Any]) -> None:
    """Raise InputError for an analysis of vectors and matrices over units, whose shape differs between points.

    Rounds do not read them: an analysis that fits the dataset with overlaps alone has no answers.
    """
    if _fits(question.of, ds[True], options) and not _fits(question.of, ds[False], options):
        expected = "an analysis of numbers: rounds do not read vectors and matrices over units"
        raise InputError("no answers of this analysis", key=f"answers.{name}.of", value=question.of, expected=expected)


def _refuse_bounds(name: str, question: Question, sweep: Design) -> None:
    """Raise InputError for an axis that cannot get values, and for bounds at which a point is no valid problem.

    A point with the first values of the other axes is tried at both bounds; without bounds, at the ends of the axis.
    """
    for axis_name in {**question.bounds, **question.resolution}:
        key = f"answers.{name}.refine.{axis_name}"
        axis = _refinable_axis(sweep, axis_name, key)
        ends = question.bounds.get(axis_name, (axis.values[0], axis.values[-1]))
        first = {other.name: other.values[0] for other in sweep.grid.axes}
        # whole if the values of the axis are
        as_value = float if isinstance(axis.values[0], float) else math.ceil
        with errors_at(key):
            with_rows(sweep, [[Row({**first, axis.name: as_value(end)}, 1, "") for end in ends]])


def _refinable_axis(sweep: Design, name: str, key: str) -> Axis:
    """Return the axis of this name; InputError, at `key`, unless a question may add values of it."""
    axes = {axis.name: axis for axis in sweep.grid.axes}
    if name not in axes or name == POINT:
        raise InputError("not an axis of the grid", key=key, value=name, choices=set(axes) - {POINT})
    if axes[name].linked:
        raise InputError("other names vary with this axis", key=key, value=name, expected="an axis outside of `zip`")
    if not are_numbers(axes[name].values):
        raise InputError("not an axis of numbers", key=key, value=name, expected="an axis such as gamma")
    return axes[name]
