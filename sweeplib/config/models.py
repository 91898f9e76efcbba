"""Pydantic models of a sweep's YAML file: types, defaults, examples and descriptions of all keys.

A type with PlainValidator takes any value: the JSON schema alone has its type, and `build` checks it with the grid.
"""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator
from pydantic_core import PydanticCustomError

from sweeplib.config.section import Section
from sweeplib.config.time_models import Scalar, TimesOrValues, Values, as_written
from sweeplib.config.values import named_options
from sweeplib.engine.base.budget import NAME_LENGTH
from sweeplib.engine.base.validation import REFUSED
from sweeplib.errors import InputError

NAME, SAID_OF_NAMES = r"^[A-Za-z0-9][A-Za-z0-9._-]*$", "letters, digits, `-_.`, first a letter or digit"
"""The pattern of the names of sweeps, and the same in words."""


def _dynamics(value: Any) -> Any:
    """Return the mapping of `named_options`; InputError, with the value as it is written, if it names no runs."""
    names, folded = named_options(value), dict[str, str]()
    if not names:
        raise InputError("no dynamics", value=value, expected="at least one, such as `[sgd_chain, ode]`")
    for name in names:
        if (other := folded.setdefault(str(name).casefold(), name)) != name:
            # some file systems, as of macOS, would have one folder for both
            expected = "names of runs that differ in more than the case of letters"
            raise InputError(f"a second spelling of {other}", value=name, expected=expected)
    return names


def _checked_name(value: str) -> str:
    """Return the name of a sweep as it is; a PydanticCustomError for what is no name of a folder."""
    if not re.fullmatch(NAME, value):
        raise PydanticCustomError(REFUSED, f"{SAID_OF_NAMES}; default: the file's name")
    return value


class Axes(BaseModel):
    """A grid as written in the file: the values of each axis, and axes that vary jointly (`zip`)."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Values | None]

    zip: list[dict[str, Values]] = Field(default_factory=list)


class DesignOfPoints(BaseModel):
    """A design of points as written in the file: their number, and a range of each parameter."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, dict[str, list[float | str]]]

    sobol: int | None = None
    latin: int | None = None
    random: int | None = None


Line = Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*\S[^\x00-\x1f\x7f]*$")]
"""A text of one line."""
Names = Annotated[list[str], Field(json_schema_extra={"uniqueItems": True})]
Named = Annotated[
    dict[str, dict[str, Any]],
    BeforeValidator(named_options, json_schema_input_type=Names | dict[str, dict[str, Any] | None]),
]
"""Options by name; a config may have a list of names."""
Wanted = Annotated[Any, PlainValidator(as_written, json_schema_input_type=Values | Scalar)]
"""The values of an axis that are selected: one, a list or a spacing."""
Fixed = Annotated[Any, PlainValidator(as_written, json_schema_input_type=Scalar | list[Scalar] | None)]
"""The value of a parameter at all points, such as a number, a name or a list of numbers."""
Seeds = Annotated[Any, PlainValidator(as_written, json_schema_input_type=Annotated[int, Field(ge=1)] | Values | str)]
Table = str | DesignOfPoints | dict[str, Values] | list[dict[str, Scalar]] | None
Points = Annotated[Any, PlainValidator(as_written, json_schema_input_type=Table)]
GridSection = Annotated[dict[str, Any], BeforeValidator(as_written, json_schema_input_type=Axes)]


class DynamicsSection(Section):
    """One dynamics: the part of the grid where it runs. Any other key is a numerical option of the dynamics."""

    model_config = ConfigDict(extra="allow")

    kind: str | None = Field(
        default=None,
        description="`cheapest`: at each point the cheapest of the simulators in `of` runs, by the model of `cost`. "
        "The name is yours, and that in the dataset, whose variable `simulator` says which one it was.",
        examples=["cheapest"],
    )
    of: Named | None = Field(
        default=None,
        description="The simulators of `kind: cheapest`, which must have one law: a list of names, or each name with "
        "its options. A point that one of them refuses is left to the others.",
        examples=[["sgd", "sgd_chain"]],
    )

    where: dict[str, Wanted] = Field(
        default_factory=dict,
        description="Run this dynamics only where axes, or `seed`, have one of these values; by default everywhere.",
        examples=[{"d": [300]}],
    )
    when: str | None = Field(
        default=None,
        description="Run this dynamics only at points where this expression is true, for example to limit its cost. "
        "`cost` stands for the seconds that all seeds of the row take on one core of 3 GHz, by a model that is the "
        "same on every machine; the name of another dynamics is true where that runs.",
        examples=["p * d <= 1e6", "cost <= 12", "sgd_chain and p <= 24"],
    )


