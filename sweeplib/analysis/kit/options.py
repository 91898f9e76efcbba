"""Options of analyses and figures; their names, defaults, types and meanings are in the signature of the function.

The meaning is the description of the type: `Annotated[int, Field(ge=1, description="the number of bins.")]`.
"""

from __future__ import annotations

import inspect
import math
import typing
from collections.abc import Callable, Mapping
from functools import cache
from types import SimpleNamespace
from typing import Annotated, Any

import numpy as np
import pydantic
from pydantic import Field

from sweeplib.engine.base.validation import Location, refusal
from sweeplib.errors import InputError

Part = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
Tolerance = Annotated[float, Field(ge=0, le=10)]
Confidence = Annotated[float, Field(gt=0, lt=1, description="the confidence of intervals and decisions.")]
LostPart = Annotated[
    float,
    Field(
        ge=0,
        lt=1,
        description="the fraction of lost runs (failed or killed; for values at a time also diverged, timed out, "
        "inaccurate or stopped at their exits) above which a statistic is NaN. A mean at a time is NaN from where any "
        "run diverged on, and where any value is infinite.",
    ),
]
CensoredPart = Annotated[
    Part, Field(description="the fraction of runs without an exit above which a point is left out.")
]
Resamples = Annotated[int, Field(ge=1, le=1_000_000, description="the number of bootstrap resamples or draws.")]
RandomSeed = Annotated[int, Field(ge=0, lt=2**63, description="the seed of the random numbers of the analysis.")]
Along = Annotated[
    str | None, Field(description="the axis that scans the learning rate; needed only if several axes do.")
]
Reference = Annotated[str, Field(description="the dynamics to compare with.")]
Until = Annotated[Positive, Field(description="the last recorded time of the comparison, in the units of `times`.")]
"""Types of options, with the meaning of those that several analyses have.

`Part` is a fraction, `Positive` may be infinite, `Tolerance` is a departure from a power law or of its exponent.
"""


def checked_options(
    function: Callable[..., Any], kind: str, options: Mapping[str, Any], *, arguments: int
) -> dict[str, Any]:
    """Return the options with the defaults of those not given.

    The options are the parameters of `function` after its first `arguments` ones, with the types of its annotations. An
    option without an annotation, or with one that cannot be evaluated, takes any value. InputError, with the option as
    key, for an unknown name or a value of another type, and for so few resamples that an interval ends at the extreme
    ones; `kind` names the option in words: "option of the analysis 'x'".
    """
    parameters = list(inspect.signature(function).parameters.values())[arguments:]
    named = {parameter.name: parameter for parameter in parameters}
    complete = {name: p.default for name, p in named.items() if p.default is not inspect.Parameter.empty}
    for key, value in options.items():
        if key not in named:
            raise InputError(f"unknown {kind}", key=key, value=key, choices=named)
        complete[key] = _checked(key, value, function, kind)
    match complete:
        case {"resamples": int(resamples), "confidence": float(confidence)}:
            _need_draws(resamples, confidence)
    return complete


def _need_draws(resamples: int, confidence: float) -> None:
    """Raise InputError for so few draws that less than one is expected beyond an end of an interval."""
    fewest = math.ceil(2.0 / (1.0 - confidence) - 1e-6)  # rounded
    if resamples < fewest:
        expected = f"{fewest} or more for intervals of the confidence {confidence:g}"
        raise InputError("too few draws", key="resamples", value=resamples, expected=expected)


def _checked(key: str, value: Any, function: Callable[..., Any], kind: str) -> Any:
    """Return the value of an option, one of NumPy as one of Python.

    InputError for a value that is not of its type in the signature of the function.
    """
    plain = value.item() if isinstance(value, np.generic) else value
    try:
        option_type(function, key).validate_python(plain, strict=True)
    except pydantic.ValidationError as error:
        raise refusal(error, wrong=f"not a valid {kind}", named=lambda place: key + _list_position(place)) from None
    return plain


def _list_position(location: Location) -> str:
    """Return the position of a value in a list: "[2]" for ("list", 2); other parts are pydantic's names of types."""
    return "".join(f"[{step}]" for step in location if isinstance(step, int))


@cache
def option_type(function: Callable[..., Any], name: str) -> Any:
    """Return the pydantic adapter of an option's type; annotations of the other parameters are not evaluated."""
    function = inspect.unwrap(function)
    annotation = inspect.signature(function).parameters[name].annotation
    if annotation is inspect.Parameter.empty:
        return pydantic.TypeAdapter(Any)
    alone = SimpleNamespace(__annotations__={name: annotation})
    try:
        hint = typing.get_type_hints(alone, getattr(function, "__globals__", {}), include_extras=True)[name]
    except NameError:
        return pydantic.TypeAdapter(Any)
    return pydantic.TypeAdapter(hint)
