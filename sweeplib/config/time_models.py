"""Pydantic models of values and times in a sweep's YAML file.

The JSON schema and the reference show the types; `config.values` and `config.times` check what is written.
"""

from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, PlainValidator, model_serializer
from typing_extensions import TypedDict

from sweeplib.config.section import Section
from sweeplib.config.values import SPACINGS

ONE_KEY = ConfigDict(extra="forbid", json_schema_extra={"minProperties": 1, "maxProperties": 1})
"""The settings of a mapping that must have just one of its keys."""


Ends = Annotated[list[float], Field(min_length=2, max_length=3)]
"""The first and the last value, or exponent, of a spacing, and the number of values, or the step."""


class Spacing(TypedDict, total=False):
    """Values computed from their end points, by one of these rules."""

    __pydantic_config__ = ONE_KEY  # type: ignore[misc]

    linspace: Annotated[Ends, Field(description=SPACINGS["linspace"][1])]
    logspace: Annotated[Ends, Field(description=SPACINGS["logspace"][1])]
    geomspace: Annotated[Ends, Field(description=SPACINGS["geomspace"][1])]
    range: Annotated[Ends, Field(description=SPACINGS["range"][1])]


Scalar = float | str | bool
"""One value."""
Values = Annotated[list[Scalar], Field(min_length=1)] | Spacing
"""The values of an axis."""


def as_written(value: Any) -> Any:
    """Return the value unchanged. Its type serves the JSON schema and the reference; `values` and `build` check it."""
    return value


Spec = Annotated[Any, PlainValidator(as_written, json_schema_input_type=Values)]
"""Times, in ODE time."""
Amount = float | str
"""A number of steps or samples, or an expression of one, such as `50*d`."""
Amounts = Annotated[
    Any,
    PlainValidator(
        as_written, json_schema_input_type=Amount | Annotated[list[Amount], Field(min_length=1)] | Spacing | None
    ),
]


class Times(Section):
    """When to record."""

    values: Spec = Field(
        default=None,
        description="The recording times, ascending from 0 or later: a list or a spacing. The last is the horizon. "
        "They, `samples` or `steps` are needed.",
        examples=[{"linspace": [0, 12, 61]}],
    )
    samples: Amounts = Field(
        default=None,
        description="In place of `values`: the numbers of samples drawn until then, steps·batch_size/repeats: a "
        "number, an expression, a list of these, or a spacing. Numbers that are written, the ends of a spacing too, "
        "must be whole steps at every point; those in between are recorded at the nearest step.",
        examples=["50*d", ["10*d", "50*d"], {"linspace": [0, 60000, 61]}],
    )
    steps: Amounts = Field(
        default=None,
        description="In place of `values`: the numbers of steps until then, given as `samples` are.",
        examples=[[0, 1000, 10000], "round(d**1.5)"],
    )
    scale: str | None = Field(
        default=None,
        description="An expression that multiplies the times, point by point, for regimes with another time scale.",
        examples=["p/gamma"],
    )

    @model_serializer(mode="wrap")
    def _without_others(self, serialized: Any) -> dict[str, Any]:
        """Return the keys without those of the two kinds of times that are not given."""
        others = {kind for kind in ("values", "samples", "steps") if getattr(self, kind) is None}
        return {name: value for name, value in serialized(self).items() if name not in others}


def _times(value: Any) -> Any:
    """Return the times as `{values: ...}` if only the values are given."""
    return (
        value if isinstance(value, dict) and {"values", "scale", "steps", "samples"} & set(value) else {"values": value}
    )


TimesOrValues = Annotated[Times, BeforeValidator(_times, json_schema_input_type=Values | Times)]
