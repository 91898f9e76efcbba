"""Pydantic models of the YAML file of a sweep of a function, beside those of `models`.

The types at the top let a config write less: a function each makes the whole of what is written, and the JSON schema
has both.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainValidator

from sweeplib.config.models import Fixed, GridSections, NameSection, ResultSections
from sweeplib.config.section import Section
from sweeplib.config.time_models import Scalar, Values, as_written
from sweeplib.engine.code.user_code import command_of, words_of


def _units(value: Any) -> Any:
    """Return the number 1 as the text that units are."""
    return "1" if value == 1 else value


Units = Annotated[str, BeforeValidator(_units, json_schema_input_type=str | Literal[1])]
"""Units, such as "J"; "1" or 1 for none."""


class ParameterSection(Section):
    """A parameter of a command."""

    type: Literal["int", "float", "str", "bool"] | list[str] | None = None
    default: Annotated[Any, PlainValidator(as_written, json_schema_input_type=Scalar | None)] = None
    units: Units = "1"
    label: str | None = None
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None


class ResultSection(Section):
    """A result of a command."""

    units: Units = "1"
    dims: dict[str, int | str] = Field(default_factory=dict)
    label: str = ""
    symbol: str = ""


def _parameter(value: Any) -> Any:
    """Return a parameter as a mapping if its type or default alone is given."""
    from sweeplib.functions.program import parameter_entry

    return parameter_entry(value)


def _command(value: Any) -> Any:
    """Return a list of words as the command, a line of a shell."""
    return command_of(words_of(value)) if isinstance(value, list) else value


def _result(value: Any) -> Any:
    """Return a result as a mapping if its units alone are given."""
    return value if isinstance(value, dict) else {} if value is None else {"units": value}


Parameter = Annotated[
    ParameterSection, BeforeValidator(_parameter, json_schema_input_type=Scalar | list[str] | ParameterSection | None)
]
Returned = Annotated[
    ResultSection, BeforeValidator(_result, json_schema_input_type=str | Literal[1] | ResultSection | None)
]


Command = Annotated[str, BeforeValidator(_command, json_schema_input_type=str | list[Scalar])]


class CommandSection(Section):
    """A command that is started for each case, what its parameters are, and what it writes to its standard output."""

    command: Command
    results: dict[str, Returned]
    parameters: dict[str, Parameter] = Field(default_factory=dict)
    name: Annotated[str, Field(pattern=r"^[A-Za-z_]\w*$")] | None = None


class FunctionSections(Section):
    """A function of one's own."""

    simulator: Annotated[Any, PlainValidator(as_written, json_schema_input_type=str | CommandSection)] = Field(
        description="The file of a function of your own, with the decorator `@simulator`; `FILE:NAME` if it has "
        "several. Or a `command` with parameters in braces and its `results` with their units; `parameters` has types "
        "or defaults where these are no numbers that a sweep gives. Paths are relative to this file.",
        examples=["ising.py", {"command": "./a.out --T {T} {seed}", "results": {"energy": "J"}}],
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
    checkpoint: Annotated[Any, PlainValidator(as_written, json_schema_input_type=str | float | None)] = Field(
        default=None,
        description="How often the state of a case is kept, of a function that yields one with its results: `5 min`, "
        "as it is by default, `2 h`, `30 s`, or seconds. After a kill the case goes on from there.",
        examples=["5 min"],
    )
    keep: Literal["ends", "nothing"] | None = Field(
        default=None,
        description="Keep the last states of the cases of such a function (`ends`), from which a sweep with more "
        "`times` goes on.",
        examples=["ends"],
    )


class FunctionConfig(ResultSections, FunctionTimes, GridSections, FunctionSections, NameSection):
    """A sweep of a function: a grid of its parameters, seeds, analyses and figures of what it returns."""
