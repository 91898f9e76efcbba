"""Parameters: what a problem can set, each declared once, by the problem itself or by the part that reads it.

A part is of a kind, such as "data" or "loss", which is the owner of its parameters. All are in `PARAMETERS` by name.
"""

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import pydantic
from pydantic.fields import FieldInfo

from sweeplib.errors import InputError, SweeplibError

if TYPE_CHECKING:
    from sweeplib.networks.problem.limits import Limit
    from sweeplib.networks.problem.problem import Problem

PROBLEM = "problem"
"""The owner of the parameters of a problem itself, which belong to no part."""


class Parameters(pydantic.BaseModel):
    """The parameters of a part; none by default. Each is a field, with its meaning in a docstring below it.

    The names are keys below `problem`, axes of a grid, and coordinates of a dataset.
    """

    model_config = pydantic.ConfigDict(use_attribute_docstrings=True)


def parameter(default: Any, label: str, symbol: str, example: Any, **bounds: Any) -> Any:
    """Declare a parameter; `...` is the default of one that a problem with the part needs.

    label, symbol : what it is, on axes, and its symbol, LaTeX without dollars or empty.
    example : a valid value other than the default, for the documentation and tests.
    bounds : those of pydantic's `Field`, such as `gt=0`.
    """
    extra: dict[str, Any] = {"label": label, "symbol": symbol}
    return pydantic.Field(default, examples=[example], json_schema_extra=extra, **bounds)


