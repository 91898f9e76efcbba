"""Pydantic models of the YAML file of a sweep of a function, beside those of `models`."""

from typing import Annotated, Any

from pydantic import Field, PlainValidator

from sweeplib.config.models import Fixed, GridSections, NameSection, ResultSections
from sweeplib.config.time_models import Section, Values, as_written


class FunctionSections(Section):
    """A function of one's own."""

    simulator: str = Field(
        description="The file of a function of your own, with the decorator `@simulator`; `FILE:NAME` if it has "
        "several. The path is relative to this file.",
        examples=["ising.py", "models.py:ising"],
    )
    parameters: dict[str, Fixed] = Field(
        default_factory=dict,
        description="Values that all points share: parameters of the function, instead of its defaults, and numbers "
        "that expressions use.",
        examples=[{"L": 32}],
    )


class FunctionTimes(Section):
    """When a function records."""

    times: Annotated[Any, PlainValidator(as_written, json_schema_input_type=Values | None)] = Field(
        default=None,
        description="The times at which a function with the argument `times` records: ascending numbers, a list or a "
        "spacing.",
        examples=[{"linspace": [0, 12, 61]}],
    )


class FunctionConfig(ResultSections, FunctionTimes, GridSections, FunctionSections, NameSection):
    """A sweep of a function: a grid of its parameters, seeds, analyses and figures of what it returns."""
