"""The questions of a config, checked against its grid and the analyses."""

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sweeplib.config.models import PERCENT, AnswerSection, SweepConfig
from sweeplib.config.values import values
from sweeplib.design.axis import POINT, Axis, places_in
from sweeplib.design.questions import Question, Row, with_rows
from sweeplib.design.sweep import Sweep
from sweeplib.errors import InputError
from sweeplib.storage.dataset.outline import planned_outline


def with_questions(sweep: Sweep, config: SweepConfig) -> Sweep:
    """Return the sweep with the questions of its config, and the analyses that answer them.

    InputError, with its key, for what no proposer is made for or what does not fit the grid.
    """
    if not config.answers:
        return sweep
    if isinstance(config.seeds, list | dict):
        expected = "their number, or an expression: rounds add seeds to the first ones"
        raise InputError("seeds that cannot grow", key="seeds", value=config.seeds, expected=expected)
    from sweeplib.answers import proposer_of  # loads all that runs sweeps

    questions = {name: _question(name, section, sweep) for name, section in config.answers.items()}
    added: dict[str, Mapping[str, Any]] = {question.of: {} for question in questions.values()}
    analyses = added | dict(sweep.analyses)
    for name, question in questions.items():
        proposer = proposer_of(name, question)
        _refuse_bounds(name, question, sweep)
        proposer.check(planned_outline(sweep, overlaps=False), analyses[question.of])
    return replace(sweep, questions=questions, analyses=analyses)


def _question(name: str, section: AnswerSection, sweep: Sweep) -> Question:
    key = f"answers.{name}"
    variable = _variable(key, section)
    percent = re.fullmatch(PERCENT, section.to) if isinstance(section.to, str) else None
    to = float(percent[1]) / 100.0 if percent else float(section.to)
    if not 0.0 < to < math.inf:
        raise InputError("not a precision", key=f"{key}.to", value=section.to, expected="more than 0")
    bounds = {} if section.refine == "seeds" else {axis: (low, high) for axis, (low, high) in section.refine.items()}
    for axis, (low, high) in bounds.items():
        if not low < high:
            raise InputError("not bounds", key=f"{key}.refine.{axis}", value=[low, high], expected="a lower, a higher")
    at = {axis: _values_at(f"{key}.at", axis, wanted, sweep, bounds) for axis, wanted in section.at.items()}
    return Question(section.of, variable, to, percent is not None, bounds, at, section.budget)


def _variable(key: str, section: AnswerSection) -> str:
    from sweeplib.analysis import ANALYSES

    try:
        analysis = ANALYSES[section.of]
    except InputError as error:
        raise error.within(prefix=f"{key}.of") from None
    variables = {*analysis.quantities.values(), *([analysis.headline] if analysis.headline else ())}
    variable = section.variable or analysis.headline
    if variable is None or variable not in variables:
        named_value = {} if variable is None else {"value": variable}
        problem = "this analysis has several" if variable is None else f"not a quantity of {section.of}"
        raise InputError(problem, key=f"{key}.variable", choices=variables, **named_value)
    return variable


def _values_at(key: str, axis: str, wanted: Any, sweep: Sweep, bounds: Mapping[str, Any]) -> tuple[Any, ...]:
    swept = {dim.name: dim.values for dim in sweep.grid.axes if dim.name not in bounds}
    values_of_axes = swept | {"dynamics": tuple(sweep.runs), "threshold": sweep.recording.thresholds}
    if axis not in values_of_axes:
        raise InputError("not an axis of the answers", key=key, value=axis, choices=values_of_axes)
    chosen = tuple(values(wanted if isinstance(wanted, dict | list) else [wanted], axis))
    try:
        places_in(values_of_axes[axis], axis, chosen)
    except InputError as error:
        error.key = f"{key}.{axis}"
        raise
    return chosen


def _refuse_bounds(name: str, question: Question, sweep: Sweep) -> None:
    """Raise InputError for an axis that cannot get values, and for bounds at which a point is no valid problem."""
    for name_of, bounds in question.bounds.items():
        key = f"answers.{name}.refine.{name_of}"
        axis = _refinable_axis(sweep, name_of, key)
        first = {other.name: other.values[0] for other in sweep.grid.axes}
        try:
            with_rows(sweep, [[Row({**first, axis.name: float(bound)}, 1, "") for bound in bounds]])
        except InputError as error:
            error.key = key
            raise


def _refinable_axis(sweep: Sweep, name: str, key: str) -> Axis:
    axes = {axis.name: axis for axis in sweep.grid.axes}
    if name not in axes or name == POINT:
        raise InputError("not an axis of the grid", key=key, value=name, choices=set(axes) - {POINT})
    if axes[name].linked:
        raise InputError("other names vary with this axis", key=key, value=name, expected="an axis outside of `zip`")
    if not all(isinstance(value, float) for value in axes[name].values):
        raise InputError("not an axis of real numbers", key=key, value=name, expected="an axis such as gamma")
    return axes[name]