@dataclass(frozen=True)
class Parameter:
    """A declared parameter.

    owner : the kind of the parts that have it, "data", "start", "target", "loss", "update", ..., or "problem".
    type : the type of its values, with their bounds.
    default : None for a parameter that the parts need (`is_needed`).
    """

    name: str
    owner: str
    type: Any
    default: Any
    is_needed: bool
    meaning: str
    label: str
    symbol: str
    example: Any

    @classmethod
    def of(cls, name: str, field: FieldInfo, owner: str) -> "Parameter":
        """Return the parameter that a field of pydantic's declares; SweeplibError if it was not made by `parameter`."""
        extra, needed = field.json_schema_extra, field.is_required()
        if not isinstance(extra, dict) or not field.description or not field.examples:
            expected = (
                f"`{name}: type = parameter(default, label, symbol, example)` and its meaning as a docstring below"
            )
            raise SweeplibError(f"the parameter {name!r} of `{owner}` is not declared; expected {expected}")
        kind: Any = Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
        value = None if needed else field.get_default(call_default_factory=True)
        meaning, labels = " ".join(field.description.split()), (str(extra["label"]), str(extra["symbol"]))
        return cls(name, owner, kind, value, needed, meaning, *labels, field.examples[0])

    @cached_property
    def adapter(self) -> Any:
        """Pydantic's adapter of its values."""
        return pydantic.TypeAdapter(self.type)

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of its values."""
        return dict(self.adapter.json_schema())


PARAMETERS: dict[str, Parameter] = {}
"""All parameters of a problem by name: its own, and those of all registered parts."""
RESERVED: set[str] = set()
"""Attributes of problems, which are no parameters."""
DEFAULTS: dict[str, Any] = {}
"""The optional parameters and their default values; None for those that the parts with them need."""


def declare(owner: str, fields: Mapping[str, FieldInfo], name: str = PROBLEM) -> None:
    """Add the parameters of the part `name`, of the kind `owner`; SweeplibError for one that another kind has already.

    fields : pydantic's fields of its `Parameters`.
    """
    parameters = {key: Parameter.of(key, field, owner) for key, field in fields.items()}
    for key, entry in parameters.items():
        if (declared := PARAMETERS.get(key, entry)) != entry or key in RESERVED:
            other = f"one of `{declared.owner}` has another of this name"
            whose = "a problem has it" if declared.owner == PROBLEM or key in RESERVED else other
            problem = f"{name!r} of `{owner}` cannot have a parameter {key!r}: {whose}; expected another name"
            raise SweeplibError(problem)
    PARAMETERS.update(parameters)
    DEFAULTS.update(
        {key: entry.default for key, entry in parameters.items() if owner != PROBLEM or not entry.is_needed}
    )


def declare_parameters_of(owner: str) -> Callable[[str, Any], None]:
    """Return the check of a registry of parts of a kind: a function that declares the parameters of a new part."""
    return lambda name, part: declare(owner, part.parameters.model_fields, name)


_LETTERS = {"η": "gamma", "eta": "gamma", "K": "p", "M": "k", "N": "d"}
"""The parameters that Saad and Solla write with other letters."""
_GREEK = {unicodedata.name(letter, ""): letter for letter in map(chr, range(0x391, 0x3CA))}
"""The Greek letters by their names in Unicode."""


def synonyms() -> dict[str, str]:
    """Return parameters by the words that users may write for them: labels, their initials, symbols, other letters.

    Messages about unknown parameters suggest them.
    """
    meant = dict(_LETTERS)
    for name, parameter in PARAMETERS.items():
        words = parameter.label.lower().replace("-", " ")
        for word in (words, "".join(syllable[0] for syllable in words.split()), _greek(parameter.symbol)):
            if len(word) > 1 or not word.isascii():
                meant.setdefault(word, name)
    return {word: name for word, name in meant.items() if word not in PARAMETERS}


def _greek(symbol: str) -> str:
    r"""Return the letter of a symbol such as `\gamma` or `\varrho`; an empty text for other symbols."""
    # Unicode calls the letter LAMDA
    name = symbol.removeprefix("\\").removeprefix("var").replace("ambda", "amda")
    size = "CAPITAL" if name[:1].isupper() else "SMALL"
    return _GREEK.get(f"GREEK {size} LETTER {name.upper()}", "")


def parameters_of(owner: str) -> list[str]:
    """Return the names of the parameters of all parts of a kind."""
    return [name for name, parameter in PARAMETERS.items() if parameter.owner == owner]


def names_with_parts(reads: frozenset[str]) -> frozenset[str]:
    """Return names of parameters; with the name of a kind, such as "start", also the parameters of all its parts."""
    return reads.union(name for name, parameter in PARAMETERS.items() if parameter.owner in reads)


def any_problem(problem: "Problem") -> None:
    """Accept every problem."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """What a problem, or a recording, names: a data law, a start, a target, a loss, a step or an observable.

    parameters : its own parameters, which its functions get by name, or read from the problem.
    reads : the other parameters of a problem that it acts on.
    limits : what it does not take of a problem.
    check : function (problem) that raises InputError for other problems to which it does not apply.
    """

    name: str
    parameters: type[Parameters] = Parameters
    reads: frozenset[str] = frozenset()
    limits: "tuple[Limit, ...]" = ()
    check: Callable[["Problem"], None] = any_problem

    @cached_property
    def parameter_names(self) -> tuple[str, ...]:
        """The names of its own parameters, in their order."""
        return tuple(self.parameters.model_fields)

    @cached_property
    def needed(self) -> tuple[str, ...]:
        """The names of its own parameters that a problem must give."""
        return tuple(name for name, field in self.parameters.model_fields.items() if field.is_required())

    @cached_property
    def acts_on(self) -> frozenset[str]:
        """The names of all parameters that it acts on, its own and others."""
        return self.reads.union(self.parameter_names)

    def refuse(self, problem: "Problem") -> None:
        """Raise InputError for a problem that lacks a parameter, or to which the part does not apply."""
        for name in self.needed:
            if getattr(problem, name) is None:
                expected = PARAMETERS[name].meaning.rstrip(".")
                raise InputError(f"{self.name} needs it", key=name, value=None, expected=expected)
        for limit in self.limits:
            limit.refuse(problem)
        self.check(problem)