DynamicsSections = Annotated[
    dict[str, DynamicsSection],
    BeforeValidator(_dynamics, json_schema_input_type=Names | dict[str, DynamicsSection | None]),
]


def _precision(value: Any) -> Any:
    """Return `2 %`, a number or `decided` as they are; a PydanticCustomError for another value."""
    if not (value == DECIDED or _is_width(value)):
        expected = "`2 %`, relative to the value, a positive number in its units, or `decided` for labels of points"
        raise PydanticCustomError(REFUSED, expected)
    return value


def _is_width(value: Any) -> bool:
    """Return whether a value is a number above 0 or a text in per cent, such as `2 %`."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return value > 0 if number else isinstance(value, str) and re.fullmatch(PERCENT, value) is not None


def _budget(value: Any) -> Any:
    """Return a number of cases, a time or None as they are; a PydanticCustomError for another value."""
    count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    if not (value is None or count or (isinstance(value, str) and re.fullmatch(HOURS, value))):
        raise PydanticCustomError(REFUSED, "a whole number of cases, at least 0, or a time such as `2 h` or `30 min`")
    return value


def _refine(value: Any) -> Any:
    """Return `seeds`, or axes with bounds or a resolution, as they are; a PydanticCustomError for another value."""
    axes = isinstance(value, dict) and value and all(_are_bounds(ends) or _is_width(ends) for ends in value.values())
    if value != "seeds" and not axes:
        expected = (
            "`seeds`, an axis with its bounds, such as `{gamma: [0.02, 2]}`, or for labels axes with a resolution, "
            "such as `{delta: 0.02}`"
        )
        raise PydanticCustomError(REFUSED, expected)
    return value


def _are_bounds(value: Any) -> bool:
    """Return whether a value is a list of two numbers."""
    numbers = isinstance(value, list) and len(value) == 2 and not any(isinstance(end, bool) for end in value)
    return numbers and all(isinstance(end, int | float) for end in value)


DECIDED = "decided"
"""What a question about labels wants in place of a precision: the label of each point."""
HOURS = r"\s*(\d+\.?\d*|\.\d+)\s*(h|min)\s*"
"""The pattern of a time: its number and its unit."""
PERCENT = r"\s*((?:\d+\.?\d*|\.\d+)(?:e-?\d+)?)\s*%\s*"
"""The pattern of per cent: their number."""


QuestionBounds = Annotated[list[float], Field(min_length=2, max_length=2)]
Refined = Annotated[
    Any, BeforeValidator(_refine, json_schema_input_type=Literal["seeds"] | dict[str, QuestionBounds | float | str])
]


class AnswerSection(Section):
    """A question: a variable of an analysis, how precisely it is wanted, and what may be added for it."""

    of: str = Field(description="The analysis that gives the answer.", examples=["optimal_learning_rate"])
    variable: str | None = Field(
        default=None, description="Its variable, with an interval; by default its headline or label.", examples=["risk"]
    )
    options: dict[str, Any] = Field(
        default={}, description="Its options for this question alone.", examples=[{"statistic": "median"}]
    )
    to: Annotated[Any, BeforeValidator(_precision, json_schema_input_type=float | str)] = Field(
        description="The half width that its 95 % interval may have: in per cent of the value, or in its units; "
        "`decided` for the labels of points, such as regimes.",
        examples=["2 %", 0.02, "decided"],
    )
    refine: Refined = Field(
        default="seeds",
        description="What may be added: `seeds` of the points that there are, or values of an axis between two bounds, "
        "with their seeds. For labels: the distance to which boundaries are located along axes, a number or in per "
        "cent, and the bounds of axes such as d all of whose values make a label.",
        examples=["seeds", {"gamma": [0.02, 2]}, {"delta": 0.02, "kappa": 0.02, "d": [100, 100000]}],
    )
    at: dict[str, Wanted] = Field(
        default_factory=dict,
        description="Ask only where axes, `dynamics`, `threshold`, `time` have these values; else everywhere, last.",
        examples=[{"p": [1, 4], "dynamics": "sgd_chain"}, {"time": 10}],
    )
    budget: Annotated[Any, BeforeValidator(_budget, json_schema_input_type=int | str | None)] = Field(
        default=None,
        description="The number of cases that may be added, or hours or minutes of a processor; else no limit.",
        examples=[50000, "2 h", "30 min"],
    )


class NameSection(Section):
    """The name of a sweep, and the config from which its own starts."""

    name: Annotated[str, AfterValidator(_checked_name)] = Field(
        json_schema_extra={"pattern": NAME},
        max_length=NAME_LENGTH,
        description="The name of the sweep and of its folder in `results/`: letters, digits, `-`, `_` and `.`. "
        "By default the name of the file.",
        examples=["quickstart"],
    )
    from_: str | None = Field(
        default=None,
        alias="from",
        exclude=True,
        description="Another config (its path is relative to this file), whose keys this one changes. A name in "
        "`problem`, `grid` or `derive` replaces the other's in any of the three, or with null takes it out; mappings "
        "of `dynamics`, `analyses` and `figures` add names, lists replace all; other keys replace.",
        examples=["base.yaml"],
    )


class GridSections(Section):
    """The points of a sweep and their replicas."""

    grid: GridSection = Field(
        default_factory=dict,
        description="The axes. Each is a field of a problem, a number that expressions or formulas use, or an option "
        "of a dynamics (`sde.step`), with a list of values or a spacing. All combinations are run. Axes under `zip` "
        "vary jointly.",
        examples=[
            {"d": [300, 1000], "gamma": {"linspace": [0.03, 0.14, 12]}},
            {"zip": [{"p": [1, 4], "d": [100, 400]}]},
        ],
    )
    points: Points = Field(
        default=None,
        description="A table of points, of which each row is one: a file (`.csv`, `.tsv`, `.txt` or `.parquet`, its "
        "path relative to this file) whose columns have the names of fields, `{name: values}`, or a list of rows; or "
        "a design, `sobol`, `latin` or `random` points in ranges. The rows are the dimension `point`. They are "
        "combined with the axes of `grid`.",
        examples=["points.csv", {"gamma": [0.1, 0.2], "d": [100, 300]}, {"sobol": 64, "gamma": {"uniform": [0, 1]}}],
    )
    derive: dict[str, str] = Field(
        default_factory=dict,
        description="Fields computed at each point from the other names: + - * / // % **, comparisons, "
        "`a if c else b` and abs, ceil, exp, floor, log, max, min, round, sqrt.",
        examples=[{"gamma": "gamma0 * d**-delta", "p": "round(p0 * d**kappa)"}],
    )
    seeds: Seeds = Field(
        default=1,
        description="The replicas of each point: their number, a list, a spacing, or an expression that gives their "
        "number at each point. More can be added later.",
        examples=[128, {"range": [0, 64]}, "round(1e5/d)"],
    )
    root_seed: int = Field(
        default=0,
        ge=0,
        lt=2**63,
        description="The seed of all random numbers. Another value gives an independent set of replicas.",
        examples=[1],
    )
    pair_by: list[str] | None = Field(
        default=None,
        description="Give the same samples to replicas with the same seed whose problems agree in these fields, for "
        "paired comparisons; `seed` is always included. By default only starts are shared, at equal p, k, d.",
        examples=[["seed", "d"]],
    )


class ResultSections(Section):
    """What is made of results, where they are computed, and who made them."""

    analyses: Named = Field(
        default_factory=dict,
        description="Analyses of the finished dataset: a list of names, or each name with its options. The "
        "analyses that a figure needs are added.",
        examples=[["exit_times", "optimal_learning_rate"]],
    )
    figures: Named = Field(
        default_factory=dict,
        description="Figures: a list of names, or each name with its options; `[]` for none. With the option `kind: "
        "FIGURE` the name is yours: there may be several of a kind. By default, if they fit: `learning_rate_scan` or a "
        "`line` of exits; `risk_curves` or `trajectories`; the last records; of runs that `stop: exit`, their times.",
        examples=[["learning_rate_scan"], {"exits": {"kind": "line", "y": "exit_steps", "x": "m0"}}],
    )
    answers: dict[str, AnswerSection] = Field(
        default_factory=dict,
        description="Questions (below), by names of yours. Rounds add rows to the sweep until each is answered to its "
        "precision, or cannot be.",
        examples=[{"gamma_opt": {"of": "optimal_learning_rate", "to": "2 %", "refine": {"gamma": [0.02, 2]}}}],
    )
    cluster: dict[str, Any] = Field(
        default_factory=lambda: {"kind": "local"},
        description="The `kind` of cluster that runs the sweep, and its settings (below). Results do not depend on it.",
        examples=[{"kind": "local", "workers": 4}],
        json_schema_extra={"properties": {"kind": {"type": "string"}}},
    )
    timeout: float | None = Field(
        default=None,
        gt=0,
        le=1e9,
        allow_inf_nan=False,
        description="Seconds after which a single case is ended with status `timeout`; by default no limit.",
        examples=[600],
    )
    publish: str | None = Field(
        default=None,
        max_length=2000,
        description="Where to send the finished dataset: an address of fsspec, with the credentials of its package "
        "(`s3://` needs the extra `s3`). Nothing else may be there.",
        examples=["s3://bucket/sweeps/mine.zarr"],
    )
    authors: list[Line] = Field(
        default_factory=list,
        description="Who made the sweep: the dataset, the report and the README.md in its folder name them.",
        examples=[["Ada Lovelace, https://orcid.org/0000-0000-0000-0000"]],
    )
    license: Line | None = Field(
        default=None,
        description="The licence under which you publish the results, best by its name in the list of SPDX.",
        examples=["CC-BY-4.0"],
    )
    plugins: list[str] = Field(
        default_factory=list,
        description="Your own Python files (paths relative to this file), installed plugins by name, or modules, that "
        "register dynamics, activations, observables, analyses, figures or other kinds of things.",
        examples=[["my_dynamics.py"]],
    )


class ProblemSection(Section):
    """The values that all problems share."""

    problem: dict[str, Fixed] = Field(
        default_factory=dict,
        description="Values that all points share: fields of a problem (below), and numbers that expressions use. "
        "Names in the formula of a target, a schedule or an activation stand for numbers, as in `1/(1 + t/tau)` with "
        "`tau` here, in `grid` or in `derive`.",
        examples=[{"p": 1, "k": 1, "activation": "square", "spherical": True}],
    )


class RunSections(Section):
    """The dynamics of networks, and what is recorded of them."""

    dynamics: DynamicsSections = Field(
        min_length=1,
        description="The dynamics to run: a list of names, or each name with `where` and its options (below). After a "
        "hyphen a word of yours tells several runs of one dynamics apart: `ode-corrected: {finite_d: true}`.",
        examples=[["sgd_chain", "ode"], {"sgd": {"where": {"d": [300]}}, "ode": {"rtol": 1e-8}}],
    )
    times: TimesOrValues = Field(
        description="When to record, in ODE time t = steps·γ/(p d): a list, a spacing, or `values` with a `scale`; or "
        "in `samples` or `steps` (below). The last is the horizon.",
        examples=[{"linspace": [0, 12, 61]}, {"values": [0, 1, 10], "scale": "p/gamma"}, {"samples": "50*d"}],
    )
    horizon: float | None = Field(
        default=None,
        gt=0,
        description="Another last time than that of `times`, whose spacing goes on, or ends, there; to a list it is "
        "added. Runs that kept their ends go on from there.",
        examples=[16],
    )
    keep: Literal["ends", "nothing"] | None = Field(
        default=None,
        description="Keep the states of runs that could go on beyond the horizon (`ends`), from which a longer one "
        "continues them, to the bit, or `nothing`. By default the ends of runs that did not exit, where they "
        "`stop: exit`. In sgd_chain, sde and overlap_map; the other dynamics are computed again from the start.",
        examples=["ends"],
    )
    thresholds: list[float] = Field(
        default_factory=list,
        description="Record when the excess risk, or `exit_on`, first falls to (1 - T) of its initial value, for each "
        "T in (0, 1).",
        examples=[[0.01]],
    )
    exit_on: str = Field(
        default="risk",
        description="What the exits are of: the excess `risk`, `test_error`, `misalignment` (1 minus the cosine of the "
        "teacher row found last), `test_loss` or `classification_error` where they have closed forms.",
        examples=["misalignment"],
    )
    stop: Literal["end", "exit"] = Field(
        default="end",
        description="Run to the horizon (`end`), or only until the last threshold is reached (`exit`).",
        examples=["exit"],
    )
    observables: list[str] = Field(
        default=["risk"], description="What to record at the times.", examples=[["risk", "overlap_M"]]
    )


class SweepConfig(ResultSections, RunSections, GridSections, ProblemSection, NameSection):
    """A sweep: a grid of problems, the dynamics to run on them, the recorded observables, analyses and figures."""
